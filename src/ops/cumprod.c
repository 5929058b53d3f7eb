/* y = running product of x along an axis. exclusive leaves out the element itself, reverse runs
 * from the end. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* x, y: (outer, n, inner); one item a row. */
QN_KERNEL cumprod_row(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, qn_long n, qn_long inner,
                      qn_long rows, qn_long exclusive, qn_long reverse)
{
    qn_long row = qn_item();
    if (row >= rows)
        return;
    qn_long base = row / inner * n * inner + row % inner;
    float s = 1.0f;
    for (qn_long i = 0; i < n; i++) {
        qn_long at = base + (reverse ? n - 1 - i : i) * inner;
        float v = qn_load(x, at), next = s * v;
        qn_store(y, at, exclusive ? s : next);
        s = next;
    }
}
#endif

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/util.h"
#include "ops/whole.h"

typedef struct Attr {
    int64_t axis;
    bool exclusive, reverse;
} Attr;

static const QnAttrField cumprod_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "along which it runs" },
    { .name = "exclusive",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, exclusive),
      .doc = "leave out the element itself" },
    { .name = "reverse",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, reverse),
      .doc = "from the end" },
};

static QnStatus cumprod_infer(QnInfer *c)
{
    int axis;
    int64_t asked = ((const Attr *)c->attr)->axis;
    if (c->in[0]->dtype == QN_DTYPE_BOOL)
        return qn_fail(QN_EDTYPE, "cumprod: a bool operand; cast it to a number");
    if (!qn_shape_axis(&c->in[0]->shape, asked, &axis))
        return qn_fail(QN_EARG, "cumprod: axis %lld is out of range for rank %d", (long long)asked,
                       c->in[0]->shape.rank);
    c->out[0] = *c->in[0];
    return QN_OK;
}

static QnCost cumprod_cost(const QnNode *n)
{
    double bytes = (double)qn_type_bytes(&n->in[0]->type);
    return (QnCost){ .flops = (double)qn_shape_count(&n->in[0]->type.shape),
                     .bytes_read = bytes,
                     .bytes_written = bytes };
}

/* One row of integers. */
static void cumprod_whole(const QnRefArgs *a, const QnRows *r, int64_t base)
{
    const Attr *attr = a->attr;
    int64_t s = 1;
    for (int64_t i = 0; i < r->n; i++) {
        int64_t at = base + (attr->reverse ? r->n - 1 - i : i) * r->inner, before = s;
        s = qn_whole_mul(s, qn_whole_at(a, 0, at));
        qn_whole_put(a, 0, at, attr->exclusive ? before : s);
    }
}

static QnStatus cumprod_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    int axis = 0;
    if (qn_shape_count(&a->out_type[0]->shape) == 0)
        return QN_OK;
    qn_shape_axis(&a->in_type[0]->shape, attr->axis, &axis);
    QnRows r = qn_util_rows(&a->in_type[0]->shape, axis);
    for (int64_t row = 0; row < r.outer * r.inner; row++) {
        int64_t base = row / r.inner * r.n * r.inner + row % r.inner;
        double s = 1;
        if (qn_whole_is(a)) {
            cumprod_whole(a, &r, base);
            continue;
        }
        for (int64_t i = 0; i < r.n; i++) {
            int64_t at = base + (attr->reverse ? r.n - 1 - i : i) * r.inner;
            double before = s;
            s = s * a->in[0][at];
            a->out[0][at] = attr->exclusive ? before : s;
        }
    }
    return QN_OK;
}

/* With p_i the product before element i and s_i = dy_i + x_(i+1) s_(i+1), dx_i = p_i s_i: no
 * division, so zeros in x are no special case. */
static void cumprod_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const Attr *a = n->attr;
    QnValue *x = n->in[0], *d = dy[0];
    int64_t step = a->reverse ? 1 : -1;
    QnValue *next = qn_shift(g, x, a->axis, step);
    if (a->exclusive)
        d = qn_shift(g, d, a->axis, step);
    QnValue *s = qn_linear_scan(g, next, d, a->axis, !a->reverse);
    dx[0] = qn_mul(g, qn_cumprod(g, x, a->axis, true, a->reverse), s);
}

static QnStatus cumprod_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    if (!qn_dtype_is_float(n->in[0]->type.dtype))
        return qn_fail(QN_EUNSUPPORTED, "cumprod: the device text is for floating point");
    QN_TRY(qn_util_rows_call("cumprod_row", &n->in[0]->type.shape, a->axis, c));
    c->group_size = 0;
    qn_device_int(c, c->n_groups);
    qn_device_int(c, a->exclusive);
    qn_device_int(c, a->reverse);
    return QN_OK;
}

static const QnSample cumprod_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .attr = &(Attr){ -1, false, false } },
    { .in = { { 3, { 3, 5, 2 } } }, .n_in = 1, .attr = &(Attr){ 1, true, false } },
    { .in = { { 3, { 3, 5, 2 } } }, .n_in = 1, .attr = &(Attr){ 0, false, true } },
    { .in = { { 1, { 130 } } }, .n_in = 1, .attr = &(Attr){ 0, true, true }, .lo = 0.5, .hi = 1.5 },
};

QN_API QnValue *qn_cumprod(QnGraph *g, QnValue *x, int64_t axis, bool exclusive, bool reverse)
{
    return qn_emit1(g, &qn_op_cumprod, &(Attr){ axis, exclusive, reverse }, x);
}

static QnStatus cumprod_import(QnOnnxNode *n)
{
    int64_t axis;
    QN_TRY(qn_onnx_in_int(n, 1, &axis));
    return qn_onnx_out0(n, qn_cumprod(n->g, qn_onnx_in(n, 0), axis,
                                      qn_onnx_int(n, "exclusive", 0) != 0,
                                      qn_onnx_int(n, "reverse", 0) != 0));
}

static const QnOnnxMap cumprod_onnx[] = {
    { .name = "CumProd", .since = 26, .import = cumprod_import },
};

const QnOp qn_op_cumprod = {
    .name = "cumprod",
    .version = 1,
    .doc = "running product along an axis",
    .n_in = 1,
    .traits = QN_ROWWISE | QN_WHOLE,
    QN_ATTRS(Attr, cumprod_fields),
    .infer = cumprod_infer,
    .cost = cumprod_cost,
    .ref = cumprod_ref,
    .grad = cumprod_grad,
    .inplace = 1,
    .device = QN_TEXT(cumprod),
    .call = cumprod_call,
    QN_ONNX(cumprod_onnx),
    QN_SAMPLES(cumprod_samples),
};
#endif
