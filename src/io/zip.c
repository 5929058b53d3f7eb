#include "base/mem.h"
#include "base/utf8.h"
#include "io/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    END_BYTES = 22,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    CENTRAL_BYTES = 46,
    LOCAL_BYTES = 30,
    COMMENT_MAX = 65535,
    RATIO_MAX = 1032, /* deflate packs at most about 1032 to 1 */
};
#define U32_FULL UINT64_C(0xffffffff)

struct QnZip {
    QnArena *arena;
    const char *path;
    const uint8_t *data;
    size_t size;
    QnZipEntry *entries; /* by offset */
    const QnZipEntry **by_name;
    int64_t count;
};

/* The directory at the end of an archive. */
typedef struct Directory {
    uint64_t at, bytes, count;
    uint64_t end; /* where the records after it begin */
} Directory;

static uint64_t le(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

bool qn_zip_is(const void *data, size_t size)
{
    const uint8_t *p = data;
    return size >= 4 && p[0] == 'P' && p[1] == 'K' &&
           ((p[2] == 3 && p[3] == 4) || (p[2] == 5 && p[3] == 6));
}

static QnStatus find_end(const QnZip *z, uint64_t *at)
{
    uint64_t least = z->size > END_BYTES + COMMENT_MAX ? z->size - END_BYTES - COMMENT_MAX : 0;
    for (uint64_t i = z->size >= END_BYTES ? z->size - END_BYTES + 1 : 0; i-- > least;) {
        const uint8_t *p = z->data + i;
        if (!memcmp(p, "PK\5\6", 4) && le(p + 20, 2) == z->size - i - END_BYTES) {
            *at = i;
            return QN_OK;
        }
    }
    return qn_fail(QN_EFORMAT,
                   "%s: no ZIP directory at the end: the file is cut short (an incomplete "
                   "download?) or no archive",
                   z->path);
}

/* The 64-bit record, if there is one before the one at `end`; fields that it repeats must agree. */
static QnStatus read_end64(const QnZip *z, uint64_t end, Directory *d)
{
    const uint8_t *p = z->data + end, *l = p - LOCATOR_BYTES;
    if (end < LOCATOR_BYTES || memcmp(l, "PK\6\7", 4)) {
        bool needs = d->count == 0xffff || d->bytes == U32_FULL || d->at == U32_FULL;
        return needs ? qn_fail(QN_EFORMAT, "%s: byte %" PRIu64 ": the ZIP64 record is missing",
                               z->path, end)
                     : QN_OK;
    }
    uint64_t at = le(l + 8, 8);
    end -= LOCATOR_BYTES;
    if (end < END64_BYTES || at > end - END64_BYTES || memcmp(z->data + at, "PK\6\6", 4) ||
        le(l + 4, 4) || le(l + 16, 4) > 1)
        return qn_fail(QN_EFORMAT, "%s: byte %" PRIu64 ": the ZIP64 locator points nowhere",
                       z->path, end);
    const uint8_t *q = z->data + at;
    Directory wide = { .count = le(q + 32, 8), .bytes = le(q + 40, 8), .at = le(q + 48, 8) };
    if ((d->count != 0xffff && d->count != wide.count) ||
        (d->bytes != U32_FULL && d->bytes != wide.bytes) ||
        (d->at != U32_FULL && d->at != wide.at) || le(q + 16, 4) || le(q + 20, 4))
        return qn_fail(QN_EFORMAT,
                       "%s: byte %" PRIu64 ": the ZIP64 record says other than the one at its end",
                       z->path, at);
    wide.end = at;
    *d = wide;
    return QN_OK;
}

static QnStatus read_end(const QnZip *z, Directory *d)
{
    uint64_t at = 0;
    QN_TRY(find_end(z, &at));
    const uint8_t *p = z->data + at;
    if (le(p + 4, 2) || le(p + 6, 2) || le(p + 8, 2) != le(p + 10, 2))
        return qn_fail(QN_EUNSUPPORTED, "%s: a ZIP archive in several parts", z->path);
    *d = (Directory){
        .count = le(p + 10, 2), .bytes = le(p + 12, 4), .at = le(p + 16, 4), .end = at
    };
    QN_TRY(read_end64(z, at, d));
    if (d->at > d->end || d->bytes != d->end - d->at)
        return qn_fail(QN_EFORMAT,
                       "%s: byte %" PRIu64 ": the directory (%" PRIu64 " bytes at %" PRIu64
                       ") does not end where it must",
                       z->path, at, d->bytes, d->at);
    if (d->count > d->bytes / CENTRAL_BYTES)
        return qn_fail(QN_EFORMAT,
                       "%s: byte %" PRIu64 ": %" PRIu64 " entries do not fit the directory",
                       z->path, at, d->count);
    return QN_OK;
}

static QnStatus entry_fail(const QnZip *z, const QnZipEntry *e, const char *why)
{
    return qn_fail(QN_EFORMAT, "%s: byte %" PRIu64 ": entry '%.200s': %s", z->path, e->offset,
                   e->name ? e->name : "", why);
}

/* 64-bit sizes and offset stand in an extra field, each only where the 32-bit one is full. */
static QnStatus read_extra(const QnZip *z, const uint8_t *p, size_t n, QnZipEntry *e)
{
    uint64_t *want[] = { &e->size, &e->packed_size, &e->offset };
    bool needs = e->size == U32_FULL || e->packed_size == U32_FULL || e->offset == U32_FULL;
    for (size_t i = 0; needs && i + 4 <= n;) {
        size_t id = le(p + i, 2), bytes = le(p + i + 2, 2);
        i += 4;
        if (bytes > n - i)
            break;
        if (id == 1) {
            size_t at = i;
            for (int k = 0; k < QN_COUNT(want); k++) {
                if (*want[k] != U32_FULL)
                    continue;
                if (at + 8 > i + bytes)
                    return entry_fail(z, e, "its ZIP64 field is too short");
                *want[k] = le(p + at, 8);
                at += 8;
            }
            return QN_OK;
        }
        i += bytes;
    }
    return needs ? entry_fail(z, e, "its ZIP64 field is missing") : QN_OK;
}

static QnStatus read_name(QnZip *z, const uint8_t *p, size_t n, QnZipEntry *e)
{
    char *name = qn_arena_alloc(z->arena, n + 1);
    if (!name)
        return QN_ENOMEM;
    memcpy(name, p, n);
    e->name = name;
    if (!n || memchr(name, 0, n))
        return entry_fail(z, e, "its name is empty or holds a zero byte");
    for (size_t i = 0; i < n;) {
        int k = qn_utf8_length(name + i, n - i);
        if (!k) {
            e->name = "?";
            return entry_fail(z, e, "its name is not UTF-8");
        }
        i += (size_t)k;
    }
    return QN_OK;
}

/* The header before the data must say what the directory says. */
static QnStatus read_local(const QnZip *z, const Directory *d, QnZipEntry *e)
{
    if (e->offset > d->at || d->at - e->offset < LOCAL_BYTES)
        return entry_fail(z, e, "its header is not before the directory");
    const uint8_t *p = z->data + e->offset;
    uint64_t room = d->at - e->offset - LOCAL_BYTES, name_n = le(p + 26, 2), more = le(p + 28, 2);
    if (memcmp(p, "PK\3\4", 4))
        return entry_fail(z, e, "there is no header where the directory says");
    if (name_n + more > room || e->packed_size > room - name_n - more)
        return entry_fail(z, e, "its data do not end before the directory: the file is damaged");
    if (name_n != strlen(e->name) || memcmp(p + LOCAL_BYTES, e->name, name_n))
        return entry_fail(z, e, "its header has another name than the directory");
    if (le(p + 8, 2) != (e->deflated ? 8U : 0U) || (le(p + 6, 2) & 1))
        return entry_fail(z, e, "its header has another method than the directory");
    if (!(le(p + 6, 2) & 8)) { /* else the numbers come after the data */
        uint64_t packed = le(p + 18, 4), size = le(p + 22, 4);
        if (le(p + 14, 4) != e->crc || (packed != U32_FULL && packed != e->packed_size) ||
            (size != U32_FULL && size != e->size))
            return entry_fail(z, e, "its header has other sizes than the directory");
    }
    e->packed = p + LOCAL_BYTES + name_n + more;
    return QN_OK;
}

static QnStatus read_entry(QnZip *z, const Directory *d, uint64_t *at, QnZipEntry *e)
{
    const uint8_t *p = z->data + *at;
    uint64_t room = d->end - *at;
    if (room < CENTRAL_BYTES || memcmp(p, "PK\1\2", 4))
        return qn_fail(QN_EFORMAT, "%s: byte %" PRIu64 ": expected an entry of the directory",
                       z->path, *at);
    uint64_t name_n = le(p + 28, 2), extra_n = le(p + 30, 2), comment_n = le(p + 32, 2);
    if (name_n + extra_n + comment_n > room - CENTRAL_BYTES)
        return qn_fail(QN_EFORMAT, "%s: byte %" PRIu64 ": an entry passes the directory's end",
                       z->path, *at);
    *e = (QnZipEntry){ .crc = (uint32_t)le(p + 16, 4),
                       .packed_size = le(p + 20, 4),
                       .size = le(p + 24, 4),
                       .offset = le(p + 42, 4) };
    QN_TRY(read_name(z, p + CENTRAL_BYTES, name_n, e));
    QN_TRY(read_extra(z, p + CENTRAL_BYTES + name_n, extra_n, e));
    uint64_t flags = le(p + 8, 2), method = le(p + 10, 2);
    if (flags & ~UINT64_C(0x80e))
        return entry_fail(z, e, "is encrypted, or of a kind that is not known");
    if (method != 0 && method != 8)
        return qn_fail(QN_EUNSUPPORTED,
                       "%s: entry '%.200s': compression method %d; stored and deflated are known",
                       z->path, e->name, (int)method);
    e->deflated = method == 8;
    if (!e->deflated && e->packed_size != e->size)
        return entry_fail(z, e, "is stored, but its two sizes differ");
    if (e->size / RATIO_MAX > e->packed_size)
        return entry_fail(z, e, "declares more than deflate can unpack from its bytes");
    QN_TRY(read_local(z, d, e));
    *at += CENTRAL_BYTES + name_n + extra_n + comment_n;
    return QN_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    const QnZipEntry *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const QnZipEntry *const *)a)->name, (*(const QnZipEntry *const *)b)->name);
}

