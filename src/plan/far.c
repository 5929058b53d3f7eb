#include "plan/far.h"

#include <math.h>

/* Without transfers: each step takes what its bytes or its operations take. */
static double step_s(const QnPlan *p, const QnDeviceRates *rates)
{
    double s = 0;
    for (int64_t i = 0; i < qn_plan_n_steps(p); i++) {
        QnCost c = qn_plan_step(p, i).cost;
        double bytes = rates->copy > 0 ? (c.bytes_read + c.bytes_written) / rates->copy : 0;
        s += fmax(bytes, rates->multiply > 0 ? c.flops / rates->multiply : 0);
    }
    return s;
}

QnFarPrice qn_far_price(const QnFarRun *runs, int n_runs, const QnDevice *d,
                        const QnDeviceInfo *info, const QnDeviceRates *rates)
{
    QnFarPrice f = { .need_bytes = (double)d->now_bytes, .far_bytes = (double)d->far_bytes };
    double activations = 0, times = 0;
    f.has_bytes = d->limit_bytes ? (double)d->limit_bytes : (double)info->memory_bytes;
    f.out_bytes = f.has_bytes > 0 ? fmax(0, f.need_bytes - f.has_bytes) : f.far_bytes;
    if (!info->far_moves)
        f.out_bytes = f.far_bytes;
    for (int i = 0; i < n_runs; i++) {
        if (!runs[i].plan)
            continue;
        f.bus_bytes += runs[i].runs * (double)qn_plan_far_traffic(runs[i].plan);
        f.step_s += runs[i].runs * step_s(runs[i].plan, rates);
        activations += (double)qn_plan_memory(runs[i].plan).arena_bytes;
        times += runs[i].runs;
    }
    if (info->far_moves) /* pages go out and come back once a run */
        f.bus_bytes = fmin(f.bus_bytes, 2 * f.out_bytes * times);
    f.bus_s = rates->to > 0 ? f.bus_bytes / rates->to : 0;
    f.factor = f.step_s > 0 ? 1 + f.bus_s / f.step_s : 1;
    double fixed = f.need_bytes - activations;
    if (activations > 0 && f.has_bytes > fixed)
        f.batch_share = fmin(1, (f.has_bytes - fixed) / activations);
    return f;
}
