#include "io/loader.h"
#include "base/clock.h"
#include "base/mem.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

enum { WORKERS = 2, WORKERS_MAX = 256, REPLACE_TRIES = 100 };

typedef enum SlotState { SLOT_FREE, SLOT_FILLING, SLOT_READY } SlotState;

/* One batch of the ring. While FILLING it belongs to a worker, else to the lock's owner. */
typedef struct Slot {
    SlotState state;
    void *x, *y;
    int64_t *indices;
    int64_t count;
    uint64_t epoch;
    int64_t step;
    QnStatus st;
    QnError error; /* where st says so */
} Slot;

struct QnLoader {
    QnDataset *ds;
    QnLoaderOptions o;
    int64_t steps;
    size_t x_bytes, y_bytes; /* of one sample */

    pthread_mutex_t lock;
    pthread_cond_t may_fill, filled;
    pthread_t *threads;
    int thread_count;
    bool stopping, paused;
    int busy; /* workers that fill a slot now */

    Slot *slots;
    int slot_count;
    uint64_t issued, taken; /* batches handed to workers, and to the caller */
    QnLoaderPosition issue; /* of the next batch for a worker */
    QnLoaderPosition give;  /* of the next batch for the caller */
    Slot *held;             /* what the caller reads now, or NULL */
    int64_t wait_ns;        /* of the caller, for workers */

    int64_t *order; /* of order_epoch; NULL without shuffle */
    uint64_t order_epoch;
    bool has_order;
};

static QnLoaderPosition advance(const QnLoader *l, QnLoaderPosition p)
{
    if (++p.step == l->steps) {
        p.step = 0;
        p.epoch++;
    }
    return p;
}

static bool is_past_end(const QnLoader *l, QnLoaderPosition p)
{
    return l->o.epochs && p.epoch >= l->o.epochs;
}

/* ---- filling ---- */

static bool is_broken_sample(QnStatus st)
{
    return st == QN_EFORMAT || st == QN_EIO || st == QN_EUNSUPPORTED || st == QN_ENOTFOUND ||
           st == QN_ENUMERIC;
}

/* Reads the sample, or by option the next sound one, into place `at` of the slot. */
static QnStatus read_sample(const QnLoader *l, Slot *s, int64_t at, int64_t *index, bool *dropped)
{
    QnDataset *ds = l->ds;
    void *x = (char *)s->x + (size_t)at * l->x_bytes;
    void *y = s->y ? (char *)s->y + (size_t)at * l->y_bytes : NULL;
    int64_t tries = QN_MIN((int64_t)REPLACE_TRIES, ds->count);
    for (int64_t i = 0; i < tries; i++) {
        QnStatus st = qn_dataset_get(ds, *index, s->epoch, l->o.seed, x, y);
        if (st == QN_OK)
            return QN_OK;
        if (!is_broken_sample(st) || l->o.broken == QN_BROKEN_STOP)
            return st;
        QN_TRY(qn_dataset_skip_add(ds, *index));
        if (l->o.broken == QN_BROKEN_DROP) {
            *dropped = true;
            return QN_OK;
        }
        *index = (*index + 1) % ds->count;
    }
    return qn_fail_prefix("%s: %" PRId64 " samples in a row are broken, the last", ds->name, tries);
}

static QnStatus fill(const QnLoader *l, Slot *s)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < s->count; i++) {
        int64_t index = s->indices[i];
        bool dropped = false;
        QN_TRY(read_sample(l, s, kept, &index, &dropped));
        if (!dropped)
            s->indices[kept++] = index;
    }
    s->count = kept;
    size_t rest = (size_t)(l->o.batch - kept);
    memset((char *)s->x + (size_t)kept * l->x_bytes, 0, rest * l->x_bytes);
    if (s->y)
        memset((char *)s->y + (size_t)kept * l->y_bytes, 0, rest * l->y_bytes);
    return QN_OK;
}

static void fill_slot(const QnLoader *l, Slot *s)
{
    s->st = fill(l, s);
    if (s->st != QN_OK)
        s->error = *qn_error_last();
}

/* ---- handing out work; with the lock held ---- */

static bool can_issue(const QnLoader *l)
{
    return !l->paused && !is_past_end(l, l->issue) &&
           l->slots[l->issued % (uint64_t)l->slot_count].state == SLOT_FREE;
}

