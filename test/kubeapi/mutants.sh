#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mutants.sh [PATTERN]: removes one guard of pkg/loop, pkg/http and pkg/kube after the other, in a copy of the tree, and runs the
# unit tests that must notice. Prints the table; exit 1 unless every mutant (whose name fits the pattern) is killed.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
copy=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-mutants.XXXXXX")
trap 'rm -rf "$copy"' EXIT
cp -r "$root"/{Makefile,hack,pkg} "$copy"/
cd "$copy" || exit 1
killed=0 survived=0 only=${1:-*}

# 0 = the unit tests of the package pass
run() {
    nice make -s OPT=-O1 CFLAGS=-Wno-error "build/gcc/test/$1" >"$copy/log" 2>&1 && timeout 100 nice "build/gcc/test/$1" -j2 >>"$copy/log" 2>&1
}

# mutant WHAT PKG FILE OLD NEW
mutant() {
    local what=$1 pkg=$2 file=$3 old=$4 new=$5 text verdict
    # shellcheck disable=SC2053
    [[ $what == $only ]] || return 0
    text=$(<"$root/$file")
    if [[ $text != *"$old"* ]]; then
        verdict='NOT FOUND in the source'
    else
        printf '%s\n' "${text/"$old"/"$new"}" >"$file"
        if run "$pkg"; then
            verdict=SURVIVED
        elif grep -q 'error:.*' "$copy/log" && ! grep -q 'Synthesis\|Assertion' "$copy/log"; then
            verdict="does not build: $(grep -m1 'error:' "$copy/log")"
        else
            verdict=killed
        fi
        cp "$root/$file" "$file"
        touch "$file"
    fi
    printf '%-66s %-5s %s\n' "$what" "$pkg" "$verdict"
    if [ "$verdict" = killed ]; then killed=$((killed + 1)); else survived=$((survived + 1)); fi
}

for p in loop http kube; do
    run $p || { echo "mutants: pkg/$p fails without any mutant:"; tail -5 "$copy/log"; exit 1; }
done

f=pkg/loop/timer.c
mutant 'timer: one set in the dispatch fires in it' loop $f ' && l->heap[0]->seq < last' ''
mutant 'timer: equal times fire in any order' loop $f 'a->at != b->at ? a->at < b->at : a->seq < b->seq' 'a->at < b->at || (a->at == b->at && a->seq > b->seq)'
mutant 'timer: a removed one leaves a hole' loop $f 'sift(l, i, last);' '(void)i, l->heap[i] = last;'
f=pkg/loop/watch.c
mutant 'poll: ends after an error condition' loop $f '(void)uv_poll_start(&p->h, to_uv(p->events), on_poll);
    } else' '} else'
mutant 'wake: the second one is lost' loop $f 'if (atomic_exchange(&w->pending, false))' 'if (atomic_load(&w->pending))'
f=pkg/loop/clock.c
mutant 'clock: a shifted time namespace is accepted' loop $f 'if (sec != 0 || nsec != 0)' 'if (false)'
mutant 'clock: nanoseconds of the shift are not seen' loop $f 'if (sec != 0 || nsec != 0)' 'if (sec != 0)'
mutant "clock: the children's namespace stands for ours" loop $f '(own.st_ino != children.st_ino || own.st_dev != children.st_dev)' 'false'
f=pkg/loop/ring.c
mutant 'ring: a full one takes more' loop $f '> r->mask) {' '> r->mask + 1) {'
mutant 'ring: no wake' loop $f '== t) {' '== t + 1) {'
f=pkg/loop/log.c
mutant 'log: line breaks pass' loop $f "c == '\\n' || c == '\\r' || c == '\\t'" "c == '\\r' || c == '\\t'"
mutant 'log: broken UTF-8 passes' loop $f 'if ((p[i] & 0xc0) != 0x80)' 'if (false)'
mutant 'log: repeats are written' loop $f 'if (s->count < LOOP_LOG_BURST) {' 'if (true) {'
mutant 'log: what was suppressed is never said' loop $f 'if (!s->suppressed || (!all && now - s->since < BASE_SEC))' 'if (true)'
mutant 'log: a value may fill the line' loop $f 'if (o->n + w > end) {' 'if (false) {'

