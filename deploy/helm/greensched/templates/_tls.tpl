{{- define "greensched.serverSecret" -}}
{{- default (printf "%s-tls" (include "greensched.extenderName" .)) .Values.tls.existingSecret -}}
{{- end -}}

{{- define "greensched.clientSecret" -}}
{{- default (printf "%s-tls" (include "greensched.schedulerName" .)) .Values.tls.client.existingSecret -}}
{{- end -}}

{{- define "greensched.serviceHost" -}}
{{ include "greensched.extenderName" . }}.{{ .Release.Namespace }}.svc
{{- end -}}
