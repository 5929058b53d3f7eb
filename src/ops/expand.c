/* Repeats axes of length 1, and adds leading ones, up to a shape (numpy broadcasting). */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_KERNEL expand_copy(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, qn_long count, QN_ARG8(d),
                      QN_ARG8(s))
{
    qn_long i = qn_item();
    if (i < count)
        qn_store(y, i, qn_load(x, qn_strided(i, QN_PASS8(d), QN_PASS8(s))));
}
#endif

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/onnx_put.h"
#include "ops/region.h"

typedef struct Attr {
    QnDims dims;
} Attr;

static const QnAttrField expand_fields[] = {
    { .name = "dims", .kind = QN_ATTR_DIMS, .offset = offsetof(Attr, dims), .doc = "new shape" },
};

static QnStatus expand_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    const QnShape *s = &c->in[0]->shape;
    QnShape to = qn_shape_make(a->dims.n, a->dims.d);
    bool fits = s->rank <= to.rank;
    for (int k = 1; fits && k <= s->rank; k++) {
        QnDim from = s->dim[s->rank - k];
        fits = from == 1 || from == to.dim[to.rank - k];
    }
    if (!fits) {
        char x[QN_TYPE_TEXT_BYTES], y[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "expand: %s does not broadcast to %s", qn_shape_text(s, x),
                       qn_shape_text(&to, y));
    }
    c->out[0].dtype = c->in[0]->dtype;
    c->out[0].shape = to;
    return QN_OK;
}

/* Strides of x along the axes of y. */
static void strides_of(const QnShape *s, const QnShape *to, int64_t stride[QN_MAX_RANK])
{
    int64_t tight[QN_MAX_RANK];
    qn_shape_strides(s, tight);
    for (int i = 0; i < to->rank; i++)
        stride[i] = 0;
    for (int i = 0; i < s->rank; i++)
        stride[to->rank - s->rank + i] = s->dim[i] == 1 ? 0 : tight[i];
}

static QnStatus expand_ref(const QnRefArgs *a)
{
    const QnShape *s = &a->in_type[0]->shape, *to = &a->out_type[0]->shape;
    int64_t stride[QN_MAX_RANK], index[QN_MAX_RANK] = { 0 };
    strides_of(s, to, stride);
    for (int64_t i = 0, n = qn_shape_count(to); i < n; i++) {
        a->out[0][i] = a->in[0][qn_util_offset(to->rank, index, stride)];
        qn_util_next(to, index);
    }
    return QN_OK;
}

static void expand_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_sum_to(g, dy[0], &n->in[0]->type.shape);
}

static QnStatus expand_call(const QnNode *n, QnDeviceCall *c)
{
    int64_t stride[QN_MAX_RANK];
    const QnShape *to = &n->out[0].type.shape;
    strides_of(&n->in[0]->type.shape, to, stride);
    return qn_region_call("expand_copy", n, to, stride, c);
}

static const QnSample expand_samples[] = {
    { .in = { { 2, { 4, 1 } } }, .n_in = 1, .attr = &(Attr){ { 3, { 2, 4, 7 } } } },
    { .in = { { 0 } }, .n_in = 1, .attr = &(Attr){ { 1, { 130 } } } },
};

QN_API QnValue *qn_expand(QnGraph *g, QnValue *x, const QnShape *shape)
{
    if (!qn_value_is_poison(x) && qn_shape_is_equal(&x->type.shape, shape))
        return x;
    Attr a = { { shape->rank, { 0 } } };
    memcpy(a.dims.d, shape->dim, sizeof a.dims.d);
    return qn_emit1(g, &qn_op_expand, &a, x);
}

/* Both ways: where the shape says 1, the input's dim stays. */
static QnStatus expand_import(QnOnnxNode *n)
{
    QnInts to;
    const QnType *t = qn_onnx_type(n, 0);
    if (!t)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor of numbers");
    QnShape from = t->shape;
    QN_TRY(qn_onnx_in_ints(n, 1, &to));
    if (to.n > QN_MAX_RANK)
        return qn_onnx_refuse(n, "a shape of %d dims, at most %d", to.n, QN_MAX_RANK);
    QnShape asked = qn_shape_make(to.n, to.v), s;
    for (int i = 0; i < to.n; i++)
        if (to.v[i] < 0)
            return qn_fail(QN_ESHAPE, "dim %d is to become %lld", i, (long long)to.v[i]);
    QN_TRY(qn_onnx_broadcast(&from, &asked, &s));
    return qn_onnx_out0(n, qn_expand(n->g, qn_onnx_in(n, 0), &s));
}

static const QnOnnxMap expand_onnx[] = {
    { .name = "Expand", .since = 8, .import = expand_import },
};

static QnStatus expand_put(QnOnnxPut *p, const QnNode *n)
{
    const QnShape *from = &n->in[0]->type.shape;
    QnShape to = n->out[0].type.shape;
    for (int k = 1; k <= to.rank; k++) /* a symbolic dim that stays is 1 for Expand */
        if (k <= from->rank && to.dim[to.rank - k] == from->dim[from->rank - k] &&
            to.dim[to.rank - k] < 0)
            to.dim[to.rank - k] = 1;
    if (!qn_shape_is_concrete(&to))
        return qn_fail(QN_EUNSUPPORTED, "an expansion to a symbolic dim; give --batch");
    const char *in[] = { qn_put_value(p, n->in[0]), qn_put_shape(p, &to) };
    qn_put_as(p, &n->out[0], "Expand", in, 2);
    return qn_put_status(p);
}

const QnOp qn_op_expand = {
    .name = "expand",
    .version = 1,
    .doc = "broadcast to a shape",
    .n_in = 1,
    .traits = QN_MOVES_DATA,
    QN_ATTRS(Attr, expand_fields),
    .infer = expand_infer,
    .ref = expand_ref,
    .grad = expand_grad,
    .device = QN_TEXT(expand),
    .call = expand_call,
    QN_ONNX(expand_onnx),
    .onnx_put = expand_put,
    .onnx_writes = "Expand",
    QN_SAMPLES(expand_samples),
};
#endif
