#include "plan/cost.h"

#include "base/str.h"
#include "plan/comm.h"

#include <math.h>
#include <string.h>

static const char *const numbers[QN_NUMBERS_COUNT] = {
    "fp32", "tf32", "fp16-amp", "bf16-amp", "fp16", "bf16", "int8", "fp8",
};

const char *qn_numbers_name(QnNumbers p)
{
    return numbers[p];
}

QnStatus qn_numbers_find(const char *name, QnNumbers *p)
{
    for (int i = 0; i < QN_NUMBERS_COUNT; i++) {
        if (!strcmp(name, numbers[i])) {
            *p = (QnNumbers)i;
            return QN_OK;
        }
    }
    return qn_fail(QN_ENOTFOUND,
                   "no precision '%s'; there are fp32, tf32, fp16-amp, bf16-amp, fp16, bf16, int8, "
                   "fp8",
                   name);
}

int qn_numbers_low(QnNumbers p, bool train)
{
    if (p == QN_NUMBERS_FP32 || p == QN_NUMBERS_TF32)
        return 0;
    return train || p == QN_NUMBERS_FP16_AMP || p == QN_NUMBERS_BF16_AMP ? 1 : 2;
}

const char *qn_limit_name(QnLimit limit)
{
    static const char *const names[QN_LIMITS] = { "compute", "memory", "launches", "interconnect" };
    return names[limit];
}

/* What a device without the precision falls back to stands after it. */
double qn_cost_peak(const QnCard *card, QnNumbers p)
{
    const double half = QN_MAX(card->fp16, card->fp32);
    const double brain = card->bf16 > 0 ? card->bf16 : card->fp32;
    switch (p) {
    case QN_NUMBERS_FP32: return 1e12 * (card->fp32 > 0 ? card->fp32 : card->bf16 / 4);
    case QN_NUMBERS_TF32: return 1e12 * QN_MAX(card->tf32, card->fp32);
    case QN_NUMBERS_FP16_AMP:
    case QN_NUMBERS_FP16: return 1e12 * half;
    case QN_NUMBERS_BF16_AMP:
    case QN_NUMBERS_BF16: return 1e12 * brain;
    case QN_NUMBERS_INT8: return 1e12 * QN_MAX(card->int8, half);
    case QN_NUMBERS_FP8: return 1e12 * QN_MAX(card->fp8, half);
    case QN_NUMBERS_COUNT: break;
    }
    return 0;
}

static bool has_tensor_rate(const QnCard *card, QnNumbers p)
{
    return qn_cost_peak(card, p) > 1.5e12 * card->fp32;
}

/* ---- efficiency ---- */

/* Share of the tiles' arithmetic that is asked for, and of the waves' room that is full. */
static double tile_share(const QnWork *w, double units, double tile_m, double tile_n)
{
    double tiles = ceil(w->m / tile_m) * ceil(w->n / tile_n) * w->groups;
    double useful = w->m * w->n * w->groups / (tiles * tile_m * tile_n);
    /* deep products of few tiles are split along k */
    double split = QN_MAX(1, QN_MIN(floor(units / tiles), floor(w->k / 512)));
    double waves = tiles * split / units;
    return useful * waves / ceil(waves);
}

static double product_share(const QnWork *w, const QnCard *card, const QnCoefs *k)
{
    static const struct {
        double m, n, best;
    } tiles[] = {
        { 256, 128, 1 }, { 128, 128, 0.97 }, { 128, 64, 0.85 }, { 64, 64, 0.7 }, { 32, 32, 0.4 }
    };
    double best = 0, units = QN_MAX(card->units, 1);
    for (int i = 0; i < QN_COUNT(tiles); i++)
        best = QN_MAX(best, tiles[i].best * QN_MAX(tile_share(w, units, tiles[i].m, tiles[i].n),
                                                   tile_share(w, units, tiles[i].n, tiles[i].m)));
    return best * w->k / (w->k + k->all[QN_COEF_HALF_K]);
}

typedef struct Rates {
    double tensor, plain, bandwidth; /* a second, reached at best */
    double launch_s;
    const double *tier;
} Rates;

static double work_flop_s(const QnWork *w, const QnCostRequest *r, const QnCoefs *k, const Rates *a)
{
    switch (w->kind) {
    case QN_WORK_GEMM:
    case QN_WORK_RECURRENT:
        return w->flops / (a->tensor * a->tier[QN_COEF_GEMM] * product_share(w, r->card, k));
    case QN_WORK_CONV:
        return w->flops / (a->tensor * a->tier[QN_COEF_CONV] * product_share(w, r->card, k));
    case QN_WORK_DEPTHWISE: return w->flops / (a->plain * a->tier[QN_COEF_DEPTHWISE]);
    case QN_WORK_ATTENTION: return w->flops / (a->tensor * a->tier[QN_COEF_ATTENTION]);
    default: return w->flops / (a->plain * 0.5);
    }
}

static Rates rates_of(const QnCostRequest *r, const QnCoefs *k)
{
    const double *arch = k->arch[qn_arch_of(r->card)], *tier = k->tier[r->tier];
    double peak = qn_cost_peak(r->card, r->numbers);
    double plain = r->card->fp32 > 0 ? 1e12 * r->card->fp32 : peak / 8;
    return (Rates){
        .tensor =
            peak * arch[has_tensor_rate(r->card, r->numbers) ? QN_COEF_TENSOR : QN_COEF_COMPUTE],
        .plain = plain * arch[QN_COEF_COMPUTE],
        .bandwidth = 1e9 * r->card->bandwidth_gbs * tier[QN_COEF_MOVE] * arch[QN_COEF_MEMORY],
        .launch_s = 1e-6 * tier[QN_COEF_LAUNCH_US],
        .tier = tier
    };
}

