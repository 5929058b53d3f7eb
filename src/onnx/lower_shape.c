/* Shapes and constants: what other frameworks have nodes for and we know at import. */
#include "onnx/importer.h"
#include "onnx/mapping.h"
#include "ops/ops.h"
#include "ops/util.h"

#include <string.h>

static QnStatus import_identity(QnOnnxNode *n)
{
    return qn_onnx_has(n, 0) ? qn_onnx_out_item(n, 0, n->in[0])
                             : qn_fail(QN_EARG, "input 0 is missing");
}

/* Any tensor has a shape, of strings too. */
static const QnShape *shape_of(const QnOnnxNode *n, int i)
{
    if (qn_onnx_has(n, i) && n->in[i]->known)
        return &n->in[i]->known->type.shape;
    const QnType *t = qn_onnx_type(n, i);
    return t ? &t->shape : NULL;
}

static int64_t clamp_axis(int64_t axis, int rank)
{
    axis += axis < 0 ? rank : 0;
    return axis < 0 ? 0 : QN_MIN(axis, (int64_t)rank);
}

static QnStatus import_shape(QnOnnxNode *n)
{
    const QnShape *s = shape_of(n, 0);
    if (!s)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor");
    int64_t from = clamp_axis(qn_onnx_int(n, "start", 0), s->rank);
    int64_t to = clamp_axis(qn_onnx_int(n, "end", s->rank), s->rank);
    return qn_onnx_out_ints(n, 0, s->dim + from, (int)QN_MAX(to - from, 0));
}

static QnStatus import_size(QnOnnxNode *n)
{
    const QnShape *s = shape_of(n, 0);
    QnTensor *t = qn_onnx_tensor(n, QN_DTYPE_I64, &(QnShape){ 0 });
    if (!s)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor");
    if (t)
        *(int64_t *)t->data = qn_shape_count(s);
    return qn_onnx_out_known(n, 0, t);
}

static QnStatus import_flatten(QnOnnxNode *n)
{
    const QnShape *s = shape_of(n, 0);
    if (!s)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor");
    int64_t axis = qn_onnx_int(n, "axis", 1);
    if (axis < -s->rank || axis > s->rank)
        return qn_fail(QN_ESHAPE, "axis %lld of a tensor of rank %d", (long long)axis, s->rank);
    axis += axis < 0 ? s->rank : 0;
    QnShape two = { .rank = 2, .dim = { 1, 1 } };
    for (int i = 0; i < s->rank; i++)
        two.dim[i >= axis] *= s->dim[i];
    return qn_onnx_out0(n, qn_reshape(n->g, qn_onnx_in(n, 0), &two));
}

static QnStatus import_squeeze(QnOnnxNode *n)
{
    QnInts axes;
    unsigned mask;
    const QnType *t = qn_onnx_type(n, 0);
    if (!t)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor of numbers");
    QnShape s = t->shape, to = { 0 };
    QN_TRY(qn_onnx_axes(n, 1, &axes));
    QN_TRY(qn_util_axes_mask("Squeeze", &s, &axes, &mask));
    for (int i = 0; i < s.rank; i++) {
        bool away = mask >> i & 1;
        if (axes.n && away && s.dim[i] != 1)
            return qn_fail(QN_ESHAPE, "axis %d has length %lld, not 1", i, (long long)s.dim[i]);
        if (!away || s.dim[i] != 1)
            to.dim[to.rank++] = s.dim[i];
    }
    return qn_onnx_out0(n, qn_reshape(n->g, qn_onnx_in(n, 0), &to));
}

static QnStatus import_unsqueeze(QnOnnxNode *n)
{
    QnInts axes;
    unsigned mask;
    const QnType *t = qn_onnx_type(n, 0);
    if (!t)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor of numbers");
    QnShape s = t->shape, to = { 0 };
    QN_TRY(qn_onnx_axes(n, 1, &axes));
    to.rank = s.rank + axes.n;
    if (to.rank > QN_MAX_RANK)
        return qn_onnx_refuse(n, "rank %d, at most %d", to.rank, QN_MAX_RANK);
    QN_TRY(qn_util_axes_mask("Unsqueeze", &to, &axes, &mask));
    for (int i = 0, from = 0; i < to.rank; i++)
        to.dim[i] = axes.n && mask >> i & 1 ? 1 : s.dim[from++];
    return qn_onnx_out0(n, qn_reshape(n->g, qn_onnx_in(n, 0), &to));
}

/* ---- Constant -------------------------------------------------------------------------------- */

static QnStatus constant_floats(QnOnnxNode *n, const float *v, int64_t count, int rank)
{
    QnTensor *t = qn_onnx_tensor(n, QN_DTYPE_F32, &(QnShape){ .rank = rank, .dim = { count } });
    if (t && count)
        memcpy((void *)t->data, v, (size_t)count * sizeof *v);
    return qn_onnx_out_known(n, 0, t);
}

static QnStatus constant_ints(QnOnnxNode *n, const int64_t *v, int64_t count, int rank)
{
    QnTensor *t = qn_onnx_tensor(n, QN_DTYPE_I64, &(QnShape){ .rank = rank, .dim = { count } });
    if (t && count)
        memcpy((void *)t->data, v, (size_t)count * sizeof *v);
    return qn_onnx_out_known(n, 0, t);
}

static QnStatus constant_text(QnOnnxNode *n, const QnText *v, int64_t count, int rank)
{
    QnTensor *t = qn_onnx_tensor_text(n, &(QnShape){ .rank = rank, .dim = { count } });
    if (t && count)
        memcpy((void *)t->text, v, (size_t)count * sizeof *v);
    return qn_onnx_out_known(n, 0, t);
}

static QnStatus import_constant(QnOnnxNode *n)
{
    if (n->n_attr != 1)
        return qn_fail(QN_EFORMAT, "a constant has one attribute, not %d", n->n_attr);
    const QnOnnxAttr *a = &n->attr[0];
    switch (a->kind) {
    case QN_ONNX_TENSOR:
    case QN_ONNX_SPARSE: return qn_onnx_out_known(n, 0, a->tensor);
    case QN_ONNX_FLOAT: return constant_floats(n, &a->f, 1, 0);
    case QN_ONNX_FLOATS: return constant_floats(n, a->floats, a->n, 1);
    case QN_ONNX_INT: return constant_ints(n, &a->i, 1, 0);
    case QN_ONNX_INTS: return constant_ints(n, a->ints, a->n, 1);
    case QN_ONNX_STRING: return constant_text(n, &a->s, 1, 0);
    case QN_ONNX_STRINGS: return constant_text(n, a->strings, a->n, 1);
    default: return qn_fail(QN_EFORMAT, "attribute '%s' holds no constant", a->name);
    }
}

const QnOnnxMap qn_onnx_shape[] = {
    { "Identity", NULL, 1, 0, import_identity, NULL },
    { "Shape", NULL, 1, 0, import_shape, NULL },
    { "Size", NULL, 1, 0, import_size, NULL },
    { "Flatten", NULL, 1, 0, import_flatten, NULL },
    { "Squeeze", NULL, 1, 0, import_squeeze, NULL },
    { "Unsqueeze", NULL, 1, 0, import_unsqueeze, NULL },
    { "Constant", NULL, 1, 0, import_constant, NULL },
    { 0 },
};
