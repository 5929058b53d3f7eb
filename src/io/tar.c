#include "io/tar.h"
#include "base/file.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, NAME_MAX_BYTES = 4096 };

struct QnTar {
    QnArena *arena;
    char *path;
    QnTarEntry *entries;
    int64_t count, cap;
    QnFileMap map; /* all zeros: the data are the caller's */
};

/* Where things are in a header block. */
enum { AT_NAME = 0, AT_SIZE = 124, AT_SUM = 148, AT_TYPE = 156, AT_MAGIC = 257, AT_PREFIX = 345 };
enum { NAME_BYTES = 100, NUMBER_BYTES = 12, SUM_BYTES = 8, PREFIX_BYTES = 155 };

typedef struct Reader {
    QnTar *tar;
    const uint8_t *data;
    size_t size, pos;
    char *long_name;  /* for the next entry, or NULL */
    int64_t pax_size; /* for the next entry, or -1 */
} Reader;

static QnStatus tar_fail(const Reader *r, size_t at, const char *why)
{
    return qn_fail(QN_EFORMAT, "%s: byte %zu: %s", r->tar->path, at, why);
}

/* Octal with blanks or zeros around it, or base 256 (first bit set). */
static bool parse_number(const uint8_t *p, int n, int64_t *out)
{
    int64_t v = 0;
    if (p[0] & 0x80) {
        v = p[0] & 0x3f;
        if (p[0] & 0x40)
            return false; /* negative */
        for (int i = 1; i < n; i++)
            if (qn_mul_overflow(v, (int64_t)256, &v) || qn_add_overflow(v, (int64_t)p[i], &v))
                return false;
        *out = v;
        return true;
    }
    int i = 0;
    while (i < n && p[i] == ' ')
        i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
        v = v * 8 + (p[i] - '0'); /* 12 digits fit easily */
    for (; i < n; i++)
        if (p[i] != ' ' && p[i] != '\0')
            return false;
    *out = v;
    return true;
}

static bool sum_is_right(const uint8_t *h)
{
    int64_t want, sum = 0;
    if (!parse_number(h + AT_SUM, SUM_BYTES, &want))
        return false;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= AT_SUM && i < AT_SUM + SUM_BYTES ? ' ' : h[i];
    return sum == want;
}

static bool block_is_zero(const uint8_t *h)
{
    for (int i = 0; i < BLOCK; i++)
        if (h[i])
            return false;
    return true;
}

/* A path that could lead out of the archive. */
static bool name_is_unsafe(const char *name)
{
    if (name[0] == '/')
        return true;
    for (const char *p = name; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return true;
        p += n + (p[n] == '/');
    }
    return false;
}

static QnStatus header_name(const Reader *r, const uint8_t *h, char **out)
{
    char *name = r->long_name;
    if (!name) {
        bool ustar = !memcmp(h + AT_MAGIC, "ustar\0", 6); /* GNU's "ustar  " uses the field else */
        const char *prefix = ustar ? (const char *)h + AT_PREFIX : "";
        int prefix_n = ustar ? (int)strnlen(prefix, PREFIX_BYTES) : 0;
        int n = (int)strnlen((const char *)h + AT_NAME, NAME_BYTES);
        name = qn_arena_printf(r->tar->arena, "%.*s%s%.*s", prefix_n, prefix, prefix_n ? "/" : "",
                               n, (const char *)h + AT_NAME);
    }
    if (!name)
        return QN_ENOMEM;
    while (name[0] == '.' && name[1] == '/')
        name += 2;
    if (!*name)
        return tar_fail(r, r->pos, "an entry without a name");
    if (name_is_unsafe(name))
        return qn_fail(QN_EFORMAT,
                       "%s: byte %zu: entry '%.200s' is an absolute path or has '..': refused",
                       r->tar->path, r->pos, name);
    *out = name;
    return QN_OK;
}

static QnStatus take_long_name(Reader *r, const uint8_t *data, size_t size)
{
    size_t n = strnlen((const char *)data, size);
    if (!n || n > NAME_MAX_BYTES)
        return tar_fail(r, r->pos, "a long name that is empty or over 4096 bytes");
    r->long_name = qn_arena_printf(r->tar->arena, "%.*s", (int)n, (const char *)data);
    return r->long_name ? QN_OK : QN_ENOMEM;
}

/* Records of "LENGTH key=value\n"; only path and size matter here. */
static QnStatus take_pax(Reader *r, const uint8_t *data, size_t size)
{
    size_t at = 0;
    while (at < size && data[at]) {
        size_t n = 0, i = at;
        for (; i < size && data[i] >= '0' && data[i] <= '9' && n < size; i++)
            n = n * 10 + (size_t)(data[i] - '0');
        if (i == at || i >= size || data[i] != ' ' || n > size - at || at + n <= i + 1 ||
            data[at + n - 1] != '\n')
            return tar_fail(r, r->pos, "a broken pax header");
        const uint8_t *key = data + i + 1, *end = data + at + n - 1;
        const uint8_t *equals = memchr(key, '=', (size_t)(end - key));
        if (!equals)
            return tar_fail(r, r->pos, "a pax record without '='");
        size_t key_n = (size_t)(equals - key), value_n = (size_t)(end - equals - 1);
        if (key_n == 4 && !memcmp(key, "path", 4)) {
            if (memchr(equals + 1, '\0', value_n))
                return tar_fail(r, r->pos, "a zero byte inside a name");
            QN_TRY(take_long_name(r, equals + 1, value_n));
        } else if (key_n == 4 && !memcmp(key, "size", 4)) {
            int64_t v = 0;
            for (const uint8_t *p = equals + 1; p < end; p++)
                if (*p < '0' || *p > '9' || qn_mul_overflow(v, (int64_t)10, &v) ||
                    qn_add_overflow(v, (int64_t)(*p - '0'), &v))
                    return tar_fail(r, r->pos, "a pax size that is no number");
            r->pax_size = v;
        }
        at += n;
    }
    return QN_OK;
}

