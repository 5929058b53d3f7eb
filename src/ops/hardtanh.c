/* y = x, cut to lo..hi; no gradient at the ends (clip has one there) */
#include "ops/dialect.h"

QN_SCALAR float hardtanh_f(float x, float lo, float hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}
QN_MAP1P(hardtanh, p0, p1)

#ifdef QN_HOST

typedef struct Attr {
    double lo;
    double hi;
} Attr;

static const QnAttrField hardtanh_fields[] = {
    { .name = "lo",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, lo),
      .def = -1,
      .doc = "least value" },
    { .name = "hi",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, hi),
      .def = 1,
      .doc = "greatest value" },
};

static double hardtanh_ref(const double *x, const double *param)
{
    return x[0] < param[0] ? param[0] : x[0] > param[1] ? param[1] : x[0];
}

/* by the output, so that x need not be kept */
static void hardtanh_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const Attr *a = n->attr;
    QnValue *y = &n->out[0];
    QnValue *above = qn_greater(g, y, qn_scalar_like(g, y, a->lo)),
            *below = qn_less(g, y, qn_scalar_like(g, y, a->hi));
    dx[0] = qn_where(g, qn_logical_and(g, above, below), dy[0], qn_scalar_like(g, dy[0], 0));
}

static const QnSample hardtanh_samples[] = {
    { .in = { { 2, { 4, 7 }, .keep_off = 0.01, .kink = 0.5 } }, .n_in = 1, .lo = -3, .hi = 3 },
    { .in = { { 1, { 130 }, .keep_off = 0.01, .kink = 0.5 } },
      .n_in = 1,
      .attr = &(Attr){ -0.5, 2 },
      .lo = -3,
      .hi = 3 },
};

QN_API QnValue *qn_hardtanh(QnGraph *g, QnValue *x, double lo, double hi)
{
    return qn_emit1(g, &qn_op_hardtanh, &(Attr){ lo, hi }, x);
}

const QnOp qn_op_hardtanh = {
    .name = "hardtanh",
    .version = 1,
    .doc = "x within lo..hi",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT,
    QN_ATTRS(Attr, hardtanh_fields),
    .grad = hardtanh_grad,
    .map = &(const QnMapInfo){ .ref = hardtanh_ref, .flops = 2 },
    .device = QN_TEXT(hardtanh),
    QN_SAMPLES(hardtanh_samples),
};
#endif