/* The roofline with a round corner, and never less than the gap between two launches. */
static QnWorkCost price_work(const QnWork *w, const QnCostRequest *r, const QnCoefs *k,
                             const Rates *a)
{
    double bytes = w->read + w->written, half = 1e6 * k->all[QN_COEF_HALF_MB];
    double compute = work_flop_s(w, r, k, a), memory = (bytes + half) / a->bandwidth;
    double both = cbrt(compute * compute * compute + memory * memory * memory);
    QnLimit limit = compute > memory ? QN_LIMIT_COMPUTE : QN_LIMIT_MEMORY;
    if (both < a->launch_s)
        limit = QN_LIMIT_LAUNCH;
    return (QnWorkCost){ .compute_s = compute,
                         .memory_s = memory,
                         .launch_s = a->launch_s,
                         .seconds = QN_MAX(both, a->launch_s),
                         .limit = limit };
}

/* Adds one kind of kernel to the result. */
static void add_work(QnCostResult *out, const QnWork *w, const QnCostRequest *r, const QnCoefs *k,
                     const Rates *a)
{
    QnWorkCost c = price_work(w, r, k, a);
    out->by_limit[c.limit] += w->count * c.seconds;
    out->step_s += w->count * c.seconds;
}

/* What of the all-reduce of the gradients the backward pass does not hide: at least its last
 * bucket of 25 MB. */
static double link_s(const QnCount *c, const QnCostRequest *r, const QnCoefs *k, double compute_s)
{
    if (r->n_cards < 2 || !r->train)
        return 0;
    QnLinks links = qn_links_of(r->card, 0);
    QnFleet f = k->fleet;
    double *pcie = f.x + QN_FLEET_LINK + QN_LINK_PCIE * QN_LINK_COEFS;
    double *host = f.x + QN_FLEET_LINK + QN_LINK_HOST * QN_LINK_COEFS;
    pcie[QN_LINK_SHARE] = k->all[QN_COEF_LINK];
    host[QN_LINK_SHARE] = k->all[QN_COEF_HOST];
    pcie[QN_LINK_HOP_US] = host[QN_LINK_HOP_US] = k->all[QN_COEF_LINK_US];
    double bytes = 4 * c->params, bucket = QN_MIN(bytes, 25e6);
    double all = qn_comm_s(&links, &f, QN_COMM_ALL_REDUCE, r->n_cards, links.per_node, bytes);
    double last = qn_comm_s(&links, &f, QN_COMM_ALL_REDUCE, r->n_cards, links.per_node, bucket);
    return QN_MAX(last, all - k->all[QN_COEF_OVERLAP] * compute_s * 2 / 3);
}

static void set_memory(const QnCount *c, const QnCostRequest *r, QnCostResult *out)
{
    double held = c->weights + c->gradients + c->optimizer + c->activations + c->cache;
    out->reserve_bytes = 0.6e9 + 0.04 * held;
    out->memory_bytes = held + out->reserve_bytes;
    out->fits = out->memory_bytes <= 1e9 * r->card->memory_gb * (1024.0 * 1024 * 1024 / 1e9);
}

/* Idle power, and the rest by how much of the time the device is at work. */
static double power_w(const QnCostRequest *r, const QnCostResult *c)
{
    double busy = c->by_limit[QN_LIMIT_COMPUTE] + c->by_limit[QN_LIMIT_MEMORY];
    double share = c->step_s > 0 ? 0.6 + 0.38 * busy / c->step_s : 0;
    return r->n_cards * r->card->tdp_w * (0.12 + 0.88 * share);
}

QnWorkCost qn_cost_work(const QnWork *w, const QnCostRequest *r, const QnCoefs *k)
{
    Rates a = rates_of(r, k);
    return price_work(w, r, k, &a);
}

QnStatus qn_cost_step(const QnCount *c, const QnCostRequest *r, const QnCoefs *k, QnCostResult *out)
{
    const double *tier = k->tier[r->tier];
    double peak = qn_cost_peak(r->card, r->numbers);
    *out = (QnCostResult){ .peak_flops = peak };
    if (!(peak > 0))
        return qn_fail(QN_EUNSUPPORTED, "%s: its data sheet has no rate for %s", r->card->name,
                       qn_numbers_name(r->numbers));
    Rates a = rates_of(r, k);
    for (int64_t i = 0; i < c->n_work; i++)
        if (!r->no_update || c->work[i].kind != QN_WORK_UPDATE)
            add_work(out, &c->work[i], r, k, &a);
    double link = link_s(c, r, k, out->step_s), fixed = 1e-6 * tier[QN_COEF_STEP_US];
    out->by_limit[QN_LIMIT_LINK] = link;
    out->by_limit[QN_LIMIT_LAUNCH] += fixed;
    out->step_s += link + fixed;
    for (int i = 1; i < QN_LIMITS; i++)
        if (out->by_limit[i] > out->by_limit[out->limit])
            out->limit = (QnLimit)i;
    out->low_s = out->step_s * exp(-tier[QN_COEF_SPREAD]);
    out->high_s = out->step_s * exp(tier[QN_COEF_SPREAD]);
    out->mfu = c->flops / (out->step_s * peak);
    set_memory(c, r, out);
    out->power_w = power_w(r, out);
    return QN_OK;
}
