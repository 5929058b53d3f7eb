/* Numbers in [low, high), each from 24 bits of its word; see ops/draw.h for the key. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_KERNEL random_uniform_block(QN_GLOBAL QN_T *y, QN_GLOBAL const qn_long *key, qn_long count,
                               qn_long n_key, qn_long stream, float low, float high)
{
    qn_uint word[4];
    qn_long i = qn_item() * 4;
    if (i >= count)
        return;
    qn_philox(key, n_key, stream, (qn_ulong)(i / 4), word);
    for (int k = 0; k < 4 && i + k < count; k++)
        qn_store(y, i + k, low + (high - low) * ((float)(word[k] >> 8) * 5.9604645e-8f));
}
#endif

#ifdef QN_HOST
#include "ops/draw.h"

typedef struct Attr {
    QnDims dims;
    QnDtype dtype;
    int64_t stream;
    double low, high;
} Attr;

static const QnAttrField random_uniform_fields[] = {
    { .name = "dims", .kind = QN_ATTR_DIMS, .offset = offsetof(Attr, dims), .doc = "shape" },
    { .name = "dtype",
      .kind = QN_ATTR_DTYPE,
      .offset = offsetof(Attr, dtype),
      .doc = "element type, a float" },
    QN_DRAW_STREAM(Attr),
    { .name = "low", .kind = QN_ATTR_FLOAT, .offset = offsetof(Attr, low), .doc = "least value" },
    { .name = "high",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, high),
      .def = 1,
      .doc = "bound above" },
};

static QnStatus random_uniform_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    QN_TRY(qn_draw_check_key("random_uniform", c->in[0]));
    if (!qn_dtype_is_float(a->dtype))
        return qn_fail(QN_EDTYPE, "random_uniform: dtype %s; a floating-point type is needed",
                       qn_dtype_name(a->dtype));
    c->out[0].dtype = a->dtype;
    c->out[0].shape = qn_shape_make(a->dims.n, a->dims.d);
    return QN_OK;
}

static QnCost random_uniform_cost(const QnNode *n)
{
    return (QnCost){ .flops = 25 * (double)qn_shape_count(&n->out[0].type.shape),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static QnStatus random_uniform_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    QnDraw d = qn_draw_from(a->in_type[0], a->in[0], attr->stream);
    for (int64_t i = 0, n = qn_shape_count(&a->out_type[0]->shape); i < n; i++) {
        double u = qn_rng_to_uniform(qn_draw_word(&d, i));
        a->out[0][i] = attr->low + (attr->high - attr->low) * u;
    }
    return QN_OK;
}

static QnStatus random_uniform_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    qn_draw_call("random_uniform_block", qn_shape_count(&n->out[0].type.shape), &n->in[0]->type,
                 a->stream, c);
    qn_device_float(c, a->low);
    qn_device_float(c, a->high);
    return QN_OK;
}

static const QnSample random_uniform_samples[] = {
    { .in = { { 0, { 0 }, QN_DTYPE_I64, 0, 1000 } },
      .n_in = 1,
      .attr = &(Attr){ { 1, { 130 } }, QN_DTYPE_F32, 0, 0, 1 },
      .flags = QN_SAMPLE_NO_GRAD },
    { .in = { { 1, { 2 }, QN_DTYPE_I64, 0, 1000 } },
      .n_in = 1,
      .attr = &(Attr){ { 2, { 3, 5 } }, QN_DTYPE_F32, 7, -2, 0.5 },
      .flags = QN_SAMPLE_NO_GRAD },
};

QN_API QnValue *qn_random_uniform(QnGraph *g, QnValue *key, const QnShape *shape, QnDtype dtype,
                                  double low, double high)
{
    Attr a = { { shape->rank, { 0 } }, dtype, g->next_stream++, low, high };
    memcpy(a.dims.d, shape->dim, sizeof a.dims.d);
    return qn_emit1(g, &qn_op_random_uniform, &a, key);
}

const QnOp qn_op_random_uniform = {
    .name = "random_uniform",
    .version = 1,
    .doc = "uniform random numbers",
    .n_in = 1,
    .traits = QN_RANDOM | QN_NO_GRAD | QN_NO_FOLD,
    QN_ATTRS(Attr, random_uniform_fields),
    .infer = random_uniform_infer,
    .cost = random_uniform_cost,
    .ref = random_uniform_ref,
    .device = QN_TEXT(random_uniform),
    .call = random_uniform_call,
    QN_SAMPLES(random_uniform_samples),
};
#endif
