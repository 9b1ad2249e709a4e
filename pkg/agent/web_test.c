/* SPDX-License-Identifier: Apache-2.0
 *
 * Real connections on 127.0.0.1, server and clients on one thread: the loop is stepped until a client has
 * what it waits for.
 */
#include "agent/web.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "loop/loop.h"

struct rig {
    struct loop *loop;
    struct loop_timer *step; /* so that a step never blocks for long */
    struct agent_web *web;
    struct agent_web_ask *ask; /* the last one of /later */
    int pages;
};

static int on_page(void *arg, const char *path, struct base_buf *body, const char **type)
{
    struct rig *g = arg;

    (void)type;
    if (strcmp(path, "/livez") != 0)
        return 0;
    g->pages++;
    (void)base_buf_addz(body, "ok\n");
    return 200;
}

static void on_later(void *arg, struct agent_web_ask *ask)
{
    ((struct rig *)arg)->ask = ask;
}

static void on_step(void *arg)
{
    struct rig *g = arg;

    loop_timer_set(g->step, base_time_add(loop_clock(), 5 * BASE_MS));
}

static void rig_up(struct rig *g)
{
    struct base_err err = {0};

    *g = (struct rig){0};
    cr_assert_eq(loop_new(&g->loop, &err), BASE_OK, "%s", err.msg);
    cr_assert_eq(loop_timer_new(&g->step, g->loop, on_step, g, &err), BASE_OK, "%s", err.msg);
    loop_timer_set(g->step, 0);
    cr_assert_eq(agent_web_new(&g->web, g->loop, "health.listen", "127.0.0.1:0", on_page, g, &err), BASE_OK,
                 "%s", err.msg);
    agent_web_later(g->web, "/later", on_later, g);
}

static void rig_down(struct rig *g)
{
    agent_web_free(g->web);
    loop_timer_free(g->step);
    loop_free(g->loop);
}

/* A connection that has sent `text` so far. */
static int open_only(struct rig *g, const char *text)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(agent_web_port(g->web))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0, "%s", strerror(errno));
    cr_assert_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
    return fd;
}

static int open_with(struct rig *g, const char *text)
{
    int fd = open_only(g, text);

    loop_step(g->loop, true);
    return fd;
}

/* What the server sends within 5 s, up to `until` or the end; "" = closed without a word, NULL = nothing
 * came. */
static const char *answer_on(struct rig *g, int fd, const char *until)
{
    static char text[65536];
    base_time end = base_time_add(loop_clock(), 5 * BASE_SEC);
    size_t n = 0;

    text[0] = '\0';
    while (loop_clock() < end) {
        ssize_t r = recv(fd, text + n, sizeof text - 1 - n, MSG_DONTWAIT);

        if (r == 0 || (r < 0 && errno != EAGAIN))
            return text;
        if (r > 0)
            n += (size_t)r;
        text[n] = '\0';
        if (until && strstr(text, until))
            return text;
        loop_step(g->loop, true);
    }
    return NULL;
}

static const char *ask_for(struct rig *g, const char *request, const char *until)
{
    int fd = open_with(g, request);
    const char *text = answer_on(g, fd, until);

    (void)close(fd);
    return text;
}

#define LIVEZ "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

static void still_alive(struct rig *g, const char *when)
{
    const char *text = ask_for(g, LIVEZ, NULL);

    cr_assert(text && strncmp(text, "HTTP/1.1 200 ", 13) == 0 && strstr(text, "\r\n\r\nok\n"), "%s: '%s'",
              when, text ? text : "(no answer)");
}

/* Nobody keeps the kubelet out by opening connections and saying little. */
Test(agent_web, idle_connections_do_not_keep_others_out, .timeout = 60)
{
    static const char *const words[] = {
        "", "G", "GET /livez HTTP/1.1\r\nHost: a\r\n",
        "POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nx"};
    struct rig g;
    int fds[100];

    rig_up(&g);
    for (size_t w = 0; w < BASE_LEN(words); w++) {
        for (size_t i = 0; i < BASE_LEN(fds); i++)
            fds[i] = open_with(&g, words[w]);
        still_alive(&g, words[w]);
        for (size_t i = 0; i < BASE_LEN(fds); i++)
            (void)close(fds[i]);
        still_alive(&g, "closed");
    }
    rig_down(&g);
}

/* Half a request and the end in one segment: the server sees the one and not the other. More at once than it
 * takes. */
