/* Convolution over two spatial axes whose taps are moved by offsets and weighed by a mask (Dai et
 * al. 2017, Zhu et al. 2019). Inputs x (N,C,H,W), w (M,C/groups,kh,kw), offset
 * (N,G*kh*kw*2,oh,ow) of pairs (y,x) for each of G offset groups, bias (M) and mask
 * (N,G*kh*kw,oh,ow), both optional. Elements between are linear, those outside 0. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/onnx_window.h"
#include "ops/region.h"
#include "ops/sampler.h"
#include "ops/window.h"

static const QnAttrField deform_conv_fields[] = {
    QN_CONV_FIELDS,
    { .name = "offset_groups",
      .kind = QN_ATTR_INT,
      .offset = offsetof(QnDeformConvAttr, offset_groups),
      .def = 1,
      .max = 1 << 30,
      .doc = "channels fall into as many groups with offsets of their own" },
};

static QnStatus deform_conv_small(const QnInfer *c, int i, const char *what, const QnShape *want)
{
    const QnType *t = c->n_in > i ? c->in[i] : NULL;
    if (!t || t->dtype == QN_DTYPE_COUNT)
        return QN_OK;
    if (t->dtype != c->in[0]->dtype)
        return qn_fail(QN_EDTYPE, "deform_conv: the %s is %s, x %s", what, qn_dtype_name(t->dtype),
                       qn_dtype_name(c->in[0]->dtype));
    bool fits = t->shape.rank == want->rank;
    for (int d = 0; fits && d < want->rank; d++)
        fits = qn_region_may_equal(t->shape.dim[d], want->dim[d]);
    if (!fits) {
        char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "deform_conv: the %s is %s, must be %s", what,
                       qn_shape_text(&t->shape, p), qn_shape_text(want, q));
    }
    return QN_OK;
}

static QnStatus deform_conv_infer(QnInfer *c)
{
    const QnDeformConvAttr *a = c->attr;
    const QnShape *x = &c->in[0]->shape, *w = &c->in[1]->shape;
    QnShape *y = &c->out[0].shape;
    int64_t og = QN_MAX(a->offset_groups, 1);
    char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
    QN_TRY(qn_window_conv_operand(c, "deform_conv", NULL));
    if (x->rank != 4 || w->rank != 4)
        return qn_fail(QN_ESHAPE,
                       "deform_conv: x %s and w %s; they must be (N,C,H,W) and (M,C/groups,kh,kw)",
                       qn_shape_text(x, p), qn_shape_text(w, q));
    for (int i = 0; i < 4; i++) {
        if (w->dim[i] < 0 || (i > 0 && x->dim[i] < 0))
            return qn_fail(QN_EUNSUPPORTED,
                           "deform_conv: x %s and w %s; only the batch may be symbolic",
                           qn_shape_text(x, p), qn_shape_text(w, q));
    }
    if (x->dim[2] == 0 || x->dim[3] == 0 || x->dim[1] % og)
        return qn_fail(QN_ESHAPE,
                       "deform_conv: x %s in %lld offset groups; its channels must fall into them, "
                       "its images must not be empty",
                       qn_shape_text(x, p), (long long)og);
    QN_TRY(qn_window_conv_shape(c->graph, "deform_conv", &a->conv, x, w, y));
    c->out[0].dtype = c->in[0]->dtype;
    QnDim taps = qn_dim_mul(c->graph, og, qn_dim_mul(c->graph, w->dim[2], w->dim[3]));
    QnShape mask = QN_SHAPE(x->dim[0], taps, y->dim[2], y->dim[3]), offset = mask;
    offset.dim[1] = qn_dim_mul(c->graph, taps, 2);
    QN_TRY(deform_conv_small(c, 2, "offset", &offset));
    QN_TRY(deform_conv_small(c, 3, "bias", &QN_SHAPE(w->dim[0])));
    return deform_conv_small(c, 4, "mask", &mask);
}

/* Where undeformed taps lie along axis d (0: y, 1: x): (taps,oh,1) or (taps,1,ow). */
static QnValue *deform_conv_base(QnGraph *g, const QnConvGeom *q, int d, QnDtype t)
{
    const QnWindow *w = &q->w;
    int axis = 1 + d; /* of the window's three */
    QnShape taps = QN_SHAPE(w->k[1], w->k[2]), column = taps, line = QN_SHAPE(1, 1);
    column.dim[1 - d] = 1;
    line.dim[d] = w->out[axis];
    QnValue *k = qn_arange(g, 0, (double)w->dil[axis], w->k[axis], t);
    k = qn_expand(g, qn_reshape(g, k, &column), &taps);
    k = qn_reshape(g, k, &QN_SHAPE(w->k[1] * w->k[2], 1, 1));
    QnValue *o = qn_arange(g, -(double)w->pad[axis], (double)w->stride[axis], w->out[axis], t);
    return qn_add(g, k, qn_reshape(g, o, &line));
}

