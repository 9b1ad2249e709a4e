/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include "base/mem.h"

void driver_queue(struct driver *d, const struct driver_queued *q)
{
    if (d->q_len == DRIVER_QUEUE) /* cannot be: one group per row and device at a time */
        return;
    d->queue[(d->q_head + d->q_len++) % DRIVER_QUEUE] = *q;
}

/* Executes one kernel effect; the text of a failure is logged here. */
static bool execute(struct driver *d, const struct fnd_fx *fx)
{
    const char *what = "";
    struct base_err err;
    int r = BASE_OK;

    switch (fx->kind) {
    case FND_FX_GATE:
        what = "gate";
        r = kernel_gate(d->kernel, &fx->gate, &err);
        break;
    case FND_FX_RECORD:
        what = "record";
        r = kernel_record(d->kernel, &fx->record, &err);
        break;
    case FND_FX_PUBLISH:
        what = "publish";
        r = kernel_publish(d->kernel, &fx->gate, fx->until, &err);
        break;
    case FND_FX_WITHDRAW:
        what = "withdraw";
        r = kernel_withdraw(d->kernel, &fx->gate.prefix, &err);
        break;
    case FND_FX_DEVICE_MAKE:
        what = "device";
        r = kernel_device_make(d->kernel, fx->gate.device, fx->mtu, &err);
        break;
    case FND_FX_DEVICE_DELETE:
        what = "device";
        r = kernel_device_delete(d->kernel, fx->gate.device, &err);
        break;
    case FND_FX_FORGET:
        what = "record";
        r = kernel_forget(d->kernel, &fx->record.uid, &err);
        break;
    case FND_FX_GET:
    case FND_FX_STATUS:
    case FND_FX_FINALIZERS:
        driver_store_ask(d, fx);
        break;
    case FND_FX_PROVE:
        driver_store_prove(d, fx);
        break;
    case FND_FX_SCAN:
        driver_store_scan(d);
        break;
    case FND_FX_RELIST:
        kubestore_start_over(d->store, fx->reason);
        break;
    case FND_FX_LOG:
        driver_log(d, fx);
        break;
    }
    if (r)
        driver_log_failure(d, what, &fx->gate, &err);
    return r == BASE_OK;
}

static void execute_all(struct driver *d)
{
    uint64_t op = 0;
    bool ok = true;

    for (unsigned i = 0; i <= d->out->n_fx; i++) {
        const struct fnd_fx *fx = i < d->out->n_fx ? &d->out->fx[i] : NULL;

        if (op && (!fx || fx->op != op)) {
            driver_queue(d, &(struct driver_queued){.ev = FND_EV_DONE, .id = op, .ok = ok});
            op = 0;
        }
        if (!fx)
            break;
        if (fx->op && fx->op != op) {
            op = fx->op;
            ok = true;
        }
        if (fx->op && !ok)
            continue; /* the group has failed already */
        if (!execute(d, fx))
            ok = false;
    }
}

static void one(struct driver *d, struct fnd_in *in)
{
    do {
        in->now = loop_clock();
        in->wall = loop_wall();
        fnd_core_step(d->core, in, d->out);
        execute_all(d);
        in->ev = FND_EV_MORE;
    } while (d->out->more);
}

void driver_step(struct driver *d, struct fnd_in *in)
{
    one(d, in);
    while (d->q_len) {
        const struct driver_queued q = d->queue[d->q_head];
        struct fnd_in next = {.ev = q.ev, .id = q.id, .ok = q.ok, .code = q.code};

        d->q_head = (d->q_head + 1) % DRIVER_QUEUE;
        d->q_len--;
        one(d, &next);
    }
    loop_timer_set(d->timer, d->out->wake_at);
}

static void tick(void *arg)
{
    struct fnd_in in = {.ev = FND_EV_TICK};

    driver_step(arg, &in);
}

/* ---- start ---- */
static void restore_record(void *arg, const struct fnd_record *r)
{
    struct fnd_in in = {.ev = FND_EV_RECORD, .record = r};

    driver_step(arg, &in);
}

static void restore_gate(void *arg, const struct fnd_gate *g)
{
    struct fnd_in in = {.ev = FND_EV_GATE, .gate = g};

    driver_step(arg, &in);
}

static void device(void *arg, const char *name, bool present)
{
    struct fnd_in in = {.ev = FND_EV_DEVICE, .device = name, .ok = present};

    driver_step(arg, &in);
}

static void news(void *arg, int events)
{
    struct driver *d = arg;

    (void)events;
    kernel_news(d->kernel, device, d);
}

int driver_start(struct driver *d, struct base_err *err)
{
    int r;

    d->out = base_calloc(1, sizeof *d->out);
    if (!d->out)
        return base_err_set(err, BASE_ENOMEM, "no memory for the driver");
    r = loop_timer_new(&d->timer, d->loop, tick, d, err);
    if (!r)
        r = loop_poll_new(&d->news, d->loop, kernel_monitor_fd(d->kernel), LOOP_READ, news, d, err);
    if (r)
        return r;
    kernel_restore(d->kernel, restore_record, restore_gate, device, d);
    return driver_store_start(d, err);
}

void driver_stop(struct driver *d)
{
    driver_store_stop(d);
    loop_poll_free(d->news);
    loop_timer_free(d->timer);
    base_free(d->out);
}
