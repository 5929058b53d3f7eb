#include "io/csv.h"
#include "base/mem.h"
#include "io/csv_cells.h"
#include "io/gz.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CSV_LIMIT_BYTES ((size_t)1 << 36)

typedef struct Scale {
    double *mean, *deviation;
} Scale;

typedef struct CsvSet {
    QnDataset head;
    int64_t feature_count;
    float *x;        /* (count, features) */
    float *y;        /* (count, targets) or NULL */
    int64_t *labels; /* (count) or NULL */
    int64_t *lines;  /* where each sample stands in the file */
    char **names;    /* of the features */
    Scale x_scale, y_scale;
} CsvSet;

static QnStatus csv_label(const QnDataset *ds, int64_t index, void *y)
{
    const CsvSet *s = (const CsvSet *)ds;
    if (s->labels)
        *(int64_t *)y = s->labels[index];
    else if (s->y)
        memcpy(y, s->y + index * ds->spec.y_count, (size_t)ds->spec.y_count * sizeof(float));
    return QN_OK;
}

static QnStatus csv_get(const QnDataset *ds, int64_t index, uint64_t epoch, uint64_t seed, void *x,
                        void *y)
{
    (void)epoch, (void)seed;
    const CsvSet *s = (const CsvSet *)ds;
    memcpy(x, s->x + index * s->feature_count, (size_t)s->feature_count * sizeof(float));
    return csv_label(ds, index, y);
}

static void csv_place(const QnDataset *ds, int64_t index, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s:%" PRId64, ds->name, ((const CsvSet *)ds)->lines[index]);
}

static void csv_fini(QnDataset *ds)
{
    CsvSet *s = (CsvSet *)ds;
    for (int64_t i = 0; s->names && i < s->feature_count; i++)
        qn_free(s->names[i]);
    qn_free(s->names);
    qn_free(s->x);
    qn_free(s->y);
    qn_free(s->labels);
    qn_free(s->lines);
    qn_free(s->x_scale.mean);
    qn_free(s->x_scale.deviation);
    qn_free(s->y_scale.mean);
    qn_free(s->y_scale.deviation);
}

static const QnDatasetOps csv_ops = {
    .kind = "csv",
    .get = csv_get,
    .label = csv_label,
    .place = csv_place,
    .fini = csv_fini,
};

const char *qn_csv_feature_name(const QnDataset *ds, int64_t i)
{
    const CsvSet *s = (const CsvSet *)ds;
    return ds->ops == &csv_ops && i >= 0 && i < s->feature_count ? s->names[i] : NULL;
}

void qn_csv_feature_scale(const QnDataset *ds, int64_t i, double *mean, double *deviation)
{
    const CsvSet *s = (const CsvSet *)ds;
    *mean = s->x_scale.mean[i];
    *deviation = s->x_scale.deviation[i];
}

void qn_csv_target_scale(const QnDataset *ds, int64_t i, double *mean, double *deviation)
{
    const CsvSet *s = (const CsvSet *)ds;
    *mean = s->y_scale.mean[i];
    *deviation = s->y_scale.deviation[i];
}

/* ---- parts and statistics ---- */

/* Mean and deviation of each column over the given rows; missing values (NaN) do not count. */
static void measure(const float *values, int64_t columns, const int64_t *order, int64_t n,
                    Scale *out)
{
    for (int64_t c = 0; c < columns; c++) {
        double mean = 0, square = 0;
        int64_t seen = 0;
        for (int64_t i = 0; i < n; i++) { /* Welford: steady for large means */
            double v = (double)values[order[i] * columns + c];
            if (isnan(v))
                continue;
            double d = v - mean;
            mean += d / (double)++seen;
            square += d * (v - mean);
        }
        double deviation = seen ? sqrt(square / (double)seen) : 0;
        out->mean[c] = mean;
        out->deviation[c] = deviation > 0 ? deviation : 1;
    }
}

static void apply_scale(float *values, int64_t rows, int64_t columns, const Scale *s, bool scale)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < columns; c++) {
            float *v = &values[i * columns + c];
            double d = isnan(*v) ? s->mean[c] : (double)*v;
            *v = (float)(scale ? (d - s->mean[c]) / s->deviation[c] : d);
        }
}

static QnStatus scale_new(int64_t columns, Scale *s)
{
    s->mean = qn_alloc_array((size_t)columns, sizeof *s->mean);
    s->deviation = qn_alloc_array((size_t)columns, sizeof *s->deviation);
    for (int64_t i = 0; s->deviation && i < columns; i++)
        s->deviation[i] = 1;
    return s->mean && s->deviation ? QN_OK : QN_ENOMEM;
}

static QnStatus part_alloc(CsvSet *s, const QnCsvCells *t, int64_t n)
{
    size_t rows = (size_t)n, d = (size_t)t->feature_count, m = (size_t)t->target_count;
    s->feature_count = t->feature_count;
    s->x = qn_alloc_array(rows * d, sizeof *s->x);
    s->lines = qn_alloc_array(rows, sizeof *s->lines);
    s->names = qn_alloc_array(d, sizeof *s->names);
    if (t->y)
        s->y = qn_alloc_array(rows * m, sizeof *s->y);
    if (t->labels)
        s->labels = qn_alloc_array(rows, sizeof *s->labels);
    if (!s->x || !s->lines || !s->names || !s->y != !t->y || !s->labels != !t->labels)
        return QN_ENOMEM;
    QN_TRY(scale_new(t->feature_count, &s->x_scale));
    return scale_new(t->target_count, &s->y_scale);
}

