/* Kernels as what a data sheet says of them, and their sum under coefficients. */
#include "plan/calib.h"
#include "plan/effect.h"

#include <math.h>

/* ---- shapes ---- */

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

static double product_share(const QnWork *w, const QnCard *card)
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
    /* products of a few rows have kernels of their own, and vectors of a CPU go without tiles */
    double few = qn_card_is_cpu(card) ? 0.5 : 0.05;
    return QN_MAX(best, QN_MIN(w->m, w->n) <= 8 ? few : 1e-6);
}

static bool has_shape(const QnWork *w)
{
    return (w->kind == QN_WORK_GEMM || w->kind == QN_WORK_CONV || w->kind == QN_WORK_RECURRENT) &&
           w->k > 0;
}

/* ---- items ---- */

static bool has_tensor_rate(const QnCard *card, QnNumbers p)
{
    return qn_cost_peak(card, p) > 1.5e12 * card->fp32;
}

static bool is_product(QnWorkKind kind)
{
    return kind == QN_WORK_GEMM || kind == QN_WORK_CONV || kind == QN_WORK_ATTENTION ||
           kind == QN_WORK_RECURRENT;
}

/* Of 8-bit values against the 16 bits that were counted. */
static double width_of(const QnCostRequest *r)
{
    return !r->train && (r->numbers == QN_NUMBERS_INT8 || r->numbers == QN_NUMBERS_FP8) ? 0.5 : 1;
}

static QnCostItem item_of(const QnWork *w, const QnCostRequest *r)
{
    const QnCard *card = r->card;
    double peak = qn_cost_peak(card, r->numbers);
    double plain = card->fp32 > 0 ? 1e12 * card->fp32 : peak / 8;
    double bytes = (w->read + w->written) * width_of(r);
    /* what is no larger than half of the last cache may come from it */
    double hit = bytes > 0 ? QN_MIN(1, 0.5e6 * card->cache_mb / bytes) : 0;
    QnCostItem item = { .kind = w->kind,
                        .winograd = w->winograd &&
                                    !(is_product(w->kind) && has_tensor_rate(card, r->numbers)),
                        .tensor = is_product(w->kind) && has_tensor_rate(card, r->numbers),
                        .memory = bytes * (1 - hit) / (1e9 * card->bandwidth_gbs),
                        .cached = bytes * hit / (1e9 * card->bandwidth_gbs),
                        .count = w->count };
    item.compute = w->flops / (is_product(w->kind) ? peak : plain);
    if (has_shape(w)) {
        item.compute /= product_share(w, card);
        item.per_k = 1 / w->k;
    }
    if (r->ways > 1) {
        item.compute /= r->ways;
        item.memory /= r->ways;
        item.cached /= r->ways;
    }
    if (w->kind == QN_WORK_ATTENTION) /* its result and that of the layer behind it */
        item.exchanged = 4 * w->m * w->k * w->groups;
    if (item.tensor && card->tdp_w > 0)
        item.watts = log(peak * 1e-12 / card->tdp_w);
    return item;
}

static bool is_left_out(const QnWork *w, const QnCostRequest *r)
{
    return (r->no_update || r->accumulates) && w->kind == QN_WORK_UPDATE;
}

int64_t qn_cost_items(const QnCount *c, const QnCostRequest *r, QnCostItem *items)
{
    int64_t n = 0;
    for (int64_t i = 0; i < c->n_work; i++)
        if (!is_left_out(&c->work[i], r))
            items[n++] = item_of(&c->work[i], r);
    return n;
}

/* ---- rates ---- */

typedef struct Kind {
    QnTimePart part, rate; /* rate: of arithmetic; QN_PARTS: none of its own */
    int coef;              /* of a tier, for that rate */
    bool moves;            /* memory at the tier's `move`, else `stream` */
    bool scatters;
} Kind;

static const Kind *kind_of(QnWorkKind kind)
{
    static const Kind gemm = { QN_PART_GEMM, QN_PART_GEMM_RATE, QN_COEF_GEMM, false, false };
    static const Kind conv = { QN_PART_CONV, QN_PART_CONV_RATE, QN_COEF_CONV, false, false };
    static const Kind depthwise = { QN_PART_DEPTHWISE, QN_PART_DEPTHWISE_RATE, QN_COEF_DEPTHWISE,
                                    true, false };
    static const Kind attention = { QN_PART_ATTENTION, QN_PART_ATTENTION_RATE, QN_COEF_ATTENTION,
                                    false, false };
    static const Kind recurrent = { QN_PART_RECURRENT, QN_PART_RECURRENT_RATE, QN_COEF_RECURRENT,
                                    false, false };
    static const Kind scatter = { QN_PART_MOVE, QN_PARTS, 0, true, true };
    static const Kind move = { QN_PART_MOVE, QN_PARTS, 0, true, false };
    switch (kind) {
    case QN_WORK_GEMM: return &gemm;
    case QN_WORK_CONV: return &conv;
    case QN_WORK_DEPTHWISE: return &depthwise;
    case QN_WORK_ATTENTION: return &attention;
    case QN_WORK_RECURRENT: return &recurrent;
    case QN_WORK_GATHER:
    case QN_WORK_SORT: return &scatter;
    default: return &move;
    }
}

