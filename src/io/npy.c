#include "io/npy.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/gz.h"

#include <inttypes.h>
#include <string.h>

#define NPY_LIMIT_BYTES ((size_t)1 << 40)
enum { MAGIC_BYTES = 8, ALIGN_BYTES = 64 };

/* A cursor over the header's Python literal. */
typedef struct Cursor {
    const char *name, *text;
    size_t start, size, at; /* start: offset of text in the file */
} Cursor;

static QnStatus header_fail(const Cursor *c, const char *why)
{
    return qn_fail(QN_EFORMAT, "%s: byte %zu: %s: not a header that NumPy writes", c->name,
                   c->start + c->at, why);
}

static void skip_blanks(Cursor *c)
{
    while (c->at < c->size && (c->text[c->at] == ' ' || c->text[c->at] == '\n' ||
                               c->text[c->at] == '\t' || c->text[c->at] == '\r'))
        c->at++;
}

static bool take_char(Cursor *c, char want)
{
    skip_blanks(c);
    if (c->at >= c->size || c->text[c->at] != want)
        return false;
    c->at++;
    return true;
}

static QnStatus take_string(Cursor *c, const char **text, size_t *size)
{
    skip_blanks(c);
    if (c->at >= c->size || (c->text[c->at] != '\'' && c->text[c->at] != '"'))
        return header_fail(c, "expected a quoted word");
    const char *start = c->text + c->at + 1;
    const char *end = memchr(start, c->text[c->at], c->size - c->at - 1);
    if (!end)
        return header_fail(c, "a quote is never closed");
    *text = start;
    *size = (size_t)(end - start);
    c->at = (size_t)(end - c->text) + 1;
    return QN_OK;
}

static QnStatus take_dim(Cursor *c, int64_t *out)
{
    skip_blanks(c);
    size_t first = c->at;
    int64_t v = 0;
    while (c->at < c->size && c->text[c->at] >= '0' && c->text[c->at] <= '9') {
        if (qn_mul_overflow(v, (int64_t)10, &v) ||
            qn_add_overflow(v, (int64_t)(c->text[c->at] - '0'), &v))
            return header_fail(c, "a dimension of more than 64 bits");
        c->at++;
    }
    if (c->at == first)
        return header_fail(c, "expected a dimension");
    if (c->at < c->size && c->text[c->at] == 'L')
        c->at++; /* Python 2 */
    *out = v;
    return QN_OK;
}

static QnStatus take_shape(Cursor *c, QnNpy *npy)
{
    npy->rank = 0;
    if (!take_char(c, '('))
        return header_fail(c, "expected a shape like (3, 4)");
    while (!take_char(c, ')')) {
        if (npy->rank == QN_NPY_MAX_RANK)
            return qn_fail(QN_EUNSUPPORTED, "%s: byte %zu: more than %d dimensions", c->name,
                           c->start + c->at, QN_NPY_MAX_RANK);
        QN_TRY(take_dim(c, &npy->dims[npy->rank++]));
        if (!take_char(c, ',') && (c->at >= c->size || c->text[c->at] != ')'))
            return header_fail(c, "expected ',' or ')' in the shape");
    }
    return QN_OK;
}

static QnStatus take_dtype(const Cursor *c, const char *descr, size_t n, QnNpy *npy, bool *swapped)
{
    static const struct {
        const char *text;
        QnDtype dtype;
    } types[] = { { "f4", QN_DTYPE_F32 }, { "f2", QN_DTYPE_F16 }, { "V2", QN_DTYPE_BF16 },
                  { "f8", QN_DTYPE_F64 }, { "i1", QN_DTYPE_I8 },  { "u1", QN_DTYPE_U8 },
                  { "i4", QN_DTYPE_I32 }, { "i8", QN_DTYPE_I64 }, { "b1", QN_DTYPE_BOOL },
                  { "i2", QN_DTYPE_I16 }, { "u2", QN_DTYPE_U16 }, { "u4", QN_DTYPE_U32 },
                  { "u8", QN_DTYPE_U64 } };
    const uint16_t probe = 1;
    bool little = *(const uint8_t *)&probe == 1;
    for (int i = 0; n == 3 && i < QN_COUNT(types); i++) {
        if (memcmp(descr + 1, types[i].text, 2) || !strchr("<>|=", descr[0]))
            continue;
        npy->dtype = types[i].dtype;
        *swapped = qn_dtype_bytes(npy->dtype) > 1 &&
                   ((descr[0] == '<' && !little) || (descr[0] == '>' && little));
        return QN_OK;
    }
    return qn_fail(QN_EUNSUPPORTED,
                   "%s: byte %zu: type '%.*s' is not one of f4 f2 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1 "
                   "(and V2 for bf16): convert with astype",
                   c->name, c->start + (size_t)(descr - c->text), (int)QN_MIN(n, (size_t)40),
                   descr);
}

