/* Greatest elements of regions of images in a grid of bins (Girshick 2015): x (N,C,H,W) and regions
 * (R,5) of image,x1,y1,x2,y2, corners inclusive and rounded after scaling, give y (R,C,bins) and
 * where in x each lies (i64, counted over all of x; the number of x's elements for an empty bin,
 * whose y is 0). The first of equal elements wins and gets the gradient. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/region.h"

enum { MAX_ROI_POOL_BINS = 1 << 12 };

typedef struct Attr {
    QnInts size;
    double scale;
} Attr;

static const QnAttrField max_roi_pool_fields[] = {
    { .name = "size",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(Attr, size),
      .doc = "bins along the two spatial axes" },
    { .name = "scale",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, scale),
      .def = 1,
      .doc = "from the regions' coordinates to elements" },
};

static QnStatus max_roi_pool_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    const QnType *x = c->in[0], *rois = c->in[1];
    char s[QN_TYPE_TEXT_BYTES], t[QN_TYPE_TEXT_BYTES];
    if (!qn_dtype_is_float(x->dtype) || rois->dtype != x->dtype)
        return qn_fail(QN_EDTYPE,
                       "max_roi_pool: x is %s, regions are %s; both must be of one float type",
                       qn_dtype_name(x->dtype), qn_dtype_name(rois->dtype));
    if (x->shape.rank != 4 || rois->shape.rank != 2 || rois->shape.dim[1] != 5)
        return qn_fail(QN_ESHAPE,
                       "max_roi_pool: x %s and regions %s; they must be (N,C,H,W) and (R,5) of "
                       "image,x1,y1,x2,y2",
                       qn_shape_text(&x->shape, s), qn_shape_text(&rois->shape, t));
    for (int k = 0; k < 2; k++) {
        if (a->size.n != 2 || a->size.v[k] < 1 || a->size.v[k] > MAX_ROI_POOL_BINS)
            return qn_fail(QN_EARG, "max_roi_pool: size must name bins along two axes, in 1..%d",
                           MAX_ROI_POOL_BINS);
    }
    QnShape y = QN_SHAPE(rois->shape.dim[0], x->shape.dim[1], a->size.v[0], a->size.v[1]);
    c->out[0] = (QnType){ .dtype = x->dtype, .shape = y };
    c->out[1] = (QnType){ .dtype = QN_DTYPE_I64, .shape = y };
    return QN_OK;
}

static QnCost max_roi_pool_cost(const QnNode *n)
{
    double y = (double)qn_shape_count(&n->out[0].type.shape);
    return (QnCost){ .flops = 4 * y, /* some four elements a bin */
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type) +
                                   (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) +
                                      (double)qn_type_bytes(&n->out[1].type) };
}

/* Elements [from, to) of an axis of length n that belong to bin p. */
static void max_roi_pool_bin(double begin, double bin, int64_t p, int64_t n, int64_t *from,
                             int64_t *to)
{
    double low = floor((double)p * bin) + begin, high = ceil((double)(p + 1) * bin) + begin;
    *from = (int64_t)fmin(fmax(low, 0), (double)n);
    *to = (int64_t)fmin(fmax(high, 0), (double)n);
}

static QnStatus max_roi_pool_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    const QnShape *x = &a->in_type[0]->shape;
    int64_t c = x->dim[1], h = x->dim[2], w = x->dim[3], o = 0;
    for (int64_t r = 0; r < a->in_type[1]->shape.dim[0]; r++) {
        const double *roi = a->in[1] + 5 * r;
        double begin[2], bin[2];
        int64_t image;
        QN_TRY(qn_region_index("max_roi_pool", roi[0], r, x->dim[0], false, &image));
        for (int d = 0; d < 2; d++) {
            begin[d] = round(roi[2 - d] * attr->scale);
            double end = round(roi[4 - d] * attr->scale);
            if (!isfinite(begin[d]) || !isfinite(end))
                return qn_fail(QN_EARG, "max_roi_pool: region %lld has a side from %g to %g",
                               (long long)r, roi[2 - d], roi[4 - d]);
            bin[d] = fmax(end - begin[d] + 1, 1) / (double)attr->size.v[d];
        }
        for (int64_t k = 0; k < c * attr->size.v[0] * attr->size.v[1]; k++, o++) {
            int64_t q = k % attr->size.v[1], p = k / attr->size.v[1] % attr->size.v[0];
            int64_t base = (image * c + k / attr->size.v[1] / attr->size.v[0]) * h * w;
            int64_t y0, y1, x0, x1, best = -1;
            max_roi_pool_bin(begin[0], bin[0], p, h, &y0, &y1);
            max_roi_pool_bin(begin[1], bin[1], q, w, &x0, &x1);
            for (int64_t i = y0; i < y1; i++) {
                for (int64_t j = x0; j < x1; j++) {
                    int64_t at = base + i * w + j;
                    best = best < 0 || a->in[0][at] > a->in[0][best] ? at : best;
                }
            }
            a->out[0][o] = best < 0 ? 0 : a->in[0][best];
            a->out[1][o] = (double)(best < 0 ? qn_shape_count(x) : best);
        }
    }
    return QN_OK;
}

