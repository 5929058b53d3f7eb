/* Random numbers. Ours are functions of a key (step, seed): the seed is the node's attribute, or
 * made from its name, so that runs repeat; the step tells rounds of a loop apart that are not one
 * graph. */
#include "base/hash.h"
#include "onnx/mapping.h"
#include "ops/ops.h"

#include <string.h>

static QnValue *key_of(QnOnnxNode *n)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, "seed");
    int64_t key[2] = { n->epoch, 0 };
    if (n->training)
        return qn_onnx_key(n);
    uint32_t bits = (uint32_t)qn_hash_str(n->name);
    if (a && a->kind == QN_ONNX_FLOAT)
        memcpy(&bits, &a->f, sizeof bits);
    key[1] = bits;
    return qn_constant(n->g, QN_DTYPE_I64, &QN_SHAPE(2), key);
}

/* Of the attribute "dtype"; `dtype` where it is left out. */
static QnStatus result_dtype(const QnOnnxNode *n, QnDtype *dtype)
{
    int64_t number = qn_onnx_int(n, "dtype", 0);
    if (number && !qn_onnx_dtype(number, dtype))
        return qn_onnx_refuse(n, "dtype %lld", (long long)number);
    return QN_OK;
}

static QnStatus drawn_type(QnOnnxNode *n, QnType *out)
{
    QnInts shape;
    const QnType *like = n->n_in ? qn_onnx_type(n, 0) : NULL;
    *out = (QnType){ .dtype = QN_DTYPE_F32 };
    if (n->n_in) {
        if (!like)
            return qn_fail(QN_EDTYPE, "input 0 must be a tensor of numbers");
        *out = (QnType){ .dtype = like->dtype, .shape = like->shape };
    } else {
        if (!qn_onnx_ints(n, "shape", &shape) || shape.n > QN_MAX_RANK)
            return qn_fail(QN_EFORMAT, "attribute 'shape' must give at most %d lengths",
                           QN_MAX_RANK);
        out->shape.rank = shape.n;
        for (int i = 0; i < shape.n; i++) {
            if (shape.v[i] < 0)
                return qn_fail(QN_EFORMAT, "attribute 'shape' holds %lld", (long long)shape.v[i]);
            out->shape.dim[i] = shape.v[i];
        }
    }
    QN_TRY(result_dtype(n, &out->dtype));
    if (!qn_dtype_is_float(out->dtype))
        return qn_onnx_refuse(n, "random %s; floats are drawn", qn_dtype_name(out->dtype));
    return QN_OK;
}

static QnStatus import_normal(QnOnnxNode *n)
{
    QnType t;
    QN_TRY(drawn_type(n, &t));
    return qn_onnx_out0(n, qn_random_normal(n->g, key_of(n), &t.shape, t.dtype,
                                            qn_onnx_float(n, "mean", 0),
                                            qn_onnx_float(n, "scale", 1)));
}

static QnStatus import_uniform(QnOnnxNode *n)
{
    QnType t;
    QN_TRY(drawn_type(n, &t));
    return qn_onnx_out0(n,
                        qn_random_uniform(n->g, key_of(n), &t.shape, t.dtype,
                                          qn_onnx_float(n, "low", 0), qn_onnx_float(n, "high", 1)));
}

/* Each element has its own probability of 1. */
static QnStatus import_bernoulli(QnOnnxNode *n)
{
    const QnType *t = qn_onnx_type(n, 0);
    if (!t || !qn_dtype_is_float(t->dtype))
        return qn_fail(QN_EDTYPE, "input 0, the probabilities, must be a tensor of floats");
    QnDtype to = t->dtype;
    QnShape shape = t->shape;
    QN_TRY(result_dtype(n, &to));
    QnValue *u = qn_random_uniform(n->g, key_of(n), &shape, QN_DTYPE_F32, 0, 1);
    QnValue *p = qn_cast(n->g, qn_onnx_in(n, 0), QN_DTYPE_F32);
    return qn_onnx_out0(n, qn_cast(n->g, qn_less(n->g, u, p), to));
}

static QnStatus import_multinomial(QnOnnxNode *n)
{
    QnDtype to = QN_DTYPE_I32;
    QN_TRY(result_dtype(n, &to));
    return qn_onnx_out0(
        n, qn_multinomial(n->g, qn_onnx_in(n, 0), key_of(n), qn_onnx_int(n, "sample_size", 1), to));
}

const QnOnnxMap qn_onnx_random[] = {
    { "RandomNormal", NULL, 1, 0, import_normal, NULL },
    { "RandomNormalLike", NULL, 1, 0, import_normal, NULL },
    { "RandomUniform", NULL, 1, 0, import_uniform, NULL },
    { "RandomUniformLike", NULL, 1, 0, import_uniform, NULL },
    { "Bernoulli", NULL, 15, 0, import_bernoulli, NULL },
    { "Multinomial", NULL, 7, 0, import_multinomial, NULL },
    { 0 },
};
