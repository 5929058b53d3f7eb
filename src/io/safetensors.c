#include "base/mem.h"
#include "io/safetensors_impl.h"
#include "io/shards.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8 };

typedef struct Reader {
    QnSafetensors *s;
    const uint8_t *data; /* of the tensors */
    size_t data_bytes;
} Reader;

static const struct {
    const char *name;
    QnDtype dtype;
} dtypes[] = { { "F32", QN_DTYPE_F32 },       { "F16", QN_DTYPE_F16 },
               { "BF16", QN_DTYPE_BF16 },     { "F64", QN_DTYPE_F64 },
               { "I8", QN_DTYPE_I8 },         { "U8", QN_DTYPE_U8 },
               { "I32", QN_DTYPE_I32 },       { "I64", QN_DTYPE_I64 },
               { "BOOL", QN_DTYPE_BOOL },     { "I16", QN_DTYPE_I16 },
               { "U16", QN_DTYPE_U16 },       { "U32", QN_DTYPE_U32 },
               { "U64", QN_DTYPE_U64 },       { "F8_E4M3", QN_DTYPE_F8E4M3FN },
               { "F8_E5M2", QN_DTYPE_F8E5M2 } };

static QnStatus tensor_fail(const Reader *r, const QnJson *j, const char *why)
{
    return qn_fail(QN_EFORMAT, "%s: byte %zu: tensor '%.200s': %s", r->s->path,
                   LENGTH_BYTES + j->offset, j->key, why);
}

static QnStatus read_dtype(const Reader *r, const QnJson *j, QnSafetensor *t)
{
    const QnJson *d = qn_json_find(j, "dtype");
    if (!d || d->type != QN_JSON_STRING)
        return tensor_fail(r, j, "has no dtype");
    for (int i = 0; i < QN_COUNT(dtypes); i++)
        if (!strcmp(d->string, dtypes[i].name)) {
            t->dtype = dtypes[i].dtype;
            return QN_OK;
        }
    return qn_fail(QN_EUNSUPPORTED,
                   "%s: byte %zu: tensor '%.200s': dtype '%.40s' is not one of F64 F32 F16 BF16 "
                   "F8_E4M3 F8_E5M2 I64 I32 I16 I8 U64 U32 U16 U8 BOOL",
                   r->s->path, LENGTH_BYTES + d->offset, j->key, d->string);
}

static QnStatus read_shape(const Reader *r, const QnJson *j, QnSafetensor *t, int64_t *bytes)
{
    const QnJson *shape = qn_json_find(j, "shape");
    if (!shape || shape->type != QN_JSON_ARRAY)
        return tensor_fail(r, j, "has no shape");
    if (shape->n > QN_SAFETENSORS_MAX_RANK)
        return qn_fail(
            QN_EUNSUPPORTED, "%s: byte %zu: tensor '%.200s': %" PRId64 " dimensions, at most %d",
            r->s->path, LENGTH_BYTES + shape->offset, j->key, shape->n, QN_SAFETENSORS_MAX_RANK);
    t->rank = (int)shape->n;
    bool empty = false, overflow = false;
    for (int i = 0; i < t->rank; i++) {
        const QnJson *dim = &shape->items[i];
        if (dim->type != QN_JSON_INT || dim->integer < 0)
            return tensor_fail(r, j, "a dimension is not a whole number from 0");
        t->dims[i] = dim->integer;
        empty = empty || !dim->integer;
    }
    t->count = empty ? 0 : 1;
    for (int i = 0; i < t->rank && !empty; i++)
        overflow = overflow || qn_mul_overflow(t->count, t->dims[i], &t->count);
    if (overflow || qn_mul_overflow(t->count, (int64_t)qn_dtype_bytes(t->dtype), bytes))
        return tensor_fail(r, j, "its dimensions multiply to more than 64 bits");
    return QN_OK;
}

/* What the format does not know could mean that the data are not what they seem. */
static QnStatus check_members(const Reader *r, const QnJson *j)
{
    for (int64_t i = 0; i < j->n; i++) {
        const char *key = j->items[i].key;
        if (strcmp(key, "dtype") && strcmp(key, "shape") && strcmp(key, "data_offsets"))
            return qn_fail(QN_EFORMAT,
                           "%s: byte %zu: tensor '%.200s' has a member '%.100s', which the format "
                           "does not know",
                           r->s->path, LENGTH_BYTES + j->items[i].offset, j->key, key);
    }
    return QN_OK;
}

