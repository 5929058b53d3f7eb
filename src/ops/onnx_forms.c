/* Forms of nodes that several operators' ONNX mappings share. */
#include "ops/onnx.h"
#include "ir/dtype.h"
#include "ops/ops.h"
#include "ops/util.h"

#include <math.h>
#include <string.h>

static QnStatus no_tensor(void)
{
    return qn_fail(QN_EDTYPE, "input 0 must be a tensor of numbers");
}

QnStatus qn_onnx_in_array(QnOnnxNode *n, int i, const int64_t **v, int64_t *count)
{
    QN_ONNX_NEED(n, i);
    const QnTensor *t = n->in[i]->known;
    if (t->text || !(qn_dtype_is_int(t->type.dtype) || t->type.dtype == QN_DTYPE_BOOL))
        return qn_fail(QN_EDTYPE, "input %d, '%s', must hold integers", i, n->in[i]->name);
    int64_t all = qn_shape_count(&t->type.shape);
    int64_t *to = qn_arena_array(n->arena, (size_t)all + 1, sizeof *to);
    if (!to)
        return QN_ENOMEM;
    qn_dtype_to_i64(t->type.dtype, t->data, to, all);
    *v = to;
    *count = all;
    return QN_OK;
}

bool qn_onnx_constant(const QnOnnxNode *n, int i, double *out)
{
    if (!qn_onnx_has(n, i) || n->in[i]->is_fed || !n->in[i]->known || n->in[i]->known->text)
        return false;
    const QnTensor *t = n->in[i]->known;
    double v;
    if (qn_shape_count(&t->type.shape) != 1)
        return false;
    qn_dtype_to_f64(t->type.dtype, t->data, &v, 1);
    if (qn_dtype_is_wide(t->type.dtype) && fabs(v) > 0x1p53)
        return false;
    *out = v;
    return true;
}

QnStatus qn_onnx_axes(QnOnnxNode *n, int i, QnInts *out)
{
    if (qn_onnx_ints(n, "axes", out) || !qn_onnx_has(n, i))
        return QN_OK;
    return qn_onnx_in_ints(n, i, out);
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* Each element for itself: what a reduction over no axes computes. */
static QnValue *fold_nothing(QnGraph *g, QnValue *x, QnOnnxFold *fold)
{
    QnShape s = x->type.shape;
    QnValue *column = qn_reshape(g, x, &QN_SHAPE(qn_shape_count(&s), 1));
    return qn_reshape(g, fold(g, column, QN_INTS(1), false), &s);
}

QnStatus qn_onnx_reduce(QnOnnxNode *n, QnOnnxFold *fold, bool floats, double empty)
{
    QnReduceAttr a = { .keepdims = qn_onnx_int(n, "keepdims", 1) != 0 };
    QnShape to;
    unsigned mask;
    const QnType *t = qn_onnx_type(n, 0);
    if (!t)
        return no_tensor();
    QnType type = *t;
    QN_TRY(qn_onnx_axes(n, 1, &a.axes));
    bool none = a.axes.n == 0 && qn_onnx_int(n, "noop_with_empty_axes", 0);
    QN_TRY(qn_util_axes_mask(n->op, &type.shape, &a.axes, &mask));
    QN_TRY(qn_util_reduce_shape(n->op, &type.shape, &a, &to));
    QnShape folded = qn_util_keep_shape(&type.shape, ~mask);
    if (!none && qn_shape_count(&folded) == 0)
        return qn_onnx_out0(n, qn_full(n->g, empty, type.dtype, &to));
    QnValue *x = qn_onnx_in(n, 0);
    bool wide = floats && !qn_dtype_is_float(type.dtype);
    if (wide)
        x = qn_cast(n->g, x, QN_DTYPE_F64);
    QnValue *y = none ? fold_nothing(n->g, x, fold) : fold(n->g, x, a.axes, a.keepdims);
    return qn_onnx_out0(n, wide ? qn_cast(n->g, y, type.dtype) : y);
}

QnStatus qn_onnx_arg(QnOnnxNode *n, QnOnnxArg *f)
{
    int axis;
    const QnType *t = qn_onnx_type(n, 0);
    if (!t)
        return no_tensor();
    int64_t asked = qn_onnx_int(n, "axis", 0);
    QnShape s = t->shape;
    if (s.rank == 0 && (asked == 0 || asked == -1)) /* one element stands at 0 */
        return qn_onnx_out0(n, qn_full(n->g, 0, QN_DTYPE_I64, &s));
    QN_TRY(qn_onnx_axis(asked, s.rank, &axis));
    bool keepdims = qn_onnx_int(n, "keepdims", 1) != 0;
    bool last = qn_onnx_int(n, "select_last_index", 0) != 0;
    QnValue *x = qn_onnx_in(n, 0);
    if (!last)
        return qn_onnx_out0(n, f(n->g, x, axis, keepdims));
    QnValue *back = f(n->g, qn_flip(n->g, x, QN_INTS(axis)), axis, keepdims);
    QnValue *end = qn_scalar_like(n->g, back, (double)(s.dim[axis] - 1));
    return qn_onnx_out0(n, qn_sub(n->g, end, back));
}

/* ---- along an axis --------------------------------------------------------------------------- */

QnStatus qn_onnx_rowwise(QnOnnxNode *n, QnValue *(*f)(QnGraph *g, QnValue *x, int64_t axis))
{
    const QnType *t = qn_onnx_type(n, 0);
    bool flat = n->opset < 13;
    int axis;
    if (!t)
        return no_tensor();
    QnShape s = t->shape, two = { .rank = 2, .dim = { 1, 1 } };
    int64_t asked = qn_onnx_int(n, "axis", flat ? 1 : -1);
    if (s.rank == 0 || (flat && asked == s.rank)) { /* rows of one element */
        two.dim[0] = qn_shape_count(&s);
        flat = true;
    } else {
        QN_TRY(qn_onnx_axis(asked, s.rank, &axis));
        for (int i = 0; i < s.rank; i++)
            two.dim[i >= axis] *= s.dim[i];
    }
    QnValue *x = qn_onnx_in(n, 0);
    if (!flat)
        return qn_onnx_out0(n, f(n->g, x, axis));
    return qn_onnx_out0(n, qn_reshape(n->g, f(n->g, qn_reshape(n->g, x, &two), 1), &s));
}

QnStatus qn_onnx_pairs(QnOnnxNode *n, QnValue *(*f)(QnGraph *g, QnValue *a, QnValue *b))
{
    QnValue *y = qn_onnx_in(n, 0);
    for (int i = 1; i < n->n_in; i++)
        y = f(n->g, y, qn_onnx_in(n, i));
    return qn_onnx_out0(n, y);
}

QnStatus qn_onnx_broadcast(const QnShape *a, const QnShape *b, QnShape *out)
{
    *out = (QnShape){ .rank = QN_MAX(a->rank, b->rank) };
    for (int k = 1; k <= out->rank; k++) {
        int64_t x = k <= a->rank ? a->dim[a->rank - k] : 1;
        int64_t y = k <= b->rank ? b->dim[b->rank - k] : 1;
        if (x != y && x != 1 && y != 1) {
            char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
            return qn_fail(QN_ESHAPE, "%s and %s do not broadcast", qn_shape_text(a, p),
                           qn_shape_text(b, q));
        }
        out->dim[out->rank - k] = x == 1 ? y : x;
    }
    return QN_OK;
}
