#include "plan/parallel.h"

#include <math.h>
#include <string.h>

enum { CORNER = 8 }; /* of host and device: how sharply the slower one decides */

const char *qn_recompute_name(QnRecompute r)
{
    static const char *const names[QN_RECOMPUTES] = { "none", "selective", "half", "full" };
    return names[r];
}

/* ---- what can be ---- */

static int64_t micro_batches(const QnSharding *l)
{
    return l->global_batch / (l->micro_batch * l->data);
}

QnStatus qn_parallel_check(const QnSplit *s, const QnSharding *l)
{
    const char *name = s->model->name;
    if (l->data < 1 || l->tensor < 1 || l->pipeline < 1 || l->context < 1 || l->interleave < 1 ||
        l->micro_batch < 1 || l->global_batch < 1)
        return qn_fail(QN_EARG, "%s: every degree and batch must be at least 1", name);
    if (l->zero < 0 || l->zero > 3)
        return qn_fail(QN_EARG, "ZeRO stage %d: expected 0 to 3", l->zero);
    if (!s->layers && (l->tensor > 1 || l->pipeline > 1 || l->context > 1))
        return qn_fail(QN_EUNSUPPORTED, "%s has no equal layers: it can be divided by data alone",
                       name);
    if (s->layers && l->pipeline * l->interleave > s->layers + 2)
        return qn_fail(QN_EARG, "%s: %d stages of %d pieces for %lld layers", name, l->pipeline,
                       l->interleave, (long long)s->layers);
    if (l->global_batch % (l->micro_batch * l->data))
        return qn_fail(QN_EARG,
                       "%s: a global batch of %lld is no multiple of %lld x %d (micro-batch x "
                       "data parallel)",
                       name, (long long)l->global_batch, (long long)l->micro_batch, l->data);
    return QN_OK;
}

/* ---- memory of the first stage, which holds most micro-batches ---- */

static double stage_layers(const QnSplit *s, const QnSharding *l)
{
    return ceil((double)s->layers / l->pipeline);
}

/* The table of the embeddings stands at both ends of a pipeline; where scores have their own, each
 * end has one of the two. */
static double stage_params(const QnSplit *s, const QnSharding *l)
{
    double table = s->classes * s->width, ends = s->ends_params;
    if (l->pipeline > 1 && table > 0 && ends > 1.5 * table)
        ends /= 2;
    return (stage_layers(s, l) * s->layer_params + ends) / l->tensor;
}

/* Bytes of one sequence in one layer (Korthikanti et al. 2022): of the 34 that the graph keeps of
 * each element, 10 belong to norms and sums, which only sequence parallelism divides. */
static double layer_kept(const QnSplit *s, const QnSharding *l, const QnTraining *t)
{
    double split = 1.0 / l->tensor;
    double share = l->sequence_parallel ? split : (10 + 24 * split) / 34;
    double scores = s->layer_forward.slope.scores * 5 * split;
    if (t->flash || l->recompute == QN_RECOMPUTE_SELECTIVE)
        scores = 0;
    return (s->layer_kept * share + scores) / l->context;
}

/* Layers whose forward pass is done twice. */
static double again_share(const QnSharding *l)
{
    return l->recompute == QN_RECOMPUTE_FULL ? 1 : l->recompute == QN_RECOMPUTE_HALF ? 0.5 : 0;
}

static double activations(const QnSplit *s, const QnSharding *l, const QnTraining *t)
{
    double b = (double)l->micro_batch, m = (double)micro_batches(l), p = l->pipeline;
    double live = layer_kept(s, l, t), kept = live, layers = stage_layers(s, l);
    double again = again_share(l);
    if (again > 0)
        kept = (1 - again) * live + again * 2.0 * (double)s->sequence * s->width / l->context /
                                        (l->sequence_parallel ? l->tensor : 1);
    double held = QN_MIN(p, m);
    if (l->interleave > 1 && p > 1)
        held *= 1 + (p - 1) / (p * l->interleave);
    double bytes = b * held * layers * kept;
    if (again > 0 && s->layers)
        bytes += b * live;
    if (l->pipeline == 1) { /* else the first stage has no scores; its own are 2 bytes each */
        double scores = (double)s->sequence * s->classes;
        double rest = QN_MAX(0, s->ends_kept - 2 * scores);
        bytes += b * (rest + t->logit_bytes * scores) / l->tensor / l->context;
    }
    return bytes;
}