typedef struct Priced {
    double compute, memory, seconds; /* seconds: both, without the gap */
    double hit_share;                /* of memory, what the cache's rate decides */
    double depth_share;              /* of compute, what half_k adds */
} Priced;

static Priced price(const QnCostItem *item, const Kind *kind, const QnCostRequest *r,
                    const QnCoefs *k, const double *logs)
{
    const double *arch = k->arch[qn_arch_of(r->card)], *tier = k->tier[r->tier], *all = k->all;
    QnTimePart unit = item->tensor ? QN_PART_TENSOR : QN_PART_PLAIN;
    double rate = arch[item->tensor ? QN_COEF_TENSOR : QN_COEF_COMPUTE];
    rate *= kind->rate < QN_PARTS ? tier[kind->coef] : 0.5;
    if (item->winograd)
        rate *= all[QN_COEF_WINOGRAD];
    double deep = 1 + all[QN_COEF_HALF_K] * item->per_k;
    double wide = arch[QN_COEF_MEMORY] * (kind->moves ? tier[QN_COEF_MOVE] : all[QN_COEF_STREAM]);
    if (kind->scatters)
        wide *= all[QN_COEF_SCATTER];
    double cached = item->cached / all[QN_COEF_CACHE];
    Priced p = { .compute = item->compute * deep *
                            exp(logs[unit] + all[QN_COEF_POWER] * item->watts) / rate,
                 .memory = (item->memory + cached) * exp(logs[QN_PART_MEMORY]) / wide,
                 .hit_share = item->memory + cached > 0 ? cached / (item->memory + cached) : 0,
                 .depth_share = 1 - 1 / deep };
    p.seconds = cbrt(p.compute * p.compute * p.compute + p.memory * p.memory * p.memory) *
                exp(logs[kind->part]);
    return p;
}

/* Derivatives of count * seconds. */
static void add_parts(double *part, const QnCostItem *item, const Kind *kind, const Priced *p,
                      double seconds, const QnCoefs *k)
{
    double c = p->compute * p->compute * p->compute, m = p->memory * p->memory * p->memory;
    double by_compute = c + m > 0 ? seconds * c / (c + m) : 0, by_memory = seconds - by_compute;
    part[kind->part] += seconds;
    part[item->tensor ? QN_PART_TENSOR : QN_PART_PLAIN] += by_compute;
    part[QN_PART_MEMORY] += by_memory;
    if (kind->rate < QN_PARTS)
        part[kind->rate] += by_compute;
    part[QN_PART_POWER] += by_compute * k->all[QN_COEF_POWER] * item->watts;
    part[QN_PART_WINOGRAD] += item->winograd ? by_compute : 0;
    part[QN_PART_HALF_K] += by_compute * p->depth_share;
    part[kind->moves ? QN_PART_MOVE_RATE : QN_PART_STREAM] += by_memory;
    part[QN_PART_CACHE] += by_memory * p->hit_share;
    if (kind->scatters)
        part[QN_PART_SCATTER] += by_memory;
}

void qn_cost_add(QnCostSum *sum, const QnCostItem *items, int64_t n, const QnCostRequest *r,
                 const QnCoefs *k, const double *logs, double times)
{
    for (int64_t i = 0; i < n; i++) {
        const QnCostItem *item = &items[i];
        const Kind *kind = kind_of(item->kind);
        Priced p = price(item, kind, r, k, logs);
        double count = item->count * times, seconds = count * p.seconds;
        *(item->kind == QN_WORK_UPDATE ? &sum->updates : &sum->kernels) += count;
        sum->device_s += seconds;
        sum->exchanges += item->exchanged > 0 ? 2 * count : 0;
        sum->exchanged += item->exchanged * count;
        *(p.compute > p.memory ? &sum->compute_s : &sum->memory_s) += seconds;
        add_parts(sum->part_s, item, kind, &p, seconds, k);
    }
}

QnWorkCost qn_cost_work(const QnWork *w, const QnCostRequest *r, const QnCoefs *k)
{
    if (r->card->calib) {
        QnWorkCost here = qn_calib_work(r->card->calib, w);
        here.flops = w->flops;
        return here;
    }
    QnEffects e;
    QnCostItem item = item_of(w, r);
    qn_effects_of(k, r, &e);
    Priced p = price(&item, kind_of(item.kind), r, k, e.log);
    const double *tier = k->tier[r->tier];
    double launches = w->kind == QN_WORK_UPDATE ? tier[QN_COEF_UPDATE] : 1;
    double launch = 1e-6 * tier[QN_COEF_LAUNCH_US] * launches * exp(e.log[QN_PART_HOST]);
    double gap = 1e-6 * tier[QN_COEF_GAP_US] * launches, scale = exp(e.log[QN_PART_ALL]);
    QnWorkCost c = { .compute_s = p.compute * scale,
                     .memory_s = p.memory * scale,
                     .launch_s = launch * scale,
                     .flops = w->flops / QN_MAX(r->ways, 1) /
                              (item.winograd ? k->all[QN_COEF_WINOGRAD] : 1),
                     .seconds = (p.seconds + gap) * scale,
                     .limit = p.compute > p.memory ? QN_LIMIT_COMPUTE : QN_LIMIT_MEMORY };
    if (launch > p.seconds + gap)
        c.limit = QN_LIMIT_LAUNCH;
    return c;
}
