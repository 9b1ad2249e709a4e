/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/str.h"

int agent_addr_parse(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len, struct base_err *err)
{
    const char *colon = strrchr(text, ':');
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    char host[64];
    uint64_t port;

    memset(ret, 0, sizeof *ret);
    if (!colon || base_parse_u64(base_str_of(colon + 1), 65535, &port))
        return base_err_set(err, BASE_EINVAL, "'%s' has no port; write <address>:<port>", text);
    if (text[0] == '[' && colon > text + 1 && colon[-1] == ']') {
        six.sin6_port = htons((uint16_t)port);
        if (!base_copy_str(host, sizeof host, (struct base_str){text + 1, (size_t)(colon - text - 2)}) &&
            inet_pton(AF_INET6, host, &six.sin6_addr) == 1) {
            memcpy(ret, &six, sizeof six);
            *ret_len = sizeof six;
            return BASE_OK;
        }
    } else if (!base_copy_str(host, sizeof host, (struct base_str){text, (size_t)(colon - text)}) &&
               inet_pton(AF_INET, host, &four.sin_addr) == 1) {
        four.sin_port = htons((uint16_t)port);
        memcpy(ret, &four, sizeof four);
        *ret_len = sizeof four;
        return BASE_OK;
    }
    return base_err_set(err, BASE_EINVAL, "'%s' is no numeric address; write [v6]:<port> or v4:<port>", text);
}