Test(agent_web, who_leaves_in_the_middle_of_a_request_makes_room, .timeout = 60)
{
    struct rig g;
    base_time begin;

    rig_up(&g);
    begin = loop_clock();
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 60; i++) /* the kernel keeps 64 until they are accepted */
            (void)close(open_only(&g, "GET /livez HTTP/1.1\r\nHo"));
        still_alive(&g, "after many that left");
    }
    cr_assert_lt(loop_clock() - begin, 5 * BASE_SEC, "MHD's time-out made the room, nobody else");
    rig_down(&g);
}

/* Those that wait for an answer are not the ones that have to go. */
Test(agent_web, who_waits_for_an_answer_is_kept, .timeout = 60)
{
    struct rig g;
    struct base_buf body;
    const char *text;
    int waiting, fds[100];

    rig_up(&g);
    waiting = open_with(&g, "GET /later HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    while (!g.ask)
        loop_step(g.loop, true);
    for (size_t i = 0; i < BASE_LEN(fds); i++)
        fds[i] = open_with(&g, "");
    still_alive(&g, "beside one that waits");
    base_buf_init(&body, 64);
    (void)base_buf_addz(&body, "at last\n");
    agent_web_answer(g.ask, 200, "text/plain", &body, 0);
    base_buf_fini(&body);
    text = answer_on(&g, waiting, "at last");
    cr_assert(text && strstr(text, "at last"), "'%s'", text ? text : "(no answer)");
    (void)close(waiting);
    for (size_t i = 0; i < BASE_LEN(fds); i++)
        (void)close(fds[i]);
    rig_down(&g);
}

/* A client that goes away while its answer is not there yet. */
Test(agent_web, who_leaves_before_the_answer_harms_nobody, .timeout = 60)
{
    struct rig g;
    struct agent_web_ask *ask;
    int fd;

    rig_up(&g);
    fd = open_with(&g, "GET /later HTTP/1.1\r\nHost: a\r\n\r\n");
    while (!g.ask)
        loop_step(g.loop, true);
    ask = g.ask;
    (void)close(fd);
    for (int i = 0; i < 20; i++) { /* how many events that makes is the library's affair */
        loop_step(g.loop, false);
        (void)poll(NULL, 0, 5);
    }
    g.ask = NULL; /* the next one may lie where this one lay */
    agent_web_say(ask, 200, 0, "nobody reads this");
    still_alive(&g, "after it");
    fd = open_with(&g, "GET /later HTTP/1.1\r\nHost: a\r\n\r\n");
    while (!g.ask)
        loop_step(g.loop, true);
    rig_down(&g); /* with one that waits */
    (void)close(fd);
}

Test(agent_web, bad_requests_get_an_answer_or_the_end, .timeout = 60)
{
    static const struct {
        const char *request, *answer; /* what it begins with; "" = the connection ends */
    } rows[] = {
        {"GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 404 "},
        {"GET /livez?x=%00&&&=== HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 "},
        {"GET //livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 404 "},
        {"GET /../livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 404 "},
        {"POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
         "HTTP/1.1 405 "},
        {"DELETE /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 405 "},
        {"GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
         "HTTP/1.1 200 "},
        {"GET /livez HTTP/1.0\r\n\r\n", "HTTP/1."},
        {"\r\n\r\n\r\n", NULL},
        {"\x16\x03\x01\x02\r\n\r\n", NULL},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", NULL},
    };
    struct rig g;

    rig_up(&g);
    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        const char *text = rows[i].answer ? ask_for(&g, rows[i].request, NULL) : NULL;

        if (rows[i].answer)
            cr_assert(text && strncmp(text, rows[i].answer, strlen(rows[i].answer)) == 0, "row %zu: '%s'", i,
                      text ? text : "(no answer)");
        else
            (void)close(open_with(&g, rows[i].request));
        still_alive(&g, rows[i].request);
    }
    rig_down(&g);
}

/* Header fields without end: an answer, or the end of the connection, after a bounded number of bytes. */
Test(agent_web, header_fields_have_a_bound, .timeout = 60)
{
    struct rig g;
    char line[1024];
    size_t sent = 0;
    int fd;

    rig_up(&g);
    memset(line, 'a', sizeof line);
    memcpy(line, "X: ", 3);
    memcpy(line + sizeof line - 2, "\r\n", 2);
    fd = open_with(&g, "GET /livez HTTP/1.1\r\nHost: a\r\n");
    for (; sent < 4 * 1024 * 1024; sent += sizeof line) {
        char c;

        if (send(fd, line, sizeof line, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
            break;
        loop_step(g.loop, true);
        if (recv(fd, &c, 1, MSG_DONTWAIT) >= 0)
            break;
    }
    cr_assert_lt(sent, 256 * 1024, "%zu bytes of header fields were taken", sent);
    (void)close(fd);
    still_alive(&g, "after it");
    rig_down(&g);
}
