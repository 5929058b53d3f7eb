#include "plan/cluster.h"

#include <math.h>
#include <string.h>

/* ---- failures ---- */

double qn_cluster_interval(double write_s, double mtbf_s)
{
    if (write_s >= 2 * mtbf_s)
        return mtbf_s;
    double x = sqrt(write_s / (2 * mtbf_s));
    return sqrt(2 * write_s * mtbf_s) * (1 + x / 3 + x * x / 9) - write_s;
}

double qn_cluster_lost(double write_s, double interval_s, double restart_s, double mtbf_s)
{
    double writing = write_s / (interval_s + write_s);
    double again = (restart_s + (interval_s + write_s) / 2) / mtbf_s;
    return QN_MIN(1, 1 - (1 - writing) * QN_MAX(0, 1 - again));
}

static void set_failures(const QnClusterJob *job, QnClusterPoint *p)
{
    const QnSplit *s = job->split;
    double params = (double)s->layers * s->layer_params + s->ends_params;
    double bytes = params * (s->model->family->adam ? 14 : 10); /* weights and optimizer */
    double nodes = ceil((double)p->n / QN_MAX(job->training.links.per_node, 1));
    double mtbf_s = 3600 * job->mtbf_hours / p->n;
    p->checkpoint_s = bytes / (1e9 * QN_MIN(job->store_gbs * nodes, job->store_most_gbs));
    p->interval_s = qn_cluster_interval(p->checkpoint_s, mtbf_s);
    p->lost =
        qn_cluster_lost(p->checkpoint_s, p->interval_s, job->restart_s + p->checkpoint_s, mtbf_s);
    p->failures_day = 86400 / mtbf_s;
}

static void set_run(const QnClusterJob *job, QnClusterPoint *p)
{
    double tokens = job->split->sequence ? (double)job->split->sequence : 1;
    p->items_s = tokens * (double)job->global_batch / p->step.step_s;
    set_failures(job, p);
    if (!(job->items > 0) || p->lost >= 1)
        return;
    p->hours = job->items / p->items_s / 3600 / (1 - p->lost);
    p->failures = p->failures_day / 24 * p->hours;
    p->usd = job->usd_hour * p->n * p->hours;
    p->kwh = job->kw * p->n * p->hours;
}

/* ---- layouts ---- */

static void keep_better(QnClusterPoint *p, const QnSharding *l, const QnParallelResult *r)
{
    p->tried++;
    if (!p->any || r->memory.total < p->least_memory.total) {
        p->least = *l;
        p->least_memory = r->memory;
        p->any = true;
    }
    if (r->fits && (!p->found || r->step_s < p->step.step_s)) {
        p->found = true;
        p->layout = *l;
        p->step = *r;
    }
}

static QnStatus try_layout(const QnClusterJob *job, const QnSharding *l, QnClusterPoint *p)
{
    QnParallelResult r;
    QN_TRY(qn_parallel_step(job->split, l, &job->training, &job->coefs->fleet, &r));
    keep_better(p, l, &r);
    return QN_OK;
}

/* What is left when the degrees are set: how the state and the passes are divided. */
static QnStatus try_details(const QnClusterJob *job, QnSharding *l, QnClusterPoint *p)
{
    static const QnRecompute again[] = { QN_RECOMPUTE_NONE, QN_RECOMPUTE_SELECTIVE,
                                         QN_RECOMPUTE_HALF, QN_RECOMPUTE_FULL };
    int64_t m = job->global_batch / (l->data * l->micro_batch);
    /* a stage of one layer less at each end still has pieces */
    int64_t layers = (job->split->layers + l->pipeline - 1) / l->pipeline;
    for (int zero = 0; zero <= 3; zero++) {
        if (zero && (l->data * l->context == 1 || (zero > 1 && l->pipeline > 1)))
            continue; /* gradients of a pipeline live through all of its micro-batches */
        for (int i = 0; i < QN_COUNT(again); i++) {
            if (again[i] == QN_RECOMPUTE_SELECTIVE && job->training.flash)
                continue;
            for (int v = 1; v <= layers && v <= 8; v *= 2) {
                if (v > 1 && (l->pipeline == 1 || layers % v || m % l->pipeline))
                    continue;
                l->zero = zero;
                l->recompute = again[i];
                l->interleave = v;
                QN_TRY(try_layout(job, l, p));
            }
        }
    }
    return QN_OK;
}

static QnStatus try_micro_batches(const QnClusterJob *job, QnSharding *l, QnClusterPoint *p)
{
    int64_t local = job->global_batch / l->data;
    for (int64_t b = 1; b <= local && b <= 64; b *= 2) {
        if (local % b)
            continue;
        l->micro_batch = b;
        QN_TRY(try_details(job, l, p));
    }
    return QN_OK;
}

