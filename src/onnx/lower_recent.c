/* Operators of the newest opsets that are compositions of ours. */
#include "onnx/mapping.h"
#include "ops/ops.h"

#include <string.h>

static QnStatus import_swiglu(QnOnnxNode *n)
{
    const QnType *a = qn_onnx_type(n, 0), *b = qn_onnx_type(n, 1);
    if (!a || !b || !qn_shape_is_equal(&a->shape, &b->shape))
        return qn_fail(QN_ESHAPE, "its inputs must be tensors of one shape");
    QnDtype t = a->dtype, as = qn_dtype_is_storage(t) ? QN_DTYPE_F32 : t;
    double alpha = qn_onnx_float(n, "alpha", 1);
    QnValue *gate = qn_cast(n->g, qn_onnx_in(n, 0), as), *x = qn_cast(n->g, qn_onnx_in(n, 1), as);
    QnValue *on = qn_sigmoid(n->g, alpha == 1 ? gate : qn_mul_scalar(n->g, gate, alpha));
    return qn_onnx_out0(n, qn_cast(n->g, qn_mul(n->g, qn_mul(n->g, gate, on), x), t));
}

/* ---- TensorScatter --------------------------------------------------------------------------- */

/* Linear writes beyond the end would be lost: they are errors where the places are known. */
static QnStatus check_places(QnOnnxNode *n, int64_t length, int64_t room)
{
    const QnTensor *at = qn_onnx_has(n, 2) ? n->in[2]->known : NULL;
    if (length > room)
        return qn_fail(QN_ESHAPE, "%lld places are written of %lld", (long long)length,
                       (long long)room);
    for (int64_t i = 0;
         at && at->data && at->type.dtype == QN_DTYPE_I64 && i < qn_shape_count(&at->type.shape);
         i++) {
        int64_t v = ((const int64_t *)at->data)[i];
        if (v < 0 || v > room - length)
            return qn_fail(QN_EARG, "places %lld to %lld are written of %lld", (long long)v,
                           (long long)v + (long long)length, (long long)room);
    }
    return QN_OK;
}

static QnStatus import_scatter(QnOnnxNode *n)
{
    const QnType *past = qn_onnx_type(n, 0), *update = qn_onnx_type(n, 1);
    bool circular = qn_onnx_is(n, "mode", "circular", "linear");
    int axis;
    QnGraph *g = n->g;
    if (!past || !update || past->shape.rank != update->shape.rank || past->shape.rank < 2)
        return qn_fail(QN_ESHAPE, "inputs 0 and 1 must be tensors of one rank, 2 or more");
    if (!circular && !qn_onnx_is(n, "mode", "linear", "linear"))
        return qn_onnx_refuse(n, "mode other than 'linear' and 'circular'");
    QnShape s = update->shape, column = { .rank = s.rank }, row = { .rank = s.rank };
    QN_TRY(qn_onnx_axis(qn_onnx_int(n, "axis", -2), s.rank, &axis));
    int64_t length = s.dim[axis], room = past->shape.dim[axis];
    if (axis == 0)
        return qn_fail(QN_EFORMAT, "axis 0 is the batch");
    if (!circular)
        QN_TRY(check_places(n, length, room));
    for (int i = 0; i < s.rank; i++) {
        column.dim[i] = i == axis ? length : 1;
        row.dim[i] = i == 0 ? s.dim[0] : 1;
    }
    QnValue *at = qn_reshape(g, qn_arange(g, 0, 1, length, QN_DTYPE_I64), &column);
    if (qn_onnx_has(n, 2)) {
        QnValue *from = qn_cast(g, qn_onnx_in(n, 2), QN_DTYPE_I64);
        at = qn_add(g, at, qn_reshape(g, from, &row));
    }
    if (circular)
        at = qn_mod(g, at, qn_scalar_like(g, at, (double)room));
    at = qn_expand(g, at, &s);
    return qn_onnx_out0(
        n, qn_scatter_elements(g, qn_onnx_in(n, 0), at, qn_onnx_in(n, 1), axis, QN_SCATTER_NONE));
}

