/* TensorProto: numbers raw, typed or in other files; strings. */
#include "base/compiler.h"
#include "base/mem.h"

#ifdef QN_HAVE_ONNX
#include "io/onnx_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Whoever walks the rows of an empty tensor shall come to an end. */
enum { EMPTY_MOST = 1 << 28 };

static QnStatus read_shape(const QnOnnxReader *r, const Onnx__TensorProto *p, const char *what,
                           QnShape *s)
{
    if (p->n_dims > QN_MAX_RANK)
        return qn_fail(QN_EUNSUPPORTED, "%s: tensor '%s' has %zu dims, at most %d are supported",
                       r->file, what, p->n_dims, QN_MAX_RANK);
    *s = (QnShape){ .rank = (int)p->n_dims };
    for (size_t i = 0; i < p->n_dims; i++) {
        if (p->dims[i] < 0)
            return qn_fail(QN_EFORMAT, "%s: tensor '%s': dim %zu is %lld", r->file, what, i,
                           (long long)p->dims[i]);
        s->dim[i] = p->dims[i];
    }
    int64_t product = 1; /* of those that are not 0 too: strides are made of them */
    bool fits = true;
    for (int i = 0; i < s->rank; i++)
        fits &= !qn_mul_overflow(product, QN_MAX(s->dim[i], 1), &product);
    if (fits && qn_shape_count(s) == 0 && product > EMPTY_MOST)
        return qn_fail(QN_EFORMAT, "%s: tensor '%s' is empty, with dims of %lld", r->file, what,
                       (long long)product);
    if (!fits || product > INT64_MAX / 16)
        return qn_fail(QN_EFORMAT, "%s: tensor '%s': the product of its dims overflows", r->file,
                       what);
    return QN_OK;
}

static QnStatus wrong_length(const QnOnnxReader *r, const char *what, const QnType *t, uint64_t has,
                             const char *unit)
{
    char text[QN_TYPE_TEXT_BYTES];
    return qn_fail(QN_EFORMAT, "%s: tensor '%s' of type %s has %llu %s", r->file, what,
                   qn_type_text(t, text), (unsigned long long)has, unit);
}

/* int32_data carries everything that is narrower, one element a number. */
static QnStatus narrow(QnOnnxReader *r, const int32_t *v, QnTensor *t, int64_t n)
{
    size_t size = qn_dtype_bytes(t->type.dtype);
    unsigned char *d = qn_arena_alloc(r->arena, QN_MAX((size_t)n * size, 1));
    if (!d)
        return QN_ENOMEM;
    bool packed = qn_onnx_is_packed(t->type.dtype);
    for (int64_t i = 0; i < n; i++) {
        int32_t x = packed ? v[i / 2] >> (i % 2 ? 4 : 0) & 15 : v[i];
        if (packed && t->type.dtype == QN_DTYPE_I4)
            x = (x ^ 8) - 8;
        uint16_t half = (uint16_t)x;
        if (t->type.dtype == QN_DTYPE_BOOL)
            d[i] = x != 0;
        else if (size == 1)
            d[i] = (unsigned char)x;
        else
            memcpy(d + (size_t)i * 2, &half, 2);
    }
    t->data = d;
    return QN_OK;
}

static QnStatus read_typed(QnOnnxReader *r, const Onnx__TensorProto *p, const char *what,
                           QnTensor *t)
{
    int64_t n = qn_shape_count(&t->type.shape), need = n;
    size_t has;
    const void *data;
    switch (t->type.dtype) {
    case QN_DTYPE_F32: has = p->n_float_data, data = p->float_data; break;
    case QN_DTYPE_F64: has = p->n_double_data, data = p->double_data; break;
    case QN_DTYPE_I64: has = p->n_int64_data, data = p->int64_data; break;
    case QN_DTYPE_I32: has = p->n_int32_data, data = p->int32_data; break;
    default:
        if (t->type.dtype == QN_DTYPE_U64 || t->type.dtype == QN_DTYPE_U32) {
            has = p->n_uint64_data, data = p->uint64_data;
        } else {
            has = p->n_int32_data, data = p->int32_data;
            need = qn_onnx_is_packed(t->type.dtype) ? (n + 1) / 2 : n;
        }
    }
    if ((uint64_t)need != has)
        return wrong_length(r, what, &t->type, has, "elements");
    t->data = data;
    if (t->type.dtype == QN_DTYPE_U32) {
        uint32_t *d = qn_arena_array(r->arena, (size_t)QN_MAX(n, 1), sizeof *d);
        if (!d)
            return QN_ENOMEM;
        for (int64_t i = 0; i < n; i++)
            d[i] = (uint32_t)p->uint64_data[i];
        t->data = d;
    } else if (data == p->int32_data && t->type.dtype != QN_DTYPE_I32) {
        return narrow(r, p->int32_data, t, n);
    }
    return QN_OK;
}

static QnStatus unpack4(QnOnnxReader *r, const unsigned char *p, const char *what, QnTensor *t)
{
    int64_t n = qn_shape_count(&t->type.shape);
    QN_TRY(qn_onnx_may_grow(r, what, (uint64_t)n));
    unsigned char *d = qn_arena_alloc(r->arena, (size_t)QN_MAX(n, 1));
    bool is_signed = t->type.dtype == QN_DTYPE_I4;
    if (!d)
        return QN_ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        int x = p[i / 2] >> (i % 2 ? 4 : 0) & 15;
        d[i] = (unsigned char)(is_signed ? (x ^ 8) - 8 : x);
    }
    t->data = d;
    return QN_OK;
}