static Slot *issue_slot(QnLoader *l)
{
    Slot *s = &l->slots[l->issued % (uint64_t)l->slot_count];
    s->state = SLOT_FILLING;
    s->epoch = l->issue.epoch;
    s->step = l->issue.step;
    if (l->order && (!l->has_order || l->order_epoch != s->epoch)) {
        qn_dataset_shuffle(l->order, l->ds->count, l->o.seed, s->epoch);
        l->order_epoch = s->epoch;
        l->has_order = true;
    }
    int64_t first = (s->step * l->o.world + l->o.rank) * l->o.batch;
    s->count = QN_MAX((int64_t)0, QN_MIN(l->o.batch, l->ds->count - first));
    for (int64_t i = 0; i < s->count; i++)
        s->indices[i] = l->order ? l->order[first + i] : first + i;
    l->issued++;
    l->issue = advance(l, l->issue);
    return s;
}

static void *worker_main(void *arg)
{
    QnLoader *l = arg;
    pthread_mutex_lock(&l->lock);
    while (!l->stopping) {
        if (!can_issue(l)) {
            pthread_cond_wait(&l->may_fill, &l->lock);
            continue;
        }
        Slot *s = issue_slot(l);
        l->busy++;
        pthread_mutex_unlock(&l->lock);
        fill_slot(l, s);
        pthread_mutex_lock(&l->lock);
        l->busy--;
        s->state = SLOT_READY;
        pthread_cond_broadcast(&l->filled);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- life ---- */

static QnStatus check_options(QnLoaderOptions *o, const QnDataset *ds)
{
    o->workers = o->workers ? QN_MAX(0, o->workers) : WORKERS;
    o->prefetch = o->prefetch ? o->prefetch : QN_MAX(1, 2 * o->workers);
    o->world = o->world ? o->world : 1;
    if (o->batch < 1 || o->batch > INT64_MAX / 2 / o->world)
        return qn_fail(QN_EARG, "loader: a batch of %" PRId64 " samples", o->batch);
    if (o->workers > WORKERS_MAX || o->prefetch < 1 || o->prefetch > 1 << 16)
        return qn_fail(QN_EARG, "loader: %d workers and %d batches ahead are out of range",
                       o->workers, o->prefetch);
    if (o->world < 1 || o->rank < 0 || o->rank >= o->world)
        return qn_fail(QN_EARG, "loader: rank %" PRId64 " of %" PRId64, o->rank, o->world);
    if (ds->count < 1)
        return qn_fail(QN_EARG, "%s: there is no sample to load", ds->name);
    if (o->drop_last && ds->count / o->world < o->batch)
        return qn_fail(QN_EARG,
                       "%s: %" PRId64 " samples do not fill one batch of %" PRId64 " for each of "
                       "%" PRId64 " ranks: make the batch smaller or keep incomplete ones",
                       ds->name, ds->count, o->batch, o->world);
    return QN_OK;
}

static QnStatus slots_new(QnLoader *l)
{
    size_t x_bytes, y_bytes, batch = (size_t)l->o.batch;
    if (qn_mul_overflow(batch, l->x_bytes, &x_bytes) ||
        qn_mul_overflow(batch, l->y_bytes, &y_bytes))
        return qn_fail(QN_ENOMEM, "loader: a batch of %zu samples overflows memory", batch);
    l->slot_count = l->o.prefetch + 1; /* one is in the caller's hands */
    l->slots = qn_alloc_array((size_t)l->slot_count, sizeof *l->slots);
    if (!l->slots)
        return QN_ENOMEM;
    for (int i = 0; i < l->slot_count; i++) {
        Slot *s = &l->slots[i];
        s->x = qn_alloc_aligned(x_bytes);
        s->y = y_bytes ? qn_alloc_aligned(y_bytes) : NULL;
        s->indices = qn_alloc_array(batch, sizeof *s->indices);
        if (!s->x || (y_bytes && !s->y) || !s->indices)
            return QN_ENOMEM;
    }
    return QN_OK;
}

static void slots_free(QnLoader *l)
{
    size_t batch = (size_t)l->o.batch;
    for (int i = 0; l->slots && i < l->slot_count; i++) {
        qn_free_aligned(l->slots[i].x, batch * l->x_bytes);
        qn_free_aligned(l->slots[i].y, batch * l->y_bytes);
        qn_free(l->slots[i].indices);
    }
    qn_free(l->slots);
}

static QnStatus threads_start(QnLoader *l)
{
    if (!l->o.workers)
        return QN_OK;
    l->threads = qn_alloc_array((size_t)l->o.workers, sizeof *l->threads);
    if (!l->threads)
        return QN_ENOMEM;
    sigset_t all, before; /* signals are for the program's own threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = 0;
    for (; l->thread_count < l->o.workers && !code; l->thread_count += !code)
        code = pthread_create(&l->threads[l->thread_count], NULL, worker_main, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code)
        return qn_fail(QN_ENOMEM, "loader: cannot start thread %d of %d: %s", l->thread_count + 1,
                       l->o.workers, strerror(code));
    return QN_OK;
}

QnStatus qn_loader_new(QnDataset *ds, const QnLoaderOptions *options, QnLoader **out)
{
    QnStatus st = QN_OK;
    QnLoader *l = qn_alloc(sizeof *l);
    if (!l)
        return QN_ENOMEM;
    l->ds = ds;
    l->o = *options;
    l->x_bytes = qn_sample_x_bytes(&ds->spec);
    l->y_bytes = qn_sample_y_bytes(&ds->spec);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->may_fill, NULL);
    pthread_cond_init(&l->filled, NULL);
    QN_TRY_DONE(check_options(&l->o, ds));
    int64_t samples = l->o.batch * l->o.world;
    l->steps = ds->count / samples + (!l->o.drop_last && ds->count % samples ? 1 : 0);
    if (l->o.shuffle) {
        l->order = qn_alloc_array((size_t)ds->count, sizeof *l->order);
        if (!l->order) {
            st = QN_ENOMEM;
            goto done;
        }
    }
    QN_TRY_DONE(slots_new(l));
    QN_TRY_DONE(threads_start(l));
    *out = l;
    l = NULL;
done:
    qn_loader_free(l);
    return st;
}

void qn_loader_free(QnLoader *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_cond_broadcast(&l->may_fill);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->thread_count; i++)
        pthread_join(l->threads[i], NULL);
    qn_free(l->threads);
    slots_free(l);
    qn_free(l->order);
    pthread_cond_destroy(&l->filled);
    pthread_cond_destroy(&l->may_fill);
    pthread_mutex_destroy(&l->lock);
    qn_free(l);
}

/* ---- use ---- */

int64_t qn_loader_steps(const QnLoader *l)
{
    return l->steps;
}

/* The slot of the next batch, filled; with the lock held. */
static Slot *wait_for_slot(QnLoader *l)
{
    Slot *s = &l->slots[l->taken % (uint64_t)l->slot_count];
    if (s->state == SLOT_READY)
        return s;
    int64_t from = qn_clock_ns();
    if (!l->thread_count && s->state == SLOT_FREE) {
        issue_slot(l);
        fill_slot(l, s);
        s->state = SLOT_READY;
    }
    while (s->state != SLOT_READY)
        pthread_cond_wait(&l->filled, &l->lock);
    l->wait_ns += qn_clock_ns() - from;
    return s;
}

QnStatus qn_loader_next(QnLoader *l, QnBatch *out)
{
    QnStatus st = QN_OK;
    pthread_mutex_lock(&l->lock);
    if (l->held) {
        l->held->state = SLOT_FREE;
        l->held = NULL;
        pthread_cond_signal(&l->may_fill);
    }
    *out = (QnBatch){ .end = true };
    if (is_past_end(l, l->give))
        goto done;
    Slot *s = wait_for_slot(l);
    if (s->st != QN_OK) {
        st = qn_error_adopt(&s->error);
        goto done;
    }
    *out = (QnBatch){ .x = s->x,
                      .y = s->y,
                      .indices = s->indices,
                      .count = s->count,
                      .epoch = s->epoch,
                      .step = s->step,
                      .last = s->step == l->steps - 1 };
    l->held = s;
    l->taken++;
    l->give = advance(l, l->give);
done:
    pthread_mutex_unlock(&l->lock);
    return st;
}

QnLoaderPosition qn_loader_position(const QnLoader *l)
{
    return l->give; /* only the caller's own thread changes it */
}

int64_t qn_loader_wait_ns(const QnLoader *l)
{
    return l->wait_ns;
}

QnStatus qn_loader_seek(QnLoader *l, QnLoaderPosition p)
{
    if (p.step < 0 || p.step > l->steps)
        return qn_fail(QN_EARG,
                       "loader: step %" PRId64 " of an epoch of %" PRId64 ": the data or the batch "
                       "size changed since the position was saved",
                       p.step, l->steps);
    if (p.step == l->steps)
        p = (QnLoaderPosition){ .epoch = p.epoch + 1 };
    pthread_mutex_lock(&l->lock);
    l->paused = true;
    while (l->busy)
        pthread_cond_wait(&l->filled, &l->lock);
    for (int i = 0; i < l->slot_count; i++)
        l->slots[i].state = SLOT_FREE;
    l->held = NULL;
    l->issued = l->taken = 0;
    l->issue = l->give = p;
    l->paused = false;
    pthread_cond_broadcast(&l->may_fill);
    pthread_mutex_unlock(&l->lock);
    return QN_OK;
}
