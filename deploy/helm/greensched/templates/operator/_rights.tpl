{{- define "greensched.controller.ClusterRole" -}}
# Held work: watch it, write its plan (in its status), start it, suspend it if allowed.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch, patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, patch]
- apiGroups: [batch]
  resources: [jobs/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# When CronJobs run next, and the durations of their past runs, stored in annotations.
- apiGroups: [batch]
  resources: [cronjobs]
  verbs: [list, watch, patch]
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch]
- apiGroups: [greensched.io]
  resources: [gridsignals, greenpolicies, jobpowerprofiles]
  verbs: [list, watch]
- apiGroups: [greensched.io]
  resources: [gridsignals/status, greenpolicies/status, jobpowerprofiles/status]
  verbs: [patch]
# To set the webhook's certificate that the API server trusts.
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [{{ include "greensched.webhookConfiguration" .root }}]
  verbs: [get, patch]
{{- include "greensched.ownRights" . }}
{{- include "greensched.kueueRights" (list .root "list, watch") }}
{{- if .root.Values.operator.kueue.enabled }}
# To mark our checks as Active.
- apiGroups: [kueue.x-k8s.io]
  resources: [admissionchecks/status]
  verbs: [patch]
{{- end }}
{{- end -}}

{{- define "greensched.ownRights" }}
# To ask for its own rights; hardened clusters do not let every account ask.
- apiGroups: [authorization.k8s.io]
  resources: [selfsubjectaccessreviews]
  verbs: [create]
{{- end -}}

{{- define "greensched.kueueRights" }}
{{- if (first .).Values.operator.kueue.enabled }}
# Work that waits for our AdmissionCheck: watch it, write its plan, set its check (in its status).
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [{{ last . }}, patch]
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads/status]
  verbs: [patch]
- apiGroups: [kueue.x-k8s.io]
  resources: [admissionchecks]
  verbs: [{{ last . }}]
{{- end }}
{{- end -}}

{{- define "greensched.controller.Role" -}}
# The emergency release, and the bundles that GreenPolicies name.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch]
# The use of budgets, which outlives a leader.
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ include "greensched.budgetsName" .root }}]
  verbs: [patch]
# An extender's decision on a placed pod, which it serves on its pod's loopback only.
- apiGroups: [""]
  resources: [pods/portforward]
  verbs: [create, get]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "greensched.operatorName" .root }}]
  verbs: [get, patch]
# Its signs of life.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "greensched.heartbeatName" .root }}]
  verbs: [patch]
# The webhook's certificate, and the keys of grid data providers by the names in GridSignals. Only
# Secrets of type greensched.io/provider are used.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create]
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ include "greensched.webhookName" .root }}]
  verbs: [patch]
{{- if .root.Values.policy.create }}
# Used only once, after the first installation.
- apiGroups: [greensched.io]
  resources: [greenpolicies]
  verbs: [create]
- apiGroups: [greensched.io]
  resources: [greenpolicies]
  resourceNames: [default]
  verbs: [get, patch]
{{- end }}
{{- end -}}

{{- define "greensched.webhook.ClusterRole" -}}
- apiGroups: [greensched.io]
  resources: [greenpolicies, jobpowerprofiles]
  verbs: [list, watch]
- apiGroups: [batch]
  resources: [cronjobs]
  verbs: [list, watch]
# To check that the API server trusts its certificate: before, it holds nothing and is not ready.
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [{{ include "greensched.webhookConfiguration" .root }}]
  verbs: [list, watch]
{{- end -}}

{{- define "greensched.webhook.Role" -}}
# Events that say what a process that is not ready waits for.
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# To see signs of life of the leader or a releaser, who can start what it holds.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "greensched.heartbeatName" .root }}]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ .emergencyRelease }}]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ include "greensched.webhookName" .root }}]
  verbs: [list, watch]
{{- end -}}

{{- define "greensched.releaser.ClusterRole" -}}
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch, patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, patch]
{{- include "greensched.ownRights" . }}
{{- include "greensched.kueueRights" (list .root "list, watch") }}
{{- end -}}

{{- define "greensched.releaser.Role" -}}
# Events that say what a process that is not ready waits for.
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# Its signs of life.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "greensched.heartbeatName" .root }}]
  verbs: [patch]
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ .emergencyRelease }}]
  verbs: [list, watch]
{{- end -}}

{{- define "greensched.emergency-release.ClusterRole" -}}
# Its first step, so that nothing new is held.
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [{{ include "greensched.webhookConfiguration" .root }}]
  verbs: [delete]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, patch]
{{- include "greensched.kueueRights" (list .root "list") }}
{{- end -}}

{{- define "greensched.emergency-release.Role" -}}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create]
# Its own account, which owns the ConfigMap: both are deleted together.
- apiGroups: [""]
  resources: [serviceaccounts]
  resourceNames: [{{ .name }}]
  verbs: [get]
{{- end -}}