/* Each byte belongs to one entry: what is shared could unpack to far more than the file holds. */
static QnStatus check_entries(QnZip *z)
{
    qsort(z->entries, (size_t)z->count, sizeof *z->entries, compare_offsets);
    for (int64_t i = 0; i < z->count; i++) {
        const QnZipEntry *e = &z->entries[i];
        z->by_name[i] = e;
        if (i && z->data + e->offset < e[-1].packed + e[-1].packed_size)
            return entry_fail(z, e, "overlaps the entry before it");
    }
    qsort(z->by_name, (size_t)z->count, sizeof *z->by_name, compare_names);
    for (int64_t i = 1; i < z->count; i++)
        if (!strcmp(z->by_name[i - 1]->name, z->by_name[i]->name))
            return entry_fail(z, z->by_name[i], "its name comes twice");
    return QN_OK;
}

static QnStatus read_all(QnZip *z)
{
    Directory d = { 0 };
    QN_TRY(read_end(z, &d));
    z->entries = qn_arena_array(z->arena, (size_t)d.count, sizeof *z->entries);
    z->by_name = qn_arena_array(z->arena, (size_t)d.count, sizeof *z->by_name);
    if (!z->entries || !z->by_name)
        return QN_ENOMEM;
    uint64_t at = d.at;
    for (; z->count < (int64_t)d.count; z->count++)
        QN_TRY(read_entry(z, &d, &at, &z->entries[z->count]));
    if (at != d.end)
        return qn_fail(QN_EFORMAT,
                       "%s: byte %" PRIu64 ": the directory holds more than its %" PRIu64
                       " entries",
                       z->path, at, d.count);
    return z->count ? check_entries(z) : QN_OK;
}