/* ---- CausalConvWithState --------------------------------------------------------------------- */

/* Each channel with its own window, over the k-1 places before as well: given, or zeros. */
static QnStatus import_causal(QnOnnxNode *n)
{
    const QnType *x = qn_onnx_type(n, 0), *w = qn_onnx_type(n, 1);
    QnGraph *g = n->g;
    bool silu =
        qn_onnx_is(n, "activation", "silu", "none") || qn_onnx_is(n, "activation", "swish", "none");
    if (!silu && !qn_onnx_is(n, "activation", "none", "none"))
        return qn_onnx_refuse(n, "activation other than 'none', 'silu', 'swish'");
    if (!x || !w || x->shape.rank != 3 || w->shape.rank != 3 ||
        w->shape.dim[0] != x->shape.dim[1] || w->shape.dim[1] != 1 || w->shape.dim[2] < 1)
        return qn_fail(QN_ESHAPE, "its input must be (N,C,length), its weight (C,1,k)");
    QnDtype t = x->dtype, as = qn_dtype_is_storage(t) ? QN_DTYPE_F32 : t;
    int64_t k = w->shape.dim[2], length = x->shape.dim[2], channels = x->shape.dim[1];
    QnShape before = QN_SHAPE(x->shape.dim[0], channels, k - 1);
    const QnType *past = qn_onnx_type(n, 3);
    if (past && !qn_shape_is_equal(&past->shape, &before))
        return qn_fail(QN_ESHAPE, "past_state must be (N,C,k-1)");
    QnValue *all = qn_onnx_in(n, 0);
    if (k > 1) {
        QnValue *state = past ? qn_onnx_in(n, 3) : qn_full(g, 0, t, &before);
        all = qn_concat(g, (QnValue *[]){ state, all }, 2, 2);
    }
    QnConvAttr attr = { .groups = channels };
    QnValue *bias = qn_onnx_has(n, 2) ? qn_cast(g, qn_onnx_in(n, 2), as) : NULL;
    QnValue *y = qn_conv(g, qn_cast(g, all, as), qn_cast(g, qn_onnx_in(n, 1), as), bias, &attr);
    QN_TRY(qn_onnx_out0(n, qn_cast(g, silu ? qn_silu(g, y) : y, t)));
    return qn_onnx_out(n, 1, qn_slice_axis(g, all, 2, length, length + k - 1));
}

/* ---- BitCast --------------------------------------------------------------------------------- */

static bool is_half_byte(QnDtype t)
{
    return t == QN_DTYPE_I4 || t == QN_DTYPE_U4 || t == QN_DTYPE_F4E2M1;
}

/* No operator of ours looks at bits: the elements must be known. */
static QnStatus import_bits(QnOnnxNode *n)
{
    QnDtype to;
    int64_t number = qn_onnx_int(n, "to", 0);
    QN_ONNX_NEED(n, 0);
    const QnTensor *x = n->in[0]->known;
    if (x->text || !qn_onnx_dtype(number, &to))
        return qn_onnx_refuse(n, "strings, or element type %lld", (long long)number);
    if (is_half_byte(to) != is_half_byte(x->type.dtype) ||
        qn_dtype_bytes(to) != qn_dtype_bytes(x->type.dtype))
        return qn_fail(QN_EDTYPE, "%s and %s have not as many bits", qn_dtype_name(x->type.dtype),
                       qn_dtype_name(to));
    QnTensor *y = qn_onnx_tensor(n, to, &x->type.shape);
    if (!y)
        return QN_ENOMEM;
    if (qn_type_bytes(&y->type) > 0)
        memcpy((void *)(uintptr_t)y->data, x->data, (size_t)qn_type_bytes(&y->type));
    return qn_onnx_out_known(n, 0, y);
}

const QnOnnxMap qn_onnx_recent[] = {
    { "SwiGLU", NULL, 28, 0, import_swiglu, NULL },
    { "TensorScatter", NULL, 24, 0, import_scatter, NULL },
    { "CausalConvWithState", NULL, 27, 0, import_causal, NULL },
    { "BitCast", NULL, 26, 0, import_bits, NULL },
    { 0 },
};
