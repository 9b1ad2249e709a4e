/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/threads.h"

#include <errno.h>
#include <sys/socket.h>

enum { LONG_HEADER = 0x80, AT_DCID_SHORT = 1, AT_DCID_LONG = 6 };

unsigned masque_thread_of(const uint8_t *p, size_t n, unsigned count)
{
    size_t at = n > 0 && (p[0] & LONG_HEADER) ? AT_DCID_LONG : AT_DCID_SHORT;
    return count > 1 && n > at ? p[at] % count : 0;
}

void masque_thread_mark(uint8_t *cid, const struct masque_threads *t)
{
    if (t->count > 1)
        cid[0] = (uint8_t)(t->index + t->count * (cid[0] % (256 / t->count)));
}

int masque_thread_steer(int fd, unsigned count, struct base_err *err)
{
    /* The program sees the UDP payload; a load beyond its end ends it with 0, as masque_thread_of does. */
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, LONG_HEADER, 0, 2),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, AT_DCID_LONG),
        BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, AT_DCID_SHORT),
        BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, count),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program) != 0)
        return base_err_sys(err, BASE_EIO, errno, "UDP sockets of several data threads: choosing among them");
    return BASE_OK;
}
