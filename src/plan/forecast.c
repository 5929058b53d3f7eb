#include "plan/forecast.h"

#include <string.h>

/* Of one run of a plan; adds to the hash. */
static double plan_s(const QnCalib *c, const QnPlan *p, QnDevice *here, QnWorkHash *hash)
{
    QnCountRequest r = { .here = here };
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

static bool is_measured(const QnRunPlans *p, const QnCalib *c)
{
    return c && p->fp32 && !strcmp(p->device->backend->name, "cpu") &&
           c->n_threads == p->device->env.n_threads && !strcmp(c->isa, p->device->env.isa);
}

void qn_forecast(const QnRunPlans *p, const QnCalib *calib, const QnResiduals *earlier,
                 QnForecast *out)
{
    QnWorkHash hash = { 0 };
    *out = (QnForecast){ .factor = 1 };
    qn_calib_device_name(calib, p->device, out->device, sizeof out->device);
    if (!is_measured(p, calib) || !p->train)
        return;
    out->raw_update_s =
        (double)QN_MAX(1, p->micro_batches) * plan_s(calib, p->train, p->device, &hash) +
        plan_s(calib, p->update, p->device, &hash);
    qn_work_hash_text(&hash, out->model);
    if (earlier)
        out->factor =
            qn_residual_factor(earlier, out->device, out->model, "quern", &out->n_earlier);
    out->update_s = out->raw_update_s * out->factor;
    out->eval_batch_s = plan_s(calib, p->eval, p->device, NULL) * out->factor;
    out->spread = calib->spread;
    out->watts = calib->watts;
    out->usd_per_hour = calib->usd_per_hour;
}
