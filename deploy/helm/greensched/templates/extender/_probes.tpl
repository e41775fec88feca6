{{- /* The kubelet has no client certificate: if one is required, it can only check whether the port is open. */}}
{{- define "greensched.extenderProbe" -}}
{{- $root := first . -}}
{{- if $root.Values.tls.client.enabled -}}
tcpSocket: {port: extender}
{{- else -}}
httpGet: {path: {{ last . }}, port: extender, scheme: {{ ternary "HTTPS" "HTTP" $root.Values.tls.enabled }}}
{{- end -}}
{{- end -}}

{{- define "greensched.extenderProbes" -}}
startupProbe:
  {{- include "greensched.extenderProbe" (list . "/healthz") | nindent 2 }}
  periodSeconds: 1
  failureThreshold: 120
livenessProbe:
  {{- include "greensched.extenderProbe" (list . "/healthz") | nindent 2 }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  {{- include "greensched.extenderProbe" (list . "/readyz") | nindent 2 }}
  periodSeconds: 2
  timeoutSeconds: 2
{{- end -}}
