#include "io/gz.h"
#include "base/file.h"
#include "base/mem.h"

#include <limits.h>
#include <string.h>

#ifdef QN_HAVE_ZLIB
#include <zlib.h>
#endif

bool qn_gz_is_packed(const void *data, size_t size)
{
    const uint8_t *p = data;
    return size >= 2 && p[0] == 0x1f && p[1] == 0x8b;
}

#ifdef QN_HAVE_ZLIB

enum { FIRST_BYTES = 64 << 10, RATIO_MAX = 1032 }; /* deflate packs at most about 1032 to 1 */

/* zlib's own memory counts as ours. */
static voidpf zlib_alloc(voidpf opaque, uInt items, uInt size)
{
    (void)opaque;
    return qn_alloc_array(items, size);
}

static void zlib_free(voidpf opaque, voidpf p)
{
    (void)opaque;
    qn_free(p);
}

/* The last four bytes say the unpacked size (modulo 2^32): a good first guess where it is possible
 * at all, and one more byte lets the end be seen without growing. */
static size_t first_capacity(const uint8_t *data, size_t size, size_t limit)
{
    if (size < 18)
        return QN_MIN((size_t)FIRST_BYTES, limit + 1);
    const uint8_t *t = data + size - 4;
    size_t claim = (size_t)t[0] | (size_t)t[1] << 8 | (size_t)t[2] << 16 | (size_t)t[3] << 24;
    if (claim / RATIO_MAX > size || claim > limit)
        claim = 0;
    return QN_MAX(claim + 1, QN_MIN((size_t)FIRST_BYTES, limit + 1));
}

static QnStatus stream_fail(const char *name, const z_stream *z, int code, size_t offset)
{
    if (code == Z_MEM_ERROR)
        return qn_fail(QN_ENOMEM, "%s: not enough memory to unpack", name);
    return qn_fail(QN_EFORMAT,
                   "%s: broken gzip data at byte %zu (%s): the file is damaged; fetch it again",
                   name, offset, z->msg ? z->msg : "bad stream");
}

typedef struct Output {
    uint8_t *data;
    size_t size, capacity, limit;
} Output;

static QnStatus output_grow(Output *out, const char *name)
{
    if (out->size < out->capacity)
        return QN_OK;
    if (out->capacity > out->limit)
        return qn_fail(QN_EFORMAT, "%s: unpacks to more than the limit of %zu bytes", name,
                       out->limit);
    size_t capacity = out->capacity > out->limit / 2 ? out->limit + 1 : out->capacity * 2;
    uint8_t *p = qn_realloc(out->data, capacity);
    if (!p)
        return qn_fail_prefix("%s: while unpacking", name);
    out->data = p;
    out->capacity = capacity;
    return QN_OK;
}

/* Inflates members until the input ends; the caller owns out->data in any case. */
static QnStatus inflate_all(const char *name, z_stream *z, const uint8_t *data, size_t size,
                            Output *out)
{
    size_t taken = 0;
    for (;;) {
        QN_TRY(output_grow(out, name));
        uInt in_now = (uInt)QN_MIN(size - taken, (size_t)INT_MAX);
        uInt out_now = (uInt)QN_MIN(out->capacity - out->size, (size_t)INT_MAX);
        z->next_in = (z_const Bytef *)(uintptr_t)(data + taken);
        z->avail_in = in_now;
        z->next_out = out->data + out->size;
        z->avail_out = out_now;
        int code = inflate(z, Z_NO_FLUSH);
        taken += in_now - z->avail_in;
        out->size += out_now - z->avail_out;
        if (code == Z_STREAM_END) {
            /* members may follow each other; zero padding after the last is allowed */
            size_t rest = taken;
            while (rest < size && data[rest] == 0)
                rest++;
            if (rest == size)
                break;
            if (!qn_gz_is_packed(data + taken, size - taken))
                return qn_fail(QN_EFORMAT,
                               "%s: %zu bytes of something else after the gzip data "
                               "that ends at byte %zu",
                               name, size - taken, taken);
            if (inflateReset(z) != Z_OK)
                return stream_fail(name, z, Z_DATA_ERROR, taken);
        } else if (code == Z_BUF_ERROR || (code == Z_OK && taken == size && z->avail_out)) {
            return qn_fail(QN_EFORMAT,
                           "%s: gzip data ends early at byte %zu: the file is cut short (an "
                           "incomplete download?)",
                           name, taken);
        } else if (code != Z_OK) {
            return stream_fail(name, z, code, taken);
        }
    }
    if (out->size > out->limit)
        return qn_fail(QN_EFORMAT, "%s: unpacks to more than the limit of %zu bytes", name,
                       out->limit);
    return QN_OK;
}

QnStatus qn_gz_unpack(const char *name, const void *data, size_t size, size_t limit_bytes,
                      uint8_t **out, size_t *out_size)
{
    Output o = { .limit = QN_MIN(limit_bytes, SIZE_MAX / 4) };
    z_stream z = { .zalloc = zlib_alloc, .zfree = zlib_free };
    if (inflateInit2(&z, 15 + 16) != Z_OK) /* 15: largest window; 16: gzip with its checksum */
        return qn_fail(QN_ENOMEM, "%s: not enough memory to unpack", name);
    QnStatus st = QN_OK;
    o.capacity = first_capacity(data, size, o.limit);
    o.data = qn_alloc(o.capacity);
    if (!o.data) {
        st = qn_fail_prefix("%s: while unpacking", name);
        goto done;
    }
    QN_TRY_DONE(inflate_all(name, &z, data, size, &o));
    *out = o.data;
    *out_size = o.size;
    o.data = NULL;
done:
    inflateEnd(&z);
    qn_free(o.data);
    return st;
}

#else

QnStatus qn_gz_unpack(const char *name, const void *data, size_t size, size_t limit_bytes,
                      uint8_t **out, size_t *out_size)
{
    (void)data, (void)size, (void)limit_bytes, (void)out, (void)out_size;
    return qn_fail(QN_EUNSUPPORTED,
                   "%s: is packed with gzip and this build has no zlib: unpack it with gunzip",
                   name);
}

#endif

QnStatus qn_gz_read(const char *path, size_t limit_bytes, uint8_t **out, size_t *out_size)
{
    char *data;
    size_t size;
    QN_TRY(qn_file_read(path, limit_bytes, &data, &size));
    if (!qn_gz_is_packed(data, size)) {
        *out = (uint8_t *)data;
        *out_size = size;
        return QN_OK;
    }
    QnStatus st = qn_gz_unpack(path, data, size, limit_bytes, out, out_size);
    qn_free(data);
    return st;
}
