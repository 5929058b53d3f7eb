/* y = x in f16 or bf16, rounded to one of its two neighbours by chance: up with a probability of
 * the share of the way up, so that the mean over many draws is x (Gupta et al. 2015). What f16
 * cannot hold becomes infinite. See ops/draw.h for the key. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* Adds a part of a unit in the last place that stays, and cuts. */
QN_SCALAR float qn_cast_random(float x, qn_uint word, int is_f16)
{
    qn_uint u = qn_bits(x), sign = u & 0x80000000u, a = u & 0x7fffffffu;
    if (a >= 0x7f800000u)
        return x;
    if (!is_f16)
        return qn_from_bits((u + (word & 0xffffu)) & 0xffff0000u);
    if (a < 0x38800000u) { /* multiples of 2^-24 */
        float q = qn_from_bits(a) * 16777216.0f, whole = qn_floorf(q);
        int up = (float)(word >> 8) < (q - whole) * 16777216.0f;
        float y = (whole + (float)up) * 5.9604644775390625e-8f;
        return sign ? -y : y;
    }
    return qn_from_bits((u + (word & 0x1fffu)) & 0xffffe000u);
}

QN_KERNEL cast_random_bf16(QN_GLOBAL qn_bf16 *y, QN_GLOBAL const float *x,
                           QN_GLOBAL const qn_long *key, qn_long count, qn_long n_key,
                           qn_long stream)
{
    qn_uint word[4];
    qn_long i = qn_item() * 4;
    if (i >= count)
        return;
    qn_philox(key, n_key, stream, (qn_ulong)(i / 4), word);
    for (int k = 0; k < 4 && i + k < count; k++)
        qn_store_bf16(y, i + k, qn_cast_random(x[i + k], word[k], 0));
}

QN_KERNEL cast_random_f16(QN_GLOBAL qn_f16 *y, QN_GLOBAL const float *x,
                          QN_GLOBAL const qn_long *key, qn_long count, qn_long n_key,
                          qn_long stream)
{
    qn_uint word[4];
    qn_long i = qn_item() * 4;
    if (i >= count)
        return;
    qn_philox(key, n_key, stream, (qn_ulong)(i / 4), word);
    for (int k = 0; k < 4 && i + k < count; k++)
        qn_store_f16(y, i + k, qn_cast_random(x[i + k], word[k], 1));
}
#endif

#ifdef QN_HOST
#include "ops/draw.h"
#include "ops/round_random.h"

typedef struct Attr {
    QnDtype dtype;
    int64_t stream;
} Attr;

static const QnAttrField cast_random_fields[] = {
    { .name = "dtype",
      .kind = QN_ATTR_DTYPE,
      .offset = offsetof(Attr, dtype),
      .def = QN_DTYPE_BF16,
      .doc = "of y: bf16 or f16" },
    QN_DRAW_STREAM(Attr),
};

static QnStatus cast_random_infer(QnInfer *c)
{
    QnDtype to = ((const Attr *)c->attr)->dtype;
    QN_TRY(qn_draw_check_key("cast_random", c->in[1]));
    if (c->in[0]->dtype != QN_DTYPE_F32 || (to != QN_DTYPE_F16 && to != QN_DTYPE_BF16))
        return qn_fail(QN_EDTYPE, "cast_random: from f32 to f16 or bf16, not from %s to %s",
                       qn_dtype_name(c->in[0]->dtype), qn_dtype_name(to));
    c->out[0].dtype = to;
    c->out[0].shape = c->in[0]->shape;
    return QN_OK;
}

static QnCost cast_random_cost(const QnNode *n)
{
    return (QnCost){ .flops = 20 * (double)qn_shape_count(&n->out[0].type.shape),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type) +
                                   (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static QnStatus cast_random_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    QnDraw d = qn_draw_from(a->in_type[1], a->in[1], attr->stream);
    for (int64_t i = 0, n = qn_shape_count(&a->in_type[0]->shape); i < n; i++)
        a->out[0][i] =
            qn_round_random((float)a->in[0][i], qn_draw_word(&d, i), attr->dtype == QN_DTYPE_F16);
    return QN_OK;
}

/* In the mean it is the identity. */
static void cast_random_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_cast(g, dy[0], n->in[0]->type.dtype);
}

static QnStatus cast_random_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    qn_draw_call(a->dtype == QN_DTYPE_F16 ? "cast_random_f16" : "cast_random_bf16",
                 qn_shape_count(&n->out[0].type.shape), &n->in[1]->type, a->stream, c);
    return QN_OK;
}

static const QnSample cast_random_samples[] = {
    { .in = { { 2, { 13, 10 } }, { 1, { 2 }, QN_DTYPE_I64, 0, 1000 } },
      .n_in = 2,
      .attr = &(Attr){ QN_DTYPE_BF16, 3 },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY }, /* steps */
    { .in = { { 1, { 131 } }, { 0, { 0 }, QN_DTYPE_I64, 0, 1000 } },
      .n_in = 2,
      .attr = &(Attr){ QN_DTYPE_F16, 0 },
      .lo = -1e-4,
      .hi = 1e-4,
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
};

/* dtype: bf16 or f16; key: i64 step, or (step, seed). */
QN_API QnValue *qn_cast_random(QnGraph *g, QnValue *x, QnValue *key, QnDtype dtype)
{
    return qn_emit2(g, &qn_op_cast_random, &(Attr){ dtype, g->next_stream++ }, x, key);
}

const QnOp qn_op_cast_random = {
    .name = "cast_random",
    .version = 1,
    .doc = "f32 rounded up or down to 16 bits by chance, right in the mean",
    .n_in = 2,
    .traits = QN_RANDOM | QN_NO_FOLD,
    QN_ATTRS(Attr, cast_random_fields),
    .infer = cast_random_infer,
    .cost = cast_random_cost,
    .ref = cast_random_ref,
    .grad = cast_random_grad,
    .device = QN_TEXT(cast_random),
    .call = cast_random_call,
    QN_SAMPLES(cast_random_samples),
};
#endif
