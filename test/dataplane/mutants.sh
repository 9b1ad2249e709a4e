#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mutants.sh [PATTERN]: removes one guard of the data plane after the other, in a copy of the tree, and runs the test that must notice.
# Prints the table; exit 1 unless every mutant (whose name fits the pattern) is killed. Root.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
copy=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-mutants.XXXXXX")
trap 'rm -rf "$copy"' EXIT
cp -r "$root"/{Makefile,hack,pkg,test} "$copy"/
chmod 711 "$copy"
cd "$copy" || exit 1
test/peers/pki/mk.sh "$copy/pki" && chmod -R a+rX "$copy/pki" || exit 1
killed=0 survived=0 n=0 only=${1:-*}

# Runs the killer: "unit:PKG", "unit:PKG:SUITES" or the name of a scenario. 0 = it passed.
run() {
    local of=${1#unit:}
    case $1 in
    unit:*:*) nice make -s "build/gcc/test/${of%%:*}" && timeout 120 "build/gcc/test/${of%%:*}" -j2 --filter "${of#*:}/*" ;;
    unit:*) nice make -s "build/gcc/test/$of" && timeout 120 "build/gcc/test/$of" -j2 ;;
    *) nice make -s build/gcc/test/dataplane/dataplane && timeout 120 build/gcc/test/dataplane/dataplane "$copy/pki" "$1" ;;
    esac >"$copy/log" 2>&1
}

# mutant WHAT KILLER FILE OLD NEW
mutant() {
    local what=$1 killer=$2 file=$3 old=$4 new=$5 text
    # shellcheck disable=SC2053
    [[ $what == $only ]] || return 0
    n=$((n + 1))
    text=$(<"$root/$file")
    if [[ $text != *"$old"* ]]; then
        printf '%-64s %-30s %s\n' "$what" "$killer" 'NOT FOUND in the source'
        survived=$((survived + 1))
        return
    fi
    printf '%s\n' "${text/"$old"/"$new"}" >"$file"
    if run "$killer"; then
        printf '%-64s %-30s %s\n' "$what" "$killer" SURVIVED
        survived=$((survived + 1))
    elif grep -q 'error:' "$copy/log"; then
        printf '%-64s %-30s %s\n' "$what" "$killer" 'does not build'
        grep -m2 'error:' "$copy/log"
        survived=$((survived + 1))
    else
        printf '%-64s %-30s %s\n' "$what" "$killer" killed
        killed=$((killed + 1))
    fi
    cp "$root/$file" "$file"
    touch "$file"
}

for k in unit:fence unit:tun both-ways; do
    run "$k" || { echo "mutants: $k fails without any mutant:"; tail -5 "$copy/log"; exit 1; }
done

f=pkg/fence/fence.c
mutant 'fence: a check passes whatever the time' unit:fence $f 'now >= 0 && now < fence_deadline(s) ? &s->pass : NULL' '&s->pass'
mutant 'fence: open at the deadline itself' unit:fence $f 'now < fence_deadline(s)' 'now <= fence_deadline(s)'
mutant 'fence: a dead slot can be set' unit:fence $f 'if (fence_is_dead(s))' 'if (false)'
mutant 'fence: a live slot can be given back' unit:fence $f ' || !fence_is_dead(s)' ''
mutant 'fence: a new generation inherits the deadline' unit:fence $f 'atomic_store_explicit(&s->deadline, FENCE_CLOSED, memory_order_release);
    return s;' 'return s;'

f=pkg/tun/tun.c
mutant 'tun: writes without a pass that holds' unit:tun $f 'if (!fence_recheck(pass, loop_clock()))' 'if (false)'
mutant 'tun: a missing device is made' unit:tun $f '(rc = get_link(&before, device, err)) < 0 ||
        (rc = check_link(&before, device, mtu, err)) < 0)' '((void)get_link(&before, device, err), false) ||
        (before.index != 0 && (rc = check_link(&before, device, mtu, err)) < 0))'
mutant 'tun: other flags are written over' unit:tun $f 'if (!l->no_pi || !l->vnet_hdr || !l->multi_queue)' 'if (false)'
mutant 'tun: a device without owner is taken' unit:tun $f 'if (!l->has_owner)' 'if (false)'
mutant 'tun: another MTU is taken' unit:tun $f ' || l->mtu != (uint32_t)mtu' ''
mutant 'tun: offloads of an earlier holder stay' unit:tun $f 'ioctl(t->fd, TUNSETOFFLOAD, 0) < 0' 'false'
mutant 'tun: super-packets are handed on' unit:tun pkg/tun/offload.c 'if (h.gso_type != VIRTIO_NET_HDR_GSO_NONE)
        return false;' ''
