{{- /* What work is sent to the webhook, in CEL: what it would answer "not ours" to stays with the API
server. Annotations of ours are sent without the opt-in too, which the webhook then asks for; so is our
mark of being held, which a copied object must not keep. */}}
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
