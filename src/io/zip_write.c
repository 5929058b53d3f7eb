/* Writing ZIP archives. Sizes and checksums are known before an entry begins, so that headers are
 * whole and readers need not look ahead. */
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/zip.h"

#include <limits.h>
#include <string.h>

#ifdef QN_HAVE_ZLIB
#include <zlib.h>
#endif

#define U32_FULL UINT64_C(0xffffffff)

struct QnZipWriter {
    QnFileOut out;
    QnStr directory;
    uint64_t count;
};

typedef struct Packed {
    uint8_t *data; /* NULL: stored */
    uint64_t size, packed_size;
    uint32_t crc;
} Packed;

static void put(QnStr *s, uint64_t v, int bytes)
{
    uint8_t b[8];
    for (int i = 0; i < bytes; i++)
        b[i] = (uint8_t)(v >> (8 * i));
    qn_str_add_bytes(s, b, (size_t)bytes);
}

static uint64_t narrow(uint64_t v)
{
    return QN_MIN(v, U32_FULL);
}

QnStatus qn_zip_create(const char *path, QnZipWriter **out)
{
    QnZipWriter *w = qn_alloc(sizeof *w);
    if (!w)
        return QN_ENOMEM;
    QnStatus st = qn_file_create(&w->out, path);
    if (st == QN_OK)
        *out = w;
    else
        qn_free(w);
    return st;
}

#ifdef QN_HAVE_ZLIB

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

/* Deflates the parts into memory as long as they take less room than before. */
static QnStatus deflate_parts(const QnZipPart *parts, int n, Packed *p)
{
    z_stream z = { .zalloc = zlib_alloc, .zfree = zlib_free };
    size_t room = (size_t)p->size, used = 0;
    QnStatus st = QN_OK;
    if (!room)
        return QN_OK;
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return qn_fail(QN_ENOMEM, "not enough memory to deflate");
    uint8_t *data = qn_alloc(room);
    if (!data)
        st = QN_ENOMEM;
    int code = Z_OK;
    bool full = false;
    for (int i = 0; data && !full && i <= n; i++) { /* one more round ends the stream */
        size_t left = i < n ? parts[i].bytes : 0;
        const uint8_t *from = i < n ? parts[i].data : NULL;
        do {
            uInt in_now = (uInt)QN_MIN(left, (size_t)INT_MAX);
            uInt out_now = (uInt)QN_MIN(room - used, (size_t)INT_MAX);
            z.next_in = (z_const Bytef *)(uintptr_t)from;
            z.avail_in = in_now;
            z.next_out = data + used;
            z.avail_out = out_now;
            code = deflate(&z, i < n ? Z_NO_FLUSH : Z_FINISH);
            from += i < n ? in_now - z.avail_in : 0;
            left -= in_now - z.avail_in;
            used += out_now - z.avail_out;
            full = used == room && code != Z_STREAM_END;
        } while (!full && (left || (i == n && code == Z_OK)));
    }
    deflateEnd(&z);
    if (data && code == Z_STREAM_END && used < room) {
        p->data = data;
        p->packed_size = used;
    } else {
        qn_free(data);
    }
    return st;
}

#else

static QnStatus deflate_parts(const QnZipPart *parts, int n, Packed *p)
{
    (void)parts, (void)n, (void)p;
    return qn_fail(QN_EUNSUPPORTED, "this build has no zlib: write without compression");
}

#endif

/* What local header and directory share: from "version needed" to the length of the name. */
static void put_common(QnStr *s, const Packed *p, const char *name, bool wide)
{
    bool ascii = true;
    for (const char *c = name; *c; c++)
        ascii = ascii && (unsigned char)*c < 128;
    put(s, wide ? 45 : 20, 2);
    put(s, ascii ? 0 : 0x800, 2);
    put(s, p->data ? 8 : 0, 2);
    put(s, 0, 2);      /* time, and */
    put(s, 0x0021, 2); /* date: 1 January 1980, so that the same arrays give the same bytes */
    put(s, p->crc, 4);
    put(s, wide ? U32_FULL : p->packed_size, 4);
    put(s, wide ? U32_FULL : p->size, 4);
    put(s, strlen(name), 2);
}

