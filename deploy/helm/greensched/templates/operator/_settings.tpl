{{- /* Each key of operator.settings is a setting of the processes: replanEveryS is REPLAN_EVERY_S.
The settings of grid, money and nodes are given once, in extender.settings, for both. */}}
{{- define "greensched.operatorEnvironment" -}}
{{- $prefix := "GREENSCHED_OPERATOR_" -}}
{{- $shared := pick .Values.extender.settings "defaultPue" "utilisationRatio" "gpuRatio" "currency" "exchangeRates" "signalFreshS" "signalMaxStaleS" "zoneMap" "prometheusUrl" "prometheusTimeoutS" -}}
{{- range $key, $value := merge (dict) .Values.operator.settings $shared }}
{{ $prefix }}{{ snakecase $key | upper }}: {{ ternary $value (toJson $value) (kindIs "string" $value) | quote }}
{{- end }}
{{ $prefix }}NAMESPACE: {{ .Release.Namespace | quote }}
{{ $prefix }}SCHEDULER_NAMES: {{ list .Values.scheduler.name | toJson | quote }}
{{ $prefix }}HEALTH_PORT: {{ .Values.operator.healthPort | quote }}
{{ $prefix }}LEASE: {{ include "greensched.operatorName" . | quote }}
{{ $prefix }}HEARTBEAT_LEASE: {{ include "greensched.heartbeatName" . | quote }}
{{ $prefix }}BUDGETS_CONFIG_MAP: {{ include "greensched.budgetsName" . | quote }}
{{ $prefix }}WEBHOOK_PORT: {{ .Values.operator.webhook.port | quote }}
{{ $prefix }}WEBHOOK_HOSTS: {{ include "greensched.webhookHosts" . | quote }}
{{ $prefix }}WEBHOOK_SECRET: {{ include "greensched.webhookName" . | quote }}
{{ $prefix }}WEBHOOK_CONFIGURATION: {{ include "greensched.webhookConfiguration" . | quote }}
{{ $prefix }}KUEUE: {{ .Values.operator.kueue.enabled | quote }}
{{ $prefix }}KUEUE_GATED_BY: {{ .Values.operator.kueue.admissionGatedBy | quote }}
{{ $prefix }}EMERGENCY_RELEASE_OWNER: {{ include "greensched.emergencyReleaseName" . | quote }}
{{ $prefix }}LEDGER: /var/lib/greensched/ledger.sqlite
{{- if .Values.operator.controller.signalFiles }}
{{ $prefix }}SIGNAL_FILES: /etc/greensched/signals
{{- end }}
{{- if .Values.extender.staticZones }}
{{ $prefix }}STATIC_ZONES_FILE: /etc/greensched/zones/zones.toml
{{- end }}
{{- if .Values.policy.create }}
{{ $prefix }}DEFAULT_POLICY_FILE: /etc/greensched/policy/policy.json
{{- end }}
{{- end -}}

{{- define "greensched.webhookHosts" -}}
{{- if .Values.operator.webhook.url -}}
{{- list (urlParse .Values.operator.webhook.url).hostname | toJson -}}
{{- else -}}
{{- list (printf "%s.%s.svc" (include "greensched.webhookName" .) .Release.Namespace) | toJson -}}
{{- end -}}
{{- end -}}

{{- define "greensched.operatorAnnotations" -}}
greensched.io/explain-port: {{ .Values.operator.settings.ledgerPort | quote }}
checksum/config: {{ print (include "greensched.operatorEnvironment" .) (include "greensched.staticZones" .) | sha256sum }}
{{- end -}}
