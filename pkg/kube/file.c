/* SPDX-License-Identifier: Apache-2.0
 *
 * file.c - small files, base64, tokens and PEM.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>
#include <unistd.h>

#include "kube_int.h"

int kube_file_read(char **ret, size_t *ret_len, const char *path, size_t max, struct base_err *err)
{
    struct base_buf b;
    char chunk[8192];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = BASE_OK;

    if (fd < 0)
        return base_err_sys(err, errno == ENOENT ? BASE_ENOTFOUND : BASE_EIO, errno, "cannot open %s", path);
    base_buf_init(&b, max);
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            rc = base_err_sys(err, BASE_EIO, errno, "cannot read %s", path);
        else if (n > 0 && (rc = base_buf_add(&b, chunk, (size_t)n)) != BASE_OK)
            base_err_set(err, rc, rc == BASE_EFULL ? "%s is larger than %zu bytes" : "no memory for %s (%zu)",
                         path, max);
        if (n <= 0 || rc != BASE_OK)
            break;
    }
    (void)close(fd);
    explicit_bzero(chunk, sizeof chunk);
    if (rc == BASE_OK && b.len && memchr(b.data, '\0', b.len))
        rc =
            base_err_set(err, BASE_EINVAL, "%s holds a NUL character; it must be a text file in UTF-8", path);
    if (rc == BASE_OK && !b.data && base_buf_add(&b, "", 0) != BASE_OK)
        rc = base_err_set(err, BASE_ENOMEM, "no memory for %s", path);
    if (rc != BASE_OK) {
        if (b.data)
            explicit_bzero(b.data, b.len);
        base_buf_fini(&b);
        return rc;
    }
    *ret = b.data;
    *ret_len = b.len;
    return BASE_OK;
}

int kube_base64(char **ret, size_t *ret_len, struct base_str s)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = base_calloc(1, s.len / 4 * 3 + 4);
    uint32_t acc = 0;
    unsigned n = 0, pad = 0;
    size_t len = 0;

    if (!out)
        return BASE_ENOMEM;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        const char *d = c ? strchr(digits, c) : NULL;

        if (c == ' ' || c == '\n' || c == '\r' || c == '\t')
            continue;
        if ((c == '=') ? ++pad > 2 : (!d || pad))
            goto bad;
        acc = acc << 6 | (d ? (uint32_t)(d - digits) : 0);
        if (++n % 4 == 0) {
            out[len++] = (char)(acc >> 16);
            out[len++] = (char)(acc >> 8);
            out[len++] = (char)acc;
            acc = 0;
        }
    }
    if (n % 4 != 0)
        goto bad;
    len -= pad;
    out[len] = '\0';
    *ret = out;
    *ret_len = len;
    return BASE_OK;
bad:
    explicit_bzero(out, len);
    base_free(out);
    return BASE_EINVAL;
}

int kube_token_clean(char *token, struct base_err *err)
{
    size_t n = strlen(token), a = 0;

    while (n && strchr(" \t\r\n", token[n - 1]))
        n--;
    while (a < n && strchr(" \t\r\n", token[a]))
        a++;
    for (size_t i = a; i < n; i++)
        if (token[i] <= ' ' || token[i] > '~')
            return base_err_set(err, BASE_EINVAL,
                                "the token holds a space, a control character or a non-ASCII character");
    if (a == n)
        return base_err_set(err, BASE_EINVAL, "the token is empty");
    memmove(token, token + a, n - a);
    explicit_bzero(token + (n - a), a);
    token[n - a] = '\0';
    return BASE_OK;
}

static X509 *read_cert(const char *pem)
{
    BIO *b = BIO_new_mem_buf(pem, -1);
    X509 *x = b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;

    BIO_free(b);
    ERR_clear_error();
    return x;
}

int kube_pem_ca(const char *pem, struct base_err *err)
{
    X509 *x = read_cert(pem);

    if (!x)
        return base_err_set(err, BASE_EINVAL, "it holds no certificate in PEM form");
    X509_free(x);
    return BASE_OK;
}

/* A key behind a password is refused instead of asking on the terminal. */
static int no_password(char *buf, int size, int rwflag, void *u)
{
    return -1;
}

int kube_pem_pair(const char *cert, const char *key, struct base_err *err)
{
    X509 *x = read_cert(cert);
    BIO *b = BIO_new_mem_buf(key, -1);
    EVP_PKEY *k = b ? PEM_read_bio_PrivateKey(b, NULL, no_password, NULL) : NULL;
    int rc = BASE_OK;

    if (!x)
        rc = base_err_set(err, BASE_EINVAL, "the client certificate is no certificate in PEM form");
    else if (!k)
        rc =
            base_err_set(err, BASE_EINVAL, "the client key is no private key in PEM form without a password");
    else if (X509_check_private_key(x, k) != 1)
        rc = base_err_set(err, BASE_EINVAL, "the client key does not belong to the client certificate");
    BIO_free(b);
    EVP_PKEY_free(k);
    X509_free(x);
    ERR_clear_error();
    return rc;
}

char *kube_wipe(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    return base_free(secret);
}