mutant 'tun: a super-packet that does not fit together is cut' unit:tun pkg/tun/offload.c ' &&
           ret->head <= TUN_SUPER_HEAD_MAX && ret->head < len' ''
mutant 'tun: packets of two sessions in one super-packet' unit:tun $f '(t->run.n > 0 && t->pass != pass) || ' ''
mutant 'tun: what a kernel refuses together is lost' kernel-without-super-packets $f 'rc == BASE_EINVAL && r->n > 1' 'false'
mutant 'tun: a kernel that refuses is asked again' kernel-without-super-packets $f '        t->single = true;' ''
mutant 'tun: what was thrown away is written after all' unit:tun $f '    t->run.n = 0;
    t->pass = NULL;
    return n;' '    return n;'
mutant 'tun: dirt in the headroom reaches the kernel' unit:tun $f 'memset(pkt - TUN_HEADROOM, 0, TUN_HEADROOM);' ''
mutant 'tun: deletion leaves holes in the table' unit:tun pkg/tun/prefix.c '            hole = i;' '            break;'

f=pkg/masque/packet.c
mutant 'packet: any source' spoofed-and-unreachable $f 'if (!has(&r->prefix, src))
        return MASQUE_SOURCE_SPOOF;' ''
mutant 'packet: any destination' spoofed-and-unreachable $f 'if (!reachable)' 'if (false)'
mutant 'packet: connector to connector' unit:masque $f 'if (in_pool(r, dst))' 'if (false)'
mutant 'packet: routing headers' unit:masque $f 'return routing ? MASQUE_BAD_ROUTING : MASQUE_PASS' 'return MASQUE_PASS'
mutant 'packet: payload length is not compared' unit:masque $f '+ MASQUE_PACKET_HEADER != len' '+ MASQUE_PACKET_HEADER > len'
mutant 'packet: jumbo option' unit:masque $f 'p[at] == OPTION_JUMBO || ' ''
mutant 'packet: protocol scope' scope-of-the-request $f 'if (r->ipproto >= 0 &&' 'if (false &&'
mutant 'icmp6: answers errors' unit:masque pkg/masque/icmp6.c 'info->icmp_type < TYPE_ECHO_REQUEST || ' ''
mutant 'icmp6: an MTU below 1280 is told' unit:masque pkg/masque/icmp6.c 'mtu < MTU_MIN ? MTU_MIN : mtu' 'mtu'

f=pkg/agent/data_path.c
mutant 'path: the fence is not asked when a packet is taken in' nothing-after-the-deadline $f 'fence_check(f->slot, now)' 'fence_check(f->slot, now > 0)'
mutant 'path: packets pass between gap and answer' gap $f 'agent_data_held(d) ? NULL : ' ''
mutant 'path: a device delivers to sessions of another' tenants-are-apart $f 'if (f->tun != b->tun)' 'if (false)'
mutant 'path: hop limit stays' both-ways $f 'masque_packet_hop(pkt);' ''
mutant 'path: answers without limit' answers-are-limited $f ' || !masque_icmp6_take(&f->bucket, d->beat)' ''
mutant 'path: too large is dropped in silence' errors-into-the-vpc $f '== BASE_ERANGE' '== BASE_ENOMEM'

mutant 'path: what was held through a stop is written' stopped-with-a-packet $f 'if (agent_data_held(d)) { /* this' 'if (false) { /* this'

f=pkg/agent/data_loop.c
mutant 'loop: what was held through a stop is sent' stopped-with-a-packet $f 'if (d->gap_pending) /* stopped' 'if (false) /* stopped'
mutant 'loop: the old generation'"'"'s queue goes to the new one' queue-of-the-old-generation $f 'agent_data_tun_all(d, tun);' ''
mutant 'loop: a stop is not noticed' gap $f 'now - d->beat > d->gap &&' 'false &&'
mutant 'loop: what waited through a gap passes' gap-answered-at-once $f '        agent_data_tun_empty(d, i);
    masque_endpoint_discard' '        ;
    masque_endpoint_discard'
mutant 'loop: the barrier leaves the flow open' one-session-per-prefix $f 'masque_endpoint_stop(d->ends, flow);
    agent_flows_stop(d->flows, f);' ''
