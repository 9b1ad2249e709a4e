/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/data_mail.h - what one data thread carries to another: packets that came out of its TUN queue, and
 * datagrams that came to its socket, which are the other's. One writer, one reader; fixed size; neither ever
 * waits.
 *
 * The writer puts letters in and posts them together; nobody sees them before. What does not fit is refused.
 * The reader takes what was posted, in order, in place. Pure, but for the other side.
 */
#ifndef AGENT_DATA_MAIL_H
#define AGENT_DATA_MAIL_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/time.h"

enum agent_letter_kind { AGENT_LETTER_PACKET = 1, AGENT_LETTER_DATAGRAM };
struct agent_letter {
    enum agent_letter_kind kind;
    uint32_t len;                      /* of what follows */
    uint32_t tun_id;                   /* PACKET: the device it came from */
    base_time at;                      /* when it was put in */
    struct sockaddr_in6 remote, local; /* DATAGRAM */
    uint8_t ecn;
};

struct agent_mail;
/* `bytes` is rounded up to a power of two, 64 KiB .. 1 GiB. NULL: no memory, or out of range. A letter may
 * have half of it. */
struct agent_mail *agent_mail_new(size_t bytes);
struct agent_mail *agent_mail_free(struct agent_mail *m);
BASE_DEFINE_CLEANUP(struct agent_mail *, agent_mail_free)

/* Copies one in. False: there is no room. Datagrams, which anybody may send, get no more than half of it, so
 * that they do not push out the packets of sessions. Writer only. */
bool agent_mail_put(struct agent_mail *m, const struct agent_letter *l, const uint8_t *data);
/* Hands over what was put since. True: the reader had seen everything, and must be woken. Writer only. */
bool agent_mail_post(struct agent_mail *m);
/* Takes back what was put and not posted; returns the number of letters. Writer only. */
unsigned agent_mail_discard(struct agent_mail *m);

/* The next letter of those that were posted when the last agent_mail_begin was called, or NULL. It and `data`
 * may be changed, with what stands before `data` (the letter itself), until agent_mail_end. Reader only. */
void agent_mail_begin(struct agent_mail *m);
struct agent_letter *agent_mail_take(struct agent_mail *m, uint8_t **data);
/* Gives the room back. True: more has come meanwhile, and nobody will wake the reader for it. */
bool agent_mail_end(struct agent_mail *m);

#endif
