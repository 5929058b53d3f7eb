/* Axes in another order: axis i of y is axis perm[i] of x. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
QN_KERNEL transpose_copy(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, qn_long count, QN_ARG8(d),
                         QN_ARG8(s))
{
    qn_long i = qn_item();
    if (i < count)
        qn_store(y, i, qn_load(x, qn_strided(i, QN_PASS8(d), QN_PASS8(s))));
}
#endif

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/region.h"

typedef struct Attr {
    QnInts perm;
} Attr;

static const QnAttrField transpose_fields[] = {
    { .name = "perm",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(Attr, perm),
      .doc = "for each axis of the result, the axis it was; none: reversed" },
};

/* The permutation with negative axes resolved. */
static QnStatus order_of(const QnShape *s, const QnInts *perm, int order[QN_MAX_RANK])
{
    unsigned mask = 0;
    if (perm->n != 0 && perm->n != s->rank)
        return qn_fail(QN_EARG, "transpose: %d axes for rank %d; name each once", perm->n, s->rank);
    if (perm->n)
        QN_TRY(qn_util_axes_mask("transpose", s, perm, &mask));
    for (int i = 0; i < s->rank; i++) {
        order[i] = s->rank - 1 - i;
        if (perm->n)
            qn_shape_axis(s, perm->v[i], &order[i]);
    }
    return QN_OK;
}

static QnStatus transpose_infer(QnInfer *c)
{
    int order[QN_MAX_RANK];
    const QnShape *s = &c->in[0]->shape;
    QN_TRY(order_of(s, &((const Attr *)c->attr)->perm, order));
    c->out[0].dtype = c->in[0]->dtype;
    c->out[0].shape.rank = s->rank;
    for (int i = 0; i < s->rank; i++)
        c->out[0].shape.dim[i] = s->dim[order[i]];
    return QN_OK;
}

/* Strides in x of y's axes. */
static QnStatus strides_of(const QnShape *s, const QnInts *perm, int64_t stride[QN_MAX_RANK])
{
    int order[QN_MAX_RANK];
    int64_t tight[QN_MAX_RANK];
    QN_TRY(order_of(s, perm, order));
    qn_shape_strides(s, tight);
    for (int i = 0; i < s->rank; i++)
        stride[i] = tight[order[i]];
    return QN_OK;
}

static QnStatus transpose_ref(const QnRefArgs *a)
{
    int64_t stride[QN_MAX_RANK];
    QN_TRY(strides_of(&a->in_type[0]->shape, &((const Attr *)a->attr)->perm, stride));
    qn_region_copy(&a->out_type[0]->shape, stride, 0, a->in[0], a->out[0]);
    return QN_OK;
}

static void transpose_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    int order[QN_MAX_RANK];
    const QnShape *s = &n->in[0]->type.shape;
    QnInts back = { .n = s->rank };
    order_of(s, &((const Attr *)n->attr)->perm, order);
    for (int i = 0; i < s->rank; i++)
        back.v[order[i]] = i;
    dx[0] = qn_transpose(g, dy[0], back);
}

static QnStatus transpose_call(const QnNode *n, QnDeviceCall *c)
{
    int64_t stride[QN_MAX_RANK];
    QN_TRY(strides_of(&n->in[0]->type.shape, &((const Attr *)n->attr)->perm, stride));
    return qn_region_call("transpose_copy", n, &n->out[0].type.shape, stride, c);
}

static const QnSample transpose_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1 },
    { .in = { { 3, { 2, 13, 10 } } }, .n_in = 1, .attr = &(Attr){ { 3, { 0, 2, 1 } } } },
    { .in = { { 4, { 2, 3, 4, 5 } } }, .n_in = 1, .attr = &(Attr){ { 4, { -1, 0, -2, 1 } } } },
    { .in = { { 3, { 1, 130, 1 } } }, .n_in = 1, .attr = &(Attr){ { 3, { 1, 2, 0 } } } },
};

QN_API QnValue *qn_transpose(QnGraph *g, QnValue *x, QnInts perm)
{
    if (!qn_value_is_poison(x) && perm.n == x->type.shape.rank) {
        int same = 0;
        while (same < perm.n && perm.v[same] == same)
            same++;
        if (same == perm.n)
            return x;
    }
    return qn_emit1(g, &qn_op_transpose, &(Attr){ perm }, x);
}

/* Swaps two axes, which may be negative. */
QN_API QnValue *qn_swap_axes(QnGraph *g, QnValue *x, int64_t a, int64_t b)
{
    if (qn_value_is_poison(x))
        return qn_graph_poison(g);
    const QnShape *s = &x->type.shape;
    int i, j;
    if (!qn_shape_axis(s, a, &i) || !qn_shape_axis(s, b, &j)) {
        qn_fail(QN_EARG, "swap_axes: axis %lld or %lld is out of range for rank %d", (long long)a,
                (long long)b, s->rank);
        return qn_graph_poison(g);
    }
    QnInts perm = { .n = s->rank };
    for (int k = 0; k < s->rank; k++)
        perm.v[k] = k == i ? j : k == j ? i : k;
    return qn_transpose(g, x, perm);
}

/* The permutation of a transpose node, negative axes resolved; false: v is no such node. */
QN_API bool qn_transpose_order(const QnValue *v, int order[QN_MAX_RANK])
{
    if (v->node->op != &qn_op_transpose)
        return false;
    return order_of(&v->node->in[0]->type.shape, &((const Attr *)v->node->attr)->perm, order) ==
           QN_OK;
}

static const QnOnnxMap transpose_onnx[] = { { .name = "Transpose", .since = 1 } };

const QnOp qn_op_transpose = {
    .name = "transpose",
    .version = 1,
    .doc = "axes in another order",
    .n_in = 1,
    .traits = QN_MOVES_DATA,
    QN_ATTRS(Attr, transpose_fields),
    .infer = transpose_infer,
    .ref = transpose_ref,
    .grad = transpose_grad,
    .device = QN_TEXT(transpose),
    .call = transpose_call,
    QN_ONNX(transpose_onnx),
    QN_SAMPLES(transpose_samples),
};
#endif
