{{- define "greensched.extender.ClusterRole" -}}
- apiGroups: [""]
  resources: [nodes, pods]
  verbs: [list, watch]
# Runtimes and policies that are set on Jobs and CronJobs.
- apiGroups: [batch]
  resources: [jobs, cronjobs]
  verbs: [list, watch]
- apiGroups: [greensched.io]
  resources: [gridsignals, greenpolicies]
  verbs: [list, watch]
{{- if .root.Values.extender.bind.enabled }}
- apiGroups: [""]
  resources: [pods/binding]
  verbs: [create]
# To check whether a bound pod is on the requested node.
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
{{- end }}
{{- end -}}

{{- define "greensched.extender.Role" -}}
# Bundles that GreenPolicies name.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, watch]
# Events that say what an extender that is not ready waits for.
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end -}}
