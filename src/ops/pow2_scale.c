/* y = the largest power of two that brings |x| to no more than `most`, from 2^-60 to 2^60; 1 where
 * |x| is at most 2^-100, infinite or NaN. */
#include "ops/dialect.h"

#include "ops/f8_tile.h"

QN_SCALAR float pow2_scale_f(float x, float most)
{
    return qn_f8_scale_of(x, most);
}
QN_MAP1P(pow2_scale, p0)

#ifdef QN_HOST

typedef struct Attr {
    double most;
} Attr;

static const QnAttrField pow2_scale_fields[] = {
    { .name = "most",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, most),
      .def = 448,
      .min = 0x1p-20,
      .max = 0x1p20,
      .doc = "what y times |x| stays within" },
};

static double pow2_scale_ref(const double *x, const double *param)
{
    int ex, em;
    double a = fabs(x[0]);
    if (!(a > 0x1p-100) || isinf(a))
        return 1;
    double fx = frexp(a, &ex), fm = frexp(param[0], &em);
    int e = em - ex - (fx > fm);
    return ldexp(1, e < -60 ? -60 : e > 60 ? 60 : e);
}

static const QnSample pow2_scale_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .lo = -500, .hi = 500 },
    { .in = { { 1, { 130 } } }, .n_in = 1, .attr = &(Attr){ 57344 }, .lo = 0.01, .hi = 9000 },
};

QN_API QnValue *qn_pow2_scale(QnGraph *g, QnValue *x, double most)
{
    return qn_emit1(g, &qn_op_pow2_scale, &(Attr){ most }, x);
}

const QnOp qn_op_pow2_scale = {
    .name = "pow2_scale",
    .version = 1,
    .doc = "largest power of two that brings |x| to no more than a limit",
    .n_in = 1,
    .traits = QN_MAP | QN_FLOAT_ONLY | QN_ANY_LAYOUT | QN_NO_GRAD,
    QN_ATTRS(Attr, pow2_scale_fields),
    .map = &(const QnMapInfo){ .ref = pow2_scale_ref, .flops = 4 },
    .device = QN_TEXT(pow2_scale),
    QN_SAMPLES(pow2_scale_samples),
};
#endif
