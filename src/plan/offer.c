/* One device priced for a job. */
#include "plan/offer_impl.h"
#include "plan/calib.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The host's share of a training step with its optimizer there, and what copies reach. */
#define HOST_BYTES_S 40e9
#define COPY_SHARE   0.8

double qn_offer_room(const QnOffer *o)
{
    return 1024.0 * 1024 * 1024 * o->card->memory_gb;
}

bool qn_offer_is_tight(const QnOffer *o)
{
    return !o->error[0] && o->cost.fits && o->memory_high > qn_offer_room(o);
}

const char *qn_offer_limit(const QnOffer *o)
{
    if (o->waits)
        return o->waits;
    return o->cost.limit == QN_LIMIT_MEMORY ? "memory bandwidth" : qn_limit_name(o->cost.limit);
}

static const char *largest_term(const QnOffer *o)
{
    const struct {
        const char *name;
        double bytes;
    } terms[] = { { "weights", o->memory.weights },
                  { "gradients", o->memory.gradients },
                  { "optimizer", o->memory.optimizer },
                  { "activations", o->memory.activations },
                  { "keys and values", o->cache } };
    int best = 0;
    for (int i = 1; i < QN_COUNT(terms); i++)
        best = terms[i].bytes > terms[best].bytes ? i : best;
    return terms[best].name;
}

/* Bytes a second to the host: 16 lanes. Devices that share the host's memory copy nothing. */
static double copy_rate(const QnCard *card)
{
    static const double gbs[] = { 0, 4, 8, 15.75, 31.5, 63, 121 };
    int gen = (int)card->pcie_gen;
    return COPY_SHARE * 1e9 * (gen > 0 && gen < QN_COUNT(gbs) ? gbs[gen] : 15.75);
}

void qn_offer_add_s(QnCostResult *c, QnLimit limit, double seconds)
{
    c->mfu *= c->step_s / (c->step_s + seconds);
    c->step_s += seconds;
    c->low_s += seconds;
    c->high_s += seconds;
    c->by_limit[limit] += seconds;
    c->busy_s += limit == QN_LIMIT_COMPUTE || limit == QN_LIMIT_MEMORY ? seconds : 0;
}

/* ---- what does not stay on the device ---- */

/* Seconds an update more. With 32-bit masters of 16-bit weights, those go too. */
static double move_out(const QnJob *job, const QnOffer *o, QnCount *c)
{
    if (!job->offload || !job->train)
        return 0;
    bool mixed = o->numbers == QN_NUMBERS_FP16_AMP || o->numbers == QN_NUMBERS_BF16_AMP;
    double width = mixed ? 2 : 4, states = c->optimizer + c->weights;
    c->optimizer = 0;
    if (mixed) {
        c->weights = 0; /* the 16-bit copies are among the activations */
        c->gradients /= 2;
    }
    double copied = 2 * width * c->params / copy_rate(o->card);
    return copied + 2 * (states + c->gradients) / HOST_BYTES_S;
}

/* ---- a step ---- */

/* Micro-batches before the last sum up gradients, and update nothing. */
static QnStatus add_micro_batches(const QnCount *c, const QnCostRequest *r, const QnCoefs *k,
                                  int64_t more, QnCostResult *out)
{
    QnCostResult one;
    QnCostRequest q = *r;
    q.no_update = true;
    q.n_cards = 1;
    if (more < 1)
        return QN_OK;
    QN_TRY(qn_cost_step(c, &q, k, &one));
    double busy = out->mfu * out->step_s + one.mfu * one.step_s * (double)more;
    out->step_s += one.step_s * (double)more;
    out->busy_s += one.busy_s * (double)more;
    out->low_s += one.low_s * (double)more;
    out->high_s += one.high_s * (double)more;
    for (int i = 0; i < QN_LIMITS; i++)
        out->by_limit[i] += one.by_limit[i] * (double)more;
    out->mfu = busy / out->step_s;
    return QN_OK;
}

void qn_offer_find_limit(QnCostResult *c)
{
    c->limit = (QnLimit)0;
    for (int i = 1; i < QN_LIMITS; i++)
        if (c->by_limit[i] > c->by_limit[c->limit])
            c->limit = (QnLimit)i;
}

/* Examples are prepared and copied while the step before runs: the slower of both counts. */
static void wait_for_examples(const QnJob *job, QnOffer *o)
{
    double examples = (double)o->batch * (double)o->accumulate, local = QN_MIN(o->n_cards, 8);
    double copy = job->feed.bytes * examples / copy_rate(o->card);
    double load = job->feed.workers > 0 && job->feed.rate > 0
                      ? examples * local / (job->feed.workers * job->feed.rate)
                      : 0;
    double least = QN_MAX(copy, load);
    QnCostResult *c = &o->cost;
    o->busy_s = c->step_s;
    o->waits = least <= c->step_s ? NULL : load > copy ? "loader" : "copies";
    if (o->waits)
        c->mfu *= c->step_s / least;
    c->step_s = QN_MAX(c->step_s, least);
    c->low_s = QN_MAX(c->low_s, least);
    c->high_s = QN_MAX(c->high_s, least);
}

