/* ONNX nodes on strings. No operator of ours has them: they are computed while a model is imported,
 * from elements that must be known. */
#include "ir/dtype.h"
#include "ops/onnx.h"
#include "ops/util.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 64 };

/* ---- numbers to strings ---------------------------------------------------------------------- */

static double rounded(QnDtype dtype, double x)
{
    char element[8];
    double y;
    qn_dtype_from_f64(dtype, &x, element, 1);
    qn_dtype_to_f64(dtype, element, &y, 1);
    return y;
}

/* The fewest digits that give x back in its type; plain from 1e-4 to below 1e16, else scientific,
 * as numpy writes them. */
static void print_float(QnDtype dtype, double x, char out[NUMBER_BYTES])
{
    char sci[NUMBER_BYTES];
    int digits = 0;
    if (isnan(x) || isinf(x)) {
        snprintf(out, NUMBER_BYTES, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    do
        snprintf(sci, sizeof sci, "%.*e", digits, x);
    while (rounded(dtype, strtod(sci, NULL)) != x && ++digits < 17);
    char *e = strchr(sci, 'e');
    int power = e ? atoi(e + 1) : 0;
    if (x != 0 && (power < -4 || power >= 16))
        snprintf(out, NUMBER_BYTES, "%s", sci);
    else
        snprintf(out, NUMBER_BYTES, "%.*f", QN_MAX(digits - power, 1), strtod(sci, NULL));
}

static void print_number(QnDtype dtype, const void *element, char out[NUMBER_BYTES])
{
    double x;
    int64_t i;
    if (qn_dtype_is_float(dtype)) {
        qn_dtype_to_f64(dtype, element, &x, 1);
        print_float(dtype, x, out);
        return;
    }
    qn_dtype_to_i64(dtype, element, &i, 1);
    if (dtype == QN_DTYPE_BOOL)
        snprintf(out, NUMBER_BYTES, i ? "True" : "False");
    else if (dtype == QN_DTYPE_U64)
        snprintf(out, NUMBER_BYTES, "%llu", (unsigned long long)i);
    else
        snprintf(out, NUMBER_BYTES, "%lld", (long long)i);
}

static QnStatus print_all(QnOnnxNode *n, const QnTensor *from)
{
    char number[NUMBER_BYTES];
    QnTensor *t = qn_onnx_tensor_text(n, &from->type.shape);
    if (!t)
        return QN_ENOMEM;
    QnText *text = (QnText *)t->text;
    size_t size = qn_dtype_bytes(from->type.dtype);
    for (int64_t i = 0, count = qn_shape_count(&t->type.shape); i < count; i++) {
        print_number(from->type.dtype, (const char *)from->data + (size_t)i * size, number);
        text[i].n = strlen(number);
        char *copy = qn_arena_alloc(n->arena, text[i].n + 1);
        if (!copy)
            return QN_ENOMEM;
        memcpy(copy, number, text[i].n + 1);
        text[i].s = copy;
    }
    return qn_onnx_out_known(n, 0, t);
}

/* ---- strings to numbers ---------------------------------------------------------------------- */

static bool is_integer(const char *s)
{
    s += *s == '-' || *s == '+';
    size_t digits = strspn(s, "0123456789");
    return digits && !s[digits];
}

static bool read_number(QnDtype dtype, const char *s, void *element)
{
    char *end;
    if (qn_dtype_is_wide(dtype) && is_integer(s)) { /* beyond what a double holds */
        int64_t v = dtype == QN_DTYPE_U64 && *s != '-' ? (int64_t)strtoull(s, NULL, 10)
                                                       : (int64_t)strtoll(s, NULL, 10);
        memcpy(element, &v, sizeof v);
        return true;
    }
    if (dtype == QN_DTYPE_BOOL && (!strcmp(s, "True") || !strcmp(s, "False"))) {
        *(bool *)element = *s == 'T';
        return true;
    }
    double x = strtod(s, &end);
    qn_dtype_from_f64(dtype, &x, element, 1);
    return end != s && !*end;
}

static QnStatus read_all(QnOnnxNode *n, const QnTensor *from, QnDtype dtype)
{
    char number[NUMBER_BYTES];
    QnTensor *t = qn_onnx_tensor(n, dtype, &from->type.shape);
    if (!t)
        return QN_ENOMEM;
    size_t size = qn_dtype_bytes(dtype);
    for (int64_t i = 0, count = qn_shape_count(&t->type.shape); i < count; i++) {
        QnText s = from->text[i];
        if (s.n < sizeof number) {
            if (s.n)
                memcpy(number, s.s, s.n);
            number[s.n] = '\0';
        }
        if (s.n >= sizeof number || !read_number(dtype, number, (char *)t->data + (size_t)i * size))
            return qn_fail(QN_EFORMAT, "element %lld, \"%.*s\", is no number", (long long)i,
                           (int)QN_MIN(s.n, 40), s.s);
    }
    return qn_onnx_out_known(n, 0, t);
}

QnStatus qn_onnx_cast_text(QnOnnxNode *n, bool to_text, QnDtype dtype)
{
    QN_ONNX_NEED(n, 0);
    const QnTensor *from = n->in[0]->known;
    if (to_text && from->text)
        return qn_onnx_out_item(n, 0, n->in[0]);
    return to_text ? print_all(n, from) : read_all(n, from, dtype);
}

/* ---- comparison ------------------------------------------------------------------------------ */

QnStatus qn_onnx_equal_text(QnOnnxNode *n)
{
    QN_ONNX_NEED(n, 0);
    QN_ONNX_NEED(n, 1);
    const QnTensor *a = n->in[0]->known, *b = n->in[1]->known;
    QnShape s;
    if (!a->text || !b->text)
        return qn_fail(QN_EDTYPE, "compares strings with numbers");
    QN_TRY(qn_onnx_broadcast(&a->type.shape, &b->type.shape, &s));
    QnTensor *t = qn_onnx_tensor(n, QN_DTYPE_BOOL, &s);
    if (!t)
        return QN_ENOMEM;
    int64_t at[QN_MAX_RANK] = { 0 }, to_a[QN_MAX_RANK], to_b[QN_MAX_RANK];
    qn_util_spread_strides(&a->type.shape, s.rank, to_a);
    qn_util_spread_strides(&b->type.shape, s.rank, to_b);
    for (int64_t i = 0, count = qn_shape_count(&s); i < count; i++) {
        QnText x = a->text[qn_util_offset(s.rank, at, to_a)];
        QnText y = b->text[qn_util_offset(s.rank, at, to_b)];
        ((bool *)t->data)[i] = x.n == y.n && (x.n == 0 || !memcmp(x.s, y.s, x.n));
        qn_util_next(&s, at);
    }
    return qn_onnx_out_known(n, 0, t);
}
