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
    tail -n 5 "$D"/log/connector?.log
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
# token N: the claims of the token that is in the pod of node N's agent now.
token() {
    # shellcheck disable=SC2016
    c node "$1" bash -c 'cat /var/lib/kubelet/pods/'"$(kn get pod "$(pod_on "edge$1")" -o 'jsonpath={.metadata.uid}')"'/volumes/kubernetes.io~projected/token/token' |
        cut -d. -f2 | tr '_-' '/+' | { read -r p; while [ $((${#p} % 4)) != 0 ]; do p=$p=; done; base64 -d <<<"$p"; }
}
tokens_are_bound() {
    local n name
    for n in 1 2; do
        name=$(token "$n" | jq -r '."kubernetes.io".node.name')
        [ "$name" = "edge$n" ] || { echo "the token of edge$n's agent names '$name'"; return 1; }
    done
}
token_ids() { for n in 1 2; do token "$n" | jq -r .jti; done; }
tokens_are_new() { local now; now=$(token_ids) && [ "$(printf '%s\n' "$1" "$now" | sort -u | wc -l)" = 4 ]; } # IDS
# only_with IDS SINCE: each agent has asked the API server since then, and with these tokens only.
only_with() {
    local got
    got=$(jq -r --arg since "$2" 'select(.user.username == "system:serviceaccount:holdfast-system:holdfast-agent" and .requestReceivedTimestamp > $since)
        | .user.extra["authentication.kubernetes.io/credential-id"][0] | sub("^JTI="; "")' "$D/api/audit.log" | sort -u)
    [ "$got" = "$(sort <<<"$1")" ] || { printf 'used: %s\nwanted: %s\n' "$got" "$1"; return 1; }
}

# ---- objects, connector, packets -------------------------------------------------------------------------------------------
# Four connectors, each with a network of its own: CLIENT_I is site-I's. Stream I comes from it, stream 10 + I is for it.
CLIENTS=(client client2 client3 client4)
objects() {
    local o=$root/test/lab/objects i
    sed -e 's|@NAME@|svc-a|g; s|@TENANT@|acme|g; s|@POOL@|fd12:0:0:1::/64|g; s|@DESTINATIONS@|fd20::/64|g' \
        -e "s|@VALID_UNTIL@|$(date -u -d '+290 seconds' +%Y-%m-%dT%H:%M:%SZ)|g" "$o/service.yaml.in" | kn apply -f - >/dev/null
    for i in 1 2 3 4; do sed -e "s|@TENANT@|acme|g; s|@CONNECTOR@|site-$i|g; s|@SERVICE@|svc-a|g" "$o/binding.yaml.in"; echo ---; done | kn apply -f - >/dev/null
}
# observe: the claims' whole history at the API server (a watch ends when a CRD's schema changes, so it is begun again: it starts
# with what is there), and every packet of the connectors at the VPC host, per node's link.
observe() {
    local url="https://10.77.0.1:6443/apis/edge.galactic.datumapis.com/v1alpha1/namespaces/$NS/routeclaims?watch=1&timeoutSeconds=3000"
    # shellcheck disable=SC2016
    nsenter -t "$(box)" -n -p -m -- setsid bash -c '(while :; do echo "{\"type\":\"BEGIN\"}"; curl -gsN --cacert "$1/ca.crt" --cert "$1/admin.crt" --key "$1/admin.key" "$2" || true; sleep 0.02; done | "$3" stamp) >"$4" 2>/dev/null </dev/null &' \
        _ "$D/api/pki" "$url" "$PROBE" "$D/log/api.watch-routeclaims.log"
    c start vpc cap "$PROBE" cap --if e1 --if e2 --prefix fd12:0:0:1::/64 --log "$D/log/cap.csv"
    c start vpc recv "$PROBE" recv --port 7000 --bind fd20::10 --log "$D/log/to-vpc.csv"
    for n in "${CLIENTS[@]}"; do c start "$n" "recv-$n" "$PROBE" recv --port 7000 --log "$D/log/to-$n.csv"; done
}
# history_whole: every epoch up to each claim's last one was seen.
history_whole() {
    local name last seen
    while read -r name last; do
        seen=$(sed 's/^[0-9]* //' "$D/log/api.watch-routeclaims.log" | jq -R --arg n "$name" 'fromjson? | .object | select(.metadata.name == $n) | .spec.epoch // empty' | sort -nu | tr '\n' ' ')
        echo "$name: epochs seen: $seen; it has $last"
        [ "$seen" = "$(seq -s ' ' "${seen%% *}" "$last") " ] || return 1
    done < <(kn get routeclaims -o json | jq -r '.items[] | "\(.metadata.name) \(.spec.epoch)"')
}
# connectors start|stop: all four, edge1 preferred. One attempt has 3 s: while an API server is busy with something else (as `helm
# upgrade` makes it: it compiles all policies anew for each that is written) a takeover's ten requests can take longer than one.
connectors() {
    local i
    for i in 1 2 3 4; do
        if [ "$1" = stop ]; then c stop "connector$i"; continue; fi
        c start "${CLIENTS[i - 1]}" "connector$i" "$CONNECTOR" -edges 'edge1=[fd00:c::1]:4433,edge2=[fd00:c::2]:4433' -dial-timeout 3s \
            -ca "$D/pki/edge-ca.crt" -cert "$D/pki/site-$i.crt" -key "$D/pki/site-$i.key"
    done
}
last_word() { grep -E '"event":"(connected|closed|refused|failed|stopped)"' "$D/log/connector$1.log" | tail -n 1; }
have_sessions() { for i in 1 2 3 4; do [[ $(last_word $i) == *'"event":"connected"'* ]] || { last_word $i; return 1; }; done; }
where_is() { grep '"event":"connected"' "$D/log/connector${1:-1}.log" | tail -n 1 | jq -r .edge; } # the node of its last session
same_prefixes() { # each has had one prefix, and no two the same
    local i
    for i in 1 2 3 4; do jq -Rr 'fromjson? | select(.event == "connected") | .prefix[0]' "$D/log/connector$i.log" | sort -u; done | sort | uniq -c |
        tee /dev/stderr | awk '{n++; if ($1 != 1) bad = 1} END {exit bad || n != 4}'
}
traffic() { # numbered packets, one each 8 ms, as long as the cluster lives
    local a i
    for i in 1 2 3 4; do
        a=$(c in "${CLIENTS[i - 1]}" ip -6 -j addr show dev hfc0 | jq -r '.[0].addr_info[] | select(.scope == "global").local')
        c start "${CLIENTS[i - 1]}" "send$i" "$PROBE" send --bind "$a" --freebind --to fd20::10 --port 7000 --interval 8000 --stream $i
        c start vpc "send-vpc$i" "$PROBE" send --bind fd20::10 --to "$a" --port 7000 --interval 8000 --stream 1$i
    done
}
# flowing_since NS: of each connector at least 60 packets that were sent since then (half a second of them) have come, both ways.
flowing_since() {
    local i
    for i in 1 2 3 4; do
        awk -F, -v s="$i" -v t="$1" '$1 == s && $3 >= t {n++} END {print "from site-" s ": " n + 0; exit n < 60}' "$D/log/to-vpc.csv" || return 1
        awk -F, -v s="1$i" -v t="$1" '$1 == s && $3 >= t {n++} END {print "to it: " n + 0; exit n < 60}' "$D/log/to-${CLIENTS[i - 1]}.csv" || return 1
    done
}
flow_now() { eventually "${1:-10}" flowing_since "$(now_ns)"; }
silent_now() { # no packet in the last 5 s, in any direction
    local t
    t=$(($(now_ns) - 5000000000))
    ! cat "$D"/log/to-{vpc,client,client2,client3,client4}.csv | awk -F, -v t=$t '$4 >= t {f = 1; print} END {exit !f}'
}
# pauses I SINCE: "BEGIN END" of each time of more than 50 ms without a packet from connector I, or without one to it; ms.
pauses() {
    { awk -F, -v s="$1" '$1 == s {print $4, 1}' "$D/log/to-vpc.csv"; awk -F, '{print $4, 2}' "$D/log/to-${CLIENTS[$1 - 1]}.csv"; } |
        awk -v since="$2" '$1 >= since {if (p[$2] && $1 - p[$2] > 50e6) printf "%.0f %.0f\n", p[$2] / 1e6, $1 / 1e6; p[$2] = $1}' | sort -n
}
# moves I SINCE: for each session of connector I that followed on another: the longest pause while it moved, in ms (50: none above).
moves() {
    { pauses "$1" "$2" | sed 's/^/pause /'
      jq -Rr --argjson s "$2" 'fromjson? | select(.t >= $s and (.event == "closed" or .event == "connected")) | "\(.event) \(.t / 1e6 | floor)"' "$D/log/connector$1.log"; } |
        awk '$1 == "pause" {n++; from[n] = $2; to[n] = $3} $1 == "closed" {c = $2}
            $1 == "connected" && c {m++; a[m] = c - 200; b[m] = $2 + 200; c = 0}
            END {for (i = 1; i <= m; i++) {x = 50; for (k = 1; k <= n; k++) if (from[k] <= b[i] && to[k] >= a[i] && to[k] - from[k] > x) x = to[k] - from[k]; print x}}'
}
# measured WORDS COMMAND...: the command, and how long packets paused meanwhile. One of many moves may be long (moved); none is 3 s.
MOVES=()
measured() {
    local words=$1 since some longest i
    shift
    since=$(now_ns)
    check "$words" "$@"
    check "... and packets flow" flow_now 20
    mapfile -t some < <(for i in 1 2 3 4; do moves $i "$since"; done | sort -rn)
    MOVES+=("${some[@]}")
    longest=$(for i in 1 2 3 4; do pauses $i "$since"; done | awk '$2 - $1 > x {x = $2 - $1} END {print x + 0}')
    note "${#some[@]} moves, packets paused for ${some[*]} ms"
    figure "longest pause during $words" "$longest" 3000
    [ "$longest" -le 1000 ] || for i in 1 2 3 4; do jq -c --argjson s "$since" 'select(.t >= $s and .event != "library") | [.event, .edge, .status, .error, .ms]' "$D/log/connector$i.log" >"$D/log/moves$i.log"; done
}
# moved: of all moves that were measured, the 99th percentile.
moved() {
    local p
    p=$(printf '%s\n' "${MOVES[@]}" | sort -n | awk '{a[NR] = $1} END {i = int(NR * 0.99); if (i < NR * 0.99) i++; print a[i]}')
    note "median of ${#MOVES[@]} moves: $(printf '%s\n' "${MOVES[@]}" | sort -n | awk '{a[NR] = $1} END {print a[int((NR + 1) / 2)]}') ms"
    check "moves that were measured: ${#MOVES[@]} (at least 100)" test "${#MOVES[@]}" -ge 100
    figure "99th percentile of their pauses" "$p" 1000
}

# ---- what is done under traffic ---------------------------------------------------------------------------------------------
update_pods() { # the pods are replaced, one node after the other
    local g
    g=$(generation)
    helm_agent upgrade "$root/charts/holdfast" --set-string podAnnotations.round=$g || return 1
    eventually 120 rolled_out $((g + 1))
}
# drain_often N: the sessions' node is drained and comes back, N times: they go to and fro.
drain_often() {
    local i at
    for ((i = 0; i < $1; i++)); do
        at=$(where_is)
        tool drain "$at" && eventually 20 moved_from "$at" && tool undrain "$at" && eventually 20 instance_ready "$at" || return 1
    done
}
moved_from() { have_sessions && for i in 1 2 3 4; do [ "$(where_is $i)" != "$1" ] || { echo "site-$i is on $1"; return 1; }; done; }
instance_ready() { [ "$(c node "${1#edge}" curl -s -m 1 -o /dev/null -w '%{http_code}' "http://10.77.0.1${1#edge}:9780/readyz")" = 200 ]; }
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
