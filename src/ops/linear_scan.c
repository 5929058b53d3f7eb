/* Linear recurrence along an axis: y_i = a_i y_(i-1) + b_i, with y before the first being 0. The
 * gradient of running products, and the core of linear recurrent layers. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* a, b, y: (outer, n, inner); one item a row. */
QN_KERNEL linear_scan_row(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *a, QN_GLOBAL const QN_T *b,
                          qn_long n, qn_long inner, qn_long rows, qn_long reverse)
{
    qn_long row = qn_item();
    if (row >= rows)
        return;
    qn_long base = row / inner * n * inner + row % inner;
    float s = 0.0f;
    for (qn_long i = 0; i < n; i++) {
        qn_long at = base + (reverse ? n - 1 - i : i) * inner;
        s = qn_load(a, at) * s + qn_load(b, at);
        qn_store(y, at, s);
    }
}
#endif

#ifdef QN_HOST
#include "ops/util.h"

typedef struct Attr {
    int64_t axis;
    bool reverse;
} Attr;

static const QnAttrField linear_scan_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "along which it runs" },
    { .name = "reverse",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, reverse),
      .doc = "from the end" },
};

static QnStatus linear_scan_infer(QnInfer *c)
{
    if (!qn_type_is_equal(c->in[0], c->in[1])) {
        char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "linear_scan: factors are %s, terms %s; they must agree",
                       qn_type_text(c->in[0], a), qn_type_text(c->in[1], b));
    }
    return qn_util_axis_infer(c, "linear_scan", ((const Attr *)c->attr)->axis);
}

static QnCost linear_scan_cost(const QnNode *n)
{
    double bytes = (double)qn_type_bytes(&n->in[0]->type);
    return (QnCost){ .flops = 2 * (double)qn_shape_count(&n->in[0]->type.shape),
                     .bytes_read = 2 * bytes,
                     .bytes_written = bytes };
}

static QnStatus linear_scan_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    int axis = 0;
    if (qn_shape_count(&a->out_type[0]->shape) == 0)
        return QN_OK;
    qn_shape_axis(&a->in_type[0]->shape, attr->axis, &axis);
    QnRows r = qn_util_rows(&a->in_type[0]->shape, axis);
    for (int64_t row = 0; row < r.outer * r.inner; row++) {
        int64_t base = row / r.inner * r.n * r.inner + row % r.inner;
        double s = 0;
        for (int64_t i = 0; i < r.n; i++) {
            int64_t at = base + (attr->reverse ? r.n - 1 - i : i) * r.inner;
            s = a->in[0][at] * s + a->in[1][at];
            a->out[0][at] = s;
        }
    }
    return QN_OK;
}

/* db_i = dy_i + a_(i+1) db_(i+1), da_i = db_i y_(i-1) */
static void linear_scan_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const Attr *a = n->attr;
    int64_t step = a->reverse ? 1 : -1;
    dx[1] = qn_linear_scan(g, qn_shift(g, n->in[0], a->axis, step), dy[0], a->axis, !a->reverse);
    dx[0] = qn_mul(g, dx[1], qn_shift(g, &n->out[0], a->axis, -step));
}

static QnStatus linear_scan_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    QN_TRY(qn_util_rows_call("linear_scan_row", &n->in[0]->type.shape, a->axis, c));
    c->group_size = 0;
    qn_device_int(c, c->n_groups);
    qn_device_int(c, a->reverse);
    return QN_OK;
}

static const QnSample linear_scan_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } } }, .n_in = 2, .attr = &(Attr){ -1, false } },
    { .in = { { 3, { 2, 5, 3 } }, { 3, { 2, 5, 3 } } }, .n_in = 2, .attr = &(Attr){ 1, true } },
    { .in = { { 1, { 130 } }, { 1, { 130 } } }, .n_in = 2 },
};

QN_API QnValue *qn_linear_scan(QnGraph *g, QnValue *a, QnValue *b, int64_t axis, bool reverse)
{
    return qn_emit2(g, &qn_op_linear_scan, &(Attr){ axis, reverse }, a, b);
}

const QnOp qn_op_linear_scan = {
    .name = "linear_scan",
    .version = 1,
    .doc = "y_i = a_i y_(i-1) + b_i along an axis",
    .n_in = 2,
    .traits = QN_ROWWISE,
    QN_ATTRS(Attr, linear_scan_fields),
    .infer = linear_scan_infer,
    .cost = linear_scan_cost,
    .ref = linear_scan_ref,
    .grad = linear_scan_grad,
    .inplace = 3,
    .device = QN_TEXT(linear_scan),
    .call = linear_scan_call,
    QN_SAMPLES(linear_scan_samples),
};
#endif
