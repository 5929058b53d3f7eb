#include "plan/explain.h"

#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *qn_work_kind_name(QnWorkKind kind)
{
    static const char *const names[QN_WORK_KINDS] = {
        [QN_WORK_GEMM] = "products",
        [QN_WORK_CONV] = "convolutions",
        [QN_WORK_DEPTHWISE] = "depthwise",
        [QN_WORK_ATTENTION] = "attention",
        [QN_WORK_MOVE] = "maps, norms, sums",
        [QN_WORK_UPDATE] = "optimizer",
        [QN_WORK_RECURRENT] = "recurrent products",
        [QN_WORK_GATHER] = "embeddings",
        [QN_WORK_SORT] = "sorting",
    };
    return names[kind] ? names[kind] : "other";
}

void qn_explain_name(const QnWork *w, char *out, size_t bytes)
{
    const char *op = w->op ? w->op : "?";
    char moved[QN_STR_NUMBER];
    if (w->k > 0 && w->groups > 1)
        snprintf(out, bytes, "%s %.0fx%.0fx%.0f (%.0f)", op, w->m, w->n, w->k, w->groups);
    else if (w->k > 0)
        snprintf(out, bytes, "%s %.0fx%.0fx%.0f", op, w->m, w->n, w->k);
    else
        snprintf(out, bytes, "%s %s", op, qn_str_unit(moved, w->read + w->written, "B"));
}

int qn_explain_memory(const QnOffer *offer, QnMemoryTerm terms[QN_MEMORY_TERMS])
{
    const QnMemoryTerms *m = &offer->memory;
    const QnMemoryTerm all[] = {
        { "weights", m->weights },           { "gradients", m->gradients },
        { "optimizer", m->optimizer },       { "activations", m->activations },
        { "keys and values", offer->cache }, { "workspace", m->workspace },
        { "context", m->context },           { "fragmentation", m->slack }
    };
    double rest = offer->cost.memory_bytes;
    int n = 0;
    for (int i = 0; i < QN_COUNT(all); i++) {
        rest -= all[i].bytes;
        if (all[i].bytes > 0)
            terms[n++] = all[i];
    }
    if (rest > 1e-9 * offer->cost.memory_bytes)
        terms[n++] = (QnMemoryTerm){ "other", rest };
    return n;
}

/* ---- where the time goes ---- */

static void set_part(QnExplainPart *p, const QnWork *w, const QnWorkCost *c, double ways)
{
    *p = (QnExplainPart){ .work = w,
                          .kind = w->kind,
                          .count = w->count,
                          .seconds = w->count * c->seconds,
                          .flops = w->count * w->flops / ways,
                          .done = w->count * c->flops,
                          .bytes = w->count * (w->read + w->written) / ways };
    p->by_limit[c->limit] = p->seconds;
}

static void scale_part(QnExplainPart *p, double by)
{
    p->seconds *= by;
    for (int i = 0; i < QN_LIMITS; i++)
        p->by_limit[i] *= by;
}

/* The step is held to the peak rate as a whole, and so is each kernel here: what it takes longer
 * for that, the others take less. */
static void hold_to_peak(QnExplainPart *parts, int64_t n, double peak)
{
    double others = 0, excess = 0;
    for (int64_t i = 0; i < n && peak > 0; i++) {
        double least = parts[i].done / peak;
        if (parts[i].seconds < least)
            excess += least - parts[i].seconds;
        else
            others += parts[i].seconds - least;
    }
    if (!(excess > 0) || excess >= others)
        return;
    for (int64_t i = 0; i < n; i++) {
        double least = parts[i].done / peak, more = parts[i].seconds - least;
        if (parts[i].seconds > 0)
            scale_part(&parts[i],
                       (least + QN_MAX(0, more) * (1 - excess / others)) / parts[i].seconds);
    }
}

static void add(QnExplainPart *to, const QnExplainPart *p)
{
    to->kind = p->kind;
    to->count += p->count;
    to->seconds += p->seconds;
    to->flops += p->flops;
    to->done += p->done;
    to->bytes += p->bytes;
    for (int i = 0; i < QN_LIMITS; i++)
        to->by_limit[i] += p->by_limit[i];
}

