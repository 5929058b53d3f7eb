/* The triangle of the last two axes: upper keeps elements with column - row >= k, lower those with
 * column - row <= k; the others become 0. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_KERNEL trilu_copy(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, qn_long count, qn_long rows,
                     qn_long columns, qn_long upper, qn_long k)
{
    qn_long i = qn_item();
    if (i >= count)
        return;
    qn_long d = i % columns - i / columns % rows;
    qn_store(y, i, (upper ? d >= k : d <= k) ? qn_load(x, i) : 0.0f);
}
#endif

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/onnx_put.h"
#include "ops/util.h"

typedef struct Attr {
    bool upper;
    int64_t k;
} Attr;

static const QnAttrField trilu_fields[] = {
    { .name = "upper",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, upper),
      .def = 1,
      .doc = "the upper triangle, not the lower one" },
    { .name = "k",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, k),
      .doc = "diagonal that bounds it; 0: the main one, positive: above" },
};

static QnStatus trilu_infer(QnInfer *c)
{
    if (c->in[0]->shape.rank < 2)
        return qn_fail(QN_ESHAPE, "trilu: rank %d; a matrix or a stack of them is needed",
                       c->in[0]->shape.rank);
    c->out[0] = *c->in[0];
    return QN_OK;
}

static QnStatus trilu_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    const QnShape *s = &a->in_type[0]->shape;
    int64_t rows = s->dim[s->rank - 2], columns = s->dim[s->rank - 1];
    for (int64_t i = 0, n = qn_shape_count(s); i < n; i++) {
        int64_t d = i % columns - i / columns % rows;
        a->out[0][i] = (attr->upper ? d >= attr->k : d <= attr->k) ? a->in[0][i] : 0;
    }
    return QN_OK;
}

static void trilu_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_emit1(g, &qn_op_trilu, n->attr, dy[0]);
}

static QnStatus trilu_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    const QnShape *s = &n->in[0]->type.shape;
    if (!qn_dtype_is_float(n->in[0]->type.dtype))
        return qn_fail(QN_EUNSUPPORTED, "trilu: the device text is for floating point");
    *c = (QnDeviceCall){ .kernel = "trilu_copy", .n_groups = qn_shape_count(s) };
    qn_device_int(c, c->n_groups);
    qn_device_int(c, s->dim[s->rank - 2]);
    qn_device_int(c, s->dim[s->rank - 1]);
    qn_device_int(c, a->upper);
    qn_device_int(c, a->k);
    return QN_OK;
}

static const QnSample trilu_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .attr = &(Attr){ true, 1 } },
    { .in = { { 3, { 2, 13, 10 } } }, .n_in = 1, .attr = &(Attr){ false, -2 } },
    { .in = { { 2, { 5, 5 } } }, .n_in = 1, .attr = &(Attr){ false, 0 } },
};

QN_API QnValue *qn_triu(QnGraph *g, QnValue *x, int64_t k)
{
    return qn_emit1(g, &qn_op_trilu, &(Attr){ true, k }, x);
}

QN_API QnValue *qn_tril(QnGraph *g, QnValue *x, int64_t k)
{
    return qn_emit1(g, &qn_op_trilu, &(Attr){ false, k }, x);
}

static QnStatus trilu_import(QnOnnxNode *n)
{
    int64_t k = 0;
    if (qn_onnx_has(n, 1))
        QN_TRY(qn_onnx_in_int(n, 1, &k));
    QnValue *x = qn_onnx_in(n, 0);
    return qn_onnx_out0(n, qn_onnx_int(n, "upper", 1) ? qn_triu(n->g, x, k) : qn_tril(n->g, x, k));
}

static const QnOnnxMap trilu_onnx[] = { { .name = "Trilu", .since = 14, .import = trilu_import } };

static QnStatus trilu_put(QnOnnxPut *p, const QnNode *n)
{
    const Attr *a = n->attr;
    const char *in[] = { qn_put_value(p, n->in[0]), qn_put_int(p, a->k) };
    qn_put_attr_int(p, qn_put_as(p, &n->out[0], "Trilu", in, 2), "upper", a->upper);
    return qn_put_status(p);
}

const QnOp qn_op_trilu = {
    .name = "trilu",
    .version = 1,
    .doc = "upper or lower triangle of matrices",
    .n_in = 1,
    .traits = QN_MOVES_DATA,
    QN_ATTRS(Attr, trilu_fields),
    .infer = trilu_infer,
    .ref = trilu_ref,
    .grad = trilu_grad,
    .inplace = 1,
    .device = QN_TEXT(trilu),
    .call = trilu_call,
    .onnx_put = trilu_put,
    .onnx_writes = "Trilu",
    QN_ONNX(trilu_onnx),
    QN_SAMPLES(trilu_samples),
};
#endif
