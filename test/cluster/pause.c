/* SPDX-License-Identifier: Apache-2.0
 *
 * pause.c - the process that holds a pod's namespaces in the test cluster: waits, reaps, ends on SIGTERM.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_end(int sig)
{
    (void)sig;
    _exit(0);
}

static void on_child(int sig)
{
    (void)sig;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

int main(void)
{
    const struct sigaction end = {.sa_handler = on_end},
                           child = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};

    if (sigaction(SIGTERM, &end, NULL) || sigaction(SIGINT, &end, NULL) || sigaction(SIGCHLD, &child, NULL))
        return 1;
    for (;;)
        (void)pause();
}