static QnStatus take_fields(Cursor *c, QnNpyHead *h)
{
    QnNpy *npy = &h->array;
    bool has_descr = false, has_order = false, has_shape = false;
    if (!take_char(c, '{'))
        return header_fail(c, "expected '{'");
    while (!take_char(c, '}')) {
        const char *key, *value;
        size_t key_n, n;
        QN_TRY(take_string(c, &key, &key_n));
        if (!take_char(c, ':'))
            return header_fail(c, "expected ':'");
        skip_blanks(c);
        if (key_n == 5 && !memcmp(key, "descr", 5) && !has_descr) {
            if (c->at < c->size && c->text[c->at] == '[')
                return qn_fail(QN_EUNSUPPORTED,
                               "%s: byte %zu: a structured array: save its "
                               "columns as arrays of numbers",
                               c->name, c->start + c->at);
            has_descr = true;
            QN_TRY(take_string(c, &value, &n));
            QN_TRY(take_dtype(c, value, n, npy, &h->swapped));
        } else if (key_n == 13 && !memcmp(key, "fortran_order", 13) && !has_order) {
            has_order = true;
            h->fortran = c->size - c->at >= 4 && !memcmp(c->text + c->at, "True", 4);
            if (!h->fortran && (c->size - c->at < 5 || memcmp(c->text + c->at, "False", 5)))
                return header_fail(c, "expected True or False");
            c->at += h->fortran ? 4 : 5;
        } else if (key_n == 5 && !memcmp(key, "shape", 5) && !has_shape) {
            has_shape = true;
            h->shape_at = c->start + c->at;
            QN_TRY(take_shape(c, npy));
        } else {
            return header_fail(c, "an unknown or repeated field");
        }
        take_char(c, ',');
    }
    skip_blanks(c);
    if (c->at != c->size)
        return header_fail(c, "more text after '}'");
    if (!has_descr || !has_order || !has_shape)
        return header_fail(c, "descr, fortran_order or shape is missing");
    return QN_OK;
}

static QnStatus parse_header(const char *name, const uint8_t *p, size_t size, QnNpyHead *h)
{
    if (size < MAGIC_BYTES + 2)
        return qn_fail(QN_EFORMAT, "%s: only %zu bytes: the file is cut short", name, size);
    if (memcmp(p, "\x93NUMPY", 6))
        return qn_fail(QN_EFORMAT, "%s: byte 0: the magic of a .npy file is missing%s", name,
                       p[0] == 'P' && p[1] == 'K' ? ": this is a .npz archive" : "");
    int version = p[6];
    if (version < 1 || version > 3)
        return qn_fail(QN_EUNSUPPORTED, "%s: byte 6: version %d; 1 to 3 are known", name, version);
    size_t at = version == 1 ? MAGIC_BYTES + 2 : MAGIC_BYTES + 4;
    if (size < at)
        return qn_fail(QN_EFORMAT, "%s: only %zu bytes: the file is cut short", name, size);
    size_t n = (size_t)p[8] | (size_t)p[9] << 8;
    if (version > 1)
        n |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (n > size - at)
        return qn_fail(QN_EFORMAT,
                       "%s: byte 8: a header of %zu bytes, but only %zu follow: the file is cut "
                       "short",
                       name, n, size - at);
    Cursor c = { .name = name, .text = (const char *)p + at, .start = at, .size = n };
    h->data_at = at + n;
    return take_fields(&c, h);
}

