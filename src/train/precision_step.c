/* One probe of `precision: auto`: statistics, decisions, a trial step, and graphs built anew. */
#include "train/precision_auto.h"

#include "train/session_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef QnRoundingStats LayerStats[QN_AUTO_TYPES];

typedef struct Probe {
    QnSession *s;
    QnAutoPrecision *m;
    int64_t rows;
    double scale;      /* of the loss */
    LayerStats *stats; /* by layer */
    QnPrecision *before, *because;
    double loss, norm; /* in fp32 */
} Probe;

/* ---- statistics ---- */

static void take_tensor(Probe *p, char what, int64_t layer, const float *x, int64_t n)
{
    /* A mean over fewer samples has larger gradients of what each of them computes. */
    double part = (double)p->rows / (double)p->s->batch;
    double scale = what == 'y' ? 1 : what == 'd' ? p->scale * part : p->scale;
    for (int t = 0; t < QN_AUTO_TYPES; t++) {
        QnRoundingStats *to = &p->stats[layer][t];
        if (t == QN_PRECISION_FP8 && !p->m->layers[layer].takes_f8)
            continue;
        QnRoundingStats s = qn_rounding_stats(x, n, scale, (QnPrecision)t);
        if (what == 'y') /* results are kept: only what has no number in the type is a loss */
            s = (QnRoundingStats){ .overflow = s.overflow, .snr = INFINITY };
        *to = qn_rounding_worse(*to, s);
    }
}

static QnStatus read_outputs(Probe *p, const QnGraph *g, const QnPlan *plan)
{
    for (int64_t i = 0; i < g->n_outputs; i++) {
        const char *name = g->outputs[i].name;
        QnType t;
        if (strncmp(name, "auto.", 5) || !qn_plan_output(plan, name, &t))
            continue;
        int64_t n = qn_shape_count(&t.shape), layer = strtoll(name + 7, NULL, 10);
        float *x = qn_alloc_array((size_t)n + 1, sizeof *x);
        QnStatus st = x ? qn_plan_read(plan, name, x, (size_t)n * sizeof *x) : QN_ENOMEM;
        if (st == QN_OK)
            take_tensor(p, name[5], layer, x, n);
        qn_free(x);
        QN_TRY(st);
    }
    return QN_OK;
}

static QnStatus measure(Probe *p, const QnBatch *b)
{
    QnSession *s = p->s;
    QnGraph *g;
    QnPlan *plan = NULL;
    QnPlanOptions o = { .choices = s->planning.choices };
    const QnSlot *slot = qn_store_find(s->store, "optim.loss_scale");
    float scale = 1;
    if (slot)
        QN_TRY(qn_store_read(s->store, slot, &scale));
    p->scale = scale;
    QN_TRY(qn_session_build_watch(s, p->rows, &g));
    QnStatus st = qn_plan_new(g, s->device, s->store, &o, &plan);
    if (st == QN_OK)
        st = qn_session_run_probe(s, plan, b, p->rows, &p->loss, &p->norm);
    if (st == QN_OK)
        st = read_outputs(p, g, plan);
    qn_plan_free(plan);
    qn_graph_free(g);
    return st;
}

/* ---- decisions ---- */

/* Whether one step as layers stand now does what fp32 does (qn_session_self_test). */
static QnStatus is_sound(Probe *p, const QnBatch *b, bool *sound)
{
    double loss, norm, times = 1;
    for (int64_t i = 0; i < p->m->n; i++)
        times = p->m->layers[i].now == QN_PRECISION_FP8 ? QN_PROBE_FP8 : times;
    QN_TRY(qn_session_probe(p->s, b, QN_PRECISION_AUTO, &loss, &norm));
    *sound = !isfinite(p->loss) || !isfinite(p->norm) ||
             (fabs(loss - p->loss) <= times * QN_PROBE_LOSS * (1 + fabs(p->loss)) &&
              fabs(norm - p->norm) <= times * QN_PROBE_NORM * p->norm + 1e-6);
    return QN_OK;
}

static void undo_lowering(Probe *p)
{
    for (int64_t i = 0; i < p->m->n; i++) {
        QnAutoLayer *l = &p->m->layers[i];
        if (!qn_auto_is_lower(l->now, p->before[i]))
            continue;
        l->clean[l->now] = 0; /* not again before as many clean probes */
        l->now = p->before[i];
    }
}

static void raise_to(Probe *p, QnPrecision to)
{
    for (int64_t i = 0; i < p->m->n; i++) {
        QnAutoLayer *l = &p->m->layers[i];
        if (!qn_auto_is_lower(l->now, to))
            continue;
        memset(l->clean, 0, sizeof l->clean);
        l->now = to;
    }
}

