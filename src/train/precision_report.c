/* What `precision: auto` came to, and what a step costs beside fixed precisions. */
#include "train/precision_auto.h"

#include "train/session_impl.h"

#include <stdio.h>

static const QnPrecision compared[QN_AUTO_COMPARED] = { QN_PRECISION_AUTO, QN_PRECISION_BF16,
                                                        QN_PRECISION_FP16, QN_PRECISION_FP32 };

QnAutoCost qn_auto_cost(const QnSession *s, QnPrecision precision)
{
    QnAutoCost c = { 0 };
    QnGraph *g = NULL;
    QnPlan *p = NULL;
    QnPlanOptions o = { .choices = s->planning.choices };
    c.known = qn_session_build_step(s, precision, &g) == QN_OK &&
              qn_plan_new(g, s->device, s->store, &o, &p) == QN_OK;
    for (int64_t i = 0; c.known && i < qn_plan_n_steps(p); i++) {
        QnCost step = qn_plan_step(p, i).cost;
        c.step.flops += step.flops;
        c.step.bytes_read += step.bytes_read;
        c.step.bytes_written += step.bytes_written;
    }
    if (c.known)
        c.planned_bytes = qn_plan_memory(p).arena_bytes;
    else
        qn_error_clear();
    qn_plan_free(p);
    qn_graph_free(g);
    return c;
}

void qn_auto_costs(const QnSession *s, QnAutoCost costs[QN_AUTO_COMPARED])
{
    for (int i = 0; i < QN_AUTO_COMPARED; i++)
        costs[i] = s->mix ? qn_auto_cost(s, compared[i]) : (QnAutoCost){ 0 };
}

static double share_of(const QnAutoPrecision *m, int type)
{
    double all = 0, of = 0;
    for (int64_t i = 0; i < m->n; i++) {
        for (int t = 0; t < QN_AUTO_TYPES; t++)
            all += (double)m->layers[i].steps[t];
        of += (double)m->layers[i].steps[type];
    }
    return all > 0 ? of / all : 0;
}

QnStatus qn_auto_report(const QnSession *s, const QnAutoCost *costs, QnStr *out)
{
    const QnAutoPrecision *m = s->mix;
    if (!m)
        return QN_OK;
    qn_str_printf(out, "precision: layers %lld, switches %lld; of updates times layers",
                  (long long)m->n, (long long)m->switches);
    for (int t = 0; t < QN_AUTO_TYPES; t++)
        qn_str_printf(out, "%s %s %.1f %%", t ? "," : "", qn_precision_name((QnPrecision)t),
                      100 * share_of(m, t));
    qn_str_add(out, "\n");
    for (int i = 0; i < QN_COUNT(compared); i++) {
        char flops[QN_STR_NUMBER], moved[QN_STR_NUMBER], arena[QN_STR_NUMBER];
        QnAutoCost c = costs[i];
        if (!c.known)
            continue;
        double bytes = c.step.bytes_read + c.step.bytes_written;
        qn_str_printf(out, "a step in %s%s: %sFLOP, moves %s, plans %s\n",
                      qn_precision_name(compared[i]), i ? "" : ", as it ended",
                      qn_str_si(flops, c.step.flops), qn_str_bytes(moved, (uint64_t)bytes),
                      qn_str_bytes(arena, (uint64_t)c.planned_bytes));
    }
    return out->st;
}

void qn_auto_report_json(const QnSession *s, const QnAutoCost *costs, QnJsonWriter *w)
{
    const QnAutoPrecision *m = s->mix;
    if (!m)
        return;
    qn_json_put_int(w, "precision_switches", m->switches);
    for (int t = 0; t < QN_AUTO_TYPES; t++) {
        char key[40];
        snprintf(key, sizeof key, "precision_share_%s", qn_precision_name((QnPrecision)t));
        qn_json_put_double(w, key, share_of(m, t));
    }
    for (int i = 0; i < QN_COUNT(compared); i++) {
        char key[40];
        QnAutoCost c = costs[i];
        if (!c.known)
            continue;
        snprintf(key, sizeof key, "step_flops_%s", qn_precision_name(compared[i]));
        qn_json_put_double(w, key, c.step.flops);
        snprintf(key, sizeof key, "step_bytes_%s", qn_precision_name(compared[i]));
        qn_json_put_double(w, key, c.step.bytes_read + c.step.bytes_written);
        snprintf(key, sizeof key, "step_planned_bytes_%s", qn_precision_name(compared[i]));
        qn_json_put_int(w, key, c.planned_bytes);
    }
}
