{{- /* The cluster's version without a provider's suffix; upstream's own pre-release suffixes stay. */}}
{{- define "greensched.schedulerImage" -}}
{{- $image := .Values.scheduler.image -}}
{{- $cluster := regexFind "^v[0-9]+\\.[0-9]+\\.[0-9]+(-(alpha|beta|rc)\\.[0-9]+)?" .Capabilities.KubeVersion.Version -}}
{{- if not (or $cluster $image.tag $image.digest) -}}
{{- fail (printf "the cluster's version %s has no patch number to find kube-scheduler's image by: set scheduler.image.tag, or give --kube-version in full" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- include "greensched.image" (list $image $cluster) -}}
{{- end -}}

{{- define "greensched.extenderUrl" -}}
{{- if .Values.scheduler.extenderUrl -}}
{{- .Values.scheduler.extenderUrl | trimSuffix "/" -}}
{{- else -}}
{{- ternary "https" "http" .Values.tls.enabled }}://{{ include "greensched.serviceHost" . }}:{{ .Values.extender.port }}
{{- end -}}
{{- end -}}

{{- define "greensched.schedulerConfig" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  qps: {{ int .Values.scheduler.clientQps }}
  burst: {{ int .Values.scheduler.clientBurst }}
leaderElection:
  leaderElect: true
  resourceLock: leases
  resourceName: {{ include "greensched.schedulerName" . }}
  resourceNamespace: {{ .Release.Namespace | quote }}
parallelism: {{ .Values.scheduler.parallelism }}
percentageOfNodesToScore: {{ .Values.scheduler.percentageOfNodesToScore }}
profiles:
  - schedulerName: {{ .Values.scheduler.name | quote }}
    plugins:
      score:
        {{- include "greensched.scorePlugins" .Values.scheduler.scoreWeights | nindent 8 }}
    {{- if not .Values.scheduler.defaultSpread }}
    pluginConfig:
      - name: PodTopologySpread
        args:
          defaultingType: List
          defaultConstraints: []
    {{- end }}
extenders:
  {{- include "greensched.extenderEntry" . | nindent 2 }}
{{- end -}}

{{- define "greensched.scorePlugins" -}}
{{- $enabled := list -}}
{{- $disabled := list -}}
{{- range $name, $weight := . -}}
{{- if $weight -}}
{{- $enabled = append $enabled (dict "name" $name "weight" $weight) -}}
{{- else -}}
{{- $disabled = append $disabled (dict "name" $name) -}}
{{- end -}}
{{- end -}}
{{- with $enabled -}}
enabled: {{- toYaml . | nindent 2 }}
{{ end -}}
{{- with $disabled -}}
disabled: {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{- define "greensched.extenderEntry" -}}
- urlPrefix: {{ include "greensched.extenderUrl" . }}
  prioritizeVerb: prioritize
  weight: {{ .Values.scheduler.extenderWeight }}
  {{- if .Values.extender.powerLimits.enabled }}
  filterVerb: filter
  {{- end }}
  {{- if .Values.extender.bind.enabled }}
  bindVerb: bind
  {{- end }}
  httpTimeout: {{ .Values.scheduler.extenderTimeoutMilliseconds }}ms
  # If the extender does not answer, pods are placed without it; only names are sent, never whole nodes.
  ignorable: true
  nodeCacheCapable: true
  {{- if .Values.tls.enabled }}
  enableHTTPS: true
  tlsConfig:
    serverName: {{ default (include "greensched.serviceHost" .) .Values.tls.serverName | quote }}
    caFile: /etc/greensched/extender-ca/ca.crt
    {{- if .Values.tls.client.enabled }}
    certFile: /etc/greensched/client/tls.crt
    keyFile: /etc/greensched/client/tls.key
    {{- end }}
  {{- end }}
{{- end -}}
