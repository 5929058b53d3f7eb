/* Determinants of square matrices: x (…,M,M) to (…), by elimination with partial pivoting. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "base/mem.h"
#include "ops/onnx.h"
#include "ops/region.h"

static QnStatus det_infer(QnInfer *c)
{
    const QnShape *x = &c->in[0]->shape;
    char text[QN_TYPE_TEXT_BYTES];
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "det: needs floats, not %s", qn_dtype_name(c->in[0]->dtype));
    if (x->rank < 2 || !qn_region_may_equal(x->dim[x->rank - 1], x->dim[x->rank - 2]))
        return qn_fail(QN_ESHAPE, "det: x %s; it must hold square matrices (…,M,M)",
                       qn_shape_text(x, text));
    c->out[0] = (QnType){ .dtype = c->in[0]->dtype, .shape = qn_shape_make(x->rank - 2, x->dim) };
    return QN_OK;
}

static QnCost det_cost(const QnNode *n)
{
    const QnShape *x = &n->in[0]->type.shape;
    double m = (double)x->dim[x->rank - 1];
    return (QnCost){ .flops = (double)qn_shape_count(&n->out[0].type.shape) * m * m * m * 2 / 3,
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static void det_swap(double *a, double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

/* Of a matrix, which it eliminates. */
static double det_of(double *x, int64_t m)
{
    double d = 1;
    for (int64_t k = 0; k < m; k++) {
        int64_t top = k;
        for (int64_t i = k + 1; i < m; i++)
            top = fabs(x[i * m + k]) > fabs(x[top * m + k]) ? i : top;
        double pivot = x[top * m + k];
        if (pivot == 0)
            return 0;
        if (top != k) {
            det_swap(x + top * m, x + k * m, m);
            d = -d;
        }
        d *= pivot;
        for (int64_t i = k + 1; i < m; i++) {
            double f = x[i * m + k] / pivot;
            for (int64_t j = k; j < m; j++)
                x[i * m + j] -= f * x[k * m + j];
        }
    }
    return d;
}

static QnStatus det_ref(const QnRefArgs *a)
{
    const QnShape *x = &a->in_type[0]->shape;
    int64_t m = x->dim[x->rank - 1];
    double *work = qn_alloc_array((size_t)(m * m) + 1, sizeof *work);
    if (!work)
        return QN_ENOMEM;
    for (int64_t i = 0, n = qn_shape_count(&a->out_type[0]->shape); i < n; i++) {
        memcpy(work, a->in[0] + i * m * m, (size_t)(m * m) * sizeof *work);
        a->out[0][i] = det_of(work, m);
    }
    qn_free(work);
    return QN_OK;
}

static void det_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    (void)n, (void)dy, (void)dx;
    qn_fail(QN_EUNSUPPORTED, "det: no gradient: it would need the inverse of x");
    qn_graph_poison(g);
}

static const QnSample det_samples[] = {
    { .in = { { 2, { 4, 4 } } }, .n_in = 1, .flags = QN_SAMPLE_NO_GRAD }, /* refused */
    { .in = { { 4, { 2, 65, 1, 1 } } }, .n_in = 1, .flags = QN_SAMPLE_NO_GRAD },
    { .in = { { 3, { 5, 7, 7 } } }, .n_in = 1, .lo = -2, .hi = 3, .flags = QN_SAMPLE_NO_GRAD },
};

QN_API QnValue *qn_det(QnGraph *g, QnValue *x)
{
    return qn_emit1(g, &qn_op_det, NULL, x);
}

static const QnOnnxMap det_onnx[] = { { .name = "Det", .since = 11 } };

const QnOp qn_op_det = {
    .name = "det",
    .version = 1,
    .doc = "determinants of square matrices",
    .n_in = 1,
    .infer = det_infer,
    .cost = det_cost,
    .ref = det_ref,
    .grad = det_grad,
    QN_ONNX(det_onnx),
    QN_SAMPLES(det_samples),
};
#endif
