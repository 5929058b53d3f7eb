#include "plan/counts.h"

#include <math.h>

#include <string.h>

/* The batches that are counted: primes, which no size of a model happens to be. */
enum { FEW = 17, MORE = 37 };

typedef struct Kept {
    const QnModel *model;
    QnCountRequest request;
    QnCount *count;
} Kept;

struct QnCounts {
    QnDevice *device;
    Kept *kept;
    int64_t n, cap;
};

QnCounts *qn_counts_new(QnDevice *null_device)
{
    QnCounts *c = qn_alloc(sizeof *c);
    if (c)
        c->device = null_device;
    return c;
}

static void free_count(QnCount *count)
{
    if (count)
        qn_count_fini(count);
    qn_free(count);
}

void qn_counts_free(QnCounts *c)
{
    if (!c)
        return;
    for (int64_t i = 0; i < c->n; i++)
        free_count(c->kept[i].count);
    qn_free(c->kept);
    qn_free(c);
}

static bool is_same(const QnCountRequest *a, const QnCountRequest *b)
{
    return a->train == b->train && a->here == b->here && a->choices == b->choices &&
           a->recompute == b->recompute && a->low == b->low && a->batch == b->batch &&
           a->image == b->image && a->width == b->width && a->depth == b->depth &&
           a->sequence == b->sequence && a->unfused == b->unfused && a->generate == b->generate &&
           a->context == b->context && a->source == b->source && a->weight_bits == b->weight_bits &&
           a->cache_bits == b->cache_bits;
}

static const QnCount *find(const QnCounts *c, const QnModel *m, const QnCountRequest *r)
{
    for (int64_t i = 0; i < c->n; i++)
        if (c->kept[i].model == m && is_same(&c->kept[i].request, r))
            return c->kept[i].count;
    return NULL;
}

static QnStatus keep(QnCounts *c, const QnModel *m, const QnCountRequest *r, QnCount *take_count,
                     const QnCount **out)
{
    QnStatus st = QN_GROW(c->kept, c->cap, c->n);
    if (st != QN_OK) {
        free_count(take_count);
        return st;
    }
    c->kept[c->n++] = (Kept){ m, *r, take_count };
    *out = take_count;
    return QN_OK;
}

/* Counted, not drawn. */
static QnStatus get_counted(QnCounts *c, const QnModel *m, const QnCountRequest *r,
                            const QnCount **out)
{
    *out = find(c, m, r);
    if (*out)
        return QN_OK;
    QnCount *count = qn_alloc(sizeof *count);
    QnStatus st = count ? qn_count_model(m, r, c->device, count) : QN_ENOMEM;
    if (st != QN_OK) {
        qn_free(count);
        return st;
    }
    return keep(c, m, r, count, out);
}

static double line(double few, double more, double at)
{
    return few + (more - few) * at;
}

/* Small kernels that come with examples (QnFamily.train_launches) move nothing. */
static bool is_bare(const QnWork *w)
{
    return w->flops + w->read + w->written <= 0;
}

/* Whether a quantity may grow from x to y in proportion to the batch, in part or whole: 2 if it is
 * constant or all in proportion, 1 if in part, 0 if it cannot. */
static int grows(double x, double y)
{
    double whole = x * MORE / FEW, off = 1e-9 * whole;
    if (y < x - off || y > whole + off)
        return 0;
    return fabs(y - x) <= off || fabs(y - whole) <= off ? 2 : 1;
}

/* How well b may be a at the larger batch; 0: it cannot. */
static int likeness(const QnWork *a, const QnWork *b)
{
    const double from[] = { a->flops, a->read, a->written, a->m, a->n, a->k, a->groups },
                 to[] = { b->flops, b->read, b->written, b->m, b->n, b->k, b->groups };
    int sum = 0;
    if (a->kind != b->kind || a->op != b->op || (a->count != b->count && !is_bare(a)))
        return 0;
    for (int i = 0; i < QN_COUNT(from); i++) {
        int one = grows(from[i], to[i]);
        if (!one)
            return 0;
        sum += one;
    }
    return sum;
}

/* Which work of `more` each of `few` is. Nodes are ordered by the memory that they need, which a
 * batch may change, so that equal places mean nothing. False: the graphs differ. */
static bool match(const QnCount *few, const QnCount *more, int64_t *to, bool *taken)
{
    if (few->n_work != more->n_work)
        return false;
    for (int64_t i = 0; i < few->n_work; i++) {
        int best = 0, most = 2 * 7;
        for (int64_t k = 0; k < more->n_work && best < most; k++) {
            int64_t at = (i + k) % more->n_work; /* mostly at the same place, or soon after */
            int like = taken[at] ? 0 : likeness(&few->work[i], &more->work[at]);
            if (like > best) {
                best = like;
                to[i] = at;
            }
        }
        if (!best)
            return false;
        taken[to[i]] = true;
    }
    return true;
}

