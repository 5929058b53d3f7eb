/* ai.onnx.ml.LabelEncoder: each element is a key, and becomes the key's value. Keys and values are
 * strings or numbers. Computed while a model is imported. */
#include "ir/dtype.h"
#include "onnx/mapping.h"
#include "onnx/ml.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A list that one of the attributes PREFIXstrings, PREFIXint64s, PREFIXfloats, PREFIXtensor gives.
 */
static QnStatus read_list(const QnOnnxNode *n, const char *prefix, QnTensor *out)
{
    static const char *const kinds[] = { "s_strings", "s_int64s", "s_floats", "s_tensor" };
    char name[32];
    for (int k = 0; k < (int)QN_COUNT(kinds); k++) {
        snprintf(name, sizeof name, "%s%s", prefix, kinds[k]);
        const QnOnnxAttr *a = qn_onnx_attr(n, name);
        *out = (QnTensor){ .type = { .shape = QN_SHAPE(a ? a->n : 0) } };
        if (!a)
            continue;
        switch (a->kind) {
        case QN_ONNX_STRINGS: out->text = a->strings; return QN_OK;
        case QN_ONNX_INTS: out->data = a->ints, out->type.dtype = QN_DTYPE_I64; return QN_OK;
        case QN_ONNX_FLOATS: out->data = a->floats, out->type.dtype = QN_DTYPE_F32; return QN_OK;
        case QN_ONNX_TENSOR: *out = *a->tensor; return QN_OK;
        default: break;
        }
    }
    return qn_fail(QN_EFORMAT, "no attribute gives its %ss", prefix);
}

/* What unknown keys become: as a list of one, of the values' type. */
static QnStatus read_default(QnOnnxNode *n, const QnTensor *values, QnTensor *out)
{
    const QnOnnxAttr *t = qn_onnx_attr(n, "default_tensor");
    const QnOnnxAttr *s = qn_onnx_attr(n, "default_string");
    QnShape one = QN_SHAPE(1);
    if (t && t->kind == QN_ONNX_TENSOR) {
        if (qn_shape_count(&t->tensor->type.shape) != 1 || !t->tensor->text != !values->text ||
            (!values->text && t->tensor->type.dtype != values->type.dtype))
            return qn_fail(QN_EFORMAT, "default_tensor must be one element of the values' type");
        *out = *t->tensor;
        return QN_OK;
    }
    QnTensor *made =
        values->text ? qn_onnx_tensor_text(n, &one) : qn_onnx_tensor(n, values->type.dtype, &one);
    if (!made)
        return QN_ENOMEM;
    if (values->text) {
        *(QnText *)(uintptr_t)made->text =
            s && s->kind == QN_ONNX_STRING ? s->s : (QnText){ "_Unused", 7 };
    } else {
        double v = qn_dtype_is_float(values->type.dtype) ? qn_onnx_float(n, "default_float", -0.0)
                                                         : (double)-1;
        int64_t i = qn_onnx_int(n, "default_int64", -1);
        void *to = (void *)(uintptr_t)made->data;
        if (values->type.dtype == QN_DTYPE_I64)
            memcpy(to, &i, sizeof i);
        else
            qn_dtype_from_f64(values->type.dtype, &v, to, 1);
    }
    *out = *made;
    return QN_OK;
}

static const void *at(const QnTensor *t, int64_t i)
{
    return (const char *)t->data + (size_t)i * qn_dtype_bytes(t->type.dtype);
}

static bool is_equal(const QnTensor *a, int64_t i, const QnTensor *b, int64_t k)
{
    if (a->text) {
        QnText x = a->text[i], y = b->text[k];
        return x.n == y.n && (x.n == 0 || !memcmp(x.s, y.s, x.n));
    }
    if (!qn_dtype_is_float(a->type.dtype)) {
        int64_t x, y;
        qn_dtype_to_i64(a->type.dtype, at(a, i), &x, 1);
        qn_dtype_to_i64(b->type.dtype, at(b, k), &y, 1);
        return x == y;
    }
    double x, y;
    qn_dtype_to_f64(a->type.dtype, at(a, i), &x, 1);
    qn_dtype_to_f64(b->type.dtype, at(b, k), &y, 1);
    return x == y || (isnan(x) && isnan(y));
}

