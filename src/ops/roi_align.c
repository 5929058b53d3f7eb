/* Regions of images in a grid of bins, sampled between elements (He et al. 2017): x (N,C,H,W),
 * regions (R,4) of x1,y1,x2,y2 and the numbers (R) of their images give (R,C,bins). The regions get
 * no gradient. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/roi.h"

static const QnAttrField roi_align_fields[] = { QN_ROI_FIELDS };

static QnStatus roi_align_infer(QnInfer *c)
{
    const QnType *x = c->in[0];
    QN_TRY(qn_roi_check(c, "roi_align", c->attr, x, 1));
    c->out[0] =
        (QnType){ .dtype = x->dtype, .shape = qn_roi_shape(c->attr, &x->shape, &c->in[1]->shape) };
    return QN_OK;
}

static QnCost roi_align_cost(const QnNode *n)
{
    QnCost c = { .flops = qn_roi_flops(n->attr, &n->out[0].type.shape),
                 .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += (double)qn_type_bytes(&n->in[i]->type);
    return c;
}

/* The greatest of a bin's weighted elements; 0 where no point lies inside. */
static double bin_max(const QnRoi *roi, int64_t p, int64_t q, const double *x)
{
    double top = 0;
    bool any = false;
    for (int64_t i = 0; i < roi->n[0]; i++) {
        for (int64_t j = 0; j < roi->n[1]; j++) {
            QnRoiPoint at;
            bool inside = qn_roi_point(roi, p, q, i, j, &at);
            for (int k = 0; k < 4; k++) {
                double v = inside ? at.weight[k] * x[at.at[k]] : 0;
                top = any ? fmax(top, v) : v;
                any = true;
            }
        }
    }
    return top;
}

static QnStatus roi_align_max(const QnRefArgs *a)
{
    const QnRoiAttr *attr = a->attr;
    const QnShape *x = &a->in_type[0]->shape;
    int64_t c = x->dim[1], plane = x->dim[2] * x->dim[3], o = 0;
    for (int64_t r = 0; r < a->in_type[1]->shape.dim[0]; r++) {
        QnRoi roi;
        QN_TRY(qn_roi_at("roi_align", attr, x, a->in[1], a->in[2], r, &roi));
        for (int64_t k = 0; k < c; k++) {
            const double *from = a->in[0] + (roi.image * c + k) * plane;
            for (int64_t p = 0; p < attr->size.v[0]; p++) {
                for (int64_t q = 0; q < attr->size.v[1]; q++)
                    a->out[0][o++] = bin_max(&roi, p, q, from);
            }
        }
    }
    return QN_OK;
}

static QnStatus roi_align_ref(const QnRefArgs *a)
{
    if (((const QnRoiAttr *)a->attr)->mode == QN_ROI_MAX)
        return roi_align_max(a);
    return qn_roi_avg("roi_align", a->attr, &a->in_type[0]->shape, a->in[1], a->in[2],
                      a->in_type[1]->shape.dim[0], a->in[0], a->out[0], false);
}

static void roi_align_grad_emit(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnRoiAttr *a = n->attr;
    if (a->mode == QN_ROI_MAX) {
        qn_fail(QN_EUNSUPPORTED, "roi_align: no gradient in mode max; avg has one");
        qn_graph_poison(g);
        return;
    }
    dx[0] = qn_roi_align_grad(g, dy[0], n->in[1], n->in[2], a, &n->in[0]->type.shape);
}

static const QnSample roi_align_samples[] = {
    { .in = { { 4, { 2, 3, 6, 5 } },
              { 2, { 4, 4 }, .lo = 0, .hi = 9 },
              { 1, { 4 }, QN_DTYPE_I64, 0, 1 } },
      .n_in = 3,
      .attr = &(QnRoiAttr){ .size = { 2, { 2, 3 } }, .sampling = 2, .scale = 0.5 },
      .flags = QN_SAMPLE_NO_GRAD }, /* regions get none */
    { .in = { { 4, { 2, 2, 13, 10 } },
              { 2, { 3, 4 }, .lo = -3, .hi = 15 },
              { 1, { 3 }, QN_DTYPE_I32, 0, 1 } },
      .n_in = 3,
      .attr = &(QnRoiAttr){ .size = { 2, { 3, 1 } }, .scale = 1, .half_pixel = true },
      .flags = QN_SAMPLE_NO_GRAD },
    { .in = { { 4, { 2, 3, 6, 5 } },
              { 2, { 4, 4 }, .lo = 0, .hi = 6 },
              { 1, { 4 }, QN_DTYPE_I64, 0, 1 } },
      .n_in = 3,
      .attr =
          &(QnRoiAttr){ .size = { 2, { 2, 2 } }, .mode = QN_ROI_MAX, .sampling = 2, .scale = 1 },
      .flags = QN_SAMPLE_NO_GRAD },
};

/* images: i32 or i64. */
QN_API QnValue *qn_roi_align(QnGraph *g, QnValue *x, QnValue *rois, QnValue *images,
                             const QnRoiAttr *attr)
{
    return qn_emit3(g, &qn_op_roi_align, attr, x, rois, images);
}

/* Before opset 16 elements had no half pixels. */
static QnStatus roi_align_import(QnOnnxNode *n)
{
    int64_t high = qn_onnx_int(n, "output_height", 1), wide = qn_onnx_int(n, "output_width", 1);
    const char *const usual = n->opset < 16 ? "output_half_pixel" : "half_pixel";
    QnRoiAttr attr = { .size = { 2, { high, wide } },
                       .sampling = qn_onnx_int(n, "sampling_ratio", 0),
                       .scale = qn_onnx_float(n, "spatial_scale", 1) };
    attr.half_pixel = qn_onnx_is(n, "coordinate_transformation_mode", "half_pixel", usual);
    if (qn_onnx_is(n, "mode", "max", "avg"))
        attr.mode = QN_ROI_MAX;
    else if (!qn_onnx_is(n, "mode", "avg", "avg"))
        return qn_onnx_refuse(n, "this mode");
    return qn_onnx_out0(
        n, qn_roi_align(n->g, qn_onnx_in(n, 0), qn_onnx_in(n, 1), qn_onnx_in(n, 2), &attr));
}

static const QnOnnxMap roi_align_onnx[] = {
    { .name = "RoiAlign", .since = 10, .import = roi_align_import },
};

const QnOp qn_op_roi_align = {
    .name = "roi_align",
    .version = 1,
    .doc = "regions of images sampled in a grid of bins",
    .n_in = 3,
    QN_ATTRS(QnRoiAttr, roi_align_fields),
    .infer = roi_align_infer,
    .cost = roi_align_cost,
    .ref = roi_align_ref,
    .grad = roi_align_grad_emit,
    .tol = { .f16 = 1e-2, .bf16 = 5e-2 }, /* regions are rounded too */
    QN_ONNX(roi_align_onnx),
    QN_SAMPLES(roi_align_samples),
};
#endif
