#include "plan/forecast.h"

#include <string.h>

/* Of one run of a plan; adds to the hash. */
static double plan_s(const QnCalib *c, const QnPlan *p, const QnSession *s, QnWorkHash *hash)
{
    QnCountRequest r = { .here = s->device };
    double seconds = p ? c->step_s : 0;
    for (int64_t i = 0; p && i < qn_plan_n_steps(p); i++) {
        QnPlanStep step = qn_plan_step(p, i);
        QnWork w = qn_work_of(&step, &r);
        if (!(w.flops + w.read + w.written > 0))
            continue;
        seconds += qn_calib_work(c, &w).seconds;
        if (hash)
            qn_work_hash_add(hash, &w);
    }
    return seconds;
}

static bool is_measured(const QnSession *s, const QnCalib *c)
{
    return c && !strcmp(s->device->backend->name, "cpu") &&
           c->n_threads == s->device->env.n_threads && !strcmp(c->isa, s->device->env.isa) &&
           s->recipe->precision == QN_PRECISION_FP32;
}

void qn_forecast(const QnSession *s, const QnCalib *calib, const QnResiduals *earlier,
                 QnForecast *out)
{
    QnWorkHash hash = { 0 };
    *out = (QnForecast){ .factor = 1 };
    qn_calib_device_name(calib, s->device, out->device, sizeof out->device);
    if (!is_measured(s, calib) || !s->train_plan)
        return;
    int64_t micro = QN_MAX(1, s->recipe->accumulate);
    out->raw_update_s = (double)micro * plan_s(calib, s->train_plan, s, &hash) +
                        plan_s(calib, s->update_plan, s, &hash);
    qn_work_hash_text(&hash, out->model);
    if (earlier)
        out->factor =
            qn_residual_factor(earlier, out->device, out->model, "quern", &out->n_earlier);
    out->update_s = out->raw_update_s * out->factor;
    out->eval_batch_s = plan_s(calib, s->eval_plan, s, NULL) * out->factor;
    out->spread = calib->spread;
    out->watts = calib->watts;
    out->usd_per_hour = calib->usd_per_hour;
}
