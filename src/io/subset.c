/* A view of some samples of another dataset: parts for training and validation. */
#include "base/mem.h"
#include "io/dataset.h"

#include <inttypes.h>
#include <string.h>

typedef struct Subset {
    QnDataset head;
    const QnDataset *base;
    int64_t *indices;
} Subset;

static QnStatus subset_get(const QnDataset *ds, int64_t index, uint64_t epoch, uint64_t seed,
                           void *x, void *y)
{
    const Subset *s = (const Subset *)ds;
    return s->base->ops->get(s->base, s->indices[index], epoch, seed, x, y);
}

static QnStatus subset_label(const QnDataset *ds, int64_t index, void *y)
{
    const Subset *s = (const Subset *)ds;
    return s->base->ops->label(s->base, s->indices[index], y);
}

static void subset_place(const QnDataset *ds, int64_t index, char *text, size_t bytes)
{
    const Subset *s = (const Subset *)ds;
    qn_dataset_place(s->base, s->indices[index], text, bytes);
}

static void subset_fini(QnDataset *ds)
{
    qn_free(((Subset *)ds)->indices);
}

static const QnDatasetOps subset_ops = {
    .kind = "subset",
    .get = subset_get,
    .label = subset_label,
    .place = subset_place,
    .fini = subset_fini,
};

QnStatus qn_dataset_subset(QnDataset *base, const int64_t *indices, int64_t count, QnDataset **out)
{
    if (count < 1)
        return qn_fail(QN_EARG, "%s: a part without samples", base->name);
    for (int64_t i = 0; i < count; i++)
        if (indices[i] < 0 || indices[i] >= base->count)
            return qn_fail(QN_EARG, "%s: sample %" PRId64 " of %" PRId64, base->name, indices[i],
                           base->count);
    QnStatus st = QN_OK;
    Subset *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    QN_TRY_DONE(qn_dataset_init(&s->head, &subset_ops, base->name));
    s->base = base;
    s->head.count = count;
    s->head.spec = base->spec;
    s->indices = qn_alloc_array((size_t)count, sizeof *s->indices);
    if (!s->indices) {
        st = QN_ENOMEM;
        goto done;
    }
    memcpy(s->indices, indices, (size_t)count * sizeof *indices);
    QN_TRY_DONE(qn_dataset_set_classes(&s->head, (const char *const *)base->class_names,
                                       base->spec.class_count));
    *out = &s->head;
    s = NULL;
done:
    if (s)
        qn_dataset_free(&s->head);
    return st;
}

QnStatus qn_dataset_split(QnDataset *base, double first_fraction, uint64_t seed, QnDataset **first,
                          QnDataset **second)
{
    int64_t n = base->count;
    if (!(first_fraction > 0 && first_fraction < 1) || n < 2)
        return qn_fail(QN_EARG,
                       "%s: cannot split %" PRId64 " samples at %g: needs two samples and a "
                       "fraction between 0 and 1",
                       base->name, n, first_fraction);
    int64_t cut = (int64_t)(first_fraction * (double)n + 0.5);
    cut = QN_MAX((int64_t)1, QN_MIN(n - 1, cut));
    int64_t *order = qn_alloc_array((size_t)n, sizeof *order);
    if (!order)
        return QN_ENOMEM;
    qn_dataset_shuffle(order, n, seed, 0);
    QnDataset *a = NULL, *b = NULL;
    QnStatus st = QN_OK;
    QN_TRY_DONE(qn_dataset_subset(base, order, cut, &a));
    QN_TRY_DONE(qn_dataset_subset(base, order + cut, n - cut, &b));
    *first = a;
    *second = b;
    a = NULL;
done:
    qn_dataset_free(a);
    qn_free(order);
    return st;
}
