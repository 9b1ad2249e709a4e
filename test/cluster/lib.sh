# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What run.sh asks of the cluster; sourced. D is the cluster's folder, NS the namespace.

ms() { date +%s%3N; }
note() { printf '      %s\n' "$*"; }
c() { local what=$1; shift; "$here/cluster" "$what" "$D" "$@"; }
k() { c kubectl "$@"; }
kn() { c kubectl -n "$NS" "$@"; }
tool() { c in client true && nsenter -t "$(box)" -n -- "$BIN/kubectl-holdfast" "$@" --kubeconfig "$D/api/admin.kubeconfig" --namespace "$NS"; }
box() { local u; u=$(<"$D/box.pid"); awk '{print $1}' "/proc/$u/task/$u/children"; }
# figure WORDS VALUE BOUND: in ms.
figure() { check "$1: $2 ms (at most $3 ms)" test "$2" -le "$3"; }
tell_about_pods() {
    kn get pods,pi,ha,rclaim,cb -o wide
    kn get events --sort-by=.lastTimestamp | tail -n 15
    tail -n 5 "$D"/log/connector.log
    foundation_logs
    tail -qn 4 "$D"/log/edge*.foundation.log | cut -c1-300
}

# ---- the charts ---------------------------------------------------------------------------------------------------------
helm_agent() { # install|upgrade CHART ARG...
    local verb=$1 chart=$2
    shift 2
    c helm "$verb" holdfast "$chart" -n "$NS" --set tlsSecret=holdfast-tls,image.repository=localhost/holdfast-agent,image.pullPolicy=Never,authority.policy=kubernetes "$@"
}
helm_foundation() { c helm install foundation "$root/charts/holdfast-reference-foundation" -n "$NS" --set image.repository=localhost/holdfast-foundation,image.pullPolicy=Never; }
# rolled_out GENERATION: the DaemonSet of at least that generation is what was asked for, everywhere, and available. (`kubectl
# rollout status` returns before the last pod is.)
rolled_out() {
    kn get daemonset holdfast-agent -o json | jq -e --argjson g "$1" '.metadata.generation as $m | .status | .observedGeneration == $m and $m >= $g
        and .desiredNumberScheduled == 2 and .updatedNumberScheduled == 2 and .numberReady == 2 and (.numberUnavailable // 0) == 0'
}
generation() { kn get daemonset holdfast-agent -o 'jsonpath={.metadata.generation}'; }
no_agents() { [ -z "$(kn get pods -o name | tee /dev/stderr)" ]; }
pod_on() { kn get pods -l app.kubernetes.io/component=agent --field-selector "spec.nodeName=$1" -o 'jsonpath={.items[0].metadata.name}'; }
restart_counts() { kn get pods -o json | jq -r '.items[] | "\(.metadata.uid) \([.status.containerStatuses[].restartCount] | add)"' | sort; }
instances_accepted() { kn get providerinstances -o json | jq -e '[.items[] | select(.status.acceptedEpoch == .spec.epoch)] | length == 2'; }
# agent_pid N: as that node sees it.
# shellcheck disable=SC2016
agent_pid() { c node "$1" bash -c 'for p in /proc/[0-9]*; do [ "$(cat "$p/comm" 2>/dev/null)" != holdfast-agent ] || echo "${p##*/}"; done'; }
# resident: how much memory an agent takes that nobody has connected to yet. Where KNOWN_LIMITS.md has the words `cluster-test
# resident`, what is above 16 MiB is counted and not failed.
LIMITS=0
resident() {
    local n kib anon most=0
    for n in 1 2; do
        read -r anon kib < <(c node "$n" awk '$1 == "RssAnon:" {a = $2} $1 == "VmRSS:" {r = $2} END {print a, r}' "/proc/$(agent_pid "$n")/status")
        note "edge$n's agent: $kib KiB resident, $anon KiB of it its own, the rest mapped from files"
        [ "$kib" -le $most ] || most=$kib
    done
    if [ "$most" -gt 16384 ] && grep -qF '`cluster-test resident`' "$root/KNOWN_LIMITS.md"; then
        LIMITS=$((LIMITS + 1))
        return
    fi
    check "an idle agent's memory: $most KiB (at most 16384)" test "$most" -le 16384
}
pods_are_confined() {
    local n p
    for n in 1 2; do
        p=$(agent_pid "$n")
        [ "$(wc -w <<<"$p")" = 1 ] || { echo "edge$n has agents: $p"; return 1; }
        c node "$n" grep -E '^(Uid|CapPrm|CapEff|CapBnd|NoNewPrivs|Seccomp):' "/proc/$p/status" | tee /dev/stderr |
            awk '$1 == "Uid:" {ok += $2 == 65532 && $3 == 65532} /^Cap/ {ok += $2 ~ /^0+$/} $1 == "NoNewPrivs:" {ok += $2 == 1} $1 == "Seccomp:" {ok += $2 == 2} END {exit ok != 6}' || return 1
    done
}
tokens_are_bound() {
    local n name
    for n in 1 2; do
        # shellcheck disable=SC2016
        name=$(c node "$n" bash -c 'cat /var/lib/kubelet/pods/'"$(kn get pod "$(pod_on "edge$n")" -o 'jsonpath={.metadata.uid}')"'/volumes/kubernetes.io~projected/token/token' |
            cut -d. -f2 | tr '_-' '/+' | { read -r p; while [ $((${#p} % 4)) != 0 ]; do p=$p=; done; base64 -d <<<"$p"; } | jq -r '."kubernetes.io".node.name')
        [ "$name" = "edge$n" ] || { echo "the token of edge$n's agent names '$name'"; return 1; }
    done
}

# ---- objects, connector, packets -------------------------------------------------------------------------------------------
objects() {
    local o=$root/test/lab/objects
    sed -e 's|@NAME@|svc-a|g; s|@TENANT@|acme|g; s|@POOL@|fd12:0:0:1::/64|g; s|@DESTINATIONS@|fd20::/64|g' \
        -e "s|@VALID_UNTIL@|$(date -u -d '+290 seconds' +%Y-%m-%dT%H:%M:%SZ)|g" "$o/service.yaml.in" | kn apply -f - >/dev/null
    sed -e 's|@TENANT@|acme|g; s|@CONNECTOR@|site-1|g; s|@SERVICE@|svc-a|g' "$o/binding.yaml.in" | kn apply -f - >/dev/null
}
# observe: the claims' whole history at the API server (a watch ends when a CRD's schema changes, so it is begun again: it starts
# with what is there), and every packet of the connectors at the VPC host, per node's link.
observe() {
    local url="https://10.77.0.1:6443/apis/edge.galactic.datumapis.com/v1alpha1/namespaces/$NS/routeclaims?watch=1&timeoutSeconds=3000"
    # shellcheck disable=SC2016
    nsenter -t "$(box)" -n -p -m -- setsid bash -c '(while :; do curl -gsN --cacert "$1/ca.crt" --cert "$1/admin.crt" --key "$1/admin.key" "$2" || true; sleep 0.02; done | "$3" stamp) >"$4" 2>/dev/null </dev/null &' \
        _ "$D/api/pki" "$url" "$PROBE" "$D/log/api.watch-routeclaims.log"
    c start vpc cap "$PROBE" cap --if e1 --if e2 --prefix fd12:0:0:1::/64 --log "$D/log/cap.csv"
    c start vpc recv "$PROBE" recv --port 7000 --bind fd20::10 --log "$D/log/to-vpc.csv"
    c start client recv-client "$PROBE" recv --port 7000 --log "$D/log/to-client.csv"
}
# history_whole: every epoch up to the claim's last one was seen.
history_whole() {
    local seen last
    last=$(kn get routeclaims -o json | jq '[.items[].spec.epoch] | max')
    seen=$(sed 's/^[0-9]* //' "$D/log/api.watch-routeclaims.log" | jq -R 'fromjson? | .object.spec.epoch // empty' | sort -nu | tr '\n' ' ')
    echo "epochs seen: $seen; the claim has $last"
    [ "$seen" = "$(seq -s ' ' "${seen%% *}" "$last") " ]
}
connector() { # CLIENT SITE NODE...: the nodes in order of preference
    local client=$1 site=$2 edges='' n
    shift 2
    for n in "$@"; do edges+=",edge$n=[fd00:c::$n]:4433"; done
    c start "$client" connector "$CONNECTOR" -edges "${edges#,}" -ca "$D/pki/edge-ca.crt" -cert "$D/pki/$site.crt" -key "$D/pki/$site.key"
}
last_word() { grep -E '"event":"(connected|closed|refused|failed|stopped)"' "$D/log/connector.log" | tail -n 1; }
has_session() { [[ $(last_word) == *'"event":"connected"'* ]]; }
where_is() { grep '"event":"connected"' "$D/log/connector.log" | tail -n 1 | jq -r .edge; } # the node of the last session
prefixes() { jq -Rr 'fromjson? | select(.event == "connected") | .prefix[0]' "$D/log/connector.log" | sort -u; }
same_prefix() { [ "$(prefixes | wc -l)" = 1 ] || { prefixes; return 1; }; }
traffic() { # numbered packets, one each 4 ms, as long as the cluster lives
    local a
    a=$(c in client ip -6 -j addr show dev hfc0 | jq -r '.[0].addr_info[] | select(.scope == "global").local')
    c start client send "$PROBE" send --bind "$a" --freebind --to fd20::10 --port 7000 --interval 4000 --stream 1
    c start vpc send-vpc "$PROBE" send --bind fd20::10 --to "$a" --port 7000 --interval 4000 --stream 9
}
flows_now() {
    local t
    t=$(($(now_ns) - 300000000))
    tail -n 300 "$D/log/to-vpc.csv" | awk -F, -v t=$t '$3 >= t {f = 1} END {exit !f}' && tail -n 300 "$D/log/to-client.csv" | awk -F, -v t=$t '$3 >= t {f = 1} END {exit !f}'
}
silent_now() { # no packet in the last 5 s, in either direction
    local t
    t=$(($(now_ns) - 5000000000))
    ! cat <(tail -n 300 "$D/log/to-vpc.csv") <(tail -n 300 "$D/log/to-client.csv") | awk -F, -v t=$t '$4 >= t {f = 1} END {exit !f}'
}
# gaps FILE SINCE: the longest pauses between two packets that arrived, in ms, longest first.
gaps() { awk -F, -v s="$2" '$4 >= s {if (p && $4 - p > 50e6) printf "%.0f\n", ($4 - p) / 1e6; p = $4}' "$1" | sort -rn; }
# measured WORDS COMMAND...: the command, and how long packets paused meanwhile.
measured() {
    local words=$1 since up down
    shift
    since=$(now_ns)
    check "$words" "$@"
    check "... and packets flow" eventually 10 flows_now
    [ "$(awk -F, -v s="$since" '$4 >= s' "$D/log/to-vpc.csv" | wc -l)" -gt 100 ] || { check "there were packets to measure $words with" false; return 0; }
    up=$(gaps "$D/log/to-vpc.csv" "$since") down=$(gaps "$D/log/to-client.csv" "$since")
    note "pauses above 50 ms in packets from the connector: ${up//$'\n'/ }, to it: ${down//$'\n'/ }"
    figure "longest pause during $words" "$(printf '%s\n' 0 $up $down | sort -rn | head -n 1)" 1000
}

# ---- what is done under traffic ---------------------------------------------------------------------------------------------
update_pods() { # the pods are replaced, one node after the other
    local g
    g=$(generation)
    helm_agent upgrade "$root/charts/holdfast" --set-string podAnnotations.round=2 || return 1
    eventually 120 rolled_out $((g + 1))
}
drain_one() { tool drain "$1" && eventually 20 moved_from "$1"; }
moved_from() { has_session && [ "$(where_is)" != "$1" ]; }
upgrade() {
    local g
    g=$(generation)
    helm_agent upgrade "$root/charts/holdfast" || return 1
    eventually 120 rolled_out $((g + 1))
}
rollback() {
    local g
    g=$(generation)
    c helm rollback holdfast 1 -n "$NS" || return 1
    eventually 120 rolled_out $((g + 1))
}

# ---- what stays ---------------------------------------------------------------------------------------------------------------
rows() { for k in providerinstances.edge hostattachments.edge providerservices.edge routeclaims.edge connectorbindings.masque; do kn get "$k.galactic.datumapis.com" -o json; done | jq -r '.items[] | "\(.kind) \(.metadata.name) \(.metadata.uid)"' | sort; }
kept_rows() { local lost; lost=$(comm -23 "$D/rows.before" <(rows)); [ -z "$lost" ] || { echo "$lost"; return 1; }; }
trails() { for n in 1 2; do find "$D/n$n/var/lib/holdfast/audit" -name '*.jsonl' -printf '%p %i\n'; done | sort; }
trails_kept() { [ -s "$D/trails.before" ] && [ -z "$(comm -23 "$D/trails.before" <(trails))" ]; }

# foundation_logs [keep]: what the foundations' pods have logged, as the lab's tools read it. The kubelet removes the logs of pods that
# are deleted: keep copies them before.
foundation_logs() {
    local n
    for n in 1 2; do
        { cat "$D/log/edge$n.kept" 2>/dev/null || true
          find "$D/n$n/var/log/pods" -path '*reference-foundation*/foundation/*.log' -print0 | sort -z | xargs -0r cat | sed -n 's/^[^ ]* std\(err\|out\) F //p'; } >"$D/log/edge$n.foundation.log"
        [ "${1:-}" != keep ] || cp "$D/log/edge$n.foundation.log" "$D/log/edge$n.kept"
    done
}