static QnStatus check_size(const char *name, uint64_t size, QnNpyHead *h)
{
    QnNpy *npy = &h->array;
    int64_t bytes, item = (int64_t)qn_dtype_bytes(npy->dtype);
    npy->count = 1;
    bool empty = false;
    for (int i = 0; i < npy->rank; i++)
        empty = empty || !npy->dims[i];
    for (int i = 0; i < npy->rank && !empty; i++)
        if (qn_mul_overflow(npy->count, npy->dims[i], &npy->count))
            return qn_fail(QN_EFORMAT,
                           "%s: byte %zu: the dimensions multiply to more than 64 bits: the "
                           "header is damaged",
                           name, h->shape_at);
    npy->count = empty ? 0 : npy->count;
    if (qn_mul_overflow(npy->count, item, &bytes) || (uint64_t)bytes != size - h->data_at)
        return qn_fail(QN_EFORMAT,
                       "%s: byte %zu: the header promises %" PRId64 " items of %" PRId64 " bytes, "
                       "the file holds %" PRIu64 " bytes: it is cut short or damaged",
                       name, h->data_at, npy->count, item, size - h->data_at);
    return QN_OK;
}

static void swap_items(uint8_t *p, int64_t count, size_t item)
{
    for (int64_t i = 0; i < count; i++, p += item)
        for (size_t a = 0, b = item - 1; a < b; a++, b--) {
            uint8_t t = p[a];
            p[a] = p[b];
            p[b] = t;
        }
}

/* Column-major to row-major. */
static void turn_order(const QnNpy *npy, const uint8_t *in, uint8_t *out)
{
    size_t item = qn_dtype_bytes(npy->dtype);
    int64_t stride[QN_NPY_MAX_RANK], index[QN_NPY_MAX_RANK] = { 0 }, from = 0, s = 1;
    for (int d = 0; d < npy->rank; d++) {
        stride[d] = s;
        s *= npy->dims[d];
    }
    for (int64_t i = 0; i < npy->count; i++) {
        memcpy(out + (size_t)i * item, in + (size_t)from * item, item);
        for (int d = npy->rank - 1; d >= 0; d--) {
            from += stride[d];
            if (++index[d] < npy->dims[d])
                break;
            from -= stride[d] * npy->dims[d];
            index[d] = 0;
        }
    }
}

size_t qn_npy_head_bytes(const uint8_t p[QN_NPY_HEAD_MIN])
{
    if (memcmp(p, "\x93NUMPY", 6))
        return 0;
    size_t n = (size_t)p[8] | (size_t)p[9] << 8;
    return p[6] == 1 ? MAGIC_BYTES + 2 + n
                     : MAGIC_BYTES + 4 + (n | (size_t)p[10] << 16 | (size_t)p[11] << 24);
}

QnStatus qn_npy_head_parse(const char *name, const void *p, size_t have, uint64_t size,
                           QnNpyHead *out)
{
    QnNpyHead h = { 0 };
    QN_TRY(parse_header(name, p, have, &h));
    QN_TRY(check_size(name, size, &h));
    *out = h;
    return QN_OK;
}

void qn_npy_head_convert(const QnNpyHead *h, const void *items, void *dst)
{
    const QnNpy *npy = &h->array;
    size_t item = qn_dtype_bytes(npy->dtype), n = (size_t)npy->count * item;
    if (h->fortran && npy->rank > 1)
        turn_order(npy, items, dst);
    else if (n)
        memcpy(dst, items, n);
    if (h->swapped)
        swap_items(dst, npy->count, item);
    if (npy->dtype == QN_DTYPE_BOOL) /* any other value would be undefined as a bool */
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)dst)[i] = ((uint8_t *)dst)[i] != 0;
}