static void finish(QnExplainPart *p, const QnOffer *o)
{
    for (int i = 1; i < QN_LIMITS; i++)
        if (p->by_limit[i] > p->by_limit[p->limit])
            p->limit = (QnLimit)i;
    if (!(p->seconds > 0))
        return;
    p->flop_share = o->cost.peak_flops > 0 ? p->done / p->seconds / o->cost.peak_flops : 0;
    p->byte_share = p->bytes / p->seconds / (1e9 * o->card->bandwidth_gbs);
}

static int by_seconds(const void *pa, const void *pb)
{
    const QnExplainPart *a = pa, *b = pb;
    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? 1 : -1;
    return a->work < b->work ? -1 : a->work > b->work;
}

static QnStatus split(QnExplain *e, const QnCoefs *k)
{
    const QnCount *c = e->offer.count;
    QnCostRequest r = qn_offer_request(&e->job, &e->offer);
    double in_kernels = 0;
    e->parts = qn_alloc_array((size_t)c->n_work + 1, sizeof *e->parts);
    if (!e->parts)
        return QN_ENOMEM;
    for (int64_t i = 0; i < c->n_work; i++) {
        const QnWork *w = &c->work[i];
        QnWorkCost cost = qn_cost_work(w, &r, k);
        set_part(&e->parts[e->n_parts++], w, &cost, QN_MAX(r.ways, 1));
        in_kernels += w->count * cost.seconds;
    }
    hold_to_peak(e->parts, e->n_parts, e->offer.cost.peak_flops);
    for (int64_t i = 0; i < e->n_parts; i++) {
        add(&e->kinds[e->parts[i].kind], &e->parts[i]);
        finish(&e->parts[i], &e->offer);
    }
    for (int i = 0; i < QN_WORK_KINDS; i++) {
        e->kinds[i].kind = (QnWorkKind)i;
        finish(&e->kinds[i], &e->offer);
    }
    qsort(e->parts, (size_t)e->n_parts, sizeof *e->parts, by_seconds);
    e->step_s = e->offer.cost.step_s;
    e->link_s = e->offer.cost.by_limit[QN_LIMIT_LINK];
    e->rest_s = QN_MAX(0, e->step_s - e->link_s - in_kernels);
    return QN_OK;
}

/* ---- what would change it ---- */

typedef struct Ask {
    QnExplain *e;
    QnCounts *counts;
    const QnCoefs *k;
    QnJob job;
    int n_cards;
} Ask;

/* What the model cannot be, such as an ONNX file with another batch, is left out. */
static QnStatus ask(const Ask *a, const char *text)
{
    QnExplain *e = a->e;
    if (e->n_what_ifs == QN_WHAT_IFS)
        return QN_OK;
    QnWhatIf *w = &e->what_if[e->n_what_ifs];
    snprintf(w->text, sizeof w->text, "%s", text);
    QnStatus st = qn_offer_price(a->counts, &a->job, e->offer.card, a->n_cards, a->k, &w->offer);
    e->n_what_ifs += st == QN_OK;
    return st == QN_ENOMEM ? st : QN_OK;
}

/* The job as the offer has it, so that one thing changes at a time. */
static Ask same(QnExplain *e, QnCounts *counts, const QnCoefs *k)
{
    e->job.batch = e->offer.batch;
    e->job.any_numbers = false;
    e->job.numbers = e->offer.numbers;
    if (!(e->job.items > 0))
        e->job.items = 1e6;
    return (Ask){ e, counts, k, e->job, e->offer.n_cards };
}

static QnStatus ask_batches(const Ask *base)
{
    char text[64];
    int64_t batch = base->job.batch, others[] = { batch / 2, batch * 2, batch * 4 };
    for (int i = 0; i < QN_COUNT(others); i++) {
        Ask a = *base;
        if (others[i] < 1 || others[i] > 1 << 24)
            continue;
        a.job.batch = others[i];
        snprintf(text, sizeof text, "batch %lld", (long long)others[i]);
        QN_TRY(ask(&a, text));
    }
    return QN_OK;
}

