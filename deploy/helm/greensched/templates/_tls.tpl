{{- define "greensched.checkValues" -}}
{{- $tls := .Values.tls -}}
{{- $bind := .Values.extender.bind -}}
{{- if and $bind.enabled (not $tls.client.enabled) (not $bind.allowWithoutClientCertificates) -}}
{{- fail "extender.bind.enabled needs tls.client.enabled: without client certificates any pod that reaches the extender could bind any pod; extender.bind.allowWithoutClientCertificates=true accepts that" -}}
{{- end -}}
{{- if eq (int .Values.extender.port) (int .Values.extender.settings.explainPort) -}}
{{- fail (printf "extender.port and extender.settings.explainPort are both %d: they must differ" (int .Values.extender.port)) -}}
{{- end -}}
{{- if and $tls.client.enabled (not $tls.enabled) -}}
{{- fail "tls.client.enabled needs tls.enabled" -}}
{{- end -}}
{{- if and $tls.certManager.enabled (not $tls.enabled) -}}
{{- fail "tls.certManager.enabled needs tls.enabled" -}}
{{- end -}}
{{- if $tls.enabled -}}
{{- if and (not $tls.existingSecret) (not $tls.certManager.enabled) -}}
{{- fail "tls.enabled needs tls.existingSecret (a Secret with tls.crt, tls.key, ca.crt) or tls.certManager.enabled" -}}
{{- end -}}
{{- if and $tls.client.enabled (not $tls.client.existingSecret) (not $tls.certManager.enabled) -}}
{{- fail "tls.client.enabled needs tls.client.existingSecret (a Secret with tls.crt, tls.key, ca.crt) or tls.certManager.enabled" -}}
{{- end -}}
{{- if and $tls.certManager.enabled (not $tls.certManager.issuerRef.name) -}}
{{- fail "tls.certManager.enabled needs tls.certManager.issuerRef.name" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "greensched.serverSecret" -}}
{{- default (printf "%s-tls" (include "greensched.extenderName" .)) .Values.tls.existingSecret -}}
{{- end -}}

{{- define "greensched.clientSecret" -}}
{{- default (printf "%s-tls" (include "greensched.schedulerName" .)) .Values.tls.client.existingSecret -}}
{{- end -}}

{{- define "greensched.serviceHost" -}}
{{ include "greensched.extenderName" . }}.{{ .Release.Namespace }}.svc
{{- end -}}