static QnStatus take_file(Reader *r, const uint8_t *h, const uint8_t *data, size_t size)
{
    QnTar *t = r->tar;
    char *name = NULL;
    QN_TRY(header_name(r, h, &name));
    QN_TRY(QN_GROW(t->entries, t->cap, t->count));
    t->entries[t->count++] = (QnTarEntry){ .name = name, .data = data, .size = size };
    return QN_OK;
}

/* One header with its data; sets *end at the end of the archive. */
static QnStatus take_entry(Reader *r, bool *end)
{
    const uint8_t *h = r->data + r->pos;
    if (r->pos == 0 && r->size > 1 && h[0] == 0x1f && h[1] == 0x8b)
        return tar_fail(r, 0, "compressed by gzip: a tar is read as it is; gunzip it first");
    if (r->size - r->pos < BLOCK)
        return tar_fail(r, r->pos, "the archive ends inside a header: it is cut short");
    if (block_is_zero(h)) {
        *end = true;
        return QN_OK;
    }
    if (!sum_is_right(h))
        return tar_fail(r, r->pos,
                        r->pos ? "a header's checksum is wrong: the archive is damaged"
                               : "the first header's checksum is wrong: not a tar archive (is it "
                                 "compressed?)");
    char type = (char)h[AT_TYPE];
    int64_t size;
    if (!parse_number(h + AT_SIZE, NUMBER_BYTES, &size))
        return tar_fail(r, r->pos + AT_SIZE, "a size that is no number");
    bool is_meta = type == 'L' || type == 'K' || type == 'x' || type == 'g';
    if (!is_meta && r->pax_size >= 0)
        size = r->pax_size;
    if (type >= '1' && type <= '6')
        size = 0; /* links, devices and folders carry no data */
    size_t at = r->pos + BLOCK, left = r->size - at;
    if ((uint64_t)size > left)
        return qn_fail(QN_EFORMAT,
                       "%s: byte %zu: an entry of %" PRId64 " bytes, but only %zu follow: the "
                       "archive is cut short",
                       r->tar->path, r->pos, size, left);
    if (type == 'L')
        QN_TRY(take_long_name(r, r->data + at, (size_t)size));
    else if (type == 'x')
        QN_TRY(take_pax(r, r->data + at, (size_t)size));
    else if (type == '0' || type == '\0' || type == '7')
        QN_TRY(take_file(r, h, r->data + at, (size_t)size));
    if (!is_meta) {
        r->long_name = NULL;
        r->pax_size = -1;
    }
    size_t padded = ((size_t)size + BLOCK - 1) / BLOCK * BLOCK;
    r->pos = at + QN_MIN(padded, left);
    *end = r->pos == r->size; /* some writers leave the two empty blocks out */
    return QN_OK;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const QnTarEntry *)a)->name, ((const QnTarEntry *)b)->name);
}

QnStatus qn_tar_parse(const char *name, const void *data, size_t size, QnTar **out)
{
    QnStatus st = QN_OK;
    QnTar *t = qn_alloc(sizeof *t);
    if (!t)
        return QN_ENOMEM;
    t->arena = qn_arena_new();
    t->path = qn_strdup(name);
    if (!t->arena || !t->path) {
        st = QN_ENOMEM;
        goto done;
    }
    Reader r = { .tar = t, .data = data, .size = size, .pax_size = -1 };
    for (bool end = false; !end;)
        QN_TRY_DONE(take_entry(&r, &end));
    if (t->count)
        qsort(t->entries, (size_t)t->count, sizeof *t->entries, compare_entries);
    for (int64_t i = 1; i < t->count; i++)
        if (!strcmp(t->entries[i - 1].name, t->entries[i].name)) {
            st = qn_fail(QN_EFORMAT, "%s: '%s' is in the archive twice", name, t->entries[i].name);
            goto done;
        }
    *out = t;
    t = NULL;
done:
    qn_tar_free(t);
    return st;
}

int64_t qn_tar_count(const QnTar *tar)
{
    return tar->count;
}

const QnTarEntry *qn_tar_at(const QnTar *tar, int64_t i)
{
    return &tar->entries[i];
}

QnStatus qn_tar_open(const char *path, QnTar **out)
{
    QnFileMap map;
    QN_TRY(qn_file_map(path, &map));
    QnStatus st = qn_tar_parse(path, map.data, map.bytes, out);
    if (st == QN_OK)
        (*out)->map = map;
    else
        qn_file_unmap(&map);
    return st;
}

void qn_tar_free(QnTar *tar)
{
    if (!tar)
        return;
    qn_file_unmap(&tar->map);
    qn_arena_free(tar->arena);
    qn_free(tar->path);
    qn_free(tar->entries);
    qn_free(tar);
}
