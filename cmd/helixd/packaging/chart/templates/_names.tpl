{{- define "helixd.name" -}}
{{- if contains "helixd" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-helixd" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}
{{- define "helixd.secret" -}}
{{ .Values.secret.existing | default (include "helixd.name" .) }}
{{- end }}
{{- define "helixd.selector" -}}
app.kubernetes.io/name: helixd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "helixd.labels" -}}
{{ include "helixd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end }}

{{- /* helix.yaml: what the cluster needs, and config. */ -}}
{{- define "helixd.config" -}}
{{- $name := include "helixd.name" . -}}
{{- $routes := list -}}
{{- range $i := until (int .Values.nodes) -}}
{{- $routes = append $routes (printf "nats://%s-%d.%s-nodes:%d" $name $i $name (int $.Values.ports.cluster)) -}}
{{- end -}}
{{- $cluster := dict "listen" (printf "0.0.0.0:%d" (int .Values.ports.cluster)) "routes" $routes "user" "nodes" "password" "env:HELIX_CLUSTER_PASSWORD" -}}
{{- if .Values.tls.cluster -}}
{{- $_ := set $cluster "tls" (dict "ca" "/etc/helixd/cluster-tls/ca.crt" "cert" "/etc/helixd/cluster-tls/tls.crt" "key" "/etc/helixd/cluster-tls/tls.key") -}}
{{- end -}}
{{- $hosts := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) -}}
{{- $tls := dict "proxy" true -}}
{{- if .Values.tls.http -}}
{{- $tls = dict "cert" "/etc/helixd/http-tls/tls.crt" "key" "/etc/helixd/http-tls/tls.key" -}}
{{- end -}}
{{- $own := dict "listen" (printf "0.0.0.0:%d" (int .Values.ports.http)) "dataDir" "/data" "hosts" (concat $hosts .Values.hosts) "tls" $tls
  "nats" (dict "replicas" (int .Values.replicas) "partitions" (int .Values.partitions) "cluster" $cluster) -}}
{{- toYaml (merge $own .Values.config) -}}
{{- end }}