QnCostRequest qn_offer_request(const QnJob *job, const QnOffer *o)
{
    return (QnCostRequest){ .card = o->card,
                            .n_cards = o->n_cards / qn_offer_stages(job, o),
                            .ways = o->ways,
                            .decodes = job->generate > 1,
                            .numbers = o->numbers,
                            .weight_bits = job->weight_bits,
                            .tier = job->tier,
                            .train = job->train,
                            .model = job->model ? job->model->name : NULL,
                            .family = job->model ? job->model->family->name : NULL,
                            .framework = job->framework };
}

/* What the device cannot do is the offer's error. */
static QnStatus note_error(QnOffer *o)
{
    if (qn_error_last()->code == QN_ENOMEM)
        return QN_ENOMEM;
    snprintf(o->error, sizeof o->error, "%.150s", qn_error_last()->text);
    return QN_OK;
}

/* An offer must not call what the device falls back to by the narrower precision's name. */
static QnStatus check_numbers(QnOffer *o)
{
    const QnCard *card = o->card;
    if (qn_cost_has(card, o->numbers))
        return QN_OK;
    qn_fail(QN_EUNSUPPORTED, "%s: its data sheet has no rate for %s", card->name,
            qn_numbers_name(o->numbers));
    return note_error(o);
}

static QnStatus price_step(const QnJob *job, const QnCoefs *k, const QnFleet *f, QnCount *c,
                           QnOffer *o)
{
    QnCostRequest q = qn_offer_request(job, o);
    double host = move_out(job, o, c), gather = qn_offer_spread(job, f, o, c);
    if (qn_cost_step(c, &q, k, &o->cost) != QN_OK)
        return note_error(o);
    gather = qn_offer_exposed(job, k, &o->cost, gather);
    QN_TRY(add_micro_batches(c, &q, k, o->accumulate - 1, &o->cost));
    qn_offer_add_s(&o->cost, QN_LIMIT_LINK, gather * (double)o->accumulate);
    qn_offer_add_s(&o->cost, QN_LIMIT_LINK, host);
    qn_offer_find_limit(&o->cost);
    qn_offer_line_up(job, f, 1, o);
    wait_for_examples(job, o);
    qn_offer_memory(job, f, c, o);
    o->term = largest_term(o);
    if (!o->card->calib) /* which has been measured */
        qn_offer_power(job, f, o);
    return QN_OK;
}

/* Answers of job->generate tokens; the memory is that of the last. */
static QnStatus price_answers(QnCounts *counts, const QnJob *job, const QnCountRequest *r,
                              const QnCoefs *k, const QnFleet *f, QnOffer *o)
{
    QnCostRequest q = qn_offer_request(job, o), prompt = q;
    QnCostResult first;
    QnGeneration g;
    QN_TRY(qn_counts_generation(counts, job->model, r, job->prompt, job->generate, &g));
    o->count = g.last;
    prompt.decodes = false;
    if (qn_cost_steps(g.prompt, g.step, g.steps, &q, k, &o->cost) != QN_OK ||
        qn_cost_step(g.prompt, &prompt, k, &first) != QN_OK)
        return note_error(o);
    o->first_s = first.step_s;
    o->token_s = g.steps > 0 ? (o->cost.step_s - first.step_s) / g.steps : 0;
    qn_offer_line_up(job, f, g.steps + 1, o);
    qn_offer_memory(job, f, g.last, o);
    o->term = largest_term(o);
    if (!o->card->calib)
        qn_offer_power(job, f, o);
    return QN_OK;
}

/* ---- the job ---- */

static void set_money(const QnJob *job, QnOffer *o)
{
    QnMoney m = job->money.years > 0 ? job->money : qn_money_default();
    double kw = 1e-3 * o->cost.power_w, seconds = job->items / o->items_s * (1 + job->evaluation);
    o->usd_per_hour = o->n_cards * qn_money_rate(&m, o->card, kw / o->n_cards, &o->rented);
    o->hours = seconds / 3600;
    o->kwh = kw * m.pue * o->hours;
    o->usd = o->usd_per_hour * o->hours;
    o->outlay = o->usd;
    if (o->usd > 0 && !o->rented && !o->card->calib) /* this machine is there already */
        o->outlay =
            o->n_cards * qn_money_purchase(&m, o->card) + o->hours * qn_money_electricity(&m, kw);
}

/* items: of one device's update, or run of answers. */
static QnStatus finish(const QnJob *job, double items, QnOffer *o)
{
    items *= o->n_cards / (QN_MAX(o->ways, 1) * qn_offer_stages(job, o));
    o->items_s = items / o->cost.step_s;
    o->fed_s = o->busy_s > 0 ? items / o->busy_s : o->items_s;
    o->low_s = items / o->cost.high_s;
    o->high_s = items / o->cost.low_s;
    set_money(job, o);
    return QN_OK;
}

