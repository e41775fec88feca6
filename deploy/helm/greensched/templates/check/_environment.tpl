{{- /* The settings of check-install: this release's names and addresses. */}}
{{- define "greensched.checkEnvironment" -}}
{{- $prefix := "GREENSCHED_CHECK_" -}}
- {name: {{ $prefix }}RELEASE, value: {{ include "greensched.fullname" . | quote }}}
- {name: {{ $prefix }}NAMESPACE, value: {{ include "greensched.checkOwnName" . | quote }}}
- {name: {{ $prefix }}IMAGE, value: {{ include "greensched.operatorImage" . | quote }}}
- {name: {{ $prefix }}CAN_HOLD, value: {{ ternary "true" "false" (eq (include "greensched.hasWebhook" .) "true") | quote }}}
- {name: {{ $prefix }}SCHEDULER_NAME, value: {{ ternary .Values.scheduler.name "" (gt (int .Values.scheduler.replicas) 0) | quote }}}
- {name: {{ $prefix }}POLICY_MODE, value: {{ ternary .Values.policy.mode "" .Values.policy.create | quote }}}
- {name: {{ $prefix }}RIGHTS, value: {{ include "greensched.checkRights" . | quote }}}
{{- if not .Values.scheduler.extenderUrl }}
- {name: {{ $prefix }}EXTENDER_URL, value: {{ include "greensched.extenderUrl" . | quote }}}
{{- if .Values.tls.enabled }}
- {name: {{ $prefix }}EXTENDER_CA_FILE, value: /etc/greensched/extender-ca/ca.crt}
- {name: {{ $prefix }}EXTENDER_SERVER_NAME, value: {{ .Values.tls.serverName | quote }}}
{{- if .Values.tls.client.enabled }}
- {name: {{ $prefix }}EXTENDER_CERT_FILE, value: /etc/greensched/client/tls.crt}
- {name: {{ $prefix }}EXTENDER_KEY_FILE, value: /etc/greensched/client/tls.key}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
