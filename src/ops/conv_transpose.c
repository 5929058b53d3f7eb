/* Transposed convolution: the gradient of a convolution by its input, run forwards.
 *   x (N,C,in...), w (C,M/groups,k...), bias (M), y (N,M,out...),
 *   out = (in - 1) * stride - pads + dilation * (k - 1) + 1 + output_pad
 * PyTorch's conventions; output_pad adds rows at the end that only windows cut short reach. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/onnx_window.h"
#include "ops/ops.h"
#include "ops/window.h"

typedef struct Attr {
    QnConvAttr conv;
    QnInts output_pads;
} Attr;

static const QnAttrField conv_transpose_fields[] = {
    QN_CONV_FIELDS,
    { .name = "output_pads",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(Attr, output_pads),
      .doc = "added to the output's size at the end of each axis; none: all 0" },
};

static QnStatus conv_transpose_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    const QnShape *x = &c->in[0]->shape, *w = &c->in[1]->shape;
    int n = x->rank - 2;
    QN_TRY(qn_norm_dtypes(c, "conv_transpose", ~0u));
    if (n < 1 || n > 3 || w->rank != x->rank || (a->output_pads.n && a->output_pads.n != n) ||
        (a->conv.pads.n && a->conv.pads.n != 2 * n))
        return qn_fail(QN_ESHAPE, "conv_transpose: x must be (N,C,in...) of rank 3 to 5, w "
                                  "(C,M/groups,k...), and lists as long as there are axes");
    QnConvAttr f = qn_window_conv_full(&a->conv, n);
    QnShape y = { .rank = x->rank,
                  .dim = { x->dim[0], qn_dim_mul(c->graph, w->dim[1], f.groups) } };
    for (int i = 0; i < n; i++) {
        QnGraph *g = c->graph;
        int64_t stride = f.strides.v[i], dil = f.dilations.v[i];
        int64_t extra = a->output_pads.n ? a->output_pads.v[i] : 0;
        if (extra < 0 || extra >= QN_MAX(stride, dil) || extra > INT32_MAX)
            return qn_fail(QN_EARG,
                           "conv_transpose: output_pads holds %lld; it must be below "
                           "stride or dilation",
                           (long long)extra);
        QnDim full = qn_dim_mul(g, qn_dim_sub(g, x->dim[2 + i], 1), stride);
        full = qn_dim_add(g, full, qn_dim_mul(g, qn_dim_sub(g, w->dim[2 + i], 1), dil));
        if (f.pads.v[i] > INT32_MAX || f.pads.v[n + i] > INT32_MAX || f.pads.v[i] < 0 ||
            f.pads.v[n + i] < 0)
            return qn_fail(QN_EARG, "conv_transpose: pads must lie in 0..%d", INT32_MAX);
        int64_t pads = f.pads.v[i] + f.pads.v[n + i];
        if (full >= 0 && full + 1 + extra < pads)
            return qn_fail(QN_ESHAPE, "conv_transpose: pads of %lld leave nothing of axis %d",
                           (long long)pads, i);
        y.dim[2 + i] = qn_dim_sub(g, qn_dim_add(g, full, 1 + extra), pads);
    }
    QnShape back;
    QN_TRY(qn_window_conv_shape(c->graph, "conv_transpose", &f, &y, w, &back));
    QN_TRY(qn_norm_shape(c, "conv_transpose", 0, &back));
    QnShape channel = QN_SHAPE(y.dim[1]);
    if (qn_norm_has(c, 2))
        QN_TRY(qn_norm_shape(c, "conv_transpose", 2, &channel));
    c->out[0] = (QnType){ .dtype = c->in[0]->dtype, .shape = y };
    return QN_OK;
}

static void conv_transpose_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    const QnShape *y = &n->out[0].type.shape;
    out[0] = qn_conv_dx(g, n->in[0], n->in[1], &a->conv, y);
    if (n->n_in > 2 && n->in[2]) {
        QnNormView v = qn_norm_view_channel(y);
        out[0] = qn_add(g, out[0], qn_reshape(g, n->in[2], &v.param));
    }
}

static const QnSample conv_transpose_samples[] = {
    { .in = { { 4, { 2, 4, 3, 4 } }, { 4, { 4, 3, 3, 3 } }, { 1, { 3 } } },
      .n_in = 3,
      .attr = &(Attr){ { { 2, { 2, 2 } }, { 4, { 1, 1, 1, 1 } }, { 0 }, 1 }, { 2, { 1, 0 } } } },
    { .in = { { 3, { 1, 4, 43 } }, { 3, { 4, 1, 4 } } },
      .n_in = 2,
      .attr = &(Attr){ { { 1, { 3 } }, { 2, { 0, 1 } }, { 0 }, 2 }, { 0 } } },
};

/* bias may be NULL; output_pads as many as spatial axes, or n = 0. */
QN_API QnValue *qn_conv_transpose(QnGraph *g, QnValue *x, QnValue *w, QnValue *bias,
                                  const QnConvAttr *attr, QnInts output_pads)
{
    return qn_emitn(g, &qn_op_conv_transpose, &(Attr){ *attr, output_pads },
                    (QnValue *[]){ x, w, bias }, bias ? 3 : 2);
}

