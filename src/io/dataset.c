#include "io/dataset.h"
#include "base/mem.h"
#include "base/rng.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct QnSkipList {
    pthread_mutex_t lock;
    QnSkip *items; /* sorted by index */
    int64_t count, cap;
};

int64_t qn_sample_x_count(const QnSampleSpec *spec)
{
    int64_t n = 1;
    for (int i = 0; i < spec->x_rank; i++)
        n *= spec->x_dims[i];
    return n;
}

size_t qn_sample_x_bytes(const QnSampleSpec *spec)
{
    size_t item = spec->x_kind == QN_FEATURE_F32 ? sizeof(float) : sizeof(int64_t);
    return (size_t)qn_sample_x_count(spec) * item;
}

size_t qn_sample_y_bytes(const QnSampleSpec *spec)
{
    switch (spec->y_kind) {
    case QN_LABEL_NONE: return 0;
    case QN_LABEL_CLASS: return sizeof(int64_t);
    case QN_LABEL_VECTOR: return (size_t)spec->y_count * sizeof(float);
    case QN_LABEL_TOKENS: return (size_t)spec->y_count * sizeof(int64_t);
    }
    return 0;
}

QnStatus qn_dataset_init(QnDataset *ds, const QnDatasetOps *ops, const char *name)
{
    ds->name = qn_strdup(name);
    ds->skips = ds->name ? qn_alloc(sizeof *ds->skips) : NULL;
    if (!ds->skips) {
        qn_free(ds->name);
        ds->name = NULL;
        return QN_ENOMEM;
    }
    pthread_mutex_init(&ds->skips->lock, NULL);
    ds->ops = ops;
    return QN_OK;
}

static void free_class_names(QnDataset *ds)
{
    for (int64_t i = 0; ds->class_names && i < ds->spec.class_count; i++)
        qn_free(ds->class_names[i]);
    qn_free(ds->class_names);
    ds->class_names = NULL;
}

QnStatus qn_dataset_set_classes(QnDataset *ds, const char *const *names, int64_t n)
{
    free_class_names(ds);
    ds->spec.class_count = n;
    if (!names || n < 1)
        return QN_OK;
    ds->class_names = qn_alloc_array((size_t)n, sizeof *ds->class_names);
    if (!ds->class_names)
        return QN_ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        ds->class_names[i] = qn_strdup(names[i]);
        if (!ds->class_names[i])
            return QN_ENOMEM;
    }
    return QN_OK;
}

void qn_dataset_free(QnDataset *ds)
{
    if (!ds)
        return;
    if (ds->ops && ds->ops->fini)
        ds->ops->fini(ds);
    free_class_names(ds);
    if (ds->skips) {
        for (int64_t i = 0; i < ds->skips->count; i++)
            qn_free(ds->skips->items[i].text);
        qn_free(ds->skips->items);
        pthread_mutex_destroy(&ds->skips->lock);
        qn_free(ds->skips);
    }
    qn_free(ds->name);
    qn_free(ds);
}

const char *qn_dataset_name(const QnDataset *ds)
{
    return ds->name;
}

int64_t qn_dataset_count(const QnDataset *ds)
{
    return ds->count;
}

const QnSampleSpec *qn_dataset_spec(const QnDataset *ds)
{
    return &ds->spec;
}

const char *qn_dataset_class_name(const QnDataset *ds, int64_t class_index)
{
    if (!ds->class_names || class_index < 0 || class_index >= ds->spec.class_count)
        return NULL;
    return ds->class_names[class_index];
}

static QnStatus check_index(const QnDataset *ds, int64_t index)
{
    if (index < 0 || index >= ds->count)
        return qn_fail(QN_EARG, "%s: sample %" PRId64 " of %" PRId64, ds->name, index, ds->count);
    return QN_OK;
}

QnStatus qn_dataset_get(const QnDataset *ds, int64_t index, uint64_t epoch, uint64_t seed, void *x,
                        void *y)
{
    QN_TRY(check_index(ds, index));
    return ds->ops->get(ds, index, epoch, seed, x, y);
}

QnStatus qn_dataset_get_label(const QnDataset *ds, int64_t index, void *y)
{
    QN_TRY(check_index(ds, index));
    return ds->ops->label(ds, index, y);
}

void qn_dataset_place(const QnDataset *ds, int64_t index, char *text, size_t bytes)
{
    if (ds->ops->place)
        ds->ops->place(ds, index, text, bytes);
    else
        snprintf(text, bytes, "%s: sample %" PRId64, ds->name, index);
}