static QnStatus name_features(CsvSet *s, const QnCsvCells *t)
{
    int64_t feature = 0;
    for (int64_t i = 0; i < t->features.column_count; i++) {
        if (t->features.columns[i].role != QN_CSV_FEATURE)
            continue;
        s->names[feature] = qn_strdup(t->features.columns[i].name);
        if (!s->names[feature++])
            return QN_ENOMEM;
    }
    return QN_OK;
}

/* Rows order[0 … n-1] as a dataset; figures from the rows stats_order[0 … stats_n-1]. */
static QnStatus make_part(const QnCsvCells *t, const QnCsvOptions *o, const int64_t *order,
                          int64_t n, const int64_t *stats_order, int64_t stats_n, QnDataset **out)
{
    QnStatus st = QN_OK;
    CsvSet *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    int64_t d = t->feature_count, m = t->target_count;
    QN_TRY_DONE(qn_dataset_init(&s->head, &csv_ops, o->path));
    QN_TRY_DONE(part_alloc(s, t, n));
    QN_TRY_DONE(name_features(s, t));
    for (int64_t i = 0; i < n; i++) {
        memcpy(s->x + i * d, t->x + order[i] * d, (size_t)d * sizeof *s->x);
        if (s->y)
            memcpy(s->y + i * m, t->y + order[i] * m, (size_t)m * sizeof *s->y);
        if (s->labels)
            s->labels[i] = t->labels[order[i]];
        s->lines[i] = t->lines[order[i]];
    }
    if (o->standardize || o->fill_missing) {
        if (o->given_mean && o->given_deviation) {
            memcpy(s->x_scale.mean, o->given_mean, (size_t)d * sizeof(double));
            memcpy(s->x_scale.deviation, o->given_deviation, (size_t)d * sizeof(double));
        } else {
            measure(t->x, d, stats_order, stats_n, &s->x_scale);
        }
        apply_scale(s->x, n, d, &s->x_scale, o->standardize);
    }
    if (s->y && o->standardize_target) {
        measure(t->y, m, stats_order, stats_n, &s->y_scale);
        apply_scale(s->y, n, m, &s->y_scale, true);
    }
    s->head.count = n;
    s->head.spec = (QnSampleSpec){ .x_rank = 1,
                                   .x_dims = { d },
                                   .y_kind = s->y        ? QN_LABEL_VECTOR
                                             : s->labels ? QN_LABEL_CLASS
                                                         : QN_LABEL_NONE,
                                   .y_count = s->y        ? m
                                              : s->labels ? 1
                                                          : 0 };
    QN_TRY_DONE(qn_dataset_set_classes(&s->head, t->classes, t->class_count));
    *out = &s->head;
    s = NULL;
done:
    if (s)
        qn_dataset_free(&s->head);
    return st;
}

static QnStatus make_parts(const QnCsvCells *t, const QnCsvOptions *o, QnDataset **train,
                           QnDataset **test)
{
    double f = o->train_fraction;
    if ((o->given_mean || o->given_deviation) && !o->given_count)
        return qn_fail(QN_EARG, "%s: given figures without their count", o->path);
    if (!(f >= 0 && f <= 1))
        return qn_fail(QN_EARG, "%s: training fraction %g is not between 0 and 1", o->path, f);
    bool split = f > 0 && f < 1;
    if (split && t->rows < 2)
        return qn_fail(QN_EARG, "%s: one row cannot be cut into two parts", o->path);
    int64_t n = split ? (int64_t)(f * (double)t->rows + 0.5) : t->rows;
    if (split)
        n = QN_MAX((int64_t)1, QN_MIN(t->rows - 1, n));
    int64_t *order = qn_alloc_array((size_t)t->rows, sizeof *order);
    if (!order)
        return QN_ENOMEM;
    for (int64_t i = 0; i < t->rows; i++)
        order[i] = i;
    if (split)
        qn_dataset_shuffle(order, t->rows, o->split_seed, 0);
    QnStatus st = QN_OK;
    QnDataset *a = NULL, *b = NULL;
    QN_TRY_DONE(make_part(t, o, order, n, order, n, &a));
    if (split)
        QN_TRY_DONE(make_part(t, o, order + n, t->rows - n, order, n, &b));
    *train = a;
    *test = b;
    a = NULL;
done:
    qn_dataset_free(a);
    qn_free(order);
    return st;
}

QnStatus qn_csv_parse(const QnCsvOptions *o, const char *text, size_t size, const char *target_text,
                      size_t target_size, QnDataset **train, QnDataset **test)
{
    QnCsvCells t = { .arena = qn_arena_new() };
    if (!t.arena)
        return QN_ENOMEM;
    QnStatus st = QN_OK;
    QN_TRY_DONE(
        qn_csv_table_scan(&t.features, t.arena, o->path, text, size, o->delimiter, o->header));
    if (target_text)
        QN_TRY_DONE(qn_csv_table_scan(&t.targets, t.arena, o->target_path, target_text, target_size,
                                      o->delimiter, QN_CSV_HEADER_AUTO));
    QN_TRY_DONE(qn_csv_cells_choose(&t, o));
    QN_TRY_DONE(qn_csv_cells_load(&t, o));
    st = make_parts(&t, o, train, test);
done:
    qn_csv_cells_fini(&t);
    return st;
}

QnStatus qn_csv_open(const QnCsvOptions *o, QnDataset **train, QnDataset **test)
{
    uint8_t *text = NULL, *target = NULL;
    size_t size = 0, target_size = 0;
    QnStatus st = QN_OK;
    QN_TRY_DONE(qn_gz_read(o->path, CSV_LIMIT_BYTES, &text, &size));
    if (o->target_path)
        QN_TRY_DONE(qn_gz_read(o->target_path, CSV_LIMIT_BYTES, &target, &target_size));
    st = qn_csv_parse(o, (const char *)text, size, (const char *)target, target_size, train, test);
done:
    qn_free(text);
    qn_free(target);
    return st;
}