QnStatus qn_npy_parse(const char *name, const void *bytes, size_t size, QnNpy *out)
{
    QnNpyHead h;
    QN_TRY(qn_npy_head_parse(name, bytes, size, size, &h));
    h.array.data = qn_alloc(size - h.data_at);
    if (!h.array.data)
        return qn_fail_prefix("%s", name);
    qn_npy_head_convert(&h, (const uint8_t *)bytes + h.data_at, h.array.data);
    *out = h.array;
    return QN_OK;
}

QnStatus qn_npy_read(const char *path, QnNpy *out)
{
    uint8_t *bytes;
    size_t size;
    QN_TRY(qn_gz_read(path, NPY_LIMIT_BYTES, &bytes, &size));
    QnStatus st = qn_npy_parse(path, bytes, size, out);
    qn_free(bytes);
    return st;
}

void qn_npy_fini(QnNpy *npy)
{
    qn_free(npy->data);
    *npy = (QnNpy){ 0 };
}

static const char *descr_of(QnDtype dtype)
{
    switch (dtype) {
    case QN_DTYPE_F32: return "<f4";
    case QN_DTYPE_F16: return "<f2";
    case QN_DTYPE_BF16: return "<V2";
    case QN_DTYPE_F64: return "<f8";
    case QN_DTYPE_I8: return "|i1";
    case QN_DTYPE_U8: return "|u1";
    case QN_DTYPE_I32: return "<i4";
    case QN_DTYPE_I64: return "<i8";
    case QN_DTYPE_BOOL: return "|b1";
    case QN_DTYPE_I16: return "<i2";
    case QN_DTYPE_U16: return "<u2";
    case QN_DTYPE_U32: return "<u4";
    case QN_DTYPE_U64: return "<u8";
    default: return NULL;
    }
}

QnStatus qn_npy_head_print(const char *name, QnDtype dtype, int rank, const int64_t *dims,
                           QnStr *out, size_t *item_bytes)
{
    QnStr text = { 0 };
    const char *descr = descr_of(dtype);
    int64_t bytes = (int64_t)qn_dtype_bytes(dtype);
    if (!descr || rank < 0 || rank > QN_NPY_MAX_RANK)
        return qn_fail(QN_EARG, "%s: cannot write type %d with %d dimensions", name, (int)dtype,
                       rank);
    qn_str_printf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0 || qn_mul_overflow(bytes, dims[i], &bytes)) {
            qn_str_fini(&text);
            return qn_fail(QN_EARG, "%s: dimension %d is %" PRId64, name, i, dims[i]);
        }
        qn_str_printf(&text, "%s%" PRId64, i ? ", " : "", dims[i]);
    }
    qn_str_add(&text, rank == 1 ? ",), }" : "), }");
    size_t pad = ALIGN_BYTES - (MAGIC_BYTES + 2 + text.n + 1) % ALIGN_BYTES;
    qn_str_add_repeat(&text, " ", (int64_t)(pad % ALIGN_BYTES));
    qn_str_add(&text, "\n");
    uint8_t head[MAGIC_BYTES + 2] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)(text.n & 255), (uint8_t)(text.n >> 8)
    };
    qn_str_add_bytes(out, head, sizeof head);
    qn_str_add_bytes(out, qn_str_text(&text), text.n);
    QnStatus st = text.st != QN_OK ? text.st : out->st;
    qn_str_fini(&text);
    *item_bytes = (size_t)bytes;
    return st;
}

QnStatus qn_npy_write(const char *path, QnDtype dtype, int rank, const int64_t *dims,
                      const void *data)
{
    QnStr head = { 0 };
    QnFileOut out = { .fd = -1 };
    size_t bytes;
    QnStatus st = QN_OK;
    QN_TRY_DONE(qn_npy_head_print(path, dtype, rank, dims, &head, &bytes));
    QN_TRY_DONE(qn_file_create(&out, path));
    QN_TRY_DONE(qn_file_write(&out, qn_str_text(&head), head.n));
    QN_TRY_DONE(qn_file_write(&out, data, bytes));
    st = qn_file_commit(&out);
done:
    if (st != QN_OK && out.path)
        qn_file_discard(&out);
    qn_str_fini(&head);
    return st;
}