static QnStatus write_entry(QnZipWriter *w, const char *name, const QnZipPart *parts, int n,
                            const Packed *p)
{
    QnStr head = { 0 };
    uint64_t offset = w->out.bytes;
    bool wide = p->size >= U32_FULL, far = offset >= U32_FULL;
    qn_str_add_bytes(&head, "PK\3\4", 4);
    put_common(&head, p, name, wide);
    put(&head, wide ? 20 : 0, 2);
    qn_str_add(&head, name);
    if (wide) {
        put(&head, 1, 2);
        put(&head, 16, 2);
        put(&head, p->size, 8);
        put(&head, p->packed_size, 8);
    }
    QnStatus st = head.st;
    if (st == QN_OK)
        st = qn_file_write(&w->out, qn_str_text(&head), head.n);
    qn_str_fini(&head);
    for (int i = 0; st == QN_OK && !p->data && i < n; i++)
        st = qn_file_write(&w->out, parts[i].data, parts[i].bytes);
    if (st == QN_OK && p->data)
        st = qn_file_write(&w->out, p->data, (size_t)p->packed_size);
    QN_TRY(st);
    QnStr *d = &w->directory;
    qn_str_add_bytes(d, "PK\1\2", 4);
    put(d, 45, 2);
    put_common(d, p, name, wide);
    put(d, (wide || far) ? 4U + (wide ? 16U : 0U) + (far ? 8U : 0U) : 0U, 2);
    put(d, 0, 2 + 2 + 2); /* comment, disk, internal attributes */
    put(d, 0, 4);
    put(d, narrow(offset), 4);
    qn_str_add(d, name);
    if (wide || far) {
        put(d, 1, 2);
        put(d, (wide ? 16U : 0U) + (far ? 8U : 0U), 2);
        if (wide) {
            put(d, p->size, 8);
            put(d, p->packed_size, 8);
        }
        if (far)
            put(d, offset, 8);
    }
    w->count++;
    return d->st;
}

QnStatus qn_zip_add(QnZipWriter *w, const char *name, const QnZipPart *parts, int n, bool deflate)
{
    Packed p = { 0 };
    if (!name[0] || strlen(name) > 65535)
        return qn_fail(QN_EARG, "%s: an entry's name has 1 to 65,535 bytes", w->out.path);
    for (int i = 0; i < n; i++) {
        if (qn_add_overflow(p.size, parts[i].bytes, &p.size))
            return qn_fail(QN_EARG, "%s: entry '%.200s' is too large", w->out.path, name);
        p.crc = qn_zip_crc(p.crc, parts[i].data, parts[i].bytes);
    }
    p.packed_size = p.size;
    QnStatus st = deflate ? deflate_parts(parts, n, &p) : QN_OK;
    if (st == QN_OK)
        st = write_entry(w, name, parts, n, &p);
    else
        qn_fail_prefix("%s: entry '%.200s'", w->out.path, name);
    qn_free(p.data);
    return st;
}

static QnStatus write_end(QnZipWriter *w)
{
    uint64_t at = w->out.bytes, bytes = w->directory.n, end64 = at + bytes;
    QnStr *d = &w->directory;
    if (w->count >= 0xffff || at >= U32_FULL || bytes >= U32_FULL) {
        qn_str_add_bytes(d, "PK\6\6", 4);
        put(d, 44, 8);
        put(d, 45, 2);
        put(d, 45, 2);
        put(d, 0, 8); /* disks */
        put(d, w->count, 8);
        put(d, w->count, 8);
        put(d, bytes, 8);
        put(d, at, 8);
        qn_str_add_bytes(d, "PK\6\7", 4);
        put(d, 0, 4);
        put(d, end64, 8);
        put(d, 1, 4);
    }
    qn_str_add_bytes(d, "PK\5\6", 4);
    put(d, 0, 4);
    put(d, QN_MIN(w->count, 0xffffU), 2);
    put(d, QN_MIN(w->count, 0xffffU), 2);
    put(d, narrow(bytes), 4);
    put(d, narrow(at), 4);
    put(d, 0, 2);
    QN_TRY(d->st);
    return qn_file_write(&w->out, qn_str_text(d), d->n);
}

QnStatus qn_zip_commit(QnZipWriter *w)
{
    QnStatus st = write_end(w);
    if (st == QN_OK)
        st = qn_file_commit(&w->out);
    qn_zip_discard(w);
    return st;
}

void qn_zip_discard(QnZipWriter *w)
{
    if (!w)
        return;
    qn_file_discard(&w->out);
    qn_str_fini(&w->directory);
    qn_free(w);
}
