{{- define "greensched.fullname" -}}
{{- $chart := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $chart .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $chart | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "greensched.schedulerName" -}}{{ include "greensched.fullname" . }}-scheduler{{- end -}}
{{- define "greensched.extenderName" -}}{{ include "greensched.fullname" . }}-extender{{- end -}}

{{- /* Labels that never change: Deployments cannot change their selector. Call with (list . "component"). */}}
{{- define "greensched.selectorLabels" -}}
{{- $root := first . -}}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/component: {{ last . }}
{{- end -}}

{{- define "greensched.labels" -}}
{{- $root := first . -}}
{{ include "greensched.selectorLabels" . }}
app.kubernetes.io/part-of: greensched
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- /* The chart's labels or annotations, and the user's. Call with (list "name of the user's value" OURS
THEIRS), OURS as YAML. A key in both would be in one map twice, which strict parsers refuse. */}}
{{- define "greensched.withUsers" -}}
{{- $ours := index . 1 -}}
{{- range $key, $value := index . 2 -}}
{{- if hasKey (fromYaml $ours) $key -}}
{{- fail (printf "%s: %s is set by the chart; leave it out or take another key" (first $) $key) -}}
{{- end -}}
{{- end -}}
{{- $ours -}}
{{- with index . 2 }}
{{ toYaml . }}
{{- end -}}
{{- end -}}

{{- define "greensched.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "greensched.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* Placement that both Deployments share. Call with .Values.scheduler or .Values.extender. */}}
{{- define "greensched.placement" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Replicas on different machines and in different zones. Call with (list . COMPONENT). */}}
{{- define "greensched.spread" -}}
{{- $arguments := . -}}
topologySpreadConstraints:
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "greensched.selectorLabels" $arguments | nindent 8 }}
{{- end }}
{{- end -}}

{{- /* Who may scrape, as peers of a NetworkPolicy. */}}
{{- define "greensched.scrapers" -}}
{{- if .Values.networkPolicy.metricsNamespace -}}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ .Values.networkPolicy.metricsNamespace | quote }}
{{- else -}}
- namespaceSelector: {}
{{- end -}}
{{- end -}}

{{- /* Lets a process write events about its own pod; the prefix is that of its settings. */}}
{{- define "greensched.ownPod" -}}
- name: {{ . }}POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: {{ . }}POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: {{ . }}POD_UID
  valueFrom: {fieldRef: {fieldPath: metadata.uid}}
{{- end -}}
