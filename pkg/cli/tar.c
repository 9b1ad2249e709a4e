/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tar.h"

#include <string.h>

#define BLOCK 512
struct header { /* POSIX.1-1988, ustar */
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[6],
        version[2], owner[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

/* NUL-terminated octal digits that fill the field. */
static void octal(char *dst, size_t size, uint64_t v)
{
    dst[--size] = '\0';
    while (size > 0) {
        dst[--size] = (char)('0' + (v & 7));
        v >>= 3;
    }
}

/* Where to cut a long name; NULL when there is no such place. */
static const char *cut(const char *name, size_t len)
{
    for (const char *p = name + len; p > name; p--)
        if (*p == '/' && (size_t)(name + len - p - 1) <= sizeof(((struct header *)0)->name) &&
            (size_t)(p - name) <= sizeof(((struct header *)0)->prefix))
            return p;
    return NULL;
}

int cli_tar_add(FILE *out, const char *name, struct base_str content, base_wall when, struct base_err *err)
{
    static const char zero[BLOCK];
    struct header h = {
        .type = '0', .magic = "ustar", .version = {'0', '0'}, .owner = "root", .group = "root"};
    size_t len = strlen(name);
    const char *slash = len > sizeof h.name ? cut(name, len) : NULL;
    unsigned sum = 0;

    if (len == 0 || (len > sizeof h.name && !slash))
        return base_err_set(err, BASE_EINVAL, "'%.80s': this name does not fit a tar archive", name);
    if ((uint64_t)content.len >= (uint64_t)1 << 33)
        return base_err_set(err, BASE_EINVAL, "'%.80s': 8 GiB and more do not fit a tar archive", name);
    if (slash)
        memcpy(h.prefix, name, (size_t)(slash - name));
    name = slash ? slash + 1 : name;
    memcpy(h.name, name, strlen(name));
    octal(h.mode, sizeof h.mode, 0600);
    octal(h.uid, sizeof h.uid, 0);
    octal(h.gid, sizeof h.gid, 0);
    octal(h.size, sizeof h.size, content.len);
    octal(h.mtime, sizeof h.mtime, (uint64_t)(when / 1000000));
    octal(h.major, sizeof h.major, 0);
    octal(h.minor, sizeof h.minor, 0);
    memset(h.sum, ' ', sizeof h.sum);
    for (size_t i = 0; i < sizeof h; i++)
        sum += ((const unsigned char *)&h)[i];
    octal(h.sum, 7, sum);
    (void)fwrite(&h, 1, sizeof h, out);
    if (content.len)
        (void)fwrite(content.ptr, 1, content.len, out);
    (void)fwrite(zero, 1, (BLOCK - content.len % BLOCK) % BLOCK, out);
    return BASE_OK;
}

void cli_tar_end(FILE *out)
{
    static const char zero[2 * BLOCK];

    (void)fwrite(zero, 1, sizeof zero, out);
}
