/* Images at places that a grid names: x (N,C,in...) of one to three spatial axes, grid
 * (N,out...,axes) with the place along the last axis first, y (N,C,out...). Places and weights in
 * f32 or wider. Jaderberg et al. 2015. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/onnx.h"
#include "ops/region.h"
#include "ops/sampler.h"

static const char *const mode_names[] = { "nearest", "linear", "cubic", NULL };
static const char *const padding_names[] = { "zeros", "border", "reflection", NULL };

static const QnAttrField grid_sample_fields[] = {
    { .name = "mode",
      .kind = QN_ATTR_ENUM,
      .offset = offsetof(QnGridSampleAttr, mode),
      .def = QN_RESIZE_LINEAR,
      .names = mode_names,
      .doc = "interpolation; cubic is Keys' with -0.75" },
    { .name = "padding",
      .kind = QN_ATTR_ENUM,
      .offset = offsetof(QnGridSampleAttr, padding),
      .names = padding_names,
      .doc = "what lies outside" },
    { .name = "align_corners",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(QnGridSampleAttr, align_corners),
      .doc = "-1 and 1 are the centres of the outermost elements, not their edges" },
};

static QnStatus grid_sample_infer(QnInfer *c)
{
    const QnShape *x = &c->in[0]->shape, *grid = &c->in[1]->shape;
    char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
    int axes = x->rank - 2;
    if (!qn_dtype_is_float(c->in[0]->dtype) || !qn_dtype_is_float(c->in[1]->dtype))
        return qn_fail(QN_EDTYPE, "grid_sample: needs floats, not %s and %s",
                       qn_dtype_name(c->in[0]->dtype), qn_dtype_name(c->in[1]->dtype));
    if (axes < 1 || axes > QN_SAMPLER_AXES || grid->rank != x->rank ||
        grid->dim[grid->rank - 1] != axes || !qn_region_may_equal(x->dim[0], grid->dim[0]))
        return qn_fail(QN_ESHAPE,
                       "grid_sample: x %s and grid %s; they must be (N,C,in...) of one to three "
                       "spatial axes and (N,out...,axes)",
                       qn_shape_text(x, p), qn_shape_text(grid, q));
    c->out[0] = (QnType){ .dtype = c->in[0]->dtype, .shape = *x };
    for (int i = 0; i < axes; i++) {
        if (x->dim[2 + i] <= 0)
            return qn_fail(x->dim[2 + i] ? QN_EUNSUPPORTED : QN_ESHAPE,
                           "grid_sample: spatial axis %d of x is %s", i,
                           x->dim[2 + i] ? "symbolic; its length must be known" : "empty");
        c->out[0].shape.dim[2 + i] = grid->dim[1 + i];
    }
    return QN_OK;
}

/* From -1..1 to elements of an axis of length n. */
static QnValue *grid_sample_place(QnGraph *g, QnValue *v, int64_t n, bool align_corners)
{
    double half = 0.5 * (double)(align_corners ? n - 1 : n);
    return qn_add_scalar(g, qn_mul_scalar(g, v, half), align_corners ? half : half - 0.5);
}

static void grid_sample_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const QnGridSampleAttr *a = n->attr;
    const QnShape *x = &n->in[0]->type.shape;
    QnDtype t = qn_norm_stat(n->in[0]->type.dtype);
    int axes = x->rank - 2;
    QnSamplerTaps taps[QN_SAMPLER_AXES];
    QnInts last = { .n = x->rank, .v = { 0 } }, back = { .n = x->rank, .v = { 0, x->rank - 1 } };
    int64_t cells = 1;
    QnValue *grid = qn_cast(g, n->in[1], t);
    QnShape first = { .rank = axes + 1, .dim = { x->dim[0] } };
    for (int d = 0; d < axes; d++) {
        QnValue *v = qn_squeeze(g, qn_slice_axis(g, grid, -1, axes - 1 - d, axes - d), -1);
        v = grid_sample_place(g, v, x->dim[2 + d], a->align_corners);
        taps[d] = qn_sampler_taps(g, v, x->dim[2 + d], a);
        cells *= x->dim[2 + d];
        last.v[1 + d] = 2 + d;
        back.v[2 + d] = 1 + d;
        first.dim[1 + d] = 1;
    }
    last.v[x->rank - 1] = 1;
    QnShape rows = QN_SHAPE(qn_dim_mul(g, x->dim[0], cells), x->dim[1]);
    QnValue *from = qn_reshape(g, qn_transpose(g, n->in[0], last), &rows);
    QnValue *image = qn_mul_scalar(g, qn_arange(g, 0, 1, x->dim[0], QN_DTYPE_I64), (double)cells);
    QnValue *v = qn_sampler_rows(g, from, qn_reshape(g, image, &first), taps, axes, t);
    out[0] = qn_cast(g, qn_transpose(g, v, back), n->in[0]->type.dtype);
}

