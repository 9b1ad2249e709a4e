{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- define "holdfast.selector" -}}
app.kubernetes.io/name: holdfast
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: agent
{{- end }}

{{- define "holdfast.labels" -}}
app.kubernetes.io/name: holdfast
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "holdfast.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ printf "%s@%s" .repository .digest }}{{ else }}{{ printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) }}{{ end }}
{{- end -}}
{{- end }}

{{- /* Does the agent ask who a token belongs to? */ -}}
{{- define "holdfast.reviews" -}}
{{- if or (eq .Values.authority.bearerTokens "on") (eq .Values.audit.page "on") (eq .Values.metrics.authentication "kubernetes") }}yes{{ end -}}
{{- end }}

{{- /* agent.yaml. Numbers through int64: a float would be written 1e+06. */ -}}
{{- define "holdfast.config" -}}
{{- $v := .Values -}}
{{- $at := $v.bindAddress -}}
{{- $authority := dict "policy" $v.authority.policy "bearerTokens" $v.authority.bearerTokens "grantSeconds" ($v.authority.grantSeconds | int64) "timeoutMilliseconds" ($v.authority.timeoutMilliseconds | int64) -}}
{{- if $v.authority.webhook.url }}{{ $_ := set $authority "webhookURL" $v.authority.webhook.url }}{{ end -}}
{{- $lease := dict -}}
{{- range $k, $n := $v.lease }}{{ $_ := set $lease $k ($n | int64) }}{{ end -}}
{{- $limits := dict -}}
{{- range $k, $n := $v.limits }}{{ $_ := set $limits $k ($n | int64) }}{{ end -}}
{{- $audit := dict "directory" "/var/lib/holdfast/audit" -}}
{{- range $k, $n := omit $v.audit "hostPath" "checkpointSecret" "copy" "page" "events" }}{{ $_ := set $audit $k ($n | int64) }}{{ end -}}
{{- $_ := set $audit "copy" $v.audit.copy -}}
{{- $_ := set $audit "page" $v.audit.page -}}
{{- $_ := set $audit "events" $v.audit.events -}}
{{- if $v.audit.checkpointSecret }}{{ $_ := set $audit "checkpointKeyFile" "/etc/holdfast/checkpoint/key.pem" }}{{ end -}}
{{- $c := dict "provider" $v.provider "listen" (dict "h3" (printf "%s:%d" $at ($v.ports.connectors | int64)) "http2" $v.listen.http2 "rfc9484" $v.listen.rfc9484 "cloudflare" $v.listen.cloudflare "udpOffload" $v.listen.udpOffload) "authority" $authority "lease" $lease "audit" $audit "limits" $limits "tun" (dict "offload" $v.tun.offload) "data" (dict "threads" ($v.data.threads | int64))
    "health" (dict "listen" (printf "%s:%d" $at ($v.ports.health | int64)))
    "metrics" (dict "listen" (printf "%s:%d" $at ($v.ports.metrics | int64)) "authentication" $v.metrics.authentication)
    "log" (dict "level" $v.log.level "format" $v.log.format) -}}
{{ toYaml $c }}
{{- end }}

{{- /* What no schema can say. */ -}}
{{- define "holdfast.check" -}}
{{- $v := .Values -}}
{{- if and $v.hostNetwork (ne (toString $v.updateStrategy.maxSurge) "0") (ne (toString $v.updateStrategy.maxSurge) "0%") }}
{{- fail (printf "updateStrategy.maxSurge is %v, but with hostNetwork two pods of one node want the same ports: set maxSurge to 0 and maxUnavailable to 1 or more" $v.updateStrategy.maxSurge) }}
{{- end }}
{{- if and (eq (toString $v.updateStrategy.maxUnavailable | trimSuffix "%") "0") (eq (toString $v.updateStrategy.maxSurge | trimSuffix "%") "0") }}
{{- fail "updateStrategy: maxUnavailable and maxSurge are both 0: no pod could ever be replaced; set maxUnavailable to 1" }}
{{- end }}
{{- if and $v.networkPolicy.enabled $v.hostNetwork }}
{{- fail "networkPolicy.enabled: a NetworkPolicy does not act on pods on the node's network; set it to false and use the node's firewall" }}
{{- end }}
{{- if and (eq $v.authority.policy "webhook") (or (not $v.authority.webhook.url) (not $v.authority.webhook.secret)) }}
{{- fail "authority.policy is webhook: authority.webhook.url and authority.webhook.secret (ca.crt, tls.crt, tls.key) are needed" }}
{{- end }}
{{- if and (ne $v.authority.policy "webhook") (or $v.authority.webhook.url $v.authority.webhook.secret) }}
{{- fail "authority.webhook is given, but authority.policy is not webhook: set the policy or remove it" }}
{{- end }}
{{- if and $v.podMonitor.enabled (eq $v.metrics.authentication "kubernetes") (not $v.podMonitor.tokenSecret) }}
{{- fail "podMonitor.tokenSecret: is needed, since metrics.authentication is kubernetes; name a Secret whose key token holds a token that may get /metrics" }}
{{- end }}
{{- if ge (mul 3 ($v.lease.guardMilliseconds | int64)) (mul 1000 ($v.lease.durationSeconds | int64)) }}
{{- fail (printf "lease.guardMilliseconds is %d: must be less than a third of lease.durationSeconds" ($v.lease.guardMilliseconds | int64)) }}
{{- end }}
{{- if and (eq $v.listen.rfc9484 "off") (eq $v.listen.cloudflare "off") }}
{{- fail "listen.rfc9484 and listen.cloudflare are both off: no connector could be served; turn one on" }}
{{- end }}
{{- $tcp := list ($v.ports.health | int64) ($v.ports.metrics | int64) }}
{{- if and (eq $v.listen.http2 "on") (has ($v.ports.connectors | int64) $tcp) }}
{{- fail (printf "ports.connectors is %d, which is taken by health or metrics: with listen.http2 it is a TCP port, too" ($v.ports.connectors | int64)) }}
{{- end }}
{{- $ports := list ($v.ports.health | int64) ($v.ports.metrics | int64) }}
{{- if ne (len (uniq $ports)) 2 }}
{{- fail (printf "ports.health and ports.metrics are both %d: they must differ" ($v.ports.health | int64)) }}
{{- end }}
{{- $known := dict }}
{{- range (.Files.Get "files/monitoring/alerts.yaml" | fromYaml).groups }}{{ range .rules }}{{ $_ := set $known (.alert | default "") true }}{{ end }}{{ end }}
{{- range $name, $_ := $v.prometheusRule.alerts }}
{{- if not (hasKey $known $name) }}
{{- fail (printf "prometheusRule.alerts.%s: there is no such alert; known: %s" $name (keys $known | sortAlpha | compact | join " ")) }}
{{- end }}
{{- end }}
{{- end }}
