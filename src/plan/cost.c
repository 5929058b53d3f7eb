#include "plan/cost.h"

#include "plan/names.h"
#include "plan/calib.h"
#include "plan/comm.h"
#include "plan/power.h"
#include "plan/effect.h"

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
    return qn_names_unknown("precision", name, numbers, QN_NUMBERS_COUNT,
                            "there are fp32, tf32, fp16-amp, bf16-amp, fp16, bf16, int8 and fp8");
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

const char *qn_part_name(QnTimePart part)
{
    static const char *const names[QN_EFFECT_PARTS] = {
        "plain",     "tensor",    "memory", "gemm", "conv", "depthwise",
        "attention", "recurrent", "move",   "host", "link", "all",
    };
    return names[part];
}

/* What a device without the precision falls back to stands after it. */
double qn_cost_peak(const QnCard *card, QnNumbers p)
{
    /* AMD's vector units take two halves at once since Vega */
    const double packed = !strcmp(card->vendor, "AMD") && card->year >= 2017 ? 2 : 1;
    const double half = QN_MAX(card->fp16, packed * card->fp32);
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

bool qn_cost_has(const QnCard *card, QnNumbers p)
{
    double rate = p == QN_NUMBERS_FP8    ? card->fp8
                  : p == QN_NUMBERS_INT8 ? card->int8
                  : p == QN_NUMBERS_TF32 ? card->tf32
                                         : qn_cost_peak(card, p);
    return rate > 0 || card->calib; /* a machine that is here was measured in what it can do */
}

/* ---- links ---- */

/* Bridges join pairs where the run says that there are any. */
static QnLinks links_of(const QnCostRequest *r)
{
    QnLinks links = qn_links_of(r->card, 0);
    if (!links.bridged || (r->bridged && r->n_cards <= links.bridged))
        return links;
    links.bridged = 0;
    links.rate = links.pcie;
    if (!strcmp(r->card->kind, "consumer") && r->card->year >= 2018)
        links.kind = QN_LINK_HOST;
    return links;
}

static QnFleet fleet_of(const QnCoefs *k)
{
    QnFleet f = k->fleet;
    double *pcie = f.x + QN_FLEET_LINK + QN_LINK_PCIE * QN_LINK_COEFS;
    double *host = f.x + QN_FLEET_LINK + QN_LINK_HOST * QN_LINK_COEFS;
    pcie[QN_LINK_SHARE] = k->all[QN_COEF_LINK];
    host[QN_LINK_SHARE] = k->all[QN_COEF_HOST];
    pcie[QN_LINK_HOP_US] = host[QN_LINK_HOP_US] = k->all[QN_COEF_LINK_US];
    return f;
}

/* All-reduces of the layers of a model that devices share. */
static double exchange_s(const QnCostSum *sum, const QnCostRequest *r, const QnCoefs *k)
{
    if (!(r->ways > 1) || !(sum->exchanges > 0))
        return 0;
    QnLinks links = links_of(r);
    QnFleet f = fleet_of(k);
    return sum->exchanges * qn_comm_s(&links, &f, QN_COMM_ALL_REDUCE, (int)r->ways, links.per_node,
                                      sum->exchanged / sum->exchanges);
}

/* What of the all-reduce of the gradients the backward pass does not hide: at least its last
 * bucket of 25 MB. scale: of the rate. */
static double link_s(const QnCount *c, const QnCostRequest *r, const QnCoefs *k, double scale,
                     double compute_s)
{
    if (r->n_cards < 2 || r->accumulates || (!r->train && !r->one_process))
        return 0;
    QnLinks links = links_of(r);
    QnFleet f = fleet_of(k);
    double width = r->numbers == QN_NUMBERS_FP16 || r->numbers == QN_NUMBERS_BF16 ? 2 : 4;
    double bytes = QN_MAX(width * c->trained, 1), bucket = QN_MIN(bytes, 25e6);
    if (r->one_process) /* weights go out and gradients come back, and nothing hides that */
        return scale * qn_comm_s(&links, &f, r->train ? QN_COMM_ALL_REDUCE : QN_COMM_ALL_GATHER,
                                 r->n_cards, links.per_node, bytes);
    double all =
        scale * qn_comm_s(&links, &f, QN_COMM_ALL_REDUCE, r->n_cards, links.per_node, bytes);
    double last =
        scale * qn_comm_s(&links, &f, QN_COMM_ALL_REDUCE, r->n_cards, links.per_node, bucket);
    return QN_MAX(last, all - k->all[QN_COEF_OVERLAP] * compute_s * 2 / 3);
}

static void set_memory(const QnCount *c, const QnCostRequest *r, QnCostResult *out)
{
    double held = c->gradients + c->optimizer + c->activations;
    held += (c->weights + c->cache) / QN_MAX(r->ways, 1);
    held -= c->weights * (c->tables / QN_MAX(c->params, 1)) * (1 - 1.0 / r->n_cards);
    out->reserve_bytes = 0.6e9 + 0.04 * held;
    out->memory_bytes = held + out->reserve_bytes;
    out->fits = out->memory_bytes <= 1e9 * r->card->memory_gb * (1024.0 * 1024 * 1024 / 1e9);
}

/* Of the boards alone. */
static double power_w(const QnCostRequest *r, const QnCostResult *c, const QnCoefs *k)
{
    double step = QN_MAX(c->step_s, 1e-30);
    QnPowerRequest p = { .card = r->card, .n = r->n_cards, .cap = 1, .nodes = 1 };
    p.share[QN_POWER_PRODUCTS] = c->by_limit[QN_LIMIT_COMPUTE] / step;
    p.share[QN_POWER_MEMORY] = c->by_limit[QN_LIMIT_MEMORY] / step;
    double works = p.share[QN_POWER_PRODUCTS] + p.share[QN_POWER_MEMORY];
    p.share[QN_POWER_LAUNCH] = QN_MAX(0, c->busy_s / step - works);
    p.waits = QN_MAX(0, 1 - works - p.share[QN_POWER_LAUNCH]);
    return qn_power_w(&p, &k->fleet);
}

/* Host and device work at once, as far as neither waits for the other. */
static double together(double device, double host, double p)
{
    double longer = QN_MAX(device, host), shorter = QN_MIN(device, host);
    return longer > 0 ? longer * pow(1 + pow(shorter / longer, p), 1 / p) : 0;
}

double qn_cost_close(const QnCostSum *sum, const QnCount *count, double steps,
                     const QnCostRequest *r, const QnCoefs *k, const double *logs,
                     QnCostResult *out)
{
    const double *tier = k->tier[r->tier];
    double launches = sum->kernels + sum->updates * tier[QN_COEF_UPDATE];
    double gaps = 1e-6 * tier[QN_COEF_GAP_US] * launches, device = sum->device_s + gaps;
    double host = 1e-6 * (tier[QN_COEF_LAUNCH_US] * launches + tier[QN_COEF_STEP_US] * steps) *
                  exp(logs[QN_PART_HOST]);
    if (r->one_process) /* one thread at a time speaks to the devices, and it copies the modules */
        host *= r->n_cards * k->all[QN_COEF_REPLICA];
    double both = together(device, host, k->all[QN_COEF_ASYNC]);
    double copy = r->copied_bytes / (1e9 * k->all[QN_COEF_COPY_GBS]);
    double link = link_s(count, r, k, exp(logs[QN_PART_LINK]), both) +
                  exchange_s(sum, r, k) * exp(logs[QN_PART_LINK]);
    double scale = exp(logs[QN_PART_ALL]), total = (both + copy + link) * scale;
    if (!out)
        return total;
    out->step_s = total;
    out->busy_s = QN_MIN(device * scale, total);
    out->by_limit[QN_LIMIT_COMPUTE] = sum->compute_s * scale;
    out->by_limit[QN_LIMIT_MEMORY] = sum->memory_s * scale;
    out->by_limit[QN_LIMIT_LAUNCH] = (both - sum->device_s + copy) * scale;
    out->by_limit[QN_LIMIT_LINK] = link * scale;
    return total;
}

/* 80 % of cases, by what is known of the run and how much of its time it concerns. */
static void set_interval(const QnCostSum *sum, const QnCostRequest *r, const QnCoefs *k,
                         const QnEffects *e, QnCostResult *out)
{
    double noise = k->tier[r->tier][QN_COEF_SPREAD], variance = noise * noise;
    for (int p = 0; p < QN_EFFECT_PARTS; p++) {
        double share = p < QN_PART_HOST ? sum->part_s[p] / out->step_s : 1;
        if (p == QN_PART_HOST)
            share = out->by_limit[QN_LIMIT_LAUNCH] / out->step_s;
        if (p == QN_PART_LINK)
            share = out->by_limit[QN_LIMIT_LINK] / out->step_s;
        variance += share * share * e->variance[p];
    }
    double card = k->all[QN_COEF_INTERVAL_CARD], model = k->all[QN_COEF_INTERVAL_MODEL];
    double width = sqrt(variance) * (e->card && e->model ? k->all[QN_COEF_INTERVAL]
                                     : e->card           ? model
                                     : e->model          ? card
                                                         : QN_MAX(card, model));
    out->low_s = out->step_s * exp(-width);
    out->high_s = out->step_s * exp(width);
    out->deviation = sqrt(variance);
}

/* Without allocating: an item at a time. */
static void add_count(QnCostSum *sum, const QnCount *c, const QnCostRequest *r, const QnCoefs *k,
                      const double *logs, double times)
{
    for (int64_t i = 0; i < c->n_work; i++) {
        QnCostItem item;
        QnCount one = { .work = &c->work[i], .n_work = 1 };
        if (!qn_cost_items(&one, r, &item))
            continue;
        qn_cost_add(sum, &item, 1, r, k, logs, times);
        sum->flops +=
            times * item.count * c->work[i].flops / (item.winograd ? k->all[QN_COEF_WINOGRAD] : 1);
    }
}

/* Rate of the arithmetic that is really used. What is called fp32 is TF32 in many a published run,
 * and these teach the model: where the units of fp32 could not do it, matrix units do. Engines for
 * inference sum in 16 bits, or multiply in 8, where the device, a GeForce, is twice as fast at
 * that. */
static double used_peak(const QnCostRequest *r, double peak, double rate)
{
    bool engine = r->tier == QN_TIER_TENSORRT || r->tier == QN_TIER_LLAMA_CPP;
    bool halves = engine && !r->train && r->numbers == QN_NUMBERS_FP16 &&
                  !strcmp(r->card->kind, "consumer") && !strcmp(r->card->vendor, "NVIDIA") &&
                  peak > 1.5e12 * r->card->fp32;
    if (rate <= peak)
        return peak;
    return r->numbers == QN_NUMBERS_FP32 ? QN_MAX(peak, 1e12 * r->card->tf32)
                                         : (halves ? 2 : 1) * peak;
}

/* Coefficients know no device's limit: what they say is held to its peak rate. */
static void hold_to_peak(const QnCostSum *sum, const QnCostRequest *r, QnCostResult *out)
{
    double rate = sum->flops / (out->step_s * QN_MAX(r->ways, 1));
    out->peak_flops = used_peak(r, out->peak_flops, rate);
    out->mfu = rate / out->peak_flops;
    if (out->mfu <= 1)
        return;
    for (int i = 0; i < QN_LIMITS; i++)
        out->by_limit[i] *= out->mfu;
    out->step_s *= out->mfu;
    out->busy_s *= out->mfu;
    out->mfu = 1;
}

QnStatus qn_cost_steps(const QnCount *prompt, const QnCount *c, double times,
                       const QnCostRequest *r, const QnCoefs *k, QnCostResult *out)
{
    if (r->card->calib)
        return qn_calib_steps(prompt, c, times, r, out);
    double peak = qn_cost_peak(r->card, r->numbers);
    *out = (QnCostResult){ .peak_flops = peak };
    if (!(peak > 0))
        return qn_fail(QN_EUNSUPPORTED, "%s: its data sheet has no rate for %s", r->card->name,
                       qn_numbers_name(r->numbers));
    QnEffects e;
    QnCostSum sum = { 0 };
    qn_effects_of(k, r, &e);
    if (prompt)
        add_count(&sum, prompt, r, k, e.log, 1);
    add_count(&sum, c, r, k, e.log, times);
    qn_cost_close(&sum, c, times + (prompt != NULL), r, k, e.log, out);
    hold_to_peak(&sum, r, out);
    set_interval(&sum, r, k, &e, out);
    for (int i = 1; i < QN_LIMITS; i++)
        if (out->by_limit[i] > out->by_limit[out->limit])
            out->limit = (QnLimit)i;
    set_memory(c, r, out);
    out->power_w = power_w(r, out, k);
    return QN_OK;
}

QnStatus qn_cost_step(const QnCount *c, const QnCostRequest *r, const QnCoefs *k, QnCostResult *out)
{
    return qn_cost_steps(NULL, c, 1, r, k, out);
}