static QnStatus check_label(const QnDataset *ds, int64_t index, const void *y)
{
    char place[256];
    const QnSampleSpec *s = &ds->spec;
    const int64_t *ids = y;
    const float *values = y;
    for (int64_t i = 0; i < s->y_count; i++) {
        if (s->y_kind == QN_LABEL_VECTOR) {
            if (isfinite(values[i]))
                continue;
            qn_dataset_place(ds, index, place, sizeof place);
            return qn_fail(QN_ENUMERIC, "%s: target %" PRId64 " is %g: remove or mend this sample",
                           place, i, (double)values[i]);
        }
        if (ids[i] >= 0 && ids[i] < s->class_count)
            continue;
        qn_dataset_place(ds, index, place, sizeof place);
        return qn_fail(QN_EARG,
                       "%s: label %" PRId64 " is out of range: %" PRId64
                       " classes are numbered from 0 to %" PRId64,
                       place, ids[i], s->class_count, s->class_count - 1);
    }
    return QN_OK;
}

static QnStatus check_class_use(const QnDataset *ds, const int64_t *seen)
{
    for (int64_t c = 0; c < ds->spec.class_count; c++) {
        if (seen[c])
            continue;
        const char *name = qn_dataset_class_name(ds, c);
        return qn_fail(QN_EARG, "%s: class %" PRId64 "%s%s%s has no sample", ds->name, c,
                       name ? " (" : "", name ? name : "", name ? ")" : "");
    }
    return QN_OK;
}

QnStatus qn_dataset_validate_labels(const QnDataset *ds, bool want_all_classes)
{
    QnStatus st = QN_OK;
    const QnSampleSpec *s = &ds->spec;
    if (s->y_kind == QN_LABEL_NONE)
        return QN_OK;
    want_all_classes = want_all_classes && s->y_kind == QN_LABEL_CLASS;
    void *y = qn_alloc(qn_sample_y_bytes(s));
    int64_t *seen = want_all_classes ? qn_alloc_array((size_t)s->class_count, sizeof *seen) : NULL;
    if (!y || (want_all_classes && !seen)) {
        st = QN_ENOMEM;
        goto done;
    }
    for (int64_t i = 0; i < ds->count; i++) {
        QN_TRY_DONE(ds->ops->label(ds, i, y));
        QN_TRY_DONE(check_label(ds, i, y));
        if (seen)
            seen[*(int64_t *)y]++;
    }
    if (seen)
        st = check_class_use(ds, seen);
done:
    qn_free(y);
    qn_free(seen);
    return st;
}

/* Position of index in the sorted list, or where it belongs. */
static int64_t skip_search(const QnSkipList *l, int64_t index)
{
    int64_t lo = 0, hi = l->count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (l->items[mid].index < index)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

QnStatus qn_dataset_skip_add(QnDataset *ds, int64_t index)
{
    QnSkipList *l = ds->skips;
    QnStatus st = QN_OK;
    pthread_mutex_lock(&l->lock);
    int64_t at = skip_search(l, index);
    if (at < l->count && l->items[at].index == index)
        goto done;
    char *text = qn_strdup(qn_error_last()->text);
    if (!text) {
        st = QN_ENOMEM;
        goto done;
    }
    st = QN_GROW(l->items, l->cap, l->count);
    if (st != QN_OK) {
        qn_free(text);
        goto done;
    }
    memmove(l->items + at + 1, l->items + at, (size_t)(l->count - at) * sizeof *l->items);
    l->items[at] = (QnSkip){ .index = index, .text = text };
    l->count++;
done:
    pthread_mutex_unlock(&l->lock);
    return st;
}

int64_t qn_dataset_skip_count(const QnDataset *ds)
{
    pthread_mutex_lock(&ds->skips->lock);
    int64_t n = ds->skips->count;
    pthread_mutex_unlock(&ds->skips->lock);
    return n;
}

QnStatus qn_dataset_skip_at(const QnDataset *ds, int64_t i, QnSkip *out)
{
    QnSkipList *l = ds->skips;
    QnStatus st = QN_OK;
    pthread_mutex_lock(&l->lock);
    if (i < 0 || i >= l->count) {
        st = qn_fail(QN_EARG, "%s: skip %" PRId64 " of %" PRId64, ds->name, i, l->count);
    } else {
        char *text = qn_strdup(l->items[i].text);
        if (text)
            *out = (QnSkip){ .index = l->items[i].index, .text = text };
        else
            st = QN_ENOMEM;
    }
    pthread_mutex_unlock(&l->lock);
    return st;
}

void qn_dataset_shuffle(int64_t *order, int64_t n, uint64_t seed, uint64_t epoch)
{
    QnRng rng;
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    qn_rng_init(&rng, seed, QN_STREAM_SHUFFLE | epoch);
    qn_rng_shuffle(&rng, order, n);
}