/* One place more than x has takes what empty bins send. */
static void max_roi_pool_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnType *x = &n->in[0]->type;
    if (!dy[0])
        return;
    QnDim count = qn_shape_product(g, &x->shape, 0, 4);
    QnShape places = QN_SHAPE(qn_dim_add(g, count, 1));
    QnShape flat = QN_SHAPE(qn_shape_product(g, &n->out[0].type.shape, 0, 4));
    QnValue *zeros = qn_full(g, 0, x->dtype, &places);
    QnValue *sum =
        qn_scatter_add(g, zeros, qn_reshape(g, &n->out[1], &flat), qn_reshape(g, dy[0], &flat), 0);
    dx[0] = qn_reshape(g, qn_slice_axis(g, sum, 0, 0, -1), &x->shape);
}

static const QnSample max_roi_pool_samples[] = {
    { .in = { { 4, { 1, 3, 6, 5 }, .distinct = true }, { 2, { 4, 5 }, .lo = 0, .hi = 0.4 } },
      .n_in = 2,
      .attr = &(Attr){ { 2, { 2, 1 } }, 0.9 },
      .flags = QN_SAMPLE_NO_GRAD }, /* regions get none */
    { .in = { { 4, { 1, 2, 13, 10 }, .distinct = true }, { 2, { 3, 5 }, .lo = 0, .hi = 0.4 } },
      .n_in = 2,
      .attr = &(Attr){ { 2, { 3, 4 } }, 21.3 },
      .flags = QN_SAMPLE_NO_GRAD },
};

/* The node: outputs y and places. */
QN_API QnNode *qn_max_roi_pool_node(QnGraph *g, QnValue *x, QnValue *rois, QnInts size,
                                    double scale)
{
    return qn_emit(g, &qn_op_max_roi_pool, &(Attr){ size, scale }, (QnValue *[]){ x, rois }, 2);
}

/* y alone. */
QN_API QnValue *qn_max_roi_pool(QnGraph *g, QnValue *x, QnValue *rois, QnInts size, double scale)
{
    return qn_node_out(g, qn_max_roi_pool_node(g, x, rois, size, scale), 0);
}

static QnStatus max_roi_pool_import(QnOnnxNode *n)
{
    QnInts size;
    if (!qn_onnx_ints(n, "pooled_shape", &size))
        return qn_fail(QN_EFORMAT, "attribute 'pooled_shape' is missing");
    return qn_onnx_out0(n, qn_max_roi_pool(n->g, qn_onnx_in(n, 0), qn_onnx_in(n, 1), size,
                                           qn_onnx_float(n, "spatial_scale", 1)));
}

static const QnOnnxMap max_roi_pool_onnx[] = {
    { .name = "MaxRoiPool", .since = 1, .import = max_roi_pool_import },
};

const QnOp qn_op_max_roi_pool = {
    .name = "max_roi_pool",
    .version = 1,
    .doc = "greatest elements of regions in a grid of bins",
    .n_in = 2,
    .n_out = 2,
    QN_ATTRS(Attr, max_roi_pool_fields),
    .infer = max_roi_pool_infer,
    .cost = max_roi_pool_cost,
    .ref = max_roi_pool_ref,
    .grad = max_roi_pool_grad,
    QN_ONNX(max_roi_pool_onnx),
    QN_SAMPLES(max_roi_pool_samples),
};
#endif