QnStatus qn_zip_parse(const char *name, const void *data, size_t size, QnZip **out)
{
    QnZip *z = qn_alloc(sizeof *z);
    if (!z)
        return QN_ENOMEM;
    QnStatus st = QN_OK;
    z->data = data;
    z->size = size;
    z->arena = qn_arena_new();
    z->path = z->arena ? qn_arena_strdup(z->arena, name) : NULL;
    QN_TRY_DONE(z->path ? QN_OK : QN_ENOMEM);
    QN_TRY_DONE(read_all(z));
    *out = z;
    z = NULL;
done:
    qn_zip_free(z);
    return st;
}

void qn_zip_free(QnZip *z)
{
    if (!z)
        return;
    qn_arena_free(z->arena);
    qn_free(z);
}

int64_t qn_zip_count(const QnZip *z)
{
    return z->count;
}

const QnZipEntry *qn_zip_at(const QnZip *z, int64_t i)
{
    return &z->entries[i];
}

const QnZipEntry *qn_zip_find(const QnZip *z, const char *name)
{
    QnZipEntry key = { .name = name };
    const QnZipEntry *p = &key;
    const QnZipEntry **found =
        z->count ? bsearch(&p, z->by_name, (size_t)z->count, sizeof *z->by_name, compare_names)
                 : NULL;
    return found ? *found : NULL;
}

const char *qn_zip_path(const QnZip *z)
{
    return z->path;
}
