/* conv, conv_dx and conv_dw by Quern's own gathering products, in either layout of either operand.
 */
#include "backend/cpu/conv.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/stream.h"
#include "backend/cpu/widen.h"
#include "ops/ops.h"

enum { BAND_PIXELS = 192, MOST_SUMS = 1 << 16, DW_UNITS = 32 };

typedef struct ConvState {
    QnConvDw dw; /* .pass serves all three */
    const QnConvFns *fns;
    int64_t scratch; /* floats a worker */
    int64_t packed;  /* floats of packed weights, or of sums */
} ConvState;

static const char *conv_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    bool dw = n->op == &qn_op_conv_dw;
    const QnType *w = dw ? &n->out[0].type : &n->in[1]->type;
    if (w->layout != QN_LAYOUT_PLAIN)
        return "takes only plain weights";
    for (int i = 0; i < 2; i++) {
        for (int d = 0; d < n->in[i]->type.shape.rank; d++) {
            if (n->in[i]->type.shape.dim[d] > INT32_MAX || n->out[0].type.shape.dim[d] > INT32_MAX)
                return "an axis is longer than 2^31";
        }
    }
    return qn_widen_refuses(n);
}

/* from[o * k + t] of the forward pass, or of the backward one, which turns it around. */
static QnStatus axis_init(QnConvAxis *a, const QnWindow *w, int d, bool backward)
{
    a->in = backward ? w->out[d] : w->in[d];
    a->out = backward ? w->in[d] : w->out[d];
    a->k = w->k[d];
    a->phase = backward ? w->stride[d] : 1;
    a->step = !backward && w->dil[d] == 1 ? w->stride[d] : 0;
    a->pad = w->pad[d];
    a->from = qn_alloc_array((size_t)(a->out * a->k) + 1, sizeof *a->from);
    if (!a->from)
        return QN_ENOMEM;
    for (int64_t o = 0; o < a->out; o++) {
        for (int64_t t = 0; t < a->k; t++) {
            int64_t e = qn_window_at(w, d, o, t), back = o + w->pad[d] - t * w->dil[d];
            if (backward)
                e = back >= 0 && back % w->stride[d] == 0 ? back / w->stride[d] : -1;
            a->from[o * a->k + t] = e >= 0 && e < a->in ? (int32_t)e : -1;
        }
    }
    return QN_OK;
}

/* Cuts the images into bands, and finds how many rows a band reads at most. */
static void choose_bands(QnConvPass *p)
{
    p->first = 0;
    while (p->first < 2 && p->axis[p->first].out == 1 && p->axis[p->first].in == 1)
        p->first++;
    const QnConvAxis *a = &p->axis[p->first];
    int64_t inner = QN_MAX(qn_conv_inner(p, false), 1);
    p->band = QN_MAX(1, QN_MIN(a->out, BAND_PIXELS / inner));
    p->n_bands = (a->out + p->band - 1) / p->band;
    p->band = QN_MAX(1, (a->out + p->n_bands - 1) / QN_MAX(p->n_bands, 1)); /* even ones */
    p->n_bands = (a->out + p->band - 1) / p->band;
    for (int64_t b = 0; b < p->n_bands; b++) {
        int64_t lo = a->in, hi = 0, end = QN_MIN((b + 1) * p->band, a->out);
        for (int64_t i = b * p->band * a->k; i < end * a->k; i++) {
            if (a->from[i] >= 0) {
                lo = QN_MIN(lo, a->from[i]);
                hi = QN_MAX(hi, a->from[i] + 1);
            }
        }
        p->band_in = QN_MAX(p->band_in, hi - lo);
    }
}

static QnStatus pass_init(QnConvPass *p, const QnConvGeom *g, bool backward)
{
    int64_t c = g->c / g->groups, m = g->m / g->groups;
    int64_t taps = g->w.k[0] * g->w.k[1] * g->w.k[2];
    p->n = g->n;
    p->groups = g->groups;
    p->c = backward ? m : c;
    p->m = backward ? c : m;
    p->wc = backward ? c * taps : taps;
    p->wm = backward ? taps : c * taps;
    p->wg = m * c * taps;
    for (int d = 0; d < 3; d++)
        QN_TRY(axis_init(&p->axis[d], &g->w, d, backward));
    choose_bands(p);
    return QN_OK;
}

static void conv_fini(QnPrepared *p)
{
    ConvState *s = p->state;
    for (int d = 0; s && d < 3; d++)
        qn_free(s->dw.pass.axis[d].from);
    qn_free(s);
    p->state = NULL;
}

static QnStatus state_new(QnPrepared *p, const QnConvGeom *g, bool backward, ConvState **out)
{
    ConvState *s = p->state = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->fns = qn_conv_find(p->env->isa);
    QnStatus st = pass_init(&s->dw.pass, g, backward);
    if (st != QN_OK)
        conv_fini(p);
    *out = s;
    return st;
}

static void set_workspace(QnPrepared *p, int64_t scratch, int64_t packed)
{
    ConvState *s = p->state;
    s->scratch = (scratch + 15) / 16 * 16;
    s->packed = (packed + 15) / 16 * 16;
    p->workspace_bytes = (size_t)(s->packed + p->env->n_threads * s->scratch) * sizeof(float);
    qn_widen_prepare(p);
}

/* ---- conv and conv_dx ---- */

static int64_t n_panels(const ConvState *s)
{
    return (s->dw.pass.m + s->fns->nr - 1) / s->fns->nr * s->dw.pass.groups;
}