static QnStatus read_tensor(const Reader *r, const QnJson *j, QnSafetensor *t)
{
    int64_t bytes = 0;
    if (j->type != QN_JSON_OBJECT)
        return tensor_fail(r, j, "is not described by an object");
    t->name = j->key;
    if (!j->key_n)
        return tensor_fail(r, j, "its name is empty");
    if (strlen(j->key) != j->key_n)
        return tensor_fail(r, j, "a zero byte in its name");
    QN_TRY(check_members(r, j));
    QN_TRY(read_dtype(r, j, t));
    QN_TRY(read_shape(r, j, t, &bytes));
    const QnJson *o = qn_json_find(j, "data_offsets");
    if (!o || o->type != QN_JSON_ARRAY || o->n != 2 || o->items[0].type != QN_JSON_INT ||
        o->items[1].type != QN_JSON_INT)
        return tensor_fail(r, j, "has no data_offsets of two whole numbers");
    int64_t begin = o->items[0].integer, end = o->items[1].integer;
    if (begin < 0 || end < begin)
        return tensor_fail(r, j, "its data_offsets run backwards");
    if ((uint64_t)end > r->data_bytes)
        return qn_fail(QN_EFORMAT,
                       "%s: byte %zu: tensor '%.200s' ends at %" PRId64 " of the data, which have "
                       "%zu bytes: the file is cut short (an incomplete download?)",
                       r->s->path, LENGTH_BYTES + j->offset, j->key, end, r->data_bytes);
    if (end - begin != bytes)
        return qn_fail(QN_EFORMAT,
                       "%s: byte %zu: tensor '%.200s' has %" PRId64 " bytes, but dtype and shape "
                       "make %" PRId64,
                       r->s->path, LENGTH_BYTES + j->offset, j->key, end - begin, bytes);
    t->data = r->data + begin;
    t->bytes = (size_t)bytes;
    return QN_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    const QnSafetensor *x = a, *y = b;
    if (x->data != y->data)
        return (const char *)x->data < (const char *)y->data ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int compare_names(const void *a, const void *b)
{
    const QnSafetensor *x = *(const QnSafetensor *const *)a, *y = *(const QnSafetensor *const *)b;
    return strcmp(x->name, y->name);
}

/* The tensors must cover the data once and whole: what they do not cover could hide anything. */
static QnStatus check_cover(const Reader *r)
{
    const QnSafetensors *s = r->s;
    const uint8_t *at = r->data;
    for (int64_t i = 0; i < s->count; i++) {
        const QnSafetensor *t = &s->tensors[i];
        const uint8_t *begin = t->data;
        if (begin != at)
            return qn_fail(
                QN_EFORMAT, "%s: tensor '%.200s' begins at %zu of the data, %s %zu: %s", s->path,
                t->name, (size_t)(begin - r->data),
                begin < at ? "inside the one before, which ends at" : "but the one before ends at",
                (size_t)(at - r->data), begin < at ? "two tensors overlap" : "there is a hole");
        at = begin + t->bytes;
    }
    size_t used = (size_t)(at - r->data);
    if (used != r->data_bytes)
        return qn_fail(QN_EFORMAT, "%s: %zu bytes at the end belong to no tensor", s->path,
                       r->data_bytes - used);
    return QN_OK;
}

static QnStatus check_metadata(const Reader *r, const QnJson *m)
{
    if (m->type != QN_JSON_OBJECT)
        return qn_fail(QN_EFORMAT, "%s: byte %zu: __metadata__ is not an object", r->s->path,
                       LENGTH_BYTES + m->offset);
    for (int64_t i = 0; i < m->n; i++)
        if (m->items[i].type != QN_JSON_STRING)
            return qn_fail(QN_EFORMAT, "%s: byte %zu: metadata '%.100s' is not a text", r->s->path,
                           LENGTH_BYTES + m->items[i].offset, m->items[i].key);
    return QN_OK;
}

QnStatus qn_safetensors_sort(QnSafetensors *s)
{
    s->by_name = qn_arena_array(s->arena, (size_t)s->count, sizeof *s->by_name);
    if (!s->by_name)
        return QN_ENOMEM;
    for (int64_t i = 0; i < s->count; i++)
        s->by_name[i] = &s->tensors[i];
    if (s->count)
        qsort(s->by_name, (size_t)s->count, sizeof *s->by_name, compare_names);
    return QN_OK;
}

static QnStatus read_header(Reader *r, const char *text, size_t size)
{
    QnSafetensors *s = r->s;
    const QnJson *root;
    if (qn_json_parse(s->arena, text, size, &root) != QN_OK)
        return qn_fail_prefix("%s: header (which begins at byte %d)", s->path, LENGTH_BYTES);
    if (root->type != QN_JSON_OBJECT)
        return qn_fail(QN_EFORMAT, "%s: byte %d: the header is not a JSON object", s->path,
                       LENGTH_BYTES);
    s->tensors = qn_arena_array(s->arena, (size_t)root->n, sizeof *s->tensors);
    if (!s->tensors)
        return QN_ENOMEM;
    for (int64_t i = 0; i < root->n; i++) {
        const QnJson *j = &root->items[i];
        if (!strcmp(j->key, "__metadata__")) {
            QN_TRY(check_metadata(r, j));
            s->metadata = j;
        } else {
            QN_TRY(read_tensor(r, j, &s->tensors[s->count++]));
        }
    }
    if (s->count)
        qsort(s->tensors, (size_t)s->count, sizeof *s->tensors, compare_offsets);
    QN_TRY(qn_safetensors_sort(s));
    return check_cover(r);
}

static QnStatus check_length(const char *name, const uint8_t *p, size_t size, size_t *header)
{
    static const char lfs[] = "version https://git-lfs";
    if (size >= sizeof lfs - 1 && !memcmp(p, lfs, sizeof lfs - 1))
        return qn_fail(QN_EFORMAT,
                       "%s: this is a git-lfs pointer, not the file itself: run 'git lfs pull' or "
                       "download the file",
                       name);
    if (size < LENGTH_BYTES)
        return qn_fail(QN_EFORMAT, "%s: only %zu bytes: the file is cut short", name, size);
    uint64_t n = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        n = n << 8 | p[i];
    if (n > QN_SAFETENSORS_HEADER_MAX)
        return qn_fail(QN_EFORMAT,
                       "%s: byte 0: a header of %" PRIu64 " bytes is over the limit of %d: not a "
                       "safetensors file",
                       name, n, QN_SAFETENSORS_HEADER_MAX);
    if (n > size - LENGTH_BYTES)
        return qn_fail(QN_EFORMAT,
                       "%s: byte 0: a header of %" PRIu64 " bytes, but only %zu follow: the file "
                       "is cut short",
                       name, n, size - LENGTH_BYTES);
    if (!n || p[LENGTH_BYTES] != '{')
        return qn_fail(QN_EFORMAT,
                       "%s: byte %d: the header does not begin with '{': not a "
                       "safetensors file",
                       name, LENGTH_BYTES);
    *header = (size_t)n;
    return QN_OK;
}

QnStatus qn_safetensors_parse(const char *name, const void *data, size_t size, QnSafetensors **out)
{
    const uint8_t *p = data;
    size_t header = 0;
    QN_TRY(check_length(name, p, size, &header));
    QnSafetensors *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    QnStatus st = QN_OK;
    s->arena = qn_arena_new();
    s->path = s->arena ? qn_arena_strdup(s->arena, name) : NULL;
    if (!s->path) {
        st = QN_ENOMEM;
        goto done;
    }
    Reader r = { .s = s,
                 .data = p + LENGTH_BYTES + header,
                 .data_bytes = size - LENGTH_BYTES - header };
    QN_TRY_DONE(read_header(&r, (const char *)p + LENGTH_BYTES, header));
    *out = s;
    s = NULL;
done:
    qn_safetensors_free(s);
    return st;
}

QnStatus qn_safetensors_open(const char *path, QnSafetensors **out)
{
    QnFileMap map;
    QN_TRY(qn_file_map(path, &map));
    bool index = qn_shards_is_index(map.data, map.bytes);
    QnStatus st = index ? qn_safetensors_open_index(path, (const char *)map.data, map.bytes, out)
                        : qn_safetensors_parse(path, map.data, map.bytes, out);
    if (st == QN_OK && !index)
        (*out)->map = map;
    else
        qn_file_unmap(&map);
    return st;
}

void qn_safetensors_free(QnSafetensors *s)
{
    if (!s)
        return;
    for (int64_t i = 0; i < s->n_shards; i++)
        qn_safetensors_free(s->shards[i]);
    qn_free(s->shards);
    qn_file_unmap(&s->map);
    qn_arena_free(s->arena);
    qn_free(s);
}

int64_t qn_safetensors_count(const QnSafetensors *s)
{
    return s->count;
}

const QnSafetensor *qn_safetensors_at(const QnSafetensors *s, int64_t i)
{
    return &s->tensors[i];
}

const QnSafetensor *qn_safetensors_find(const QnSafetensors *s, const char *name)
{
    int64_t lo = 0, hi = s->count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        int order = strcmp(s->by_name[mid]->name, name);
        if (!order)
            return s->by_name[mid];
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

const char *qn_safetensors_metadata(const QnSafetensors *s, const char *key)
{
    const QnJson *j = qn_json_find(s->metadata, key);
    return j && j->type == QN_JSON_STRING ? j->string : NULL;
}

int64_t qn_safetensors_metadata_count(const QnSafetensors *s)
{
    return s->metadata ? s->metadata->n : 0;
}

QnSafetensorsText qn_safetensors_metadata_at(const QnSafetensors *s, int64_t i)
{
    const QnJson *j = &s->metadata->items[i];
    return (QnSafetensorsText){ j->key, j->string };
}

int64_t qn_safetensors_shard_count(const QnSafetensors *s)
{
    return s->n_shards ? s->n_shards : 1;
}
