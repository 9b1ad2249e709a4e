/* SPDX-License-Identifier: Apache-2.0
 *
 * frame.c - lines out of chunks. Each byte is looked at once; a line that lies whole in one chunk is not
 * copied.
 */
#include <string.h>

#include "kube_int.h"

void kube_frame_init(struct kube_frame *f, size_t max)
{
    base_buf_init(&f->part, max);
}

void kube_frame_fini(struct kube_frame *f)
{
    base_buf_fini(&f->part);
}

static bool give(struct base_str line, kube_frame_fn fn, void *arg)
{
    while (line.len && line.ptr[line.len - 1] == '\r')
        line.len--;
    return line.len == 0 || fn(arg, line);
}

int kube_frame_feed(struct kube_frame *f, struct base_str piece, kube_frame_fn fn, void *arg)
{
    while (piece.len) {
        const char *nl = memchr(piece.ptr, '\n', piece.len);
        size_t n = nl ? (size_t)(nl - piece.ptr) : piece.len;
        struct base_str line = {piece.ptr, n};
        int rc;

        if (n > f->part.max - f->part.len)
            return BASE_EFULL;
        if (!nl)
            return base_buf_add(&f->part, piece.ptr, n);
        piece.ptr += n + 1;
        piece.len -= n + 1;
        if (f->part.len == 0) {
            if (!give(line, fn, arg))
                return BASE_ECLOSED;
            continue;
        }
        rc = base_buf_add(&f->part, line.ptr, n);
        if (rc != BASE_OK)
            return rc;
        if (!give((struct base_str){f->part.data, f->part.len}, fn, arg))
            return BASE_ECLOSED;
        base_buf_reset(&f->part);
    }
    return BASE_OK;
}

int kube_frame_end(struct kube_frame *f, kube_frame_fn fn, void *arg)
{
    if (f->part.len && !give((struct base_str){f->part.data, f->part.len}, fn, arg))
        return BASE_ECLOSED;
    base_buf_reset(&f->part);
    return BASE_OK;
}