QnParallelMemory qn_parallel_memory(const QnSplit *s, const QnSharding *l, const QnTraining *t)
{
    double params = stage_params(s, l), d = (double)l->data * l->context;
    bool wide = t->numbers == QN_NUMBERS_FP32 || t->numbers == QN_NUMBERS_TF32;
    bool low = t->numbers == QN_NUMBERS_FP16 || t->numbers == QN_NUMBERS_BF16; /* state too */
    double moments = s->model->family->adam ? 2 : 1;
    QnParallelMemory m = { .weights = params * (wide ? 4 : 2),
                           .gradients = params * (low ? 2 : 4),
                           .optimizer = params * moments * (low ? 2 : 4) };
    if (!wide && !low) /* and weights in 32 bits */
        m.optimizer += 4 * params;
    if (l->zero >= 1)
        m.optimizer /= d;
    if (t->offload)
        m.optimizer = 0;
    if (l->pipeline > 1) /* the others live through all micro-batches */
        d = 1;
    if (l->zero >= 2)
        m.gradients /= d;
    if (l->zero >= 3 && d > 1) /* and two layers that are gathered */
        m.weights = m.weights / d + 4 * s->layer_params / l->tensor;
    m.activations = activations(s, l, t);
    double held = m.weights + m.gradients + m.optimizer + m.activations;
    m.reserve = 1.5e9 + 0.04 * held; /* context, communicators, fragmentation */
    m.total = held + m.reserve;
    return m;
}

/* ---- time ---- */

/* The best matrix products measured, as shares of data sheets (bf16; an A100's 0.87 is 1). Hopper
 * and later sustain less of it in training, where power is the limit: published MFU is 0.8 of an
 * A100's for the same models (MosaicML's table), so 0.84 of the best product. */
double qn_parallel_reach(const QnCard *card)
{
    static const struct {
        const char *name;
        double share;
    } known[] = { { "A100 PCIe", 0.81 }, { "A100", 0.87 },  { "H100", 0.67 },  { "H200", 0.67 },
                  { "GH200", 0.70 },     { "B200", 0.65 },  { "GB200", 0.61 }, { "B300", 0.65 },
                  { "MI300", 0.51 },     { "MI325", 0.60 }, { "MI355", 0.68 }, { "MI250", 0.65 },
                  { "Gaudi2", 0.97 },    { "Gaudi3", 0.74 } };
    for (int i = 0; i < QN_COUNT(known); i++)
        if (!strncmp(card->name, known[i].name, strlen(known[i].name)))
            return known[i].share / 0.87;
    return 1;
}

typedef struct Time {
    double device, host;
} Time;

typedef struct Context {
    const QnSplit *s;
    const QnSharding *l;
    const QnTraining *t;
    const double *x;
    const QnFleet *f;
    QnLinks links;
    double rate, wide, bandwidth; /* wide: of what stays in 16 bits beside 8-bit products */
    double message;               /* bytes of a tensor group's collective */
} Context;

/* The fused kernel forward and backward, causal: FlashAttention-2 reaches 0.55 of an A100's rate
 * and 0.3 of a Hopper's, FlashAttention-3 and cuDNN 0.5 (Dao 2023, Shah et al. 2024). In a ring of
 * devices all but the first block of keys is computed in full while half of them wait, unless the
 * sequence is dealt out evenly. */
static double attention_s(const Context *c, const QnPart *p)
{
    bool late = c->t->card->year >= 2022;
    double n = c->l->context, share = !late ? 0.55 : c->t->tuned ? 0.5 : 0.3;
    double peak = c->wide / qn_parallel_reach(c->t->card);
    if (!c->t->flash)
        return p->attention_full / (c->wide * c->x[QN_FLEET_ATTENTION]);
    return p->attention / (peak * share) * (c->t->tuned ? 1 : QN_MAX(1, 2 * (n - 1) / n));
}

/* One pass of a part. scores: bytes for each of attention's, where it is not fused. */
static Time part_time(const Context *c, const QnPart *p, double scores, double peak)
{
    double t = c->l->tensor, n = c->l->context, rate = peak * c->x[QN_FLEET_GEMM];
    double whole = c->l->sequence_parallel ? t : 1;
    double flops = p->gemm / t + c->x[QN_FLEET_HALF_DEPTH] * (p->columns / t + p->depths);
    double attention = attention_s(c, p) / t;
    double bytes = p->bytes / t + p->bytes_whole / whole;
    if (!c->t->flash)
        bytes += p->scores * scores / t;
    Time out;
    out.device = (flops / rate + attention + bytes / (c->bandwidth * c->x[QN_FLEET_MOVE])) / n +
                 1e-6 * p->kernels * c->x[QN_FLEET_TAIL_US];
    out.host = 1e-6 * p->kernels * c->x[QN_FLEET_LAUNCH_US] * c->t->host;
    return out;
}

