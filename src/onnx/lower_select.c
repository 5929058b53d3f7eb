/* Elements picked or marked by indices and conditions. */
#include "ir/dtype.h"
#include "onnx/mapping.h"
#include "ops/ops.h"

#include <string.h>

/* ---- OneHot ---------------------------------------------------------------------------------- */

/* values[0] everywhere but values[1] at the index; negative ones count from the end, and those out
 * of range are nowhere. */
static QnStatus import_one_hot(QnOnnxNode *n)
{
    int axis;
    double depth;
    const QnType *t = qn_onnx_type(n, 0), *v = qn_onnx_type(n, 2);
    if (!t || !v || v->shape.rank != 1 || v->shape.dim[0] != 2)
        return qn_fail(QN_ESHAPE, "input 0 must be a tensor of numbers, input 2 two of them");
    QnShape ids_shape = t->shape, level_shape = { .rank = 1 };
    if (ids_shape.rank == QN_MAX_RANK)
        return qn_onnx_refuse(n, "indices of rank %d leave no room for an axis", ids_shape.rank);
    QN_TRY(qn_onnx_in_double(n, 1, &depth));
    QN_TRY(qn_onnx_axis(qn_onnx_int(n, "axis", -1), ids_shape.rank + 1, &axis));
    if (!(depth >= 0 && depth < 0x1p53))
        return qn_fail(QN_EARG, "the depth is %g", depth);
    level_shape.dim[0] = (int64_t)depth;
    for (int i = axis; i < ids_shape.rank; i++)
        level_shape.dim[level_shape.rank++] = 1;
    QnGraph *g = n->g;
    QnValue *ids = qn_cast(g, qn_onnx_in(n, 0), QN_DTYPE_I64), *values = qn_onnx_in(n, 2);
    QnValue *negative = qn_less(g, ids, qn_scalar_like(g, ids, 0));
    ids = qn_where(g, negative, qn_add_scalar(g, ids, depth), ids);
    QnValue *level = qn_arange(g, 0, 1, (int64_t)depth, QN_DTYPE_I64);
    QnValue *hit = qn_equal(g, qn_unsqueeze(g, ids, axis), qn_reshape(g, level, &level_shape));
    QnValue *off = qn_reshape(g, qn_slice_axis(g, values, 0, 0, 1), &(QnShape){ 0 });
    QnValue *on = qn_reshape(g, qn_slice_axis(g, values, 0, 1, 2), &(QnShape){ 0 });
    return qn_onnx_out0(n, qn_where(g, hit, on, off));
}

/* ---- Compress and NonZero -------------------------------------------------------------------- */

/* The condition alone must be known: what it picks is gathered in the graph. */
static QnStatus import_compress(QnOnnxNode *n)
{
    const QnType *t = qn_onnx_type(n, 0);
    const int64_t *on;
    int64_t count, picked = 0;
    int axis = 0;
    if (!t)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor of numbers");
    bool flat = !qn_onnx_attr(n, "axis");
    QnShape s = flat ? QN_SHAPE(qn_shape_count(&t->shape)) : t->shape;
    if (!flat)
        QN_TRY(qn_onnx_axis(qn_onnx_int(n, "axis", 0), s.rank, &axis));
    QN_TRY(qn_onnx_in_array(n, 1, &on, &count));
    if (count > s.dim[axis])
        return qn_fail(QN_ESHAPE, "%lld conditions for %lld elements of axis %d", (long long)count,
                       (long long)s.dim[axis], axis);
    int64_t *at = qn_arena_array(n->arena, (size_t)count + 1, sizeof *at);
    if (!at)
        return QN_ENOMEM;
    for (int64_t i = 0; i < count; i++)
        if (on[i])
            at[picked++] = i;
    QnValue *x = qn_reshape(n->g, qn_onnx_in(n, 0), &s);
    QnValue *index = qn_constant(n->g, QN_DTYPE_I64, &QN_SHAPE(picked), at);
    return qn_onnx_out0(n, qn_gather(n->g, x, index, axis));
}

/* Positions, one column each, in row-major order. */
static QnStatus import_non_zero(QnOnnxNode *n)
{
    QN_ONNX_NEED(n, 0);
    const QnTensor *x = n->in[0]->known;
    if (x->text)
        return qn_onnx_refuse(n, "strings");
    const QnShape *s = &x->type.shape;
    int64_t all = qn_shape_count(s), found = 0, stride[QN_MAX_RANK];
    int64_t *at = qn_arena_array(n->arena, (size_t)all + 1, sizeof *at);
    if (!at)
        return QN_ENOMEM;
    size_t size = qn_dtype_bytes(x->type.dtype);
    for (int64_t i = 0; i < all; i++) {
        double v;
        qn_dtype_to_f64(x->type.dtype, (const char *)x->data + (size_t)i * size, &v, 1);
        if (v != 0)
            at[found++] = i;
    }
    QnTensor *y = qn_onnx_tensor(n, QN_DTYPE_I64, &QN_SHAPE(s->rank, found));
    if (!y)
        return QN_ENOMEM;
    qn_shape_strides(s, stride);
    for (int d = 0; d < s->rank; d++)
        for (int64_t i = 0; i < found; i++)
            ((int64_t *)y->data)[d * found + i] = at[i] / stride[d] % s->dim[d];
    return qn_onnx_out_known(n, 0, y);
}

/* ---- CenterCropPad --------------------------------------------------------------------------- */

static QnStatus import_center(QnOnnxNode *n)
{
    QnInts to, axes;
    const QnType *t = qn_onnx_type(n, 0);
    if (!t)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor of numbers");
    QnShape s = t->shape;
    QnPadAttr pad = { .before.n = s.rank, .after.n = s.rank };
    QN_TRY(qn_onnx_in_ints(n, 1, &to));
    if (!qn_onnx_ints(n, "axes", &axes))
        for (; axes.n < s.rank; axes.n++)
            axes.v[axes.n] = axes.n;
    if (to.n != axes.n)
        return qn_fail(QN_ESHAPE, "%d lengths for %d axes", to.n, axes.n);
    for (int i = 0; i < axes.n; i++) {
        int axis;
        QN_TRY(qn_onnx_axis(axes.v[i], s.rank, &axis));
        if (to.v[i] < 0 || to.v[i] > INT64_C(1) << 47)
            return qn_fail(QN_ESHAPE, "axis %d is to have length %lld", axis, (long long)to.v[i]);
        int64_t more = to.v[i] - s.dim[axis];
        pad.before.v[axis] = more / 2; /* toward zero: the odd one goes to the end */
        pad.after.v[axis] = more - more / 2;
    }
    return qn_onnx_out0(n, qn_pad(n->g, qn_onnx_in(n, 0), &pad));
}

const QnOnnxMap qn_onnx_select[] = {
    { "OneHot", NULL, 9, 0, import_one_hot, NULL },
    { "Compress", NULL, 9, 0, import_compress, NULL },
    { "NonZero", NULL, 9, 0, import_non_zero, NULL },
    { "CenterCropPad", NULL, 18, 0, import_center, NULL },
    { 0 },
};
