#include "cli/far_memory.h"

#include "plan/far.h"

#include <stdio.h>

/* What to change, as settings of the recipe. */
static void advise(const QnSetup *s, const QnFarPrice *f, QnStr *out)
{
    const QnRecipe *r = s->recipe;
    int64_t batch = (int64_t)((double)r->batch * f->batch_share);
    if (s->session->train_plan && batch > 0 && batch < r->batch)
        qn_str_printf(out, "; about train.batch=%lld instead of %lld would fit", (long long)batch,
                      (long long)r->batch);
    else
        qn_str_add(out, "; a smaller batch takes less");
    if (s->session->train_plan) {
        double mib = (f->has_bytes - (f->need_bytes -
                                      (double)qn_plan_memory(s->session->train_plan).arena_bytes)) /
                     (1 << 20);
        if (mib >= 1)
            qn_str_printf(out, ", compile.memory_budget_mib=%lld computes values anew to fit",
                          (long long)mib);
    }
}

static void say(const QnSetup *s, const QnDeviceInfo *info, const QnFarPrice *f, const QnLog *log)
{
    char need[QN_STR_NUMBER], has[QN_STR_NUMBER], out[QN_STR_NUMBER], bus[QN_STR_NUMBER],
        span[QN_STR_NUMBER];
    const char *each = s->session->train_plan ? "update" : "batch";
    QnStr text = { 0 };
    qn_str_printf(&text, "this takes %s, of which %s fit into %s; %s (%.0f %%) lie in %s: ",
                  qn_str_bytes(need, (uint64_t)f->need_bytes),
                  qn_str_bytes(has, (uint64_t)(f->need_bytes - f->out_bytes)), info->name,
                  qn_str_bytes(out, (uint64_t)f->out_bytes), 100 * f->out_bytes / f->need_bytes,
                  info->far);
    qn_str_printf(&text, "%s each %s cross the bus, for %s, and ",
                  qn_str_bytes(bus, (uint64_t)f->bus_bytes), each,
                  qn_str_duration(span, (int64_t)(f->bus_s * 1e9)));
    if (f->factor < 1.05)
        qn_str_printf(&text, "the %s takes hardly longer", each);
    else
        qn_str_printf(&text, "the %s takes about %.2g times as long", each, f->factor);
    advise(s, f, &text);
    qn_log_warn(log, "%s", qn_str_text(&text));
    qn_str_fini(&text);
}

void qn_far_warn(const QnSetup *s, const QnLog *log)
{
    const QnSession *session = s->session;
    QnDeviceInfo info;
    QnDeviceRates rates;
    if (!s->device->far_bytes)
        return;
    if (qn_device_info(s->device, &info) != QN_OK ||
        qn_device_measure(s->device, &rates) != QN_OK) {
        qn_log_warn(log, "part of this lies in memory of the host; its price is not known: %s",
                    qn_error_last()->text);
        qn_error_clear();
    } else {
        QnFarRun train[] = { { session->train_plan, (double)s->recipe->accumulate },
                             { session->update_plan, 1 },
                             { session->eval_plan, 0 } };
        QnFarRun eval[] = { { session->eval_plan, 1 } };
        QnFarPrice f = session->train_plan
                           ? qn_far_price(train, QN_COUNT(train), s->device, &info, &rates)
                           : qn_far_price(eval, 1, s->device, &info, &rates);
        say(s, &info, &f, log);
    }
}