/* Per axis: the output's size without pads is stride * (in - 1) + output_padding + extent; pads
 * take away from both ends so much that output_shape, or with SAME in * stride, is left. */
static QnStatus conv_transpose_pads(const QnOnnxNode *n, const QnShape *x, const QnShape *w,
                                    QnConvAttr *attr, QnInts *extra)
{
    int axes = x->rank - 2;
    QnInts shape;
    bool given = qn_onnx_ints(n, "output_shape", &shape);
    bool upper = qn_onnx_is(n, "auto_pad", "SAME_UPPER", "NOTSET");
    bool same = upper || qn_onnx_is(n, "auto_pad", "SAME_LOWER", "NOTSET");
    if (qn_onnx_ints(n, "output_padding", extra) && extra->n != axes)
        return qn_fail(QN_EFORMAT, "attribute 'output_padding' has %d numbers, %d are needed",
                       extra->n, axes);
    if (given && shape.n != axes && shape.n != x->rank)
        return qn_fail(QN_EFORMAT, "attribute 'output_shape' has %d numbers, %d are needed",
                       shape.n, axes);
    extra->n = axes;
    for (int i = 0; i < axes && (given || same); i++) {
        int64_t full = attr->strides.v[i] * (x->dim[2 + i] - 1) + extra->v[i] +
                       attr->dilations.v[i] * (w->dim[2 + i] - 1) + 1;
        int64_t want = given ? shape.v[shape.n - axes + i] : x->dim[2 + i] * attr->strides.v[i];
        int64_t pad = QN_MAX(full - want, 0);
        if (want < 0 || want > INT32_MAX)
            return qn_fail(QN_EFORMAT, "attribute 'output_shape' holds %lld", (long long)want);
        attr->pads.v[i] = upper ? pad / 2 : pad - pad / 2;
        attr->pads.v[axes + i] = pad - attr->pads.v[i];
        extra->v[i] += QN_MAX(want - full, 0); /* more than there is: zeros at the end */
    }
    return QN_OK;
}

/* What the operator's output_pads cannot add (a stride or more) is padded with the bias. */
static QnStatus conv_transpose_import(QnOnnxNode *n)
{
    const QnShape *x;
    const QnType *w = qn_onnx_type(n, 1);
    QnConvAttr attr;
    QnInts extra;
    QN_TRY(qn_onnx_window_input(n, &x));
    if (!w)
        return qn_fail(QN_EDTYPE, "input 1 must be a tensor of numbers");
    QN_TRY(qn_onnx_window_conv(n, x, &w->shape, &attr));
    QN_TRY(conv_transpose_pads(n, x, &w->shape, &attr, &extra));
    QnPadAttr pad = { .before = { .n = x->rank }, .after = { .n = x->rank } };
    bool pads = false;
    for (int i = 0; i < extra.n; i++) {
        int64_t most = QN_MAX(attr.strides.v[i], attr.dilations.v[i]) - 1;
        if (extra.v[i] < 0)
            return qn_onnx_refuse(n, "output_padding of %lld", (long long)extra.v[i]);
        pad.after.v[2 + i] = QN_MAX(extra.v[i] - most, 0);
        extra.v[i] -= pad.after.v[2 + i];
        pads |= pad.after.v[2 + i] > 0;
    }
    QnValue *bias = qn_onnx_in_or(n, 2, NULL);
    QnValue *y = qn_conv_transpose(n->g, qn_onnx_in(n, 0), qn_onnx_in(n, 1), pads ? NULL : bias,
                                   &attr, extra);
    if (!pads || qn_value_is_poison(y))
        return qn_onnx_out0(n, y);
    y = qn_pad(n->g, y, &pad);
    if (bias && !qn_value_is_poison(y))
        y = qn_add(n->g, y,
                   qn_reshape(n->g, bias,
                              &(QnShape){ .rank = x->rank - 1,
                                          .dim = { w->shape.dim[1] * attr.groups, 1, 1, 1 } }));
    return qn_onnx_out0(n, y);
}

static const QnOnnxMap conv_transpose_onnx[] = {
    { .name = "ConvTranspose", .since = 1, .import = conv_transpose_import },
};

const QnOp qn_op_conv_transpose = {
    .name = "conv_transpose",
    .version = 1,
    .doc = "transposed convolution over 1 to 3 spatial axes",
    .n_in = 2,
    .n_in_max = 3,
    QN_ATTRS(Attr, conv_transpose_fields),
    .infer = conv_transpose_infer,
    .lower = conv_transpose_lower,
    QN_ONNX(conv_transpose_onnx),
    QN_SAMPLES(conv_transpose_samples),
};
#endif