static QnStatus ask_numbers(const Ask *base)
{
    static const QnNumbers train[] = { QN_NUMBERS_FP32, QN_NUMBERS_TF32, QN_NUMBERS_FP16_AMP,
                                       QN_NUMBERS_BF16_AMP },
                           infer[] = { QN_NUMBERS_FP32, QN_NUMBERS_FP16, QN_NUMBERS_INT8 };
    const QnNumbers *all = base->job.train ? train : infer;
    int n = base->job.train ? QN_COUNT(train) : QN_COUNT(infer);
    for (int i = 0; i < n; i++) {
        Ask a = *base;
        a.job.numbers = all[i];
        if (all[i] != base->job.numbers)
            QN_TRY(ask(&a, qn_numbers_name(all[i])));
    }
    return QN_OK;
}

/* Channels-last is what one stack has over another. */
static QnStatus ask_stacks(const Ask *base)
{
    static const struct {
        QnTier tier;
        const char *text;
    } others[] = { { QN_TIER_CHANNELS, "PyTorch, channels-last" },
                   { QN_TIER_COMPILED, "a compiled graph" } };
    for (int i = 0; i < QN_COUNT(others); i++) {
        Ask a = *base;
        a.job.tier = others[i].tier;
        bool images = base->job.model->family->image > 0;
        if (base->job.tier != others[i].tier && (images || others[i].tier != QN_TIER_CHANNELS))
            QN_TRY(ask(&a, others[i].text));
    }
    return QN_OK;
}

/* What trades time for memory. */
static QnStatus ask_memory(const Ask *base)
{
    Ask a = *base;
    if (!base->job.train)
        return QN_OK;
    a.job.recompute = true;
    int before = base->e->n_what_ifs;
    if (!base->job.recompute)
        QN_TRY(ask(&a, "cheap activations computed again"));
    const QnWhatIf *last = &base->e->what_if[before];
    if (base->e->n_what_ifs > before &&
        last->offer.cost.memory_bytes == base->e->offer.cost.memory_bytes)
        base->e->n_what_ifs--; /* nothing at the peak is cheap */
    a = *base;
    a.job.offload = true;
    if (!base->job.offload)
        QN_TRY(ask(&a, "the optimizer in the host's memory"));
    a = *base;
    a.job.batch = base->job.batch / 2;
    a.job.accumulate = 2 * QN_MAX(1, base->job.accumulate);
    if (a.job.batch < 1)
        return QN_OK;
    return ask(&a, "half the batch, gradients summed over two");
}

static QnStatus ask_devices(const Ask *base)
{
    Ask a = *base;
    char text[64];
    a.n_cards *= 2;
    snprintf(text, sizeof text, "%d devices", a.n_cards);
    return a.n_cards <= 16384 ? ask(&a, text) : QN_OK;
}

QnStatus qn_explain_init(QnExplain *e, QnCounts *counts, const QnJob *job, const QnOffer *offer,
                         const QnCoefs *k)
{
    *e = (QnExplain){ .job = *job, .offer = *offer };
    if (offer->error[0])
        return qn_fail(QN_EUNSUPPORTED, "%s", offer->error); /* which names the device */
    Ask base = same(e, counts, k);
    QN_TRY(qn_offer_price(counts, &e->job, offer->card, offer->n_cards, k, &e->offer));
    QnStatus st = split(e, k);
    if (st == QN_OK)
        st = ask_batches(&base);
    if (st == QN_OK)
        st = ask_numbers(&base);
    if (st == QN_OK)
        st = ask_stacks(&base);
    if (st == QN_OK)
        st = ask_memory(&base);
    if (st == QN_OK)
        st = ask_devices(&base);
    if (st != QN_OK)
        qn_explain_fini(e);
    return st;
}

void qn_explain_fini(QnExplain *e)
{
    qn_free(e->parts);
    e->parts = NULL;
    e->n_parts = 0;
}
