/* y = x / (1 - p) where kept, 0 where dropped, which happens with probability p (Srivastava et al.
 * 2014); the mask (bool) is the second output. See ops/draw.h for the key. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_KERNEL dropout_block(QN_GLOBAL QN_T *y, QN_GLOBAL unsigned char *mask, QN_GLOBAL const QN_T *x,
                        QN_GLOBAL const qn_long *key, qn_long count, qn_long n_key, qn_long stream,
                        qn_long threshold, float scale)
{
    qn_uint word[4];
    qn_long i = qn_item() * 4;
    if (i >= count)
        return;
    qn_philox(key, n_key, stream, (qn_ulong)(i / 4), word);
    for (int k = 0; k < 4 && i + k < count; k++) {
        int keep = (qn_long)word[k] >= threshold;
        qn_store(y, i + k, keep ? qn_load(x, i + k) * scale : 0.0f);
        mask[i + k] = (unsigned char)keep;
    }
}
#endif

#ifdef QN_HOST
#include "ops/draw.h"
#include "ops/onnx.h"

typedef struct Attr {
    double p;
    int64_t stream;
} Attr;

static const QnAttrField dropout_fields[] = {
    { .name = "p",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, p),
      .def = 0.5,
      .max = 1,
      .doc = "probability of dropping an element" },
    QN_DRAW_STREAM(Attr),
};

static double scale_of(const Attr *a)
{
    return a->p < 1 ? 1 / (1 - a->p) : 0;
}

static QnStatus dropout_infer(QnInfer *c)
{
    QN_TRY(qn_draw_check_key("dropout", c->in[1]));
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "dropout: needs a floating-point operand, not %s",
                       qn_dtype_name(c->in[0]->dtype));
    c->out[0] = c->out[1] = *c->in[0];
    c->out[1].dtype = QN_DTYPE_BOOL;
    return QN_OK;
}

static QnCost dropout_cost(const QnNode *n)
{
    double bytes = (double)qn_type_bytes(&n->in[0]->type);
    return (QnCost){ .flops = 20 * (double)qn_shape_count(&n->in[0]->type.shape),
                     .bytes_read = bytes + (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = bytes + (double)qn_type_bytes(&n->out[1].type) };
}

static QnStatus dropout_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    QnDraw d = qn_draw_from(a->in_type[1], a->in[1], attr->stream);
    for (int64_t i = 0, n = qn_shape_count(&a->in_type[0]->shape); i < n; i++) {
        bool keep = qn_draw_word(&d, i) >= qn_draw_threshold(attr->p);
        a->out[0][i] = keep ? a->in[0][i] * scale_of(attr) : 0;
        a->out[1][i] = keep;
    }
    return QN_OK;
}

static void dropout_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    if (!dy[0])
        return;
    QnValue *scaled = qn_mul(g, dy[0], qn_scalar_like(g, dy[0], scale_of(n->attr)));
    dx[0] = qn_where(g, &n->out[1], scaled, qn_scalar_like(g, dy[0], 0));
}

static QnStatus dropout_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    qn_draw_call("dropout_block", qn_shape_count(&n->out[0].type.shape), &n->in[1]->type, a->stream,
                 c);
    qn_device_int(c, (int64_t)qn_draw_threshold(a->p));
    qn_device_float(c, scale_of(a));
    return QN_OK;
}

static const QnSample dropout_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 0, { 0 }, QN_DTYPE_I64, 0, 1000 } }, .n_in = 2 },
    { .in = { { 3, { 2, 13, 10 } }, { 1, { 2 }, QN_DTYPE_I64, 0, 1000 } },
      .n_in = 2,
      .attr = &(Attr){ 0.1, 5 } },
    { .in = { { 1, { 130 } }, { 0, { 0 }, QN_DTYPE_I64, 0, 1000 } },
      .n_in = 2,
      .attr = &(Attr){ 0.9, 1 } },
};

/* key: i64 step, or (step, seed). With p = 0 it is x itself. */
QN_API QnValue *qn_dropout(QnGraph *g, QnValue *x, QnValue *key, double p)
{
    return p == 0 ? x : qn_emit2(g, &qn_op_dropout, &(Attr){ p, g->next_stream++ }, x, key);
}

/* Whether it drops, and how much: opset 12 made ratio and training_mode inputs. */
static QnStatus dropout_read(QnOnnxNode *n, bool *train, double *ratio)
{
    double mode;
    *ratio = qn_onnx_float(n, "ratio", 0.5);
    *train = n->training || (n->opset < 7 && !qn_onnx_int(n, "is_test", 0));
    if (qn_onnx_has(n, 2)) {
        QN_TRY(qn_onnx_in_double(n, 2, &mode));
        *train |= mode != 0;
    }
    if (*train && n->opset >= 12 && qn_onnx_has(n, 1))
        QN_TRY(qn_onnx_in_double(n, 1, ratio));
    *train &= *ratio > 0 && !n->inference;
    return *ratio >= 0 && *ratio <= 1
               ? QN_OK
               : qn_fail(QN_EFORMAT, "the ratio is %g; it must be in 0..1", *ratio);
}

/* A training graph draws by its key; a file that is only run, by the node's seed. */
static QnStatus dropout_import(QnOnnxNode *n)
{
    const QnType *t = qn_onnx_type(n, 0);
    bool train, has_mask = n->n_out > 1 && n->out_used[1];
    double ratio;
    if (!t)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor of numbers");
    QnDtype mask = n->opset < 10 ? t->dtype : QN_DTYPE_BOOL;
    QN_TRY(dropout_read(n, &train, &ratio));
    if (train) {
        int64_t seed[2] = { 0, qn_onnx_int(n, "seed", 0) };
        QnValue *key =
            n->training ? qn_onnx_key(n) : qn_constant(n->g, QN_DTYPE_I64, &QN_SHAPE(2), seed);
        QnValue *y = qn_dropout(n->g, qn_onnx_in(n, 0), key, ratio);
        QN_TRY(qn_onnx_out0(n, y));
        return has_mask ? qn_onnx_out(n, 1, qn_cast(n->g, &y->node->out[1], mask)) : QN_OK;
    }
    QN_TRY(qn_onnx_out_item(n, 0, n->in[0]));
    if (!has_mask)
        return QN_OK;
    QnValue *all = qn_full(n->g, 1, QN_DTYPE_F32, &t->shape);
    return qn_onnx_out(n, 1, qn_cast(n->g, all, mask));
}

static const QnOnnxMap dropout_onnx[] = {
    { .name = "Dropout", .since = 1, .import = dropout_import },
};

const QnOp qn_op_dropout = {
    .name = "dropout",
    .version = 1,
    .doc = "random elements dropped, the others scaled up",
    .n_in = 2,
    .n_out = 2,
    .traits = QN_RANDOM | QN_NO_FOLD,
    QN_ATTRS(Attr, dropout_fields),
    .infer = dropout_infer,
    .cost = dropout_cost,
    .ref = dropout_ref,
    .grad = dropout_grad,
    .inplace = 1,
    .device = QN_TEXT(dropout),
    .call = dropout_call,
    QN_ONNX(dropout_onnx),
    QN_SAMPLES(dropout_samples),
};
#endif
