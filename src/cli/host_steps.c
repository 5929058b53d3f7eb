#include "cli/host_steps.h"

#include <string.h>

/* Why the device's own kernels do not run the node: the reason of the best that was meant for it.
 */
static const char *reason_of(const QnDevice *d, const QnNode *n)
{
    const QnKernel *best = NULL;
    for (int i = 0; i < d->backend->n_kernels; i++) {
        const QnKernel *k = d->backend->kernels[i];
        bool meant = (!k->op || k->op == n->op) && !(k->flags & QN_KERNEL_WAITS);
        const char *why = meant ? qn_select_reason(d, k, n) : NULL;
        if (why && strcmp(why, "another operator's") && (!best || k->rank < best->rank))
            best = k;
    }
    return best ? qn_select_reason(d, best, n) : "no kernel of the device is written for it";
}

void qn_host_steps_warn(const QnPlan *p, const QnDevice *d, const QnLog *log)
{
    int64_t n = p ? qn_plan_n_steps(p) : 0, on_host = 0;
    QnPlanStep first = { 0 };
    for (int64_t i = 0; i < n; i++) {
        QnPlanStep s = qn_plan_step(p, i);
        if (!(s.kernel->flags & QN_KERNEL_WAITS))
            continue;
        if (on_host++ == 0)
            first = s;
    }
    if (on_host)
        qn_log_warn(
            log, "%lld of %lld steps run on the host, far slower than on the device: %s (%s)%s",
            (long long)on_host, (long long)n, first.node->op->name, reason_of(d, first.node),
            on_host > 1 ? " and others; quern explain --why has all" : "");
}
