#include "io/npy_set.h"
#include "base/mem.h"
#include "io/npy.h"

#include <inttypes.h>
#include <math.h>

enum { CLASSES_MAX = 1 << 20 };

typedef struct NpySet {
    QnDataset head;
    QnNpy x, y; /* kept in the types of the files */
    int64_t x_count;
    float scale;
} NpySet;

static const char *item_at(const QnNpy *a, int64_t i)
{
    return (const char *)a->data + (size_t)i * qn_dtype_bytes(a->dtype);
}

/* A whole number exactly, also beyond what a double holds. */
static int64_t int_at(const QnNpy *a, int64_t i)
{
    int64_t v;
    qn_dtype_to_i64(a->dtype, item_at(a, i), &v, 1);
    return a->dtype == QN_DTYPE_U64 && v < 0 ? INT64_MAX : v;
}

static QnStatus npy_label(const QnDataset *ds, int64_t index, void *y)
{
    const NpySet *s = (const NpySet *)ds;
    int64_t n = ds->spec.y_count;
    if (ds->spec.y_kind == QN_LABEL_CLASS)
        *(int64_t *)y = int_at(&s->y, index);
    else if (ds->spec.y_kind == QN_LABEL_VECTOR)
        qn_dtype_to_f32(s->y.dtype, item_at(&s->y, index * n), y, n);
    return QN_OK;
}

static QnStatus npy_get(const QnDataset *ds, int64_t index, uint64_t epoch, uint64_t seed, void *x,
                        void *y)
{
    (void)epoch, (void)seed;
    const NpySet *s = (const NpySet *)ds;
    float *out = x;
    qn_dtype_to_f32(s->x.dtype, item_at(&s->x, index * s->x_count), out, s->x_count);
    for (int64_t i = 0; i < s->x_count && s->scale != 1.0f; i++)
        out[i] *= s->scale;
    return npy_label(ds, index, y);
}

static void npy_fini(QnDataset *ds)
{
    qn_npy_fini(&((NpySet *)ds)->x);
    qn_npy_fini(&((NpySet *)ds)->y);
}

static const QnDatasetOps npy_ops = {
    .kind = "npy",
    .get = npy_get,
    .label = npy_label,
    .fini = npy_fini,
};

static QnStatus check_rank(const char *path, const QnNpy *a, int most)
{
    if (a->rank < 1 || a->rank > most)
        return qn_fail(QN_EFORMAT,
                       "%s: an array of %d dimensions: samples need 1 to %d, the first "
                       "of which counts them",
                       path, a->rank, most);
    for (int i = 0; i < a->rank; i++)
        if (!a->dims[i])
            return qn_fail(QN_EFORMAT, "%s: dimension %d is 0: there are no samples", path, i);
    return QN_OK;
}

static QnStatus load_labels(NpySet *s, const QnNpySetOptions *o)
{
    QnNpy *y = &s->y;
    QN_TRY(qn_npy_read(o->y_path, y));
    QN_TRY(check_rank(o->y_path, y, 2));
    if (y->dims[0] != s->head.count)
        return qn_fail(QN_EFORMAT,
                       "%s: %" PRId64 " labels, but %s has %" PRId64
                       " samples: the files do not belong together",
                       o->y_path, y->dims[0], o->x_path, s->head.count);
    QnSampleSpec *spec = &s->head.spec;
    if (y->rank == 2 || o->regression ||
        !(qn_dtype_is_int(y->dtype) || y->dtype == QN_DTYPE_BOOL)) {
        spec->y_kind = QN_LABEL_VECTOR;
        spec->y_count = y->rank == 2 ? y->dims[1] : 1;
        return QN_OK;
    }
    spec->y_kind = QN_LABEL_CLASS;
    spec->y_count = 1;
    if (o->class_count)
        return qn_dataset_set_classes(&s->head, o->class_names, o->class_count);
    int64_t largest = 0;
    for (int64_t i = 0; i < s->head.count; i++)
        largest = QN_MAX(largest, int_at(y, i));
    if (largest >= CLASSES_MAX)
        return qn_fail(QN_EFORMAT,
                       "%s: a label of %" PRId64 " is not a class index: for numbers "
                       "set the regression target",
                       o->y_path, largest);
    return qn_dataset_set_classes(&s->head, NULL, largest + 1);
}

/* Also what a float cannot hold, such as 1e300 in an array of f8. */
static QnStatus check_features(const NpySet *s, const char *path)
{
    float part[1024];
    if (qn_dtype_is_int(s->x.dtype) || s->x.dtype == QN_DTYPE_BOOL)
        return QN_OK;
    for (int64_t i = 0; i < s->x.count; i += QN_COUNT(part)) {
        int64_t n = QN_MIN(s->x.count - i, QN_COUNT(part));
        qn_dtype_to_f32(s->x.dtype, item_at(&s->x, i), part, n);
        for (int64_t k = 0; k < n; k++) {
            if (isfinite(part[k]))
                continue;
            return qn_fail(QN_EFORMAT,
                           "%s: sample %" PRId64 ": value %" PRId64
                           " is %g as a 32-bit float: remove or mend this sample",
                           path, (i + k) / s->x_count, (i + k) % s->x_count, (double)part[k]);
        }
    }
    return QN_OK;
}

static QnStatus npy_set_init(NpySet *s, const QnNpySetOptions *o)
{
    QN_TRY(qn_dataset_init(&s->head, &npy_ops, o->x_path));
    QN_TRY(qn_npy_read(o->x_path, &s->x));
    QN_TRY(check_rank(o->x_path, &s->x, QN_SAMPLE_MAX_RANK + 1));
    s->scale = o->scale != 0.0f ? o->scale : 1.0f;
    s->head.count = s->x.dims[0];
    s->x_count = s->x.count / s->head.count;
    QnSampleSpec *spec = &s->head.spec;
    spec->x_rank = QN_MAX(1, s->x.rank - 1); /* (N) is one number a sample */
    spec->x_dims[0] = 1;
    for (int i = 1; i < s->x.rank; i++)
        spec->x_dims[i - 1] = s->x.dims[i];
    QN_TRY(check_features(s, o->x_path));
    return o->y_path ? load_labels(s, o) : QN_OK;
}

QnStatus qn_npy_set_open(const QnNpySetOptions *options, QnDataset **out)
{
    NpySet *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    QnStatus st = npy_set_init(s, options);
    if (st == QN_OK)
        *out = &s->head;
    else
        qn_dataset_free(&s->head);
    return st;
}
