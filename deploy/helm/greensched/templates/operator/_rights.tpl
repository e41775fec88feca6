{{- define "greensched.controller.ClusterRole" -}}
# Held work: seen, planned (its status), started, and suspended where it may be.
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
# When they run next; and, written on them, how long their runs took.
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
# Which certificate of the webhook the API server is to trust.
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [{{ include "greensched.webhookConfiguration" .root }}]
  verbs: [get, patch]
{{- include "greensched.ownRights" . }}
{{- include "greensched.kueueRights" (list .root "list, watch") }}
{{- if .root.Values.operator.kueue.enabled }}
# That somebody decides on our checks.
- apiGroups: [kueue.x-k8s.io]
  resources: [admissionchecks/status]
  verbs: [patch]
{{- end }}
{{- end -}}

{{- define "greensched.ownRights" }}
# Whether it still has its rights; hardened clusters do not let everybody ask.
- apiGroups: [authorization.k8s.io]
  resources: [selfsubjectaccessreviews]
  verbs: [create]
{{- end -}}

{{- define "greensched.kueueRights" }}
{{- if (first .).Values.operator.kueue.enabled }}
# Work that waits for our AdmissionCheck: seen, planned, and its check's word (its status).
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
# What each extender decided on a pod that was placed: it tells on its pod's loopback alone.
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
# The webhook's certificate; and the keys of grid data providers, one by one, by the names that
# GridSignals give: only those of type greensched.io/provider are used.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create]
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ include "greensched.webhookName" .root }}]
  verbs: [patch]
{{- if .root.Values.policy.create }}
# After a first installation, and then never again.
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
  resources: [greenpolicies]
  verbs: [list, watch]
- apiGroups: [batch]
  resources: [cronjobs]
  verbs: [list, watch]
# Whether the API server trusts its certificate: before that it holds nothing, and is not ready.
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [{{ include "greensched.webhookConfiguration" .root }}]
  verbs: [list, watch]
{{- end -}}

{{- define "greensched.webhook.Role" -}}
# What it waits for, where it cannot get ready.
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# Whether somebody is there who can start what it holds: the leader, or a releaser.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "greensched.heartbeatName" .root }}]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ .switch }}]
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
# What it waits for, where it cannot get ready.
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
  resourceNames: [{{ .switch }}]
  verbs: [list, watch]
{{- end -}}

{{- define "greensched.emergency-release.ClusterRole" -}}
# First of all, so that nothing new is held.
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
# Itself: the switch is deleted with it.
- apiGroups: [""]
  resources: [serviceaccounts]
  resourceNames: [{{ .name }}]
  verbs: [get]
{{- end -}}
