/* y = x, cut to lo..hi, on every dtype; of integers' bounds the fraction is cut off */
#include "ops/dialect.h"

QN_SCALAR float clip_f(float x, float lo, float hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}
QN_MAP1P(clip, p0, p1)

#ifdef QN_HOST
#include "ir/dtype.h"
#include "ops/onnx.h"
#include "ops/onnx_put.h"

typedef struct Attr {
    double lo;
    double hi;
} Attr;

static const QnAttrField clip_fields[] = {
    { .name = "lo",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, lo),
      .def = -INFINITY,
      .doc = "least value" },
    { .name = "hi",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, hi),
      .def = INFINITY,
      .doc = "greatest value" },
};

static double clip_ref(const double *x, const double *param)
{
    return x[0] < param[0] ? param[0] : x[0] > param[1] ? param[1] : x[0];
}

static int64_t clip_ref_int(const int64_t *x, const void *attr, bool is_unsigned)
{
    const Attr *a = attr;
    QnDtype dtype = is_unsigned ? QN_DTYPE_U64 : QN_DTYPE_I64;
    int64_t lo = qn_dtype_whole_of(dtype, a->lo, false),
            hi = qn_dtype_whole_of(dtype, a->hi, false);
    if (is_unsigned ? (uint64_t)x[0] < (uint64_t)lo : x[0] < lo)
        return lo;
    return (is_unsigned ? (uint64_t)x[0] > (uint64_t)hi : x[0] > hi) ? hi : x[0];
}

/* where x lies in lo..hi, the ends included */
static void clip_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const Attr *a = n->attr;
    QnValue *x = n->in[0];
    QnValue *above = qn_greater_equal(g, x, qn_scalar_like(g, x, a->lo));
    QnValue *below = qn_less_equal(g, x, qn_scalar_like(g, x, a->hi));
    dx[0] = qn_where(g, qn_logical_and(g, above, below), dy[0], qn_scalar_like(g, dy[0], 0));
}

static const QnSample clip_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01, .kink = 0.5 } },
      .n_in = 1,
      .attr = &(Attr){ -0.5, 1 },
      .lo = -3,
      .hi = 3 },
    { .in = { { 1, { 130 }, .keep_off = 0.01, .kink = 2 } },
      .n_in = 1,
      .attr = &(Attr){ -INFINITY, 2 },
      .lo = -10,
      .hi = 10 },
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_I32, .lo = -9, .hi = 9 } },
      .n_in = 1,
      .attr = &(Attr){ -3, 5 } },
};

QN_API QnValue *qn_clip(QnGraph *g, QnValue *x, double lo, double hi)
{
    return qn_emit1(g, &qn_op_clip, &(Attr){ lo, hi }, x);
}

/* Bounds that are constants become attributes; others stay operands. */
static QnStatus clip_import(QnOnnxNode *n)
{
    double lo = qn_onnx_float(n, "min", -INFINITY), hi = qn_onnx_float(n, "max", INFINITY);
    const QnType *t = qn_onnx_type(n, 0);
    bool fixed = t && qn_dtype_is_float(t->dtype);
    if (qn_onnx_has(n, 1))
        fixed = fixed && qn_onnx_constant(n, 1, &lo);
    if (qn_onnx_has(n, 2))
        fixed = fixed && qn_onnx_constant(n, 2, &hi);
    QnValue *x = qn_onnx_in(n, 0);
    if (fixed || n->opset < 11)
        return qn_onnx_out0(n, qn_clip(n->g, x, lo, hi));
    if (qn_onnx_has(n, 1))
        x = qn_maximum(n->g, x, qn_onnx_in(n, 1));
    if (qn_onnx_has(n, 2))
        x = qn_minimum(n->g, x, qn_onnx_in(n, 2));
    return qn_onnx_out0(n, x);
}

static const QnOnnxMap clip_onnx[] = { { .name = "Clip", .since = 1, .import = clip_import } };

static QnStatus clip_put(QnOnnxPut *p, const QnNode *n)
{
    double v[QN_MAP_MAX_PARAM] = { 0 };
    QnDtype t = n->out[0].type.dtype;
    qn_attr_floats(n->op, n->attr, v);
    const char *in[] = { qn_put_value(p, n->in[0]), qn_put_number(p, t, v[0]),
                         qn_put_number(p, t, v[1]) };
    qn_put_as(p, &n->out[0], "Clip", in, 3);
    return qn_put_status(p);
}

const QnOp qn_op_clip = {
    .name = "clip",
    .version = 1,
    .doc = "x within lo..hi",
    .n_in = 1,
    .traits = QN_MAP | QN_ANY_LAYOUT,
    QN_ATTRS(Attr, clip_fields),
    .grad = clip_grad,
    .map = &(const QnMapInfo){ .ref = clip_ref, .ref_int_attr = clip_ref_int, .flops = 2 },
    .device = QN_TEXT(clip),
    .onnx_put = clip_put,
    .onnx_writes = "Clip",
    QN_ONNX(clip_onnx),
    QN_SAMPLES(clip_samples),
};
#endif