mutant 'loop: a closed device'"'"'s flows move to the next one' device-deleted $f 'agent_flows_drop_tun(d->flows, i);' ''
mutant 'loop: orders beyond one turn wait for the next wake' rings-are-bounded $f '(d->orders_left && d->n_waiting == 0) || d->mail_left' 'd->mail_left'
mutant 'loop: an answer is dropped when the ring is full' rings-are-bounded $f '    d->n_waiting++;' ''
mutant 'loop: a device'"'"'s number is given twice' device-closed-and-refused $f ' || find_tun(d, o->tun_id) != UINT32_MAX' ''
mutant 'loop: two sessions with one prefix' one-session-per-prefix $f 'if (rc == BASE_EEXIST)' 'if (rc == BASE_EEXIST && false)'
mutant 'flows: the target of the request is ignored' scope-of-the-request pkg/agent/data_flows.c 'target->len == 0 ||' 'true ||'

f=pkg/agent/data_carry.c
mutant 'threads: a new session does not wait for other queues' other-queue-of-the-old-generation $f 'if (!round_over(d, now))' 'if (!round_over(d, now) && now < 0)'
mutant 'threads: a new session waits for ever' one-stands-still $f '<= d->gap)' '> 0)'
mutant 'threads: nobody says that a queue was read' first-packets $f 'atomic_store(&d->sweeps_done, asked);' '{}'
mutant 'threads: packets of another queue are dropped' carried $f 'd->mail_put |= UINT64_C(1) << to;' ''
mutant 'threads: mail waits until something else happens' carried $f 'else if (agent_mail_post(mail(d, d->index, to)))' 'else if (false)'
mutant 'threads: what was posted too late passes' posted-late $f 'if (d->beat - is.at > d->gap)' 'if (false)'
mutant 'threads: a letter for the session before reaches the next' letter-for-the-session-before pkg/agent/data_path.c ' || l->at <= f->opened' ''
mutant 'threads: strangers push out packets' unit:agent:agent_data_mail pkg/agent/data_mail.c 'l->kind == AGENT_LETTER_DATAGRAM ? room / 2 : room' 'room'
mutant 'threads: two at once pass the limit of a tenant' unit:agent:agent_data_shared pkg/agent/data_shared.c 'if (limit > 0 && n >= limit)' 'if (false)'
f=pkg/agent/data.c
mutant 'threads: a close that finds no room is lost' orders-are-kept $f 'd->closes[d->n_closes++] = flow;' '{}'
mutant 'threads: the end of a TUN that finds no room is lost' orders-are-kept pkg/agent/data_book.c '!(b->closing ||' '!(false ||'
mutant 'threads: an order for all that finds no room is lost' orders-are-kept $f 'owed |= push_to_those(d, (enum agent_for_all)i) != BASE_OK;' '{}'
mutant 'threads: drained when one is' orders-are-kept $f 'return d->drained == all_threads(d);' 'return true;'
f=pkg/agent/data_loop.c
mutant 'threads: what was carried through a gap passes' gap-and-what-was-carried pkg/agent/data_path.c 'agent_data_held(d) ? NULL : ' ''
mutant 'threads: a stopped session is admitted' stopped-while-it-waits $f 'f && f->state == AGENT_FLOW_ASKED' 'f'
f=pkg/agent/data_flows.c
mutant 'threads: two sessions with one prefix' moves $f 't->own ? BASE_OK : agent_shared_claim(t->shared, &a->prefix, t->thread)' '((void)agent_shared_claim(t->shared, &a->prefix, t->thread), BASE_OK)'
mutant 'threads: of two claims both stay' unit:agent:agent_data_shared pkg/agent/data_shared.c 'bool alone = count(w, h) == 1;' 'bool alone = true;'
mutant 'threads: a claim that may come to nothing is the owner'\''s' unit:agent:agent_data_shared pkg/agent/data_shared.c 'word | CLAIMING)' 'word)'
f=pkg/masque/h3_udp.c
mutant 'threads: another process joins the sockets' 'unit:masque:masque_h3_threads' $f 'if (t->index > 0) {' '{'
mutant 'threads: the kernel picks by address' 'unit:masque:masque_h3_threads' $f 'if (t->count > 1 && t->index == t->count - 1)' 'if (false)'
mutant 'threads: IDs name no thread' 'unit:masque:masque_h3_threads' pkg/masque/h3_conn.c 'masque_thread_mark(scid.data, &h->threads);' ''
mutant 'threads: a Retry names no thread' 'unit:masque:masque_h3_threads' pkg/masque/h3_accept.c 'masque_thread_mark(scid.data, &h->threads);' ''
mutant 'threads: strays are not handed over' 'unit:masque:masque_h3_threads' pkg/masque/h3.c 'if (thread != h->threads.index) {' 'if (false) {'
mutant 'threads: what another took of the rate is not seen' unit:masque:masque_count pkg/masque/rate.c 'if (!left(was, now, rate, burst))' 'if (false)'
mutant 'threads: what another took of a source is not seen' unit:masque:masque_count pkg/masque/count.c 'if (sum(w, tag) <= limit)' 'if (true)'
mutant 'threads: each has the whole limit' 'unit:masque:masque_h3_threads' pkg/masque/h3.c 'cfg->threads.shared ? &cfg->threads.shared->h3 : &h->alone' '&h->alone'