/* Both counts' straight line at batch FEW + at * (MORE - FEW). */
static QnCount *draw(const QnCount *few, const QnCount *more, const int64_t *to, double at)
{
    QnCount *c = qn_alloc(sizeof *c);
    if (!c)
        return NULL;
    *c = *few;
    c->work = qn_alloc_array((size_t)few->n_work + 1, sizeof *c->work);
    c->cap_work = few->n_work + 1;
    if (!c->work) {
        qn_free(c);
        return NULL;
    }
    for (int64_t i = 0; i < few->n_work; i++) {
        const QnWork *a = &few->work[i], *b = &more->work[to[i]];
        c->work[i] = (QnWork){ .kind = a->kind,
                               .op = a->op,
                               .flops = line(a->flops, b->flops, at),
                               .read = line(a->read, b->read, at),
                               .written = line(a->written, b->written, at),
                               .m = line(a->m, b->m, at),
                               .n = line(a->n, b->n, at),
                               .k = line(a->k, b->k, at),
                               .groups = line(a->groups, b->groups, at),
                               .count = line(a->count, b->count, at),
                               .winograd = a->winograd };
    }
    c->flops = line(few->flops, more->flops, at);
    c->bytes = line(few->bytes, more->bytes, at);
    c->activations = QN_MAX(0, line(few->activations, more->activations, at));
    c->cache = line(few->cache, more->cache, at);
    c->examples = line(few->examples, more->examples, at);
    c->tokens = line(few->tokens, more->tokens, at);
    return c;
}

/* Small batches take as much memory as a single example, for what does not depend on examples. */
static QnStatus at_least_one(QnCounts *c, const QnModel *m, const QnCountRequest *r, QnCount *count)
{
    QnCountRequest at = *r;
    const QnCount *one;
    at.batch = 1;
    QN_TRY(get_counted(c, m, &at, &one));
    count->activations = QN_MAX(count->activations, one->activations);
    return QN_OK;
}

static QnStatus get_drawn(QnCounts *c, const QnModel *m, const QnCountRequest *r,
                          const QnCount *few, const QnCount *more, const int64_t *to,
                          const QnCount **out)
{
    QnCount *drawn = draw(few, more, to, (double)(r->batch - FEW) / (MORE - FEW));
    if (!drawn)
        return QN_ENOMEM;
    QnStatus st = r->batch < FEW ? at_least_one(c, m, r, drawn) : QN_OK;
    if (st != QN_OK) {
        free_count(drawn);
        return st;
    }
    return keep(c, m, r, drawn, out);
}

QnStatus qn_counts_get(QnCounts *c, const QnModel *m, const QnCountRequest *r, const QnCount **out)
{
    QnCountRequest at = *r;
    const QnCount *few, *more;
    *out = find(c, m, r);
    if (*out)
        return QN_OK;
    /* below 1 for its error; on a device of ours kernels are chosen by size */
    if (r->batch <= 1 || m->family->bends || r->here)
        return get_counted(c, m, r, out);
    at.batch = FEW;
    QnStatus st = get_counted(c, m, &at, &few);
    at.batch = MORE;
    if (st == QN_OK)
        st = get_counted(c, m, &at, &more);
    if (st == QN_ENOMEM)
        return st;
    if (st != QN_OK) /* files may hold one batch alone */
        return get_counted(c, m, r, out);
    int64_t *to = qn_alloc_array((size_t)few->n_work + 1, sizeof *to);
    bool *taken = qn_alloc_array((size_t)more->n_work + 1, sizeof *taken);
    st = to && taken ? QN_OK : QN_ENOMEM;
    if (st == QN_OK)
        st = match(few, more, to, taken) ? get_drawn(c, m, r, few, more, to, out)
                                         : get_counted(c, m, r, out);
    qn_free(to);
    qn_free(taken);
    return st;
}

QnStatus qn_counts_generation(QnCounts *c, const QnModel *m, const QnCountRequest *r, int64_t in,
                              int64_t out, QnGeneration *g)
{
    QnCountRequest q = *r;
    q.generate = true;
    q.sequence = in;
    q.context = 0;
    *g = (QnGeneration){ .steps = (double)(out - 1) };
    if (in < 1 || out < 1 || in > 1 << 24 || out > 1 << 24)
        return qn_fail(QN_EARG, "%s: %lld tokens for %lld; expected 1 to 16,777,216 each", m->name,
                       (long long)out, (long long)in);
    QN_TRY(qn_counts_get(c, m, &q, &g->prompt));
    int64_t first = m->family->answers ? 0 : in; /* kept before the answer begins */
    q.sequence = 1;
    q.batch *= QN_MAX(m->family->beams, 1);
    q.source = m->family->answers ? in : 0;
    q.context = QN_MAX(first + out / 2, 1);
    QN_TRY(qn_counts_get(c, m, &q, &g->step));
    q.context = QN_MAX(first + out - 1, 1);
    return qn_counts_get(c, m, &q, &g->last);
}
