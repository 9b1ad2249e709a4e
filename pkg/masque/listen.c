/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/listen.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

#include "base/id.h"
#include "base/str.h"

static int listen_error(struct base_err *err, const char *listen, const char *why)
{
    return base_err_set(err, BASE_EINVAL,
                        "listen \"%s\": %s; expected [IPv6]:port or IPv4:port, e.g. [::]:4433", listen, why);
}

int masque_listen_parse(struct sockaddr_in6 *ret, const char *listen, struct base_err *err)
{
    char host[128], mapped[140];
    const char *colon = listen ? strrchr(listen, ':') : NULL;
    uint64_t port;
    if (!colon)
        return listen_error(err, listen ? listen : "", "the port is missing");
    if (base_parse_u64(base_str_of(colon + 1), 65535, &port) != BASE_OK)
        return listen_error(err, listen, "the port must be a number from 0 to 65535");
    struct base_str h = {listen, (size_t)(colon - listen)};
    bool bracket = h.len >= 2 && h.ptr[0] == '[' && h.ptr[h.len - 1] == ']';
    if (bracket)
        h = (struct base_str){h.ptr + 1, h.len - 2};
    if (h.len == 0 || base_copy_str(host, sizeof host, h) != BASE_OK)
        return listen_error(err, listen, "the address is missing or too long");
    if (!bracket && memchr(host, ':', h.len))
        return listen_error(err, listen, "an IPv6 address needs brackets");
    base_fmt(mapped, sizeof mapped, "%s%s", bracket ? "" : "::ffff:", host);
    struct addrinfo hints = {.ai_family = AF_INET6, .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST},
                    *ai = NULL;
    if (getaddrinfo(mapped, NULL, &hints, &ai) != 0 || !ai)
        return listen_error(err, listen, "that is not a numeric address");
    memcpy(ret, ai->ai_addr, sizeof *ret);
    freeaddrinfo(ai);
    ret->sin6_port = htons((uint16_t)port);
    return BASE_OK;
}

bool masque_address_any(const struct in6_addr *a)
{
    static const uint8_t mapped_any[16] = {[10] = 0xff, [11] = 0xff};
    return IN6_IS_ADDR_UNSPECIFIED(a) || memcmp(a, mapped_any, sizeof mapped_any) == 0;
}

const char *masque_listen_remedy(int error)
{
    switch (error) {
    case EADDRINUSE:
        return ": another process has this port; stop it or choose another port";
    case EADDRNOTAVAIL:
        return ": no interface of this host has that address";
    case EACCES:
        return ": ports below 1024 need a capability or net.ipv4.ip_unprivileged_port_start";
    default:
        return "";
    }
}

void masque_address_text(char *dst, size_t size, const struct sockaddr_in6 *a)
{
    struct base_ip6 ip;
    char text[BASE_IP6_SIZE];
    memcpy(ip.b, a->sin6_addr.s6_addr, sizeof ip.b);
    base_ip6_text(text, &ip);
    base_fmt(dst, size, "[%s]:%u", text, ntohs(a->sin6_port));
}