static QnStatus price_batch(QnCounts *counts, const QnJob *job, int64_t batch, const QnCoefs *k,
                            const QnFleet *f, QnOffer *out)
{
    QnCountRequest r = { .train = job->train,
                         .recompute = job->recompute,
                         .low = qn_numbers_low(out->numbers, job->train),
                         .unfused = qn_tier_is_eager(job->tier),
                         .weight_bits = job->weight_bits,
                         .batch = batch,
                         .image = job->image,
                         .sequence = job->sequence,
                         .here = out->card->calib ? out->card->calib->device : NULL,
                         .choices = out->card->calib ? out->card->calib->choices : NULL };
    out->batch = batch;
    if (job->generate) {
        QN_TRY(price_answers(counts, job, &r, k, f, out));
        return out->error[0] ? QN_OK : finish(job, (double)(batch * job->generate), out);
    }
    QN_TRY(qn_counts_get(counts, job->model, &r, &out->count));
    QnCount held = *out->count; /* borrows the work; its memory may differ */
    QN_TRY(price_step(job, k, f, &held, out));
    if (out->error[0])
        return QN_OK;
    double one = out->count->tokens > 0 ? out->count->tokens : out->count->examples;
    return finish(job, one * (double)out->accumulate, out);
}

/* Where both wait for examples, the one that would be faster: another host may feed it. */
static bool is_faster(const QnOffer *a, const QnOffer *b)
{
    return a->items_s > 1.001 * b->items_s ||
           (a->items_s > 0.999 * b->items_s && a->fed_s > b->fed_s);
}

/* As the job says what is shared; the largest batch where it says none. */
static QnStatus price_shared(QnCounts *counts, const QnJob *job, QnOffer base, const QnCoefs *k,
                             const QnFleet *f, QnOffer *out)
{
    int64_t most = job->most_batch ? job->most_batch : job->generate ? 1024 : 256;
    base.shard = job->shard;
    base.ways = QN_MAX(job->ways, 1);
    *out = base;
    if (job->batch)
        return price_batch(counts, job, job->batch, k, f, out);
    for (int64_t batch = 1; batch <= most; batch *= 2) {
        QnOffer more = base;
        QN_TRY(price_batch(counts, job, batch, k, f, &more));
        if (batch > 1 && (!more.cost.fits || qn_offer_is_tight(&more)))
            break;
        if (batch == 1 || is_faster(&more, out))
            *out = more;
        if (more.error[0] || !more.cost.fits)
            break;
    }
    return QN_OK;
}

/* 0: does not fit; 1: may run out of memory. */
static int room_rank(const QnOffer *o)
{
    return !o->cost.fits ? 0 : qn_offer_is_tight(o) ? 1 : 2;
}

static bool is_better(const QnOffer *a, const QnOffer *than)
{
    if (a->error[0] || than->error[0])
        return !a->error[0];
    if (room_rank(a) != room_rank(than))
        return room_rank(a) > room_rank(than);
    return a->cost.fits ? a->items_s > than->items_s
                        : a->cost.memory_bytes < than->cost.memory_bytes;
}

/* Where the job leaves it open, several devices share what makes it fit, or faster. */
static QnStatus try_sharing(QnCounts *counts, const QnJob *job, const QnOffer *base,
                            const QnCoefs *k, const QnFleet *f, QnOffer *out)
{
    const QnOffer alone = *out;
    QnJob tried = *job;
    for (int ways = 2; qn_offer_can_share(job, &alone, ways); ways *= 2) {
        QnOffer o;
        tried.ways = ways;
        QN_TRY(price_shared(counts, &tried, *base, k, f, &o));
        *out = is_better(&o, out) ? o : *out;
    }
    if (out->error[0] || room_rank(out) == 2)
        return QN_OK;
    QnOffer o;
    tried.shard = true;
    QN_TRY(price_shared(counts, &tried, *base, k, f, &o));
    *out = is_better(&o, out) ? o : *out;
    return QN_OK;
}

QnStatus qn_offer_price(QnCounts *counts, const QnJob *job, const QnCard *card, int n_cards,
                        const QnCoefs *k, QnOffer *out)
{
    QnNumbers p = job->numbers;
    QnFleet own;
    const QnFleet *f = job->fleet ? job->fleet : &own;
    if (!job->fleet)
        QN_TRY(qn_fleet_open(&own));
    if (job->any_numbers)
        p = qn_cost_peak(card, QN_NUMBERS_FP16) <= 1.5 * qn_cost_peak(card, QN_NUMBERS_FP32)
                ? QN_NUMBERS_FP32
            : job->generate ? QN_NUMBERS_FP16
                            : QN_NUMBERS_FP16_AMP;
    *out = (QnOffer){ .card = card,
                      .n_cards = n_cards,
                      .numbers = p,
                      .accumulate = job->train && job->accumulate > 1 ? job->accumulate : 1,
                      .recompute = job->recompute,
                      .offload = job->offload };
    const QnOffer base = *out;
    QN_TRY(check_numbers(out));
    if (out->error[0])
        return QN_OK;
    QN_TRY(price_shared(counts, job, base, k, f, out));
    if (n_cards < 2 || job->shard || job->ways || out->error[0])
        return QN_OK;
    return try_sharing(counts, job, &base, k, f, out);
}