/* Statistics are of gradients alone: a trial step has the last word. *trials: how many failed. */
static QnStatus confirm(Probe *p, const QnBatch *b, int *trials)
{
    bool sound = false;
    for (*trials = 0; *trials < 3; ++*trials) {
        QN_TRY(is_sound(p, b, &sound));
        if (sound)
            return QN_OK;
        if (*trials == 0)
            undo_lowering(p);
        else
            raise_to(p, *trials == 1 ? QN_PRECISION_BF16 : QN_PRECISION_FP32);
    }
    return QN_OK;
}

static QnStatus tell_of(const Probe *p, int64_t i, int64_t update, bool by_trial, QnAutoTell tell,
                        void *ctx)
{
    const QnAutoLayer *l = &p->m->layers[i];
    QnAutoSwitch s = { .update = update,
                       .layer = l->name,
                       .from = p->before[i],
                       .to = l->now,
                       .of = p->because[i],
                       .stats = p->stats[i][p->because[i]] };
    char why[600], noise[32] = "no rounding noise";
    if (isfinite(s.stats.snr))
        snprintf(noise, sizeof noise, "%.1f dB over noise", 10 * log10(s.stats.snr));
    snprintf(why, sizeof why,
             "update %lld: %.200s goes from %s to %s: in %s its gradients overflow %.3g %%, "
             "underflow %.3g %%, %s%s",
             (long long)update, l->name, qn_precision_name(s.from), qn_precision_name(s.to),
             qn_precision_name(s.of), 100 * s.stats.overflow, 100 * s.stats.underflow, noise,
             by_trial ? "; a trial step differed from fp32" : "");
    s.why = why;
    return tell ? tell(ctx, &s) : QN_OK;
}

static QnStatus decide(Probe *p, const QnBatch *b, int64_t update, QnAutoTell tell, void *ctx)
{
    QnAutoPrecision *m = p->m;
    int trials = 0;
    bool changed = m->suspect;
    for (int64_t i = 0; i < m->n; i++) {
        QnAutoLayer *l = &m->layers[i];
        p->before[i] = l->now;
        l->now = qn_auto_decide(l, p->stats[i], p->s->recipe->precision_auto.hold, &p->because[i]);
        changed |= l->now != p->before[i];
    }
    if (!changed)
        return QN_OK;
    QN_TRY(confirm(p, b, &trials));
    changed = false;
    for (int64_t i = 0; i < m->n; i++) {
        if (m->layers[i].now == p->before[i])
            continue;
        changed = true;
        m->switches++;
        QN_TRY(tell_of(p, i, update, trials > 1, tell, ctx));
    }
    return changed ? qn_session_set_precision(p->s, QN_PRECISION_AUTO) : QN_OK;
}

/* What it takes counts for itself, as the self-test's trial does. */
static QnStatus probe(Probe *p, const QnBatch *b, int64_t update, QnAutoTell tell, void *ctx)
{
    QnDevice *d = p->s->device;
    size_t peak = d->peak_bytes, before = d->now_bytes;
    d->peak_bytes = before;
    QnStatus st = measure(p, b);
    if (st == QN_OK)
        st = decide(p, b, update, tell, ctx);
    size_t taken = d->peak_bytes - QN_MIN(d->peak_bytes, before);
    p->s->trial_bytes = QN_MAX(p->s->trial_bytes, taken);
    d->peak_bytes = QN_MAX(peak, d->now_bytes);
    return st;
}

QnStatus qn_auto_step(QnSession *s, const QnBatch *b, int64_t update, QnAutoTell tell, void *ctx)
{
    QnAutoPrecision *m = s->mix;
    if (!m || !(m->suspect || qn_auto_is_due(update, s->recipe->precision_auto.every)))
        return QN_OK;
    Probe p = { .s = s, .m = m, .rows = QN_MIN(QN_MIN(s->batch, b->count), QN_PROBE_SAMPLES) };
    size_t n = (size_t)m->n + 1;
    p.stats = qn_alloc_array(n, sizeof *p.stats);
    p.before = qn_alloc_array(n, sizeof *p.before);
    p.because = qn_alloc_array(n, sizeof *p.because);
    QnStatus st = p.stats && p.before && p.because ? QN_OK : QN_ENOMEM;
    for (int64_t i = 0; st == QN_OK && i < m->n; i++) {
        for (int t = 0; t < QN_AUTO_TYPES; t++)
            p.stats[i][t] = (QnRoundingStats){ .snr = INFINITY };
    }
    if (st == QN_OK)
        st = probe(&p, b, update, tell, ctx);
    qn_free(p.stats);
    qn_free(p.before);
    qn_free(p.because);
    return st;
}
