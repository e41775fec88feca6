{{- /* Checks that the schema cannot express: combinations of values. */}}
{{- define "greensched.checkValues" -}}
{{- include "greensched.checkNames" . -}}
{{- include "greensched.checkReplicas" . -}}
{{- include "greensched.checkExtender" . -}}
{{- include "greensched.checkOperator" . -}}
{{- include "greensched.checkTls" . -}}
{{- include "greensched.checkCluster" . -}}
{{- end -}}

{{- /* A release's name may begin with a digit and contain dots; the name of a Service may not. */}}
{{- define "greensched.checkNames" -}}
{{- $name := include "greensched.fullname" . -}}
{{- if not (regexMatch "^[a-z][-a-z0-9]*$" $name) -}}
{{- fail (printf "%s cannot be the name of a Service, which begins with a letter and has only a-z, 0-9 and -; rename the release %s, or set fullnameOverride" (include "greensched.extenderName" .) .Release.Name) -}}
{{- end -}}
{{- end -}}

{{- define "greensched.checkReplicas" -}}
{{- if not .Values.scheduler.extenderUrl -}}
{{- if not .Values.extender.replicas -}}
{{- fail "extender.replicas is 0: no extender would answer, and pods would be placed without its scores; set 1 or more (0 is for an extender that runs elsewhere, at scheduler.extenderUrl)" -}}
{{- end -}}
{{- if not .Values.scheduler.replicas -}}
{{- fail (printf "scheduler.replicas is 0: every pod with schedulerName %s would stay Pending; set 1 or more (0 is for a scheduler that runs outside the cluster, with scheduler.extenderUrl)" .Values.scheduler.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "greensched.checkExtender" -}}
{{- $settings := .Values.extender.settings -}}
{{- $bind := .Values.extender.bind -}}
{{- if and $bind.enabled (not .Values.tls.client.enabled) (not $bind.allowWithoutClientCertificates) -}}
{{- fail "extender.bind.enabled needs tls.client.enabled: without client certificates any pod that reaches the extender could bind any pod; to accept that, set extender.bind.allowWithoutClientCertificates=true" -}}
{{- end -}}
{{- if and .Values.extender.powerLimits.enabled .Values.extender.replicas (not .Values.tls.client.enabled) -}}
{{- fail "extender.powerLimits.enabled needs tls.client.enabled: without client certificates any pod that reaches the extender could fill a node's power budget with pods that do not exist, and keep real ones Pending" -}}
{{- end -}}
{{- if eq (int .Values.extender.port) (int $settings.explainPort) -}}
{{- fail (printf "extender.port and extender.settings.explainPort are both %d: they must differ" (int .Values.extender.port)) -}}
{{- end -}}
{{- if and $settings.signalFreshS $settings.signalMaxStaleS -}}
{{- if lt (float64 $settings.signalMaxStaleS) (float64 $settings.signalFreshS) -}}
{{- fail "extender.settings.signalMaxStaleS is shorter than signalFreshS, but last good values are older than fresh ones; set it to signalFreshS or more" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "greensched.checkOperator" -}}
{{- $controller := .Values.operator.controller -}}
{{- if and $controller.ledger.persistentVolumeClaim (gt (int $controller.replicas) 1) -}}
{{- fail (printf "operator.controller.ledger.persistentVolumeClaim allows only one writer, but operator.controller.replicas is %v: set replicas=1, or set ledger.dsnSecret to use a PostgreSQL that all replicas share" $controller.replicas) -}}
{{- end -}}
{{- if and $controller.ledger.persistentVolumeClaim $controller.ledger.dsnSecret -}}
{{- fail "operator.controller.ledger has both persistentVolumeClaim and dsnSecret, but the ledger is kept in one place; set only one of them" -}}
{{- end -}}
{{- $operator := .Values.operator -}}
{{- if eq (int $operator.healthPort) (int $operator.settings.ledgerPort) -}}
{{- fail (printf "operator.healthPort and operator.settings.ledgerPort are both %d: they must differ" (int $operator.healthPort)) -}}
{{- end -}}
{{- if and $operator.enabled $operator.webhook.replicas (not $operator.webhook.url) -}}
{{- range $process, $loss := dict "controller" "work would be held without a plan, until its latest start" "releaser" "held work would wait for ever if the controller died" -}}
{{- if not (index $operator $process).replicas -}}
{{- fail (printf "operator.%s.replicas is 0: %s; set 1 or more, or set operator.webhook.replicas=0, so that nothing is held" $process $loss) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq (int $operator.healthPort) (int $operator.webhook.port) -}}
{{- fail (printf "operator.healthPort and operator.webhook.port are both %d: they must differ" (int $operator.healthPort)) -}}
{{- end -}}
{{- end -}}

{{- define "greensched.checkTls" -}}
{{- $tls := .Values.tls -}}
{{- if and $tls.client.enabled (not $tls.enabled) -}}
{{- fail "tls.client.enabled needs tls.enabled" -}}
{{- end -}}
{{- if and $tls.certManager.enabled (not $tls.enabled) -}}
{{- fail "tls.certManager.enabled needs tls.enabled" -}}
{{- end -}}
{{- if $tls.enabled -}}
{{- if and (not $tls.existingSecret) (not $tls.certManager.enabled) -}}
{{- fail "tls.enabled needs tls.existingSecret (a Secret with tls.crt, tls.key, ca.crt) or tls.certManager.enabled" -}}
{{- end -}}
{{- if and $tls.client.enabled (not $tls.client.existingSecret) (not $tls.certManager.enabled) -}}
{{- fail "tls.client.enabled needs tls.client.existingSecret (a Secret with tls.crt, tls.key, ca.crt) or tls.certManager.enabled" -}}
{{- end -}}
{{- if and $tls.certManager.enabled (not $tls.certManager.issuerRef.name) -}}
{{- fail "tls.certManager.enabled needs tls.certManager.issuerRef.name" -}}
{{- end -}}
{{- if hasPrefix "http://" .Values.scheduler.extenderUrl -}}
{{- fail "tls.enabled needs a scheduler.extenderUrl that begins with https://: with http:// nothing would be encrypted" -}}
{{- end -}}
{{- else if hasPrefix "https://" .Values.scheduler.extenderUrl -}}
{{- fail "scheduler.extenderUrl begins with https://, but tls.enabled is false: the extender would answer http, and the scheduler would have no CA to verify it; set tls.enabled=true, or use http://" -}}
{{- end -}}
{{- end -}}

{{- /* Fail if a value needs a definition that the cluster lacks. Every cluster serves
apiregistration.k8s.io; `helm template` without a cluster does not, and knows no definitions. */}}
{{- define "greensched.checkCluster" -}}
{{- $served := .Capabilities.APIVersions -}}
{{- if $served.Has "apiregistration.k8s.io/v1" -}}
{{- if and .Values.serviceMonitor.enabled (not ($served.Has "monitoring.coreos.com/v1/ServiceMonitor")) -}}
{{- fail "serviceMonitor.enabled needs the Prometheus operator's CustomResourceDefinitions (monitoring.coreos.com/v1), which this cluster lacks: install them first, or set serviceMonitor.enabled=false and scrape /metrics of the extender's Service" -}}
{{- end -}}
{{- if and .Values.tls.certManager.enabled (not ($served.Has "cert-manager.io/v1/Certificate")) -}}
{{- fail "tls.certManager.enabled needs cert-manager's CustomResourceDefinitions (cert-manager.io/v1), which this cluster lacks: install cert-manager first, or use Secrets of your own (tls.existingSecret)" -}}
{{- end -}}
{{- end -}}
{{- end -}}
