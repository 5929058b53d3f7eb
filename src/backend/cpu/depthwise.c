#include "backend/cpu/depthwise.h"

#include "base/mem.h"

#include <string.h>

enum { PART = 32768, MOST_PARTS = 64 }; /* elements of dy; parts */

const QnDepthwiseFns *qn_depthwise_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return &qn_depthwise_fns_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}

const QnDepthwiseDwFns *qn_depthwise_dw_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return &qn_depthwise_dw_fns_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static QnDepthwisePhase forward_phase(const QnWindow *w, int d)
{
    return (QnDepthwisePhase){
        .n_taps = w->k[d], .tap_step = 1, .at = -w->pad[d], .at_step = w->dil[d]
    };
}

/* Tap t brings element e what window (e + pad - t * dil) / stride has, where that is whole: every
 * `period`-th tap. They are taken from the last one on, so that what they read ascends. */
static QnDepthwisePhase backward_phase(const QnWindow *w, int d, int64_t f)
{
    int64_t stride = w->stride[d], common = gcd(stride, w->dil[d]), period = stride / common, t = 0;
    while (t < QN_MIN(w->k[d], period) && (f + w->pad[d] - t * w->dil[d]) % stride)
        t++;
    if (t == QN_MIN(w->k[d], period))
        return (QnDepthwisePhase){ .at_step = 1 };
    int64_t n = (w->k[d] - 1 - t) / period + 1, last = t + (n - 1) * period;
    return (QnDepthwisePhase){ .n_taps = n,
                               .tap = last,
                               .tap_step = -period,
                               .at = (f + w->pad[d] - last * w->dil[d]) / stride,
                               .at_step = w->dil[d] / common };
}

static int64_t div_up(int64_t a, int64_t b)
{
    return a <= 0 ? 0 : (a + b - 1) / b;
}

static void find_inside(QnDepthwisePhase *p, const QnDepthwiseAxis *a, int64_t f)
{
    int64_t n = div_up(a->out - f, a->n_phases);
    int64_t reach = QN_MAX(p->n_taps - 1, 0) * p->at_step;
    p->inside = QN_MIN(div_up(-p->at, a->step), n);
    p->inside_end = QN_MAX(QN_MIN(div_up(a->in - p->at - reach, a->step), n), p->inside);
}

static bool axis_init(QnDepthwiseAxis *a, const QnWindow *w, int d, bool backward)
{
    *a = (QnDepthwiseAxis){ .in = backward ? w->out[d] : w->in[d],
                            .out = backward ? w->in[d] : w->out[d],
                            .k = w->k[d],
                            .step = backward ? 1 : w->stride[d],
                            .n_phases = backward ? w->stride[d] : 1 };
    int64_t n = QN_MIN(a->n_phases, a->out), taps = backward ? 0 : a->k;
    a->phase = qn_alloc_array((size_t)n + 1, sizeof *a->phase);
    a->begin = qn_alloc_array((size_t)taps + 1, sizeof *a->begin);
    a->end = qn_alloc_array((size_t)taps + 1, sizeof *a->end);
    if (!a->phase || !a->begin || !a->end)
        return false;
    for (int64_t f = 0; f < n; f++) {
        a->phase[f] = backward ? backward_phase(w, d, f) : forward_phase(w, d);
        find_inside(&a->phase[f], a, f);
    }
    for (int64_t t = 0; t < taps; t++) {
        int64_t first = qn_window_at(w, d, 0, t);
        a->begin[t] = QN_MIN(div_up(-first, a->step), a->out);
        a->end[t] = QN_MAX(QN_MIN(div_up(a->in - first, a->step), a->out), a->begin[t]);
    }
    return true;
}

bool qn_depthwise_init(QnDepthwise *d, const QnConvGeom *g, bool backward)
{
    const QnWindow *w = &g->w;
    *d = (QnDepthwise){ .n = g->n, .c = g->c, .taps = w->k[0] * w->k[1] * w->k[2] };
    bool ok = true;
    for (int i = 0; i < 3; i++)
        ok &= axis_init(&d->axis[i], w, i, backward);
    int64_t rows = d->n * d->axis[0].out * d->axis[1].out;
    int64_t parts = rows * d->axis[2].out * d->c / PART;
    d->n_parts = QN_MAX(1, QN_MIN(QN_MIN(parts, MOST_PARTS), rows));
    return ok;
}

void qn_depthwise_fini(QnDepthwise *d)
{
    for (int i = 0; i < 3; i++) {
        qn_free(d->axis[i].phase);
        qn_free(d->axis[i].begin);
        qn_free(d->axis[i].end);
    }
}
