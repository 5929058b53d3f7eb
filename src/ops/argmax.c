/* y = index (i64) of the largest element along an axis; the first of equals. A NaN counts as
 * largest. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* x is (outer, n, inner), one work group an output element. */
QN_SCALAR int argmax_before(float a, qn_long i, float b, qn_long j)
{
    int a_nan = a != a, b_nan = b != b;
    if (a_nan != b_nan)
        return a_nan;
    return a > b || (!(b > a) && i < j);
}

QN_KERNEL argmax_mid(QN_GLOBAL qn_long *y, QN_GLOBAL const QN_T *x, qn_long n, qn_long inner)
{
    QN_SHARED float best[256];
    QN_SHARED qn_long at[256];
    qn_long row = qn_group(), base = row / inner * n * inner + row % inner;
    int lid = qn_lid(), size = qn_group_size();
    qn_long k = lid < n ? lid : n - 1;
    float m = qn_load(x, base + k * inner);
    for (qn_long i = (qn_long)lid + size; i < n; i += size) {
        float v = qn_load(x, base + i * inner);
        if (argmax_before(v, i, m, k)) {
            m = v;
            k = i;
        }
    }
    best[lid] = m;
    at[lid] = k;
    QN_SYNC();
    for (int h = size / 2; h > 0; h /= 2) {
        if (lid < h && argmax_before(best[lid + h], at[lid + h], best[lid], at[lid])) {
            best[lid] = best[lid + h];
            at[lid] = at[lid + h];
        }
        QN_SYNC();
    }
    if (lid == 0)
        y[row] = at[0];
}
#endif

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/onnx_put.h"
#include "ops/util.h"
#include "ops/whole.h"

typedef struct Attr {
    int64_t axis;
    bool keepdims;
} Attr;

static const QnAttrField argmax_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .def = -1,
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "searched axis" },
    { .name = "keepdims",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, keepdims),
      .doc = "keep the axis with length 1" },
};

static QnStatus argmax_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    QnReduceAttr reduce = { QN_AXES(a->axis), a->keepdims };
    int axis;
    QN_TRY(qn_util_reduce_shape("argmax", &c->in[0]->shape, &reduce, &c->out[0].shape));
    qn_shape_axis(&c->in[0]->shape, a->axis, &axis);
    if (c->in[0]->shape.dim[axis] == 0)
        return qn_fail(QN_ESHAPE, "argmax: axis %d has length 0", axis);
    c->out[0].dtype = QN_DTYPE_I64;
    return QN_OK;
}

/* The place in a row of integers that starts at `from`. */
static int64_t argmax_whole(const QnRefArgs *a, const QnRows *r, int64_t from)
{
    QnDtype dtype = a->in_type[0]->dtype;
    int64_t at = 0, best = qn_whole_at(a, 0, from);
    for (int64_t i = 1; i < r->n; i++) {
        int64_t v = qn_whole_at(a, 0, from + i * r->inner);
        if (qn_whole_less(dtype, best, v)) {
            best = v;
            at = i;
        }
    }
    return at;
}

static QnStatus argmax_ref(const QnRefArgs *a)
{
    int axis = 0;
    if (qn_shape_count(&a->out_type[0]->shape) == 0)
        return QN_OK;
    qn_shape_axis(&a->in_type[0]->shape, ((const Attr *)a->attr)->axis, &axis);
    QnRows r = qn_util_rows(&a->in_type[0]->shape, axis);
    for (int64_t row = 0; row < r.outer * r.inner; row++) {
        int64_t from = row / r.inner * r.n * r.inner + row % r.inner;
        int64_t at = qn_whole_is(a) ? argmax_whole(a, &r, from) : 0;
        const double *x = a->in[0] + from;
        for (int64_t i = 1; i < r.n && !qn_whole_is(a); i++) {
            double v = x[i * r.inner], best = x[at * r.inner];
            if (v > best || (isnan(v) && !isnan(best)))
                at = i;
        }
        qn_whole_put(a, 0, row, at);
    }
    return QN_OK;
}

static QnStatus argmax_call(const QnNode *n, QnDeviceCall *c)
{
    if (!qn_dtype_is_float(n->in[0]->type.dtype))
        return qn_fail(QN_EUNSUPPORTED, "argmax: the device text is for floating point");
    return qn_util_rows_call("argmax_mid", &n->in[0]->type.shape, ((const Attr *)n->attr)->axis, c);
}

static const QnSample argmax_samples[] = {
    { .in = { { 2, { 4, 7 }, .distinct = true } }, .n_in = 1, .flags = QN_SAMPLE_NO_GRAD },
    { .in = { { 3, { 3, 130, 2 }, .distinct = true } },
      .n_in = 1,
      .attr = &(Attr){ 1, true },
      .flags = QN_SAMPLE_NO_GRAD },
    { .in = { { 3, { 3, 5, 2 }, QN_DTYPE_I32, -2, 2 } },
      .n_in = 1,
      .attr = &(Attr){ -3, false },
      .flags = QN_SAMPLE_NO_GRAD },
};

QN_API QnValue *qn_argmax(QnGraph *g, QnValue *x, int64_t axis, bool keepdims)
{
    return qn_emit1(g, &qn_op_argmax, &(Attr){ axis, keepdims }, x);
}

static QnStatus argmax_import(QnOnnxNode *n)
{
    return qn_onnx_arg(n, qn_argmax);
}

static const QnOnnxMap argmax_onnx[] = {
    { .name = "ArgMax", .since = 1, .import = argmax_import },
};

static QnStatus argmax_put(QnOnnxPut *p, const QnNode *n)
{
    const Attr *a = n->attr;
    QnOnnxDef *d = qn_put_same(p, n, "ArgMax");
    qn_put_attr_int(p, d, "axis", a->axis);
    qn_put_attr_int(p, d, "keepdims", a->keepdims);
    return qn_put_status(p);
}

const QnOp qn_op_argmax = {
    .name = "argmax",
    .version = 1,
    .doc = "index of the largest element along an axis",
    .n_in = 1,
    .traits = QN_REDUCE | QN_WHOLE | QN_NO_GRAD,
    QN_ATTRS(Attr, argmax_fields),
    .infer = argmax_infer,
    .ref = argmax_ref,
    .device = QN_TEXT(argmax),
    .call = argmax_call,
    .onnx_put = argmax_put,
    .onnx_writes = "ArgMax",
    QN_ONNX(argmax_onnx),
    QN_SAMPLES(argmax_samples),
};
#endif
