{{- define "greensched.checkName" -}}{{ include "greensched.fullname" . }}-check{{- end -}}

{{- /* The name of the check's namespace and of its ClusterRole. Helm deletes both, so no other object may have
the name, not even the release's namespace. Helm 4 takes over an existing object; Helm 3 refuses it. */}}
{{- define "greensched.checkOwnName" -}}
{{- printf "%s-%s" (include "greensched.checkName" .) (printf "%s/%s" .Release.Namespace .Release.Name | sha256sum | trunc 8) -}}
{{- end -}}

{{- /* The rights that `helm test` checks: the chart's own rules of all accounts, and one of the roles that
Kubernetes has for its schedulers. */}}
{{- define "greensched.checkRights" -}}
{{- $grants := list -}}
{{- $names := dict "controller" (include "greensched.controllerName" .) "webhook" (include "greensched.webhookName" .) "releaser" (include "greensched.releaserName" .) "emergency-release" (include "greensched.emergencyReleaseName" .) "extender" (include "greensched.extenderName" .) -}}
{{- range $process, $name := $names -}}
{{- $context := dict "root" $ "emergencyRelease" "greensched-emergency-release" "name" $name -}}
{{- range $kind, $where := dict "ClusterRole" "" "Role" $.Release.Namespace -}}
{{- $rules := include (printf "greensched.%s.%s" $process $kind) $context | fromYamlArray -}}
{{- $grants = append $grants (dict "account" $name "account_namespace" $.Release.Namespace "namespace" $where "rules" $rules) -}}
{{- end -}}
{{- end -}}
{{- if .Values.scheduler.replicas -}}
{{- $binds := list (dict "apiGroups" (list "") "resources" (list "pods/binding") "verbs" (list "create")) -}}
{{- range $where, $rules := dict "" $binds .Release.Namespace (include "greensched.scheduler.Role" . | fromYamlArray) -}}
{{- $grants = append $grants (dict "account" (include "greensched.schedulerName" $) "account_namespace" $.Release.Namespace "namespace" $where "rules" $rules) -}}
{{- end -}}
{{- end -}}
{{- toJson $grants -}}
{{- end -}}

{{- /* The check's objects exist while it runs, and are deleted afterwards even if it fails. */}}
{{- define "greensched.checkMeta" -}}
labels: {{- include "greensched.labels" (list (first .) "check") | nindent 2 }}
annotations:
  helm.sh/hook: test
  helm.sh/hook-weight: {{ last . | quote }}
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end -}}