static QnStatus encode(QnOnnxNode *n, const QnTensor *keys, const QnTensor *values,
                       const QnTensor *otherwise)
{
    const QnTensor *x = n->in[0]->known;
    int64_t n_keys = qn_shape_count(&keys->type.shape);
    if (n_keys != qn_shape_count(&values->type.shape))
        return qn_fail(QN_EFORMAT, "%lld keys, but %lld values", (long long)n_keys,
                       (long long)qn_shape_count(&values->type.shape));
    if (!x->text != !keys->text ||
        (!x->text && qn_dtype_is_float(x->type.dtype) != qn_dtype_is_float(keys->type.dtype)))
        return qn_fail(QN_EDTYPE, "input 0 is not of the keys' type");
    QnTensor *y = values->text ? qn_onnx_tensor_text(n, &x->type.shape)
                               : qn_onnx_tensor(n, values->type.dtype, &x->type.shape);
    if (!y)
        return QN_ENOMEM;
    for (int64_t i = 0, count = qn_shape_count(&x->type.shape); i < count; i++) {
        int64_t k = 0;
        while (k < n_keys && !is_equal(x, i, keys, k))
            k++;
        const QnTensor *from = k < n_keys ? values : otherwise;
        k = k < n_keys ? k : 0;
        if (y->text)
            ((QnText *)(uintptr_t)y->text)[i] = from->text[k];
        else
            memcpy((void *)(uintptr_t)at(y, i), at(from, k), qn_dtype_bytes(y->type.dtype));
    }
    return qn_onnx_out_known(n, 0, y);
}

static QnStatus import_label(QnOnnxNode *n)
{
    QnTensor keys, values, otherwise;
    QN_ONNX_NEED(n, 0);
    QN_TRY(read_list(n, "key", &keys));
    QN_TRY(read_list(n, "value", &values));
    QN_TRY(read_default(n, &values, &otherwise));
    return encode(n, &keys, &values, &otherwise);
}

/* Version 1: strings to their places in a list and back. */
static QnStatus import_places(QnOnnxNode *n)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, "classes_strings");
    QnTensor otherwise;
    QN_ONNX_NEED(n, 0);
    if (!a || a->kind != QN_ONNX_STRINGS)
        return qn_fail(QN_EFORMAT, "attribute 'classes_strings' is missing");
    QnTensor text = { .type = { .shape = QN_SHAPE(a->n) }, .text = a->strings };
    QnTensor *place = qn_onnx_tensor(n, QN_DTYPE_I64, &text.type.shape);
    if (!place)
        return QN_ENOMEM;
    for (int64_t i = 0; i < a->n; i++)
        ((int64_t *)(uintptr_t)place->data)[i] = i;
    bool from_text = n->in[0]->known->text != NULL;
    const QnTensor *values = from_text ? place : &text;
    QN_TRY(read_default(n, values, &otherwise));
    return encode(n, from_text ? &text : place, values, &otherwise);
}

/* Strings to integers or back, by two lists. */
static QnStatus import_categories(QnOnnxNode *n)
{
    const QnOnnxAttr *i = qn_onnx_attr(n, "cats_int64s"), *s = qn_onnx_attr(n, "cats_strings");
    QnTensor otherwise;
    QN_ONNX_NEED(n, 0);
    if (!i || i->kind != QN_ONNX_INTS || !s || s->kind != QN_ONNX_STRINGS)
        return qn_fail(QN_EFORMAT, "attributes 'cats_int64s' and 'cats_strings' must give lists");
    const QnTensor text = { .type = { .shape = QN_SHAPE(s->n) }, .text = s->strings };
    const QnTensor number = { .type = { .dtype = QN_DTYPE_I64, .shape = QN_SHAPE(i->n) },
                              .data = i->ints };
    bool from_text = n->in[0]->known->text != NULL;
    const QnTensor *values = from_text ? &number : &text;
    QN_TRY(read_default(n, values, &otherwise));
    return encode(n, from_text ? &text : &number, values, &otherwise);
}

const QnOnnxMap qn_onnx_label[] = {
    { "LabelEncoder", QN_ML, 1, 1, import_places, NULL },
    { "LabelEncoder", QN_ML, 2, 0, import_label, NULL },
    { "CategoryMapper", QN_ML, 1, 0, import_categories, NULL },
    { 0 },
};