/* Any byte but 0 means true; C knows only 0 and 1. */
static QnStatus plain_bools(QnOnnxReader *r, const char *what, QnTensor *t, uint64_t bytes)
{
    const unsigned char *from = t->data;
    uint64_t odd = 0;
    while (odd < bytes && from[odd] < 2)
        odd++;
    if (odd == bytes)
        return QN_OK;
    QN_TRY(qn_onnx_may_grow(r, what, bytes));
    unsigned char *to = qn_arena_alloc(r->arena, (size_t)bytes);
    for (uint64_t i = 0; to && i < bytes; i++)
        to[i] = from[i] != 0;
    t->data = to;
    return to ? QN_OK : QN_ENOMEM;
}

static QnStatus read_raw(QnOnnxReader *r, const unsigned char *p, uint64_t bytes, const char *what,
                         QnTensor *t)
{
    uint64_t n = (uint64_t)qn_shape_count(&t->type.shape);
    uint64_t need =
        qn_onnx_is_packed(t->type.dtype) ? (n + 1) / 2 : n * qn_dtype_bytes(t->type.dtype);
    if (need != bytes)
        return wrong_length(r, what, &t->type, bytes, "bytes");
    if (qn_onnx_is_packed(t->type.dtype))
        return unpack4(r, p, what, t);
    t->data = p ? p : (const unsigned char *)"";
    if ((uintptr_t)p % qn_dtype_bytes(t->type.dtype)) { /* external data may lie anywhere */
        QN_TRY(qn_onnx_may_grow(r, what, bytes));
        t->data = qn_arena_copy(r->arena, p, (size_t)bytes);
    }
    if (t->data && t->type.dtype == QN_DTYPE_BOOL)
        return plain_bools(r, what, t, bytes);
    return t->data ? QN_OK : QN_ENOMEM;
}

static QnStatus entry_number(const QnOnnxReader *r, const char *what, const char *text,
                             uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno == ERANGE)
        return qn_fail(QN_EFORMAT, "%s: tensor '%s': '%s' is no offset or length", r->file, what,
                       text);
    return QN_OK;
}

static QnStatus read_outside(QnOnnxReader *r, const Onnx__TensorProto *p, const char *what,
                             QnTensor *t)
{
    const char *location = NULL;
    uint64_t offset = 0, length = 0, bytes;
    bool has_length = false;
    const unsigned char *data;
    for (size_t i = 0; i < p->n_external_data; i++) {
        const char *key = p->external_data[i]->key, *value = p->external_data[i]->value;
        if (!key || !value)
            continue;
        if (!strcmp(key, "location"))
            location = value;
        else if (!strcmp(key, "offset"))
            QN_TRY(entry_number(r, what, value, &offset));
        else if (!strcmp(key, "length")) {
            QN_TRY(entry_number(r, what, value, &length));
            has_length = true;
        }
    }
    if (!location)
        return qn_fail(QN_EFORMAT, "%s: tensor '%s' lies outside, but no location is given",
                       r->file, what);
    if (!has_length) { /* then it is what the shape says */
        uint64_t n = (uint64_t)qn_shape_count(&t->type.shape);
        length = qn_onnx_is_packed(t->type.dtype) ? (n + 1) / 2 : n * qn_dtype_bytes(t->type.dtype);
    }
    if (p->has_raw_data || p->n_float_data || p->n_int32_data || p->n_int64_data ||
        p->n_double_data || p->n_uint64_data || p->n_string_data)
        return qn_fail(QN_EFORMAT, "%s: tensor '%s' lies outside and in the file too", r->file,
                       what);
    if (qn_onnx_external(r, location, offset, length, &data, &bytes) != QN_OK)
        return qn_fail_prefix("%s: tensor '%s'", r->file, what);
    return read_raw(r, data, bytes, what, t);
}

static QnStatus read_strings(QnOnnxReader *r, const Onnx__TensorProto *p, const char *what,
                             QnTensor *t)
{
    int64_t n = qn_shape_count(&t->type.shape);
    if ((uint64_t)n != p->n_string_data)
        return qn_fail(QN_EFORMAT, "%s: tensor '%s' of %lld strings has %zu", r->file, what,
                       (long long)n, p->n_string_data);
    QnText *text = qn_arena_array(r->arena, (size_t)QN_MAX(n, 1), sizeof *text);
    if (!text)
        return QN_ENOMEM;
    for (int64_t i = 0; i < n; i++)
        text[i] = (QnText){ (const char *)p->string_data[i].data, p->string_data[i].len };
    t->text = text;
    return QN_OK;
}

QnStatus qn_onnx_read_tensor(QnOnnxReader *r, const Onnx__TensorProto *p, const char *what,
                             const QnTensor **out)
{
    QnTensor *t = qn_arena_alloc(r->arena, sizeof *t);
    if (!t)
        return QN_ENOMEM;
    QN_TRY(read_shape(r, p, what, &t->type.shape));
    *out = t;
    bool outside = p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    if (p->segment)
        return qn_fail(QN_EUNSUPPORTED, "%s: tensor '%s' is stored in segments", r->file, what);
    if (p->data_type == QN_ONNX_DTYPE_STRING && !outside)
        return read_strings(r, p, what, t);
    if (!qn_onnx_dtype(p->data_type, &t->type.dtype))
        return qn_fail(p->data_type < 1 || p->data_type > 32 ? QN_EFORMAT : QN_EUNSUPPORTED,
                       "%s: tensor '%s' has element type %d, which is not supported", r->file, what,
                       p->data_type);
    if (outside)
        return read_outside(r, p, what, t);
    if (p->has_raw_data)
        return read_raw(r, p->raw_data.data, p->raw_data.len, what, t);
    return read_typed(r, p, what, t);
}
#endif
