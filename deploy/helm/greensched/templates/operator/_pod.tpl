{{- /* Common part of the pods of all the operator's processes. Call with (list . ACCOUNT). */}}
{{- define "greensched.operatorPodHead" -}}
{{- $root := first . -}}
# Not our own scheduler, which may be dead while held work must still be started.
schedulerName: default-scheduler
enableServiceLinks: false
serviceAccountName: {{ last . }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext: {{- include "greensched.podSecurity" $root | nindent 2 }}
{{- include "greensched.placement" $root.Values.operator }}
{{- end -}}

{{- define "greensched.operatorContainer" -}}
{{- $root := first . -}}
{{- $process := index . 1 -}}
name: {{ $process }}
image: {{ include "greensched.operatorImage" $root | quote }}
imagePullPolicy: {{ $root.Values.operator.image.pullPolicy }}
args: [{{ $process }}]
envFrom:
  - configMapRef:
      name: {{ include "greensched.operatorName" $root }}
securityContext: {{- include "greensched.containerSecurity" $root | nindent 2 }}
env: {{- include "greensched.ownPod" "GREENSCHED_OPERATOR_" | nindent 2 }}
{{- end -}}

{{- define "greensched.operatorProbes" -}}
startupProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 1
  failureThreshold: 120
livenessProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 2
  timeoutSeconds: 2
{{- end -}}

{{- define "greensched.operatorPodMeta" -}}
{{- $root := first . -}}
labels:
  {{- $labels := include "greensched.labels" (list $root (last .)) }}
  {{- include "greensched.withUsers" (list "operator.podLabels" $labels $root.Values.operator.podLabels) | nindent 2 }}
annotations:
  {{- $annotations := include "greensched.operatorAnnotations" $root }}
  {{- include "greensched.withUsers" (list "operator.podAnnotations" $annotations $root.Values.operator.podAnnotations) | nindent 2 }}
{{- end -}}

{{- define "greensched.operatorBudget" -}}
{{- $root := first . -}}
{{- if $root.Values.operator.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ last . }}
  namespace: {{ $root.Release.Namespace | quote }}
  labels: {{- include "greensched.labels" (list $root (index . 1)) | nindent 4 }}
spec:
  # Not minAvailable: 1: with one replica it would block every drain.
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "greensched.selectorLabels" (list $root (index . 1)) | nindent 6 }}
{{- end }}
{{- end -}}