f=pkg/http/call.c
mutant 'http: a write is repeated silently' http $f '(c->attempts > 0 && !c->repeatable)' 'false'
mutant 'http: any root is trusted' http $f 'SET(CURLOPT_SSL_VERIFYPEER, 1L)' 'SET(CURLOPT_SSL_VERIFYPEER, 0L)'
mutant 'http: any name is accepted' http $f 'SET(CURLOPT_SSL_VERIFYHOST, 2L)' 'SET(CURLOPT_SSL_VERIFYHOST, 0L)'
mutant 'http: proxies of the environment are used' http $f 'SET(CURLOPT_PROXY, r->proxy ? r->proxy : "");' ''
mutant 'http: redirects are followed' http $f 'SET(CURLOPT_FOLLOWLOCATION, 0L)' 'SET(CURLOPT_FOLLOWLOCATION, 1L)'
mutant 'http: heads of any size' http $f 'if (c->head_bytes > HEAD_MAX) {' 'if (false) {'
mutant 'http: header lines with line breaks' http $f 'if (!clean_line(r->headers[i]))' 'if (false)'
mutant 'http: time-out is not kept' http $f 'if (now >= c->deadline)' 'if (false)'
mutant 'http: idle counts from the start' http $f 'c->last_rx = loop_clock();
    if (c->streaming) {' 'if (c->streaming) {'
mutant 'http: an informational answer is the answer' http $f '|| status < 200)' ')'
mutant 'http: paths are normalised' http $f 'SET(CURLOPT_PATH_AS_IS, 1L);' ''
f=pkg/http/pool.c
mutant 'http: sockets are inherited' http $f 'addr->socktype | SOCK_CLOEXEC' 'addr->socktype'
mutant 'http: connections are closed in good order after a time-out' http $f '(void)setsockopt(p->fds[i], SOL_SOCKET, SO_LINGER, &lin, sizeof lin);' '(void)lin;'
mutant 'http: a connection is used again after a time-out' http $f 'finish_with(c, BASE_ETIMEDOUT, text);
    p->drop = true;' 'finish_with(c, BASE_ETIMEDOUT, text);'
mutant 'http: sent requests start again after a drop' http $f 'c->state == HTTP_RUNNING && c->attempts > 0) {' 'false) {'
mutant 'http: unsent requests end with the others' http $f 'c->state == HTTP_RUNNING && c->attempts > 0) {' 'c->state == HTTP_RUNNING) {'
mutant 'http: an early answer is not seen' http $f 'if (half_answered(p))
                loop_timer_set' 'if (false)
                loop_timer_set'
mutant 'http: more connections than allowed' http $f '(long)(p->opts.max_conns ? p->opts.max_conns : CONNS_MAX)' '(long)CONNS_MAX'
mutant 'http: callbacks after the pool is gone' http $f '        c->dead = true;
    p->dying = true;' '        ;
    p->dying = false;'

f=pkg/kube/client.c
mutant 'client: no new token after a 401' kube $f 'kube_creds_refresh(&c->creds, loop_clock(), true);' ''
mutant 'client: the same token is tried again' kube $f 'c->creds.gen != used && ' ''
mutant 'client: a 401 may be repeated for ever' kube $f 'k->retried = true;' ''
mutant 'client: renewals share the default lane' kube $f 'rc = http_start(c->lanes[k->lane],' 'rc = http_start(c->lanes[k->lane == 1 ? 0 : k->lane],'
mutant 'client: renewals on many connections' kube $f 'renew = {false, 1}' 'renew = {false, 0}'
mutant 'client: an error body is taken for lines' kube $f 'if (!k->fn || status != 200)' 'if (!k->fn)'
mutant 'client: a broken stream gives its last piece' kube $f 'if (k->open && h->code == BASE_OK) {' 'if (k->open) {'
mutant 'client: the name for TLS is not used' kube $f 'if (copy->tls_server_name)' 'if (false)'
mutant 'client: any lane number' kube $f 'req->lane < 0 || req->lane >= c->n_lanes' 'req->lane < -1'
mutant 'client: header injection by the audit id' kube $f 'if (req->audit_id && !header_text(req->audit_id, 128))' 'if (false)'
mutant 'client: retryAfterSeconds of the body is not seen' kube $f 'r->retry_after = st.retry_after;' ';'
f=pkg/kube/creds.c
mutant 'creds: never read again' kube $f 'if (!force && now < cr->next_read)' 'if (!force)'
mutant 'creds: read again each time' kube $f 'if (!force && now < cr->next_read)' 'if (false)'
mutant 'creds: a certificate without its key is taken' kube $f 'if (kube_pem_pair(cert ? cert : c->cert, key ? key : c->key, &err) != BASE_OK) {' 'if (false) {'
mutant 'creds: a failed read waits as long as a good one' kube $f 'ok ? KUBE_REREAD : KUBE_RETRY' 'KUBE_REREAD'
f=pkg/kube/config.c
mutant 'config: exec is ignored' kube $f ': refuse(e, "exec", use, err);' ': BASE_OK;'
mutant 'config: impersonation is ignored' kube $f 'rc = refuse(e, as[i],' 'rc = BASE_OK, (void)as, refuse(e, "x",'
mutant 'config: insecure-skip-tls-verify is ignored' kube $f 'int rc = refuse(e, "insecure-skip-tls-verify",' 'int rc = refuse(e, "insecure",'
mutant 'config: paths are relative to the working directory' kube $f 'slash ? (int)(slash - e->d->path) + 1 : 0' '0 * !slash'
mutant 'config: the last file wins' kube $f 'if (found)
            return BASE_OK;' 'if (found && i + 1 == ds->n)
            return BASE_OK;'
mutant 'config: a key of another certificate' kube $f 'if (rc == BASE_OK && c->cert)
        rc = kube_pem_pair' 'if (false)
        rc = kube_pem_pair'
mutant 'config: a certificate without a key' kube $f '!c->cert != !c->key' 'false'
f=pkg/kube/file.c
mutant 'file: a token with a line break' kube $f "token[i] <= ' ' || token[i] > '~'" "token[i] == '\\0'"
mutant 'file: an empty token' kube $f 'if (a == n)' 'if (false)'
mutant 'file: files of any size' kube $f 'base_buf_init(&b, max);' 'base_buf_init(&b, 1 << 30);'
f=pkg/kube/yaml.c
mutant 'yaml: duplicate keys' kube $f 'strcmp(o->key, key) == 0' 'false'
mutant 'yaml: any depth' kube $f 'if (depth > DEPTH_MAX)' 'if (false)'
mutant 'yaml: NUL in a value' kube $f "if (memchr(s.ptr, '\\0', s.len))" 'if (false)'
mutant 'yaml: further documents' kube $f 'if (second)' 'if (false && second)'
f=pkg/kube/url.c
mutant 'url: http is accepted' kube $f 'if (strncmp(p, "https://", 8) != 0)' 'if (strncmp(p, "http", 4) != 0)'
mutant 'url: dots in request paths' kube $f "if (*q == '/' || *q == '\\0' || *q == '?')" 'if (!q)'
mutant 'url: spaces in request paths' kube $f "if (*p <= ' ' || *p > '~' || strchr(\"\\\"#" "if (strchr(\"\\\"#"
f=pkg/kube/frame.c
mutant 'frame: lines of any length' kube $f 'if (n > f->part.max - f->part.len)' 'if (false)'
mutant 'frame: goes on after stop' kube $f '            if (!give(line, fn, arg))
                return BASE_ECLOSED;' '            (void)give(line, fn, arg);'
f=pkg/kube/status.c
mutant 'status: any object is a Status' kube $f 'strcmp(text_of(j, "kind"), "Status") == 0' 'true'
mutant 'status: control characters pass' kube $f 'if (c < 0x20 || c == 0x7f)' 'if (false)'

echo "mutants-kube: $killed passed, $survived failed"
[ "$survived" -eq 0 ]