f=pkg/masque/h2_write.c
mutant 'h2: a piece is written without a look at the fence' 'unit:masque:masque_h2*' $f 'masque_h2_flow_fence_open(c->flow, now);
}' 'true;
}'
mutant 'h2: a stop within a flush is not noticed' 'unit:masque:masque_h2*' $f 'now - h->flush_began <= h->limits.stall && ' 'now >= h->flush_began && '
mutant 'h2: a closed fence leaves the queue' 'unit:masque:masque_h2*' $f 'masque_queue_drop(&f->queue, &h->pool, &h->stats.drop_fence);' '{}'
f=pkg/masque/h2_conn.c
mutant 'h2: what the socket holds is not reset' 'unit:masque:masque_h2*' $f 'return c->inner_end > c->written - (uint64_t)left;' 'return false;'
mutant 'h2: the end is not abortive' 'unit:masque:masque_h2*' $f '.l_onoff = 1, .l_linger = 0};
        (void)setsockopt(c->fd' '.l_onoff = 0, .l_linger = 0};
        (void)setsockopt(c->fd'
mutant 'h2: nobody looks at the fence while the socket holds packets' 'unit:masque:masque_h2*' $f 'if (masque_h2_flow_fence_open(c->flow, c->h->now))' 'if (true)'
mutant 'h2: a busy client puts off the look' 'unit:masque:masque_h2*' $f 'base_time_min(end, c->look_at) : c->look_at' 'base_time_min(end, c->h->now + MASQUE_H2_LOOK) : c->h->now + MASQUE_H2_LOOK'
mutant 'h2: TCP may hold any amount unsent' 'unit:masque:masque_h2*' $f '(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);' '(void)unsent;'
mutant 'h2: no deadline for a client that reads nothing' 'unit:masque:masque_h2*' $f 'after(c->blocked_since, l->blocked) <= now' 'false'
f=pkg/masque/h2_flow.c
mutant 'h2: the barrier leaves what the socket holds' 'unit:masque:masque_h2*' $f '    if (f->cur_len > 0 || masque_h2_conn_holds_packets(f->conn)) {
        h->stats.resets_fence++;' '    if (false) {
        h->stats.resets_fence++;'
mutant 'h2: packets of a stopped flow pass' 'unit:masque:masque_h2*' $f 'else if (!f->stopped)
        deliver' 'else if (true)
        deliver'
f=pkg/masque/tls_ossl.c
mutant 'h2: no ALPN is enough' 'unit:masque:masque_h2*' $f '*alert = SSL_AD_NO_APPLICATION_PROTOCOL;
    return SSL_CLIENT_HELLO_ERROR;' 'return SSL_CLIENT_HELLO_SUCCESS;'
mutant 'h2: any certificate is enough' 'unit:masque:masque_h2*' pkg/masque/h2_tls.c 'masque_tls_ossl_verify(t->roots, x) == X509_V_OK ? 1 : 0' 'masque_tls_ossl_verify(t->roots, x) == X509_V_OK ? 1 : 1'
f=pkg/masque/h2_http.c
mutant 'h2: control frames without limit' 'unit:masque:masque_h2*' $f 'c->flood = "control frames too often";' '{}'
mutant 'h2: DATA that completes nothing without limit' 'unit:masque:masque_h2*' $f 'c->flood = "DATA frames that complete nothing";' '{}'
mutant 'h2: streams that the server resets without limit' 'unit:masque:masque_h2*' $f 'c->flood = "streams that had to be reset too often";' '{}'

echo "mutants-dataplane: $killed killed, $survived not, of $n"
[ "$survived" -eq 0 ]
