{{- /* Each key of extender.settings is a setting of the service: modelBudgetMs is MODEL_BUDGET_MS. */}}
{{- define "greensched.extenderEnvironment" -}}
{{- $prefix := "GREENSCHED_EXTENDER_" -}}
{{- range $key, $value := .Values.extender.settings }}
{{ $prefix }}{{ snakecase $key | upper }}: {{ ternary $value (toJson $value) (kindIs "string" $value) | quote }}
{{- end }}
{{ $prefix }}LISTEN_PORT: {{ .Values.extender.port | quote }}
{{ $prefix }}POLICY_NAMESPACE: {{ .Release.Namespace | quote }}
{{ $prefix }}SCHEDULER_NAMES: {{ list .Values.scheduler.name | toJson | quote }}
{{ $prefix }}FILTER_ENABLED: {{ .Values.extender.powerLimits.enabled | quote }}
{{ $prefix }}BIND_ENABLED: {{ .Values.extender.bind.enabled | quote }}
{{- if .Values.extender.bundleConfigMap }}
{{ $prefix }}BUNDLE: /etc/greensched/bundle
{{- end }}
{{- if .Values.extender.staticZones }}
{{ $prefix }}STATIC_ZONES_FILE: /etc/greensched/zones/zones.toml
{{- end }}
{{- if .Values.tls.enabled }}
{{ $prefix }}TLS_CERT_FILE: /etc/greensched/tls/tls.crt
{{ $prefix }}TLS_KEY_FILE: /etc/greensched/tls/tls.key
{{- end }}
{{- if .Values.tls.client.enabled }}
{{ $prefix }}TLS_CLIENT_CA_FILE: /etc/greensched/client-ca/ca.crt
{{- end }}
{{- end -}}

{{- define "greensched.staticZones" -}}
{{- range $zone, $signal := .Values.extender.staticZones }}
[zones.{{ $zone }}]
{{- with $signal.currency }}
currency = {{ . | quote }}
{{- end }}
{{- if hasKey $signal "carbonGramsPerKwh" }}
carbon_grams_per_kwh = {{ toJson $signal.carbonGramsPerKwh }}
{{- end }}
{{- if hasKey $signal "pricePerMwh" }}
price_per_mwh = {{ toJson $signal.pricePerMwh }}
{{- end }}
{{ end }}
{{- end -}}

{{- /* The port of the explain routes, for `greensched explain`; and checksums that restart the pods. */}}
{{- define "greensched.extenderAnnotations" -}}
greensched.io/explain-port: {{ .Values.extender.settings.explainPort | quote }}
checksum/config: {{ include (print .Template.BasePath "/extender/configmap.yaml") . | sha256sum }}
{{- end -}}
