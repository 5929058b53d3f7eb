#include "ops/sampler.h"

#include "ops/ops.h"

/* v folded into [low, high] by mirrors at both ends. */
static QnValue *reflect(QnGraph *g, QnValue *v, double low, double high)
{
    double span = high - low;
    if (span <= 0)
        return qn_scalar_like(g, v, low);
    QnValue *d = qn_abs(g, qn_add_scalar(g, v, -low));
    QnValue *turns = qn_floor(g, qn_mul_scalar(g, d, 1 / span));
    QnValue *rest = qn_sub(g, d, qn_mul_scalar(g, turns, span));
    QnValue *half = qn_mul_scalar(g, turns, 0.5);
    QnValue *odd = qn_greater(g, half, qn_floor(g, half));
    QnValue *back = qn_add_scalar(g, qn_neg(g, rest), span);
    return qn_add_scalar(g, qn_where(g, odd, back, rest), low);
}

static QnValue *reflect_axis(QnGraph *g, QnValue *v, int64_t n, bool centres)
{
    return centres ? reflect(g, v, 0, (double)(n - 1)) : reflect(g, v, -0.5, (double)n - 0.5);
}

static QnValue *times(QnGraph *g, QnValue *a, QnValue *b)
{
    return a && b ? qn_mul(g, a, b) : a ? a : b;
}

/* Element v (a whole number) takes part with this weight. */
static void add_tap(QnGraph *g, QnSamplerTaps *t, const QnGridSampleAttr *a, QnValue *v,
                    QnValue *weight)
{
    double last = (double)(t->length - 1);
    QnValue *zero = qn_scalar_like(g, v, 0), *end = qn_scalar_like(g, v, last);
    if (a->padding == QN_SAMPLE_ZEROS) {
        QnValue *in = qn_logical_and(g, qn_greater_equal(g, v, zero), qn_less_equal(g, v, end));
        weight = times(g, weight, qn_cast(g, in, qn_value_type(v)->dtype));
    } else if (a->padding == QN_SAMPLE_REFLECTION && a->mode == QN_RESIZE_CUBIC) {
        v = reflect_axis(g, v, t->length, a->align_corners);
    }
    t->index[t->n] = qn_cast(g, qn_clip(g, v, 0, last), QN_DTYPE_I64);
    t->weight[t->n++] = weight;
}

/* Keys' kernel with a = -0.75 at distances 1 + f, f, 1 - f, 2 - f. */
static QnValue *cubic_weight(QnGraph *g, QnValue *f, int k)
{
    const double a = -0.75;
    QnValue *d =
        k < 2 ? qn_add_scalar(g, f, 1 - k) : qn_add_scalar(g, qn_neg(g, f), (double)(k - 1));
    QnValue *w;
    if (k == 1 || k == 2) {
        w = qn_add_scalar(g, qn_mul_scalar(g, d, a + 2), -(a + 3));
        return qn_add_scalar(g, qn_mul(g, w, qn_square(g, d)), 1);
    }
    w = qn_add_scalar(g, qn_mul_scalar(g, d, a), -5 * a);
    w = qn_add_scalar(g, qn_mul(g, w, d), 8 * a);
    return qn_add_scalar(g, qn_mul(g, w, d), -4 * a);
}

QnSamplerTaps qn_sampler_taps(QnGraph *g, QnValue *at, int64_t n, const QnGridSampleAttr *a)
{
    QnSamplerTaps t = { .length = n };
    /* of the cubic mode each tap is kept inside, not the place (so PyTorch and ONNX Runtime;
     * onnx.reference moves the place) */
    if (a->padding == QN_SAMPLE_BORDER && a->mode != QN_RESIZE_CUBIC)
        at = qn_clip(g, at, 0, (double)(n - 1));
    if (a->mode == QN_RESIZE_CUBIC) {
        QnValue *low = qn_floor(g, at), *f = qn_sub(g, at, low);
        for (int k = 0; k < 4; k++)
            add_tap(g, &t, a, qn_add_scalar(g, low, k - 1), cubic_weight(g, f, k));
        return t;
    }
    if (a->padding == QN_SAMPLE_REFLECTION)
        at = reflect_axis(g, at, n, a->align_corners);
    if (a->mode == QN_RESIZE_NEAREST) {
        add_tap(g, &t, a, qn_round(g, at), NULL);
        return t;
    }
    QnValue *low = qn_floor(g, at), *f = qn_sub(g, at, low);
    add_tap(g, &t, a, low, qn_add_scalar(g, qn_neg(g, f), 1));
    add_tap(g, &t, a, qn_add_scalar(g, low, 1), f);
    return t;
}

QnValue *qn_sampler_rows(QnGraph *g, QnValue *x, QnValue *first, const QnSamplerTaps *taps,
                         int axes, QnDtype t)
{
    int combinations = 1;
    QnValue *sum = NULL;
    for (int d = 0; d < axes; d++)
        combinations *= taps[d].n;
    for (int c = 0; c < combinations; c++) {
        QnValue *index = NULL, *weight = NULL;
        int rest = c;
        for (int d = axes - 1; d >= 0; rest /= taps[d--].n)
            weight = times(g, weight, taps[d].weight[rest % taps[d].n]);
        rest = combinations;
        for (int d = 0; d < axes; d++) {
            rest /= taps[d].n;
            QnValue *i = taps[d].index[c / rest % taps[d].n];
            index = index ? qn_add(g, qn_mul_scalar(g, index, (double)taps[d].length), i) : i;
        }
        QnValue *row = qn_cast(g, qn_gather(g, x, qn_add(g, index, first), 0), t);
        if (weight)
            row = qn_mul(g, row, qn_unsqueeze(g, weight, -1));
        sum = sum ? qn_add(g, sum, row) : row;
    }
    return sum;
}
