{{- define "greensched.scheduler.Role" -}}
# Its own Lease. Creating cannot be limited by name; all other rights are.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "greensched.schedulerName" . }}]
  verbs: [get, update]
{{- end -}}
