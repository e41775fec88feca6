{{- /* What the kubelet pulls: exactly one image by its digest, else whatever has the tag. Call with
(list IMAGE TAG), TAG for an image that names none. */}}
{{- define "greensched.image" -}}
{{- $image := first . -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default (last .) $image.tag) -}}
{{- end -}}
{{- end -}}