static QnStatus conv_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    bool backward = n->op == &qn_op_conv_dx;
    const QnShape *x = backward ? &n->out[0].type.shape : &n->in[0]->type.shape;
    const QnShape *y = backward ? &n->in[0]->type.shape : &n->out[0].type.shape;
    QnConvGeom g = qn_window_conv(n->attr, x, &n->in[1]->type.shape, y);
    ConvState *s;
    QN_TRY(state_new(p, &g, backward, &s));
    s->dw.pass.in_plain = n->in[0]->type.layout == QN_LAYOUT_PLAIN;
    s->dw.pass.out_plain = n->out[0].type.layout == QN_LAYOUT_PLAIN;
    s->dw.pass.past_caches =
        !s->dw.pass.out_plain && s->dw.pass.m % 16 == 0 &&
        qn_stream_for(p->env->isa, (size_t)qn_type_bytes(&n->out[0].type)) != NULL;
    set_workspace(p, s->fns->scratch(&s->dw.pass),
                  n_panels(s) * qn_conv_panel(&s->dw.pass, s->fns->nr));
    return QN_OK;
}

typedef struct ConvRun {
    const ConvState *s;
    const float *x, *w, *bias; /* of conv_dw: w is dy */
    float *y, *packed, *scratch;
} ConvRun;

static void pack_unit(void *ctx, int worker, int64_t unit)
{
    const ConvRun *r = ctx;
    (void)worker;
    r->s->fns->pack(&r->s->dw.pass, r->w, r->bias, r->packed, unit);
}

static void band_unit(void *ctx, int worker, int64_t unit)
{
    const ConvRun *r = ctx;
    r->s->fns->band(&r->s->dw.pass, r->x, r->packed, r->y, unit,
                    r->scratch + worker * r->s->scratch);
}

static QnStatus conv_f32(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const ConvState *s = p->state;
    float *packed = workspace;
    ConvRun r = {
        s, in[0], in[1], p->node->n_in > 2 ? in[2] : NULL, out[0], packed, packed + s->packed
    };
    qn_cpu_units(qn_cpu_threads(p), n_panels(s), pack_unit, &r);
    qn_cpu_units(qn_cpu_threads(p), s->dw.pass.n * s->dw.pass.n_bands, band_unit, &r);
    return QN_OK;
}

static QnStatus conv_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    return qn_widen_run(p, in, out, workspace, conv_f32);
}

/* ---- conv_dw ---- */

static QnStatus conv_dw_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    const QnType *dy = &n->in[0]->type, *x = &n->in[1]->type;
    QnConvGeom g = qn_window_conv(n->attr, &x->shape, &n->out[0].type.shape, &dy->shape);
    ConvState *s;
    QN_TRY(state_new(p, &g, false, &s));
    QnConvDw *d = &s->dw;
    d->pass.in_plain = x->layout == QN_LAYOUT_PLAIN;
    d->pass.out_plain = dy->layout == QN_LAYOUT_PLAIN;
    int64_t nr = s->fns->dw_nr, panel = QN_MAX(d->pass.m, 1) * nr;
    d->n_panels = (qn_conv_taps(&d->pass) * d->pass.c + nr - 1) / nr;
    d->block_panels = QN_MAX(1, QN_MIN(d->n_panels, MOST_SUMS / panel));
    d->n_blocks = (d->n_panels + d->block_panels - 1) / d->block_panels;
    int64_t blocks = QN_MAX(d->pass.groups * d->n_blocks, 1);
    d->n_splits = QN_MAX(1, QN_MIN(g.n, (DW_UNITS + blocks - 1) / blocks));
    set_workspace(p, s->fns->dw_scratch(d),
                  d->n_splits * d->pass.groups * d->n_panels * d->pass.m * nr);
    return QN_OK;
}

static void dw_unit(void *ctx, int worker, int64_t unit)
{
    const ConvRun *r = ctx;
    r->s->fns->dw_block(&r->s->dw, r->x, r->w, r->packed, unit,
                        r->scratch + worker * r->s->scratch);
}

static void finish_unit(void *ctx, int worker, int64_t unit)
{
    const ConvRun *r = ctx;
    (void)worker;
    r->s->fns->dw_finish(&r->s->dw, r->packed, r->y, unit);
}

static QnStatus conv_dw_f32(const QnPrepared *p, const void *const *in, void *const *out,
                            void *workspace)
{
    const ConvState *s = p->state;
    const QnConvDw *d = &s->dw;
    float *sums = workspace;
    ConvRun r = { s, in[1], in[0], NULL, out[0], sums, sums + s->packed };
    qn_cpu_units(qn_cpu_threads(p), d->n_splits * d->pass.groups * d->n_blocks, dw_unit, &r);
    qn_cpu_units(qn_cpu_threads(p), d->pass.groups * d->n_panels, finish_unit, &r);
    return QN_OK;
}

static QnStatus conv_dw_run(const QnPrepared *p, const void *const *in, void *const *out,
                            void *workspace)
{
    return qn_widen_run(p, in, out, workspace, conv_dw_f32);
}

const QnKernel qn_kernel_conv_gather = {
    .name = "cpu.conv.gather",
    .backend = "cpu",
    .op = &qn_op_conv,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = conv_accepts,
    .prepare = conv_prepare,
    .run = conv_run,
    .fini = conv_fini,
};

const QnKernel qn_kernel_conv_dx_gather = {
    .name = "cpu.conv_dx.gather",
    .backend = "cpu",
    .op = &qn_op_conv_dx,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = conv_accepts,
    .prepare = conv_prepare,
    .run = conv_run,
    .fini = conv_fini,
};

const QnKernel qn_kernel_conv_dw_gather = {
    .name = "cpu.conv_dw.gather",
    .backend = "cpu",
    .op = &qn_op_conv_dw,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = conv_accepts,
    .prepare = conv_dw_prepare,
    .run = conv_dw_run,
    .fini = conv_fini,
};
