/* The same elements in row-major order under another shape. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/onnx_put.h"

typedef struct Attr {
    QnDims dims;
} Attr;

static const QnAttrField reshape_fields[] = {
    { .name = "dims",
      .kind = QN_ATTR_DIMS,
      .offset = offsetof(Attr, dims),
      .doc = "new shape, of as many elements" },
};

static QnStatus reshape_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    const QnShape *s = &c->in[0]->shape;
    QnShape to = qn_shape_make(a->dims.n, a->dims.d);
    QnDim from_n = qn_shape_product(c->graph, s, 0, s->rank);
    QnDim to_n = qn_shape_product(c->graph, &to, 0, to.rank);
    if (from_n != to_n) {
        char x[QN_TYPE_TEXT_BYTES], y[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "reshape: %s does not hold as many elements as %s",
                       qn_shape_text(&to, y), qn_shape_text(s, x));
    }
    c->out[0].dtype = c->in[0]->dtype;
    c->out[0].shape = to;
    return QN_OK;
}

static QnStatus reshape_ref(const QnRefArgs *a)
{
    int64_t n = qn_shape_count(&a->out_type[0]->shape);
    memcpy(a->out[0], a->in[0], (size_t)n * sizeof(double));
    return QN_OK;
}

static void reshape_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_reshape(g, dy[0], &n->in[0]->type.shape);
}

static const QnSample reshape_samples[] = {
    { .in = { { 2, { 4, 6 } } }, .n_in = 1, .attr = &(Attr){ { 3, { 2, 3, 4 } } } },
    { .in = { { 3, { 1, 130, 1 } } }, .n_in = 1, .attr = &(Attr){ { 1, { 130 } } } },
    { .in = { { 0 } }, .n_in = 1, .attr = &(Attr){ { 2, { 1, 1 } } } },
};

QN_API QnValue *qn_reshape(QnGraph *g, QnValue *x, const QnShape *shape)
{
    if (!qn_value_is_poison(x) && qn_shape_is_equal(&x->type.shape, shape))
        return x;
    Attr a = { { shape->rank, { 0 } } };
    memcpy(a.dims.d, shape->dim, sizeof a.dims.d);
    return qn_emit1(g, &qn_op_reshape, &a, x);
}

/* Folds axes [axis, rank) into one: (N,C,H,W) at 1 gives (N,C*H*W). */
QN_API QnValue *qn_flatten(QnGraph *g, QnValue *x, int axis)
{
    if (qn_value_is_poison(x))
        return qn_graph_poison(g);
    const QnShape *s = &x->type.shape;
    if (axis < 0 || axis > s->rank) {
        qn_fail(QN_EARG, "flatten: axis %d is out of range for rank %d", axis, s->rank);
        return qn_graph_poison(g);
    }
    QnShape to = { .rank = axis + 1 };
    memcpy(to.dim, s->dim, (size_t)axis * sizeof(QnDim));
    to.dim[axis] = qn_shape_product(g, s, axis, s->rank);
    return qn_reshape(g, x, &to);
}

/* A new axis of length 1 that will be axis `axis`, which may be negative. */
QN_API QnValue *qn_unsqueeze(QnGraph *g, QnValue *x, int64_t axis)
{
    if (qn_value_is_poison(x))
        return qn_graph_poison(g);
    const QnShape *s = &x->type.shape;
    int64_t at = axis < 0 ? axis + s->rank + 1 : axis;
    if (at < 0 || at > s->rank || s->rank == QN_MAX_RANK) {
        qn_fail(QN_EARG, "unsqueeze: no room for a new axis %lld at rank %d", (long long)axis,
                s->rank);
        return qn_graph_poison(g);
    }
    QnShape to = { .rank = s->rank + 1 };
    for (int i = 0; i < to.rank; i++)
        to.dim[i] = i < at ? s->dim[i] : i == at ? 1 : s->dim[i - 1];
    return qn_reshape(g, x, &to);
}

/* Without axis `axis`, whose length must be 1. */
QN_API QnValue *qn_squeeze(QnGraph *g, QnValue *x, int64_t axis)
{
    int at;
    if (qn_value_is_poison(x))
        return qn_graph_poison(g);
    const QnShape *s = &x->type.shape;
    if (!qn_shape_axis(s, axis, &at) || s->dim[at] != 1) {
        char text[QN_TYPE_TEXT_BYTES];
        qn_fail(QN_ESHAPE, "squeeze: %s has no axis %lld of length 1", qn_shape_text(s, text),
                (long long)axis);
        return qn_graph_poison(g);
    }
    QnShape to = { .rank = s->rank - 1 };
    for (int i = 0; i < to.rank; i++)
        to.dim[i] = s->dim[i < at ? i : i + 1];
    return qn_reshape(g, x, &to);
}

/* 0 keeps the input's dim (unless allowzero), -1 is what is left. */
static QnStatus reshape_import(QnOnnxNode *n)
{
    QnInts to;
    const QnType *t = qn_onnx_type(n, 0);
    if (!t)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor of numbers");
    if (n->opset >= 5)
        QN_TRY(qn_onnx_in_ints(n, 1, &to));
    else
        qn_onnx_ints(n, "shape", &to);
    QnShape s = { .rank = to.n };
    int64_t known = 1, count = qn_shape_count(&t->shape);
    int open = -1;
    if (to.n > QN_MAX_RANK)
        return qn_onnx_refuse(n, "a shape of %d dims, at most %d", to.n, QN_MAX_RANK);
    for (int i = 0; i < to.n; i++) {
        s.dim[i] = to.v[i];
        if (to.v[i] == 0 && i < t->shape.rank && !qn_onnx_int(n, "allowzero", 0))
            s.dim[i] = t->shape.dim[i];
        if (s.dim[i] == -1 && open < 0)
            open = i;
        else if (s.dim[i] < 0 || (s.dim[i] && known > count / s.dim[i] && count))
            return qn_fail(QN_ESHAPE, "dim %d of the new shape is %lld", i, (long long)s.dim[i]);
        else
            known *= s.dim[i];
    }
    if (open >= 0)
        s.dim[open] = known ? count / known : 0;
    return qn_onnx_out0(n, qn_reshape(n->g, qn_onnx_in(n, 0), &s));
}

static const QnOnnxMap reshape_onnx[] = {
    { .name = "Reshape", .since = 1, .import = reshape_import },
};

static QnStatus reshape_put(QnOnnxPut *p, const QnNode *n)
{
    const char *in[] = { qn_put_value(p, n->in[0]), qn_put_shape(p, &n->out[0].type.shape) };
    qn_put_as(p, &n->out[0], "Reshape", in, 2);
    return qn_put_status(p);
}

const QnOp qn_op_reshape = {
    .name = "reshape",
    .version = 1,
    .doc = "the same elements under another shape",
    .n_in = 1,
    .traits = QN_VIEW | QN_MOVES_DATA,
    QN_ATTRS(Attr, reshape_fields),
    .infer = reshape_infer,
    .ref = reshape_ref,
    .grad = reshape_grad,
    .inplace = 1,
    QN_ONNX(reshape_onnx),
    .onnx_put = reshape_put,
    .onnx_writes = "Reshape",
    QN_SAMPLES(reshape_samples),
};
#endif
