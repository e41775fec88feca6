{{- define "greensched.controllerName" -}}{{ include "greensched.fullname" . }}-controller{{- end -}}
{{- define "greensched.webhookName" -}}{{ include "greensched.fullname" . }}-webhook{{- end -}}
{{- define "greensched.releaserName" -}}{{ include "greensched.fullname" . }}-releaser{{- end -}}
{{- define "greensched.heartbeatName" -}}{{ include "greensched.fullname" . }}-heartbeat{{- end -}}
{{- define "greensched.budgetsName" -}}{{ include "greensched.fullname" . }}-budgets{{- end -}}
{{- define "greensched.emergencyReleaseName" -}}{{ include "greensched.fullname" . }}-emergency-release{{- end -}}
{{- /* The name of what the operator's processes share, and of the Lease that elects the leader. */}}
{{- define "greensched.operatorName" -}}{{ include "greensched.fullname" . }}-operator{{- end -}}

{{- /* A MutatingWebhookConfiguration has no namespace: two releases must not share one. */}}
{{- define "greensched.webhookConfiguration" -}}{{ include "greensched.fullname" . }}{{- end -}}

{{- define "greensched.operatorImage" -}}
{{- include "greensched.image" (list .Values.operator.image .Chart.AppVersion) -}}
{{- end -}}

{{- /* Without a webhook, the API server would only wait for an answer. */}}
{{- define "greensched.hasWebhook" -}}
{{- if and .Values.operator.enabled (or .Values.operator.webhook.replicas .Values.operator.webhook.url) -}}true{{- end -}}
{{- end -}}