/* The moved taps' values, (N,G,taps,oh,ow,C/G) in dtype t. */
static QnValue *deform_conv_values(QnGraph *g, QnNode *n, const QnConvGeom *q, int64_t og,
                                   QnDtype t)
{
    const QnShape *x = &n->in[0]->type.shape;
    const QnGridSampleAttr linear = { QN_RESIZE_LINEAR, QN_SAMPLE_ZEROS, false };
    int64_t taps = q->w.k[1] * q->w.k[2], cells = x->dim[2] * x->dim[3];
    QnSamplerTaps at[2];
    QnShape moves = QN_SHAPE(x->dim[0], og, taps, 2, q->w.out[1], q->w.out[2]);
    QnValue *offset = qn_reshape(g, qn_cast(g, n->in[2], t), &moves);
    for (int d = 0; d < 2; d++) {
        QnValue *v = qn_squeeze(g, qn_slice_axis(g, offset, 3, d, d + 1), 3);
        v = qn_add(g, v, deform_conv_base(g, q, d, t));
        at[d] = qn_sampler_taps(g, v, x->dim[2 + d], &linear);
    }
    QnDim images = qn_dim_mul(g, x->dim[0], og);
    QnShape split = QN_SHAPE(x->dim[0], og, x->dim[1] / og, cells);
    QnShape rows = QN_SHAPE(qn_dim_mul(g, images, cells), x->dim[1] / og);
    QnValue *from = qn_transpose(g, qn_reshape(g, n->in[0], &split), QN_AXES(0, 1, 3, 2));
    QnValue *first = qn_mul_scalar(g, qn_arange(g, 0, 1, images, QN_DTYPE_I64), (double)cells);
    first = qn_reshape(g, first, &QN_SHAPE(x->dim[0], og, 1, 1, 1));
    return qn_sampler_rows(g, qn_reshape(g, from, &rows), first, at, 2, t);
}

static void deform_conv_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const QnDeformConvAttr *a = n->attr;
    const QnType *x = &n->in[0]->type;
    const QnShape *y = &n->out[0].type.shape;
    QnDtype t = qn_norm_stat(x->dtype);
    int64_t og = QN_MAX(a->offset_groups, 1);
    QnShape plain = *y; /* the geometry does not look at the batch */
    QnShape image = x->shape;
    plain.dim[0] = image.dim[0] = 1;
    QnConvGeom q = qn_window_conv(&a->conv, &image, &n->in[1]->type.shape, &plain);
    int64_t taps = q.w.k[1] * q.w.k[2], places = y->dim[2] * y->dim[3];
    int64_t depth = q.c / q.groups * taps;
    QnValue *v = deform_conv_values(g, n, &q, og, t);
    if (n->n_in > 4 && n->in[4]) {
        QnShape mask = QN_SHAPE(y->dim[0], og, taps, y->dim[2], y->dim[3], 1);
        v = qn_mul(g, v, qn_reshape(g, qn_cast(g, n->in[4], t), &mask));
    }
    v = qn_transpose(g, qn_cast(g, v, x->dtype), QN_AXES(0, 1, 5, 2, 3, 4));
    v = qn_reshape(g, v, &QN_SHAPE(y->dim[0], q.groups, depth, places));
    QnValue *w = qn_reshape(g, n->in[1], &QN_SHAPE(q.groups, q.m / q.groups, depth));
    out[0] = qn_reshape(g, qn_matmul(g, w, v, NULL, false, false), y);
    if (n->n_in > 3 && n->in[3])
        out[0] = qn_add(g, out[0], qn_reshape(g, n->in[3], &QN_SHAPE(q.m, 1, 1)));
}

static const QnSample deform_conv_samples[] = {
    { .in = { { 4, { 2, 2, 5, 4 } },
              { 4, { 3, 2, 2, 3 } },
              { 4, { 2, 12, 4, 2 }, .lo = -1.5, .hi = 1.5, .keep_off = 0.01, .kink = 1 },
              { 1, { 3 } },
              { 4, { 2, 6, 4, 2 } } },
      .n_in = 5 },
    { .in = { { 4, { 1, 4, 6, 5 } },
              { 4, { 2, 2, 2, 2 } },
              { 4, { 1, 16, 3, 6 }, .lo = -1.5, .hi = 1.5, .keep_off = 0.01, .kink = 1 } },
      .n_in = 3,
      .attr = &(QnDeformConvAttr){ { { 2, { 2, 1 } }, { 4, { 0, 1, 1, 2 } }, { 2, { 1, 2 } }, 2 },
                                   2 } },
};

/* bias and mask may be NULL. */
QN_API QnValue *qn_deform_conv(QnGraph *g, QnValue *x, QnValue *w, QnValue *offset, QnValue *bias,
                               QnValue *mask, const QnDeformConvAttr *attr)
{
    return qn_emitn(g, &qn_op_deform_conv, attr, (QnValue *[]){ x, w, offset, bias, mask },
                    mask   ? 5
                    : bias ? 4
                           : 3);
}

static QnStatus deform_conv_import(QnOnnxNode *n)
{
    const QnShape *x;
    const QnType *w = qn_onnx_type(n, 1);
    QnDeformConvAttr attr = { .offset_groups = qn_onnx_int(n, "offset_group", 1) };
    QN_TRY(qn_onnx_window_input(n, &x));
    if (!w)
        return qn_fail(QN_EDTYPE, "input 1 must be a tensor of numbers");
    if (x->rank != 4)
        return qn_onnx_refuse(n, "%d spatial axes, only two are supported", x->rank - 2);
    QN_TRY(qn_onnx_window_conv(n, x, &w->shape, &attr.conv));
    return qn_onnx_out0(n, qn_deform_conv(n->g, qn_onnx_in(n, 0), qn_onnx_in(n, 1),
                                          qn_onnx_in(n, 2), qn_onnx_in_or(n, 3, NULL),
                                          qn_onnx_in_or(n, 4, NULL), &attr));
}

static const QnOnnxMap deform_conv_onnx[] = {
    { .name = "DeformConv", .since = 19, .import = deform_conv_import },
};

const QnOp qn_op_deform_conv = {
    .name = "deform_conv",
    .version = 1,
    .doc = "convolution whose taps are moved by offsets",
    .n_in = 3,
    .n_in_max = 5,
    QN_ATTRS(QnDeformConvAttr, deform_conv_fields),
    .infer = deform_conv_infer,
    .lower = deform_conv_lower,
    QN_ONNX(deform_conv_onnx),
    QN_SAMPLES(deform_conv_samples),
};
#endif