#define ATTR(...)                                                                                  \
    .attr = &(QnGridSampleAttr)                                                                    \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
static const QnSample grid_sample_samples[] = {
    { .in = { { 4, { 2, 3, 4, 5 } }, { 4, { 2, 3, 2, 2 } } },
      .n_in = 2,
      .lo = -1.3,
      .hi = 1.3,
      ATTR(QN_RESIZE_LINEAR, QN_SAMPLE_ZEROS, false) },
    { .in = { { 3, { 1, 2, 130 } }, { 3, { 1, 7, 1 } } },
      .n_in = 2,
      .lo = -1.3,
      .hi = 1.3,
      ATTR(QN_RESIZE_LINEAR, QN_SAMPLE_BORDER, true) },
    { .in = { { 5, { 1, 2, 3, 4, 3 } }, { 5, { 1, 2, 2, 2, 3 } } },
      .n_in = 2,
      .lo = -2.3,
      .hi = 2.3,
      ATTR(QN_RESIZE_LINEAR, QN_SAMPLE_REFLECTION, false) },
    { .in = { { 4, { 2, 1, 5, 4 } }, { 4, { 2, 3, 3, 2 } } },
      .n_in = 2,
      .lo = -1.3,
      .hi = 1.3,
      ATTR(QN_RESIZE_CUBIC, QN_SAMPLE_ZEROS, false) },
    { .in = { { 4, { 1, 2, 3, 4 } }, { 4, { 1, 3, 2, 2 } } },
      .n_in = 2,
      .lo = -2.3,
      .hi = 2.3,
      ATTR(QN_RESIZE_CUBIC, QN_SAMPLE_REFLECTION, true) },
    { .in = { { 4, { 1, 2, 3, 4 } }, { 4, { 1, 3, 2, 2 } } },
      .n_in = 2,
      .lo = -1.3,
      .hi = 1.3,
      ATTR(QN_RESIZE_NEAREST, QN_SAMPLE_REFLECTION, false) },
};
#undef ATTR

QN_API QnValue *qn_grid_sample(QnGraph *g, QnValue *x, QnValue *grid, const QnGridSampleAttr *attr)
{
    return qn_emit2(g, &qn_op_grid_sample, attr, x, grid);
}

static QnStatus grid_sample_import(QnOnnxNode *n)
{
    const char *const other = n->opset < 20 ? "bilinear" : "linear";
    QnGridSampleAttr a = { .mode = QN_RESIZE_LINEAR,
                           .align_corners = qn_onnx_int(n, "align_corners", 0) != 0 };
    if (qn_onnx_is(n, "mode", "nearest", other))
        a.mode = QN_RESIZE_NEAREST;
    else if (qn_onnx_is(n, "mode", "cubic", other) || qn_onnx_is(n, "mode", "bicubic", other))
        a.mode = QN_RESIZE_CUBIC;
    else if (!qn_onnx_is(n, "mode", "linear", other) && !qn_onnx_is(n, "mode", "bilinear", other))
        return qn_onnx_refuse(n, "this mode of interpolation");
    if (qn_onnx_is(n, "padding_mode", "border", "zeros"))
        a.padding = QN_SAMPLE_BORDER;
    else if (qn_onnx_is(n, "padding_mode", "reflection", "zeros"))
        a.padding = QN_SAMPLE_REFLECTION;
    else if (!qn_onnx_is(n, "padding_mode", "zeros", "zeros"))
        return qn_onnx_refuse(n, "this padding_mode");
    if (qn_onnx_rank(n, 0) > 2 + QN_SAMPLER_AXES)
        return qn_onnx_refuse(n, "%d spatial axes", qn_onnx_rank(n, 0) - 2);
    return qn_onnx_out0(n, qn_grid_sample(n->g, qn_onnx_in(n, 0), qn_onnx_in(n, 1), &a));
}

static const QnOnnxMap grid_sample_onnx[] = {
    { .name = "GridSample", .since = 16, .import = grid_sample_import },
};

const QnOp qn_op_grid_sample = {
    .name = "grid_sample",
    .version = 1,
    .doc = "images sampled at places that a grid names",
    .n_in = 2,
    QN_ATTRS(QnGridSampleAttr, grid_sample_fields),
    .infer = grid_sample_infer,
    .lower = grid_sample_lower,
    QN_ONNX(grid_sample_onnx),
    QN_SAMPLES(grid_sample_samples),
};
#endif
