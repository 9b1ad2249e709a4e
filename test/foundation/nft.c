/* SPDX-License-Identifier: Apache-2.0 */
#include "nft.h"

#include "base/str.h"
#include "gate_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Packets from a TUN need the program's mark (cleared at once: nothing else is to see it). Packets to one
 * need its interface group, which a device enters only after the program is attached: both are false for any
 * other hf* device. */
static const char rules[] = "table inet holdfast_gate\n"
                            "delete table inet holdfast_gate\n"
                            "table inet holdfast_gate {\n"
                            "  chain from_tun {\n"
                            "    meta mark != %u counter drop\n"
                            "    meta mark set 0\n"
                            "  }\n"
                            "  chain ingress {\n"
                            "    type filter hook prerouting priority raw; policy accept;\n"
                            "    iifname \"hf*\" jump from_tun\n"
                            "  }\n"
                            "  chain forward {\n"
                            "    type filter hook forward priority filter; policy accept;\n"
                            "    oifname \"hf*\" oifgroup != %u counter drop\n"
                            "  }\n"
                            "  chain output {\n"
                            "    type filter hook output priority filter; policy accept;\n"
                            "    oifname \"hf*\" oifgroup != %u counter drop\n"
                            "  }\n"
                            "}\n";

static int spawn(int in, int out, pid_t *ret, struct base_err *err)
{
    static const char *const argv[] = {"nft", "-f", "-", NULL};
    posix_spawn_file_actions_t fa;
    int e;

    if (posix_spawn_file_actions_init(&fa))
        return base_err_set(err, BASE_ENOMEM, "nft: no memory");
    posix_spawn_file_actions_adddup2(&fa, in, 0);
    posix_spawn_file_actions_adddup2(&fa, out, 1);
    posix_spawn_file_actions_adddup2(&fa, out, 2);
    e = posix_spawnp(ret, "nft", &fa, NULL, (char *const *)(const void *)argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    if (e)
        return base_err_sys(err, e == ENOENT ? BASE_ENOTFOUND : BASE_EIO, e,
                            "nft: cannot run it; install nftables and put it in PATH");
    return BASE_OK;
}

static int feed(pid_t pid, int to, int from, struct base_err *err)
{
    char text[2048], said[256] = "";
    size_t len, got = 0;
    ssize_t n;
    int status;

    base_fmt(text, sizeof text, rules, GATE_MARK, GATE_GROUP, GATE_GROUP);
    len = strlen(text);
    if (write(to, text, len) != (ssize_t)len) /* less than PIPE_BUF: all or nothing */
        base_copy(said, sizeof said, "its input was closed");
    close(to);
    while (got < sizeof said - 1 && (n = read(from, said + got, sizeof said - 1 - got)) > 0)
        got += (size_t)n;
    said[got] = '\0';
    close(from);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return base_err_sys(err, BASE_EIO, errno, "nft: cannot wait for it");
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        return base_err_set(err, BASE_EIO, "nft: refused the default drop: %s", said);
    return BASE_OK;
}

int nft_default_drop(struct base_err *err)
{
    int in[2], out[2], r;
    pid_t pid;

    if (pipe2(in, O_CLOEXEC))
        return base_err_sys(err, BASE_EIO, errno, "nft: no pipe");
    if (pipe2(out, O_CLOEXEC)) {
        r = base_err_sys(err, BASE_EIO, errno, "nft: no pipe");
        close(in[0]);
        close(in[1]);
        return r;
    }
    r = spawn(in[0], out[1], &pid, err);
    close(in[0]);
    close(out[1]);
    if (!r)
        return feed(pid, in[1], out[0], err);
    close(in[1]);
    close(out[0]);
    return r;
}
