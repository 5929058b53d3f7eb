#include "api/best.h"

#include <stdio.h>
#include <string.h>

typedef struct Best {
    QnDevice *device; /* NULL: none yet */
    char name[32];
    QnDeviceInfo info;
    QnStr others; /* ", opencl:0 (is the CPU itself)" */
} Best;

static double rate_of(const QnDeviceInfo *i)
{
    return (double)i->units * i->clock_hz;
}

static void pass_over(Best *b, const char *name, const char *why)
{
    qn_str_printf(&b->others, "%s%s%s%s%s", b->others.n ? ", " : "", name, why ? " (" : "",
                  why ? why : "", why ? ")" : "");
}

/* Takes the device or closes it. */
static void consider(Best *b, QnDevice *d, const char *name)
{
    QnDeviceInfo info;
    QnStatus st = qn_device_info(d, &info);
    const char *why = st != QN_OK                  ? "does not answer"
                      : info.kind == QN_DEVICE_CPU ? "is the CPU itself"
                                                   : NULL;
    /* kinds come in the order of their worth */
    bool same_kind = b->device && d->backend == b->device->backend;
    if (why || (b->device && !(same_kind && rate_of(&info) > rate_of(&b->info)))) {
        pass_over(b, name, why);
        qn_device_close(d);
        return;
    }
    if (b->device) {
        pass_over(b, b->name, NULL);
        qn_device_close(b->device);
    }
    b->device = d;
    b->info = info;
    snprintf(b->name, sizeof b->name, "%s", name);
}

static void consider_all(Best *b, const char *backend, const QnDeviceOptions *o)
{
    enum { MOST = 64 };
    for (int i = 0; i < MOST; i++) {
        char name[32];
        QnDevice *d;
        snprintf(name, sizeof name, "%s:%d", backend, i);
        QnStatus st = qn_device_open_named(name, o, &d);
        if (st == QN_OK)
            consider(b, d, name);
        else if (st == QN_ENOTFOUND || st == QN_EUSAGE) /* there are no more; not built in */
            break;
        else
            pass_over(b, name, "cannot be used: quern doctor says why");
    }
    qn_error_clear();
}

static void explain(const Best *b, QnStr *out)
{
    const QnDeviceInfo *i = &b->info;
    const char *others = b->others.n ? qn_str_text(&b->others) : NULL;
    if (!b->device) {
        qn_str_printf(out, "cpu; %s", others ? "passed over: " : "there is no other device");
        qn_str_add(out, others ? others : "");
        return;
    }
    qn_str_printf(out, "%s, %s", b->name, i->name);
    if (i->units && i->clock_hz > 0)
        qn_str_printf(out, " (%lld units at %.2f GHz)", (long long)i->units, 1e-9 * i->clock_hz);
    qn_str_printf(out, ", before %s%scpu", others ? others : "", others ? ", " : "");
}

QnStatus qn_device_open_best(const QnDeviceOptions *options, QnDevice **out, QnStr *why)
{
    Best b = { 0 };
    consider_all(&b, "cuda", options);
    consider_all(&b, "opencl", options);
    if (why)
        explain(&b, why);
    qn_str_fini(&b.others);
    if (!b.device)
        return qn_device_open_named("cpu", options, out);
    *out = b.device;
    return QN_OK;
}