static QnStatus search_layers(const QnClusterJob *job, QnClusterPoint *p)
{
    int near = QN_MIN(QN_MAX(job->training.links.per_node, 1), 16);
    int64_t most_context = QN_MAX(1, QN_MIN(16, job->split->sequence / 4096)); /* of 4096 tokens */
    for (int t = 1; t <= near; t *= 2) {
        for (int c = 1; c <= most_context; c *= 2) {
            for (int s = 1; s <= job->split->layers && s <= p->n; s++) {
                QnSharding l = { .tensor = t,
                                 .pipeline = s,
                                 .context = c,
                                 .sequence_parallel = t > 1,
                                 .overlap_tensor = job->training.overlap,
                                 .global_batch = job->global_batch };
                /* stages of equal size, but for one less at each end */
                bool even = job->split->layers % s == 0 || (job->split->layers + 2) % s == 0;
                if (!even || p->n % (t * c * s))
                    continue;
                l.data = p->n / (t * c * s);
                if (job->global_batch % l.data)
                    continue;
                QN_TRY(try_micro_batches(job, &l, p));
            }
        }
    }
    return QN_OK;
}

/* ---- models that are not divided ---- */

static QnParallelMemory whole_memory(const QnCount *c, int zero, int n)
{
    QnParallelMemory m = { .weights = c->weights / (zero >= 3 ? n : 1),
                           .gradients = c->gradients / (zero >= 2 ? n : 1),
                           .optimizer = c->optimizer / (zero >= 1 ? n : 1),
                           .activations = c->activations };
    double held = m.weights + m.gradients + m.optimizer + m.activations;
    m.reserve = 0.8e9 + 0.04 * held;
    m.total = held + m.reserve;
    return m;
}

static QnStatus try_whole(const QnClusterJob *job, QnSharding *l, QnClusterPoint *p)
{
    const QnCard *card = job->training.card;
    const QnCount *c;
    QnScaling s;
    QnCountRequest q = { .train = true,
                         .low = qn_numbers_low(job->training.numbers, true),
                         .batch = l->micro_batch,
                         .sequence = job->split->sequence };
    QnCostRequest r = { .card = card,
                        .n_cards = p->n,
                        .numbers = job->training.numbers,
                        .tier = job->tier,
                        .train = true };
    double m = (double)(job->global_batch / (l->micro_batch * p->n));
    QN_TRY(qn_counts_get(job->counts, job->split->model, &q, &c));
    QN_TRY(qn_scaling_step(c, &r, job->coefs, &job->training.links, job->training.compression, &s));
    for (int zero = 0; zero <= (p->n > 1 ? 3 : 0); zero++) {
        QnParallelResult out = { .compute_s = m * s.one_s, .data_s = s.exposed_s + s.waiting_s };
        /* weights are gathered again, forward and backward */
        if (zero == 3)
            out.data_s += 2 * m *
                          qn_comm_s(&job->training.links, &job->coefs->fleet, QN_COMM_ALL_GATHER,
                                    p->n, job->training.links.per_node, 2 * c->params);
        out.step_s = out.compute_s + out.data_s;
        out.memory = whole_memory(c, zero, p->n);
        out.fits = out.memory.total <= card->memory_gb * 1024 * 1024 * 1024;
        out.flops = job->split->flops * (double)job->global_batch;
        out.mfu = out.flops / (out.step_s * p->n * qn_cost_peak(card, job->training.numbers));
        out.exposed = out.data_s / out.step_s;
        l->zero = zero;
        keep_better(p, l, &out);
    }
    return QN_OK;
}

static QnStatus search_whole(const QnClusterJob *job, QnClusterPoint *p)
{
    QnSharding l = { .data = p->n,
                     .tensor = 1,
                     .pipeline = 1,
                     .context = 1,
                     .interleave = 1,
                     .global_batch = job->global_batch };
    int64_t local = job->global_batch / p->n;
    if (job->global_batch % p->n)
        return QN_OK;
    for (int64_t b = 1; b <= local && b <= 512; b *= 2) {
        l.micro_batch = b;
        if (local % b == 0)
            QN_TRY(try_whole(job, &l, p));
    }
    return QN_OK;
}

QnStatus qn_cluster_search(const QnClusterJob *job, int n, QnClusterPoint *out)
{
    *out = (QnClusterPoint){ .n = n };
    if (n < 1 || job->global_batch < 1)
        return qn_fail(QN_EARG,
                       "a cluster of %d devices and a batch of %lld: both must be at "
                       "least 1",
                       n, (long long)job->global_batch);
    QN_TRY(job->split->layers ? search_layers(job, out) : search_whole(job, out));
    if (out->found)
        set_run(job, out);
    return QN_OK;
}
