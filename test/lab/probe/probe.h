/* SPDX-License-Identifier: Apache-2.0
 * probe.h - the lab's own traffic tool: numbered packets, a link-by-link packet log, checksummed transfers.
 * A test program: it does I/O and ends the process on a usage or system error (probe_die), after a clear
 * message. All times are CLOCK_BOOTTIME nanoseconds, the clock of leases and gates, so that logs can be laid
 * side by side. */
#ifndef PROBE_H
#define PROBE_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct probe_opts {
    const char *bind;   /* own address, NULL = any */
    const char *to;     /* peer address */
    uint16_t port;      /* UDP or TCP port */
    uint32_t interval;  /* microseconds between packets */
    uint64_t count;     /* packets or bytes, 0 = until SIGTERM */
    uint32_t size;      /* payload bytes of a numbered packet */
    uint32_t stream;    /* number that marks the flow */
    bool freebind;      /* the address may come later */
    bool echo;          /* recv: send each packet back */
    const char *log;    /* file for the lines, NULL = stdout */
    const char *ifs[8]; /* links to capture on */
    unsigned n_ifs;
    const char *prefix;  /* only packets from or to this IPv6 prefix are logged */
    uint32_t timeout_ms; /* of one blocking call, 0 = none */
    uint32_t tid;        /* thread to freeze */
};

/* Payload of a numbered packet, big endian on the wire. */
enum { PROBE_MAGIC = 0x48464c42, PROBE_HEAD = 24 };

int64_t probe_now(void);                /* CLOCK_BOOTTIME, ns */
int64_t probe_from_realtime(int64_t t); /* a CLOCK_REALTIME stamp of a moment ago, on CLOCK_BOOTTIME */
_Noreturn void probe_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void probe_open_log(const char *path); /* the log of this process: stdout, or a file written line by line */
bool probe_stopped(void);              /* SIGTERM or SIGINT came */

/* IPv6 socket address from text; ends the process when it is no IPv6 address. `len` is set. */
void probe_addr(const char *text, uint16_t port, struct sockaddr_storage *ret, socklen_t *ret_len);
/* Kernel receive time of a message (SO_TIMESTAMPNS), now when it has none. */
int64_t probe_msg_time(struct msghdr *m);

/* Sub-commands: each returns the exit status. */
int probe_send(const struct probe_opts *o); /* numbered UDP packets to o->to, every o->interval; logs what
                                               comes back as recv does */
int probe_recv(const struct probe_opts *o); /* logs "stream,seq,sent,received,link,source" */
int probe_cap(const struct probe_opts *o);  /* logs "time,link,in|out,source,destination,protocol,length" */
int probe_tcp_serve(const struct probe_opts *o); /* answers tcp_xfer, one connection after the other */
int probe_tcp_xfer(const struct probe_opts *o);  /* o->count bytes up and down with SHA-256; one JSON line */
int probe_freeze(const struct probe_opts *o); /* stops o->tid until SIGTERM; logs "time frozen|thawed|gone" */
int probe_late(const struct probe_opts *o);   /* logs "due,woken" whenever it could not run on time */
int probe_stamp(void);                        /* stdin to stdout, "time line" for each line */
#endif
