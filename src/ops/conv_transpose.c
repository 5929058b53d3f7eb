/* Transposed convolution: the gradient of a convolution by its input, run forwards.
 *   x (N,C,in...), w (C,M/groups,k...), bias (M), y (N,M,out...),
 *   out = (in - 1) * stride - pads + dilation * (k - 1) + 1 + output_pad
 * PyTorch's conventions; output_pad adds rows at the end that only windows cut short reach. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
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

const QnOp qn_op_conv_transpose = {
    .name = "conv_transpose",
    .version = 1,
    .doc = "transposed convolution over 1 to 3 spatial axes",
    .n_in = 2,
    .n_in_max = 3,
    QN_ATTRS(Attr, conv_transpose_fields),
    .infer = conv_transpose_infer,
    .lower = conv_transpose_lower,
    QN_SAMPLES(conv_transpose_samples),
};
#endif