static Time add(Time a, double times, Time b)
{
    return (Time){ a.device + times * b.device, a.host + times * b.host };
}

/* The host launches ahead of the device: the slower of the two decides. */
static double slower(Time t)
{
    return pow(pow(t.device, CORNER) + pow(t.host, CORNER), 1.0 / CORNER);
}

/* Collectives of a tensor group in one layer, forward or backward: two. */
static double tensor_s(const Context *c)
{
    int t = c->l->tensor;
    if (t < 2)
        return 0;
    double one = qn_comm_s(&c->links, c->f, QN_COMM_ALL_REDUCE, t, t, c->message);
    if (c->l->sequence_parallel)
        one = qn_comm_s(&c->links, c->f, QN_COMM_REDUCE_SCATTER, t, t, c->message) +
              qn_comm_s(&c->links, c->f, QN_COMM_ALL_GATHER, t, t, c->message);
    return 2 * one * c->x[QN_FLEET_TENSOR];
}

typedef struct Layer {
    Time work;     /* forward, backward and what is done again */
    double tensor; /* of it, exposed */
} Layer;

static Layer layer_time(const Context *c)
{
    double b = (double)c->l->micro_batch, scores = c->x[QN_FLEET_SCORES];
    QnPart forward = qn_split_part(&c->s->layer_forward, b);
    QnPart backward = qn_split_part(&c->s->layer_backward, b);
    Time f = part_time(c, &forward, scores, c->rate);
    Layer out = { .work = add(f, 1, part_time(c, &backward, 2 * scores, c->rate)) };
    double passes = 2 + again_share(c->l);
    if (passes > 2) {
        out.work = add(out.work, passes - 2, f);
    } else if (c->l->recompute == QN_RECOMPUTE_SELECTIVE && !c->t->flash) {
        QnPart again = { .attention_full = forward.attention_full,
                         .scores = forward.scores,
                         .kernels = 4 };
        out.work = add(out.work, 1, part_time(c, &again, scores, c->rate));
    }
    out.tensor = passes * tensor_s(c);
    if (c->l->overlap_tensor)
        out.tensor *= 0.5; /* measured with torchtitan: a tenth of the step at a fifth of it */
    if (c->l->tensor > 1)
        out.work.host += 1e-6 * 2 * passes * c->x[QN_FLEET_TENSOR_US] * c->t->host *
                         pow(c->l->tensor - 1, c->x[QN_FLEET_TENSOR_POWER]);
    out.work.device += out.tensor;
    return out;
}

static Time ends_time(const Context *c)
{
    double b = (double)c->l->micro_batch;
    QnPart forward = qn_split_part(&c->s->ends_forward, b);
    QnPart backward = qn_split_part(&c->s->ends_backward, b);
    return add(part_time(c, &forward, c->x[QN_FLEET_SCORES], c->wide), 1,
               part_time(c, &backward, 2 * c->x[QN_FLEET_SCORES], c->wide));
}

/* Between two stages, one way. */
static double send_s(const Context *c)
{
    const QnSharding *l = c->l;
    double bytes = 2.0 * (double)l->micro_batch * (double)c->s->sequence * c->s->width / l->context;
    bool near = l->tensor * l->context * l->data < c->links.per_node;
    if (near)
        return qn_comm_s(&c->links, c->f, QN_COMM_SEND, 2, 2, bytes);
    /* each of the tensor group sends its part, and they gather (Narayanan et al. 2021) */
    return qn_comm_s(&c->links, c->f, QN_COMM_SEND, 2, 1, bytes / l->tensor) +
           qn_comm_s(&c->links, c->f, QN_COMM_ALL_GATHER, l->tensor, l->tensor, bytes);
}

/* What of the gradients' (and with ZeRO the weights') travel nobody hides; backward_s: of all
 * micro-batches. */
static double data_s(const Context *c, double params, double backward_s)
{
    const QnSharding *l = c->l;
    int d = l->data * l->context, local = QN_MAX(1, c->links.per_node / l->tensor);
    if (d < 2)
        return 0;
    double factor = QN_MAX(c->t->compression, 1), gradients = 4 * params;
    double m = (double)micro_batches(l), pieces = QN_MAX(1, stage_layers(c->s, l));
    const double least = 0.15; /* what travels slows the work that it hides behind */
    if (l->zero < 3) {
        double all =
            qn_comm_compressed_s(&c->links, c->f, d, local, gradients, factor, c->bandwidth);
        if (!c->t->overlap)
            return all * c->x[QN_FLEET_EXPOSED];
        return QN_MAX(all * QN_MAX(1 / pieces, least), all - 0.9 * backward_s / m);
    }
    /* weights are gathered forward and backward, for each micro-batch; behind the products */
    double gather = qn_comm_s(&c->links, c->f, QN_COMM_ALL_GATHER, d, local, 2 * params);
    double scatter = qn_comm_s(&c->links, c->f, QN_COMM_REDUCE_SCATTER, d, local, gradients);
    double travel = m * (2 * gather + scatter);
    return QN_MAX(travel * QN_MAX(0.5 / pieces, least), travel - 0.9 * backward_s);
}

