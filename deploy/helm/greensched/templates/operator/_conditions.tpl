{{- /* Which work the API server sends to the webhook, in CEL: all but work that does not concern it. Work with
our annotations but without the opt-in is sent too, because the webhook then warns about it. So is work
with our marks of a hold, which a copied object must not keep. */}}
{{- define "greensched.celAnnotations" -}}
[{{- range $place, $name := list "deadline" "max-delay" "window" "checkpointable" "latest-start" "hold-until" }}{{ if $place }}, {{ end }}"greensched.io/{{ $name }}"{{ end }}]
{{- end -}}

{{- define "greensched.celAnnotated" -}}
(has({{ last . }}.annotations) && {{ include "greensched.celAnnotations" (first .) }}.exists(name, name in {{ last . }}.annotations))
{{- end -}}

{{- define "greensched.celOptedIn" -}}
(has({{ last . }}.schedulerName) && {{ last . }}.schedulerName in {{ list (first .).Values.scheduler.name | toJson }})
{{- end -}}

{{- define "greensched.celServed" -}}
(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(owner, has(owner.controller) && owner.controller && owner.kind in ["Job", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"]))
{{- end -}}
