{{- /* The image's reference: by its digest if there is one, else by its tag. Call with
(list IMAGE TAG); TAG is the default tag. */}}
{{- define "greensched.image" -}}
{{- $image := first . -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default (last .) $image.tag) -}}
{{- end -}}
{{- end -}}
