/* Truths that come with probability p; see ops/draw.h for the key. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_KERNEL bernoulli_block(QN_GLOBAL unsigned char *y, QN_GLOBAL const qn_long *key, qn_long count,
                          qn_long n_key, qn_long stream, qn_long threshold)
{
    qn_uint word[4];
    qn_long i = qn_item() * 4;
    if (i >= count)
        return;
    qn_philox(key, n_key, stream, (qn_ulong)(i / 4), word);
    for (int k = 0; k < 4 && i + k < count; k++)
        y[i + k] = (qn_long)word[k] < threshold;
}
#endif

#ifdef QN_HOST
#include "ops/draw.h"

typedef struct Attr {
    QnDims dims;
    double p;
    int64_t stream;
} Attr;

static const QnAttrField bernoulli_fields[] = {
    { .name = "dims", .kind = QN_ATTR_DIMS, .offset = offsetof(Attr, dims), .doc = "shape" },
    { .name = "p",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, p),
      .def = 0.5,
      .max = 1,
      .doc = "probability of true" },
    QN_DRAW_STREAM(Attr),
};

static QnStatus bernoulli_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    QN_TRY(qn_draw_check_key("bernoulli", c->in[0]));
    c->out[0].dtype = QN_DTYPE_BOOL;
    c->out[0].shape = qn_shape_make(a->dims.n, a->dims.d);
    return QN_OK;
}

static QnCost bernoulli_cost(const QnNode *n)
{
    return (QnCost){ .flops = 20 * (double)qn_shape_count(&n->out[0].type.shape),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static QnStatus bernoulli_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    QnDraw d = qn_draw_from(a->in_type[0], a->in[0], attr->stream);
    for (int64_t i = 0, n = qn_shape_count(&a->out_type[0]->shape); i < n; i++)
        a->out[0][i] = qn_draw_word(&d, i) < qn_draw_threshold(attr->p);
    return QN_OK;
}

static QnStatus bernoulli_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    qn_draw_call("bernoulli_block", qn_shape_count(&n->out[0].type.shape), &n->in[0]->type,
                 a->stream, c);
    qn_device_int(c, (int64_t)qn_draw_threshold(a->p));
    return QN_OK;
}

static const QnSample bernoulli_samples[] = {
    { .in = { { 0, { 0 }, QN_DTYPE_I64, 0, 1000 } },
      .n_in = 1,
      .attr = &(Attr){ { 1, { 130 } }, 0.3, 0 },
      .flags = QN_SAMPLE_NO_GRAD },
    { .in = { { 1, { 2 }, QN_DTYPE_I64, 0, 1000 } },
      .n_in = 1,
      .attr = &(Attr){ { 2, { 3, 5 } }, 1, 7 },
      .flags = QN_SAMPLE_NO_GRAD },
};

QN_API QnValue *qn_bernoulli(QnGraph *g, QnValue *key, const QnShape *shape, double p)
{
    Attr a = { { shape->rank, { 0 } }, p, g->next_stream++ };
    memcpy(a.dims.d, shape->dim, sizeof a.dims.d);
    return qn_emit1(g, &qn_op_bernoulli, &a, key);
}

const QnOp qn_op_bernoulli = {
    .name = "bernoulli",
    .version = 1,
    .doc = "random truths",
    .n_in = 1,
    .traits = QN_RANDOM | QN_NO_GRAD | QN_NO_FOLD,
    QN_ATTRS(Attr, bernoulli_fields),
    .infer = bernoulli_infer,
    .cost = bernoulli_cost,
    .ref = bernoulli_ref,
    .device = QN_TEXT(bernoulli),
    .call = bernoulli_call,
    QN_SAMPLES(bernoulli_samples),
};
#endif
