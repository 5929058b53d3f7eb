/* Gradient of roi_align in mode avg, its adjoint: dy (R,C,bins) is spread over the images' elements
 * that the bins were made of, to dx (N,C,H,W). */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/roi.h"
#include "ops/window.h"

typedef struct Attr {
    QnRoiAttr roi; /* first: QN_ROI_FIELDS */
    QnDims x;
} Attr;

static const QnAttrField roi_align_grad_fields[] = {
    QN_ROI_FIELDS,
    { .name = "x", .kind = QN_ATTR_DIMS, .offset = offsetof(Attr, x), .doc = "dims of dx" },
};

static QnStatus roi_align_grad_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    const QnType *dy = c->in[0];
    QnType x = { .dtype = dy->dtype, .shape = qn_shape_make(a->x.n, a->x.d) };
    if (a->roi.mode != QN_ROI_AVG)
        return qn_fail(QN_EARG, "roi_align_grad: only the mode avg has a gradient");
    QN_TRY(qn_roi_check(c, "roi_align_grad", &a->roi, &x, 1));
    QnShape want = qn_roi_shape(&a->roi, &x.shape, &c->in[1]->shape);
    QN_TRY(qn_window_pool_operand("roi_align_grad", dy, dy->dtype, &want));
    c->out[0] = x;
    return QN_OK;
}

static QnCost roi_align_grad_cost(const QnNode *n)
{
    QnCost c = { .flops = qn_roi_flops(n->attr, &n->in[0]->type.shape),
                 .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += (double)qn_type_bytes(&n->in[i]->type);
    return c;
}

static QnStatus roi_align_grad_ref(const QnRefArgs *a)
{
    const QnShape *x = &a->out_type[0]->shape;
    memset(a->out[0], 0, (size_t)qn_shape_count(x) * sizeof(double));
    return qn_roi_avg("roi_align_grad", a->attr, x, a->in[1], a->in[2], a->in_type[1]->shape.dim[0],
                      a->in[0], a->out[0], true);
}

static void roi_align_grad_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    dx[0] = qn_roi_align(g, dy[0], n->in[1], n->in[2], &((const Attr *)n->attr)->roi);
}

static const QnSample roi_align_grad_samples[] = {
    { .in = { { 4, { 4, 3, 2, 3 } },
              { 2, { 4, 4 }, .lo = 0, .hi = 9 },
              { 1, { 4 }, QN_DTYPE_I64, 0, 1 } },
      .n_in = 3,
      .attr = &(Attr){ { .size = { 2, { 2, 3 } }, .sampling = 2, .scale = 0.5 },
                       { 4, { 2, 3, 6, 5 } } },
      .flags = QN_SAMPLE_NO_GRAD }, /* regions get none */
    { .in = { { 4, { 3, 2, 3, 1 } },
              { 2, { 3, 4 }, .lo = -3, .hi = 15 },
              { 1, { 3 }, QN_DTYPE_I32, 0, 1 } },
      .n_in = 3,
      .attr = &(Attr){ { .size = { 2, { 3, 1 } }, .scale = 1, .half_pixel = true },
                       { 4, { 2, 2, 13, 10 } } },
      .flags = QN_SAMPLE_NO_GRAD },
};

QN_API QnValue *qn_roi_align_grad(QnGraph *g, QnValue *dy, QnValue *rois, QnValue *images,
                                  const QnRoiAttr *attr, const QnShape *x)
{
    Attr a = { *attr, { .n = x->rank } };
    memcpy(a.x.d, x->dim, sizeof a.x.d);
    return qn_emit3(g, &qn_op_roi_align_grad, &a, dy, rois, images);
}

const QnOp qn_op_roi_align_grad = {
    .name = "roi_align_grad",
    .version = 1,
    .doc = "gradient of roi_align",
    .n_in = 3,
    QN_ATTRS(Attr, roi_align_grad_fields),
    .infer = roi_align_grad_infer,
    .cost = roi_align_grad_cost,
    .ref = roi_align_grad_ref,
    .grad = roi_align_grad_grad,
    .tol = { .f16 = 1e-2, .bf16 = 5e-2 }, /* regions are rounded too */
    QN_SAMPLES(roi_align_grad_samples),
};
#endif
