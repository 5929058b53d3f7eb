/* Normal numbers by the transform of Box and Muller, two from two words; see ops/draw.h for the
 * key. Devices differ from the host by the rounding of f32. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_KERNEL random_normal_block(QN_GLOBAL QN_T *y, QN_GLOBAL const qn_long *key, qn_long count,
                              qn_long n_key, qn_long stream, float mean, float deviation)
{
    qn_uint word[4];
    float z[4];
    qn_long i = qn_item() * 4;
    if (i >= count)
        return;
    qn_philox(key, n_key, stream, (qn_ulong)(i / 4), word);
    for (int k = 0; k < 4; k += 2) {
        /* log of (word + 0.5) / 2^32; near 1 from the distance to 1, which f32 can hold */
        float near = ((float)(0xffffffffu - word[k]) + 0.5f) * 2.3283064e-10f;
        float far = ((float)word[k] + 0.5f) * 2.3283064e-10f;
        float l = word[k] >= 0x80000000u ? qn_log1pf(-near) : qn_logf(far);
        float r = qn_sqrtf(-2.0f * l), angle = 6.2831853f * ((float)word[k + 1] * 2.3283064e-10f);
        z[k] = r * qn_cosf(angle);
        z[k + 1] = r * qn_sinf(angle);
    }
    for (int k = 0; k < 4 && i + k < count; k++)
        qn_store(y, i + k, mean + deviation * z[k]);
}
#endif

#ifdef QN_HOST
#include "ops/draw.h"

typedef struct Attr {
    QnDims dims;
    QnDtype dtype;
    int64_t stream;
    double mean, deviation;
} Attr;

static const QnAttrField random_normal_fields[] = {
    { .name = "dims", .kind = QN_ATTR_DIMS, .offset = offsetof(Attr, dims), .doc = "shape" },
    { .name = "dtype",
      .kind = QN_ATTR_DTYPE,
      .offset = offsetof(Attr, dtype),
      .doc = "element type, a float" },
    QN_DRAW_STREAM(Attr),
    { .name = "mean", .kind = QN_ATTR_FLOAT, .offset = offsetof(Attr, mean), .doc = "mean" },
    { .name = "deviation",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, deviation),
      .def = 1,
      .doc = "standard deviation" },
};

static QnStatus random_normal_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    QN_TRY(qn_draw_check_key("random_normal", c->in[0]));
    if (!qn_dtype_is_float(a->dtype))
        return qn_fail(QN_EDTYPE, "random_normal: dtype %s; a floating-point type is needed",
                       qn_dtype_name(a->dtype));
    c->out[0].dtype = a->dtype;
    c->out[0].shape = qn_shape_make(a->dims.n, a->dims.d);
    return QN_OK;
}

static QnCost random_normal_cost(const QnNode *n)
{
    return (QnCost){ .flops = 60 * (double)qn_shape_count(&n->out[0].type.shape),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static QnStatus random_normal_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    QnDraw d = qn_draw_from(a->in_type[0], a->in[0], attr->stream);
    for (int64_t i = 0, n = qn_shape_count(&a->out_type[0]->shape); i < n; i++) {
        float pair[2];
        int64_t even = i & ~INT64_C(1);
        qn_rng_to_normal(qn_draw_word(&d, even), qn_draw_word(&d, even + 1), pair);
        a->out[0][i] = attr->mean + attr->deviation * (double)pair[i & 1];
    }
    return QN_OK;
}

static QnStatus random_normal_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    qn_draw_call("random_normal_block", qn_shape_count(&n->out[0].type.shape), &n->in[0]->type,
                 a->stream, c);
    qn_device_float(c, a->mean);
    qn_device_float(c, a->deviation);
    return QN_OK;
}

static const QnSample random_normal_samples[] = {
    { .in = { { 0, { 0 }, QN_DTYPE_I64, 0, 1000 } },
      .n_in = 1,
      .attr = &(Attr){ { 1, { 130 } }, QN_DTYPE_F32, 0, 0, 1 },
      .flags = QN_SAMPLE_NO_GRAD },
    { .in = { { 1, { 2 }, QN_DTYPE_I64, 0, 1000 } },
      .n_in = 1,
      .attr = &(Attr){ { 2, { 3, 5 } }, QN_DTYPE_F32, 7, -2, 0.5 },
      .flags = QN_SAMPLE_NO_GRAD },
};

QN_API QnValue *qn_random_normal(QnGraph *g, QnValue *key, const QnShape *shape, QnDtype dtype,
                                 double mean, double deviation)
{
    Attr a = { { shape->rank, { 0 } }, dtype, g->next_stream++, mean, deviation };
    memcpy(a.dims.d, shape->dim, sizeof a.dims.d);
    return qn_emit1(g, &qn_op_random_normal, &a, key);
}

const QnOp qn_op_random_normal = {
    .name = "random_normal",
    .version = 1,
    .doc = "normal random numbers",
    .n_in = 1,
    .traits = QN_RANDOM | QN_NO_GRAD | QN_NO_FOLD,
    QN_ATTRS(Attr, random_normal_fields),
    .infer = random_normal_infer,
    .cost = random_normal_cost,
    .ref = random_normal_ref,
    .device = QN_TEXT(random_normal),
    .call = random_normal_call,
    QN_SAMPLES(random_normal_samples),
};
#endif
