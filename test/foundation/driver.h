/* SPDX-License-Identifier: Apache-2.0
 *
 * driver.h - joins the core, the kernel and the API server on one loop. Private to the driver's files.
 */
#ifndef FOUNDATION_DRIVER_H
#define FOUNDATION_DRIVER_H

#include "core.h"
#include "kernel.h"
#include "kubestore/kubestore.h"
#include "loop/log.h"
#include "loop/loop.h"
#include "options.h"

#define DRIVER_CLAIMS 2048
#define DRIVER_INSTANCES 64
#define DRIVER_ATTACHMENTS 96
#define DRIVER_SERVICES 512
/* Results of kernel groups and of requests that could not be sent: at most one per row and device. */
#define DRIVER_QUEUE 4096

struct driver;
struct driver_watch {
    struct driver *d;
    enum fnd_coll coll;
    struct kubestore_watch *w;
};
struct driver_queued {
    enum fnd_ev ev; /* FND_EV_DONE, FND_EV_ANSWER or FND_EV_SCAN_END */
    uint64_t id;
    bool ok;
    int code;
};

struct driver {
    const struct options *opt;
    struct loop *loop;
    struct loop_log *log;
    struct kubestore *store;
    struct kernel *kernel;
    struct fnd_core *core;
    struct fnd_out *out;
    struct loop_timer *timer;
    struct loop_poll *news;
    struct driver_watch watches[FND_COLL_N];
    struct driver_queued queue[DRIVER_QUEUE];
    unsigned q_head, q_len;
    bool stepping;
};

/* Takes up what the kernel holds, then starts the watches. Borrows everything in `d` that the caller has set:
 * opt, loop, log, store, kernel, core. */
int driver_start(struct driver *d, struct base_err *err);
void driver_stop(struct driver *d);

/* driver.c: one event into the core; executes what comes out, until nothing is left to do. */
void driver_step(struct driver *d, struct fnd_in *in);
void driver_queue(struct driver *d, const struct driver_queued *q);

/* driver_store.c */
int driver_store_start(struct driver *d, struct base_err *err);
void driver_store_stop(struct driver *d);
void driver_store_ask(struct driver *d, const struct fnd_fx *fx); /* GET, STATUS, FINALIZERS */
void driver_store_prove(struct driver *d, const struct fnd_fx *fx);
void driver_store_scan(struct driver *d);

/* driver_log.c */
void driver_log(struct driver *d, const struct fnd_fx *fx);
void driver_log_failure(struct driver *d, const char *what, const struct fnd_gate *g,
                        const struct base_err *err);

#endif