static void set_context(Context *c)
{
    const QnTraining *t = c->t;
    c->x = c->f->x;
    c->links = t->links;
    if (!t->overlap) /* else chunks go one behind the other, each ring through its own card */
        c->links.network *= c->x[QN_FLEET_NETWORK];
    c->rate = c->wide = qn_cost_peak(t->card, t->numbers) * qn_parallel_reach(t->card);
    if (t->numbers == QN_NUMBERS_FP8) { /* published gains over 16 bits: 1.4, tuned 1.7 */
        c->wide = qn_cost_peak(t->card, QN_NUMBERS_BF16) * qn_parallel_reach(t->card);
        c->rate = QN_MAX(c->wide, (t->tuned ? 1.1 : 0.97) * c->rate);
    }
    c->bandwidth = 1e9 * t->card->bandwidth_gbs;
    c->message =
        2.0 * (double)c->l->micro_batch * (double)c->s->sequence * c->s->width / c->l->context;
}

static void set_pipeline(const Context *c, QnParallelResult *out)
{
    const QnSharding *l = c->l;
    double m = (double)micro_batches(l), p = l->pipeline, layers = stage_layers(c->s, l);
    Layer layer = layer_time(c);
    Time ends = ends_time(c), fixed = { 0, 1e-6 * c->x[QN_FLEET_BATCH_US] * c->t->host };
    Time middle = add(fixed, layers, layer.work), last = add(middle, 1, ends);
    double slow = slower(last), all = slow + (p - 1) * slower(middle);
    double tensor = m * layers * layer.tensor * QN_MIN(1, slow / QN_MAX(last.device, 1e-30));
    /* a collective in the shadow of the host costs nothing */
    tensor *= pow(last.device / QN_MAX(slow, 1e-30), CORNER);
    out->compute_s = m * slow - tensor;
    out->tensor_s = tensor;
    out->bubble_s = (all - slow) / l->interleave;
    out->host_share = pow(last.host / QN_MAX(slow, 1e-30), CORNER);
    if (p > 1)
        out->pipeline_s = 2 * send_s(c) * (c->t->overlap ? p - 1 : m * l->interleave + p - 1);
}

/* The host reads and writes the state at its share of a node's memory bandwidth, 25 GB/s for each
 * device; gradients come in 32 bits, weights go back in 16. */
static double update_s(const Context *c, double params)
{
    double bytes = params * c->s->update_bytes, fixed = 1e-6 * c->x[QN_FLEET_STEP_US] * c->t->host;
    if (c->t->offload)
        return fixed + bytes / 25e9 + 6 * params / (0.8 * c->links.pcie);
    return fixed + bytes / (c->bandwidth * c->x[QN_FLEET_MOVE]);
}

QnStatus qn_parallel_step(const QnSplit *s, const QnSharding *l, const QnTraining *t,
                          const QnFleet *f, QnParallelResult *out)
{
    Context c = { .s = s, .l = l, .t = t, .f = f };
    double peak = qn_cost_peak(t->card, t->numbers);
    *out = (QnParallelResult){ 0 };
    QN_TRY(qn_parallel_check(s, l));
    if (!(peak > 0))
        return qn_fail(QN_EUNSUPPORTED, "%s: its data sheet has no rate for %s", t->card->name,
                       qn_numbers_name(t->numbers));
    set_context(&c);
    set_pipeline(&c, out);
    double params = stage_params(s, l), shared = l->zero ? (double)l->data * l->context : 1;
    out->data_s = data_s(&c, params, out->compute_s * 2 / 3);
    out->update_s = update_s(&c, params / shared);
    out->step_s = out->compute_s + out->bubble_s + out->tensor_s + out->pipeline_s + out->data_s +
                  out->update_s;
    out->memory = qn_parallel_memory(s, l, t);
    out->fits = out->memory.total <= t->card->memory_gb * 1024 * 1024 * 1024;
    out->flops = s->flops * (double)l->global_batch;
    double devices = (double)l->data * l->tensor * l->pipeline * l->context;
    out->mfu = out->flops / (out->step_s * peak * devices);
    out->exposed = (out->tensor_s + out->pipeline_s + out->data_s) / out->step_s;
    return QN_OK;
}
