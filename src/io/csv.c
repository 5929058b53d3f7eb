#include "io/csv.h"
#include "base/mem.h"
#include "io/csv_table.h"
#include "io/gz.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CSV_LIMIT_BYTES ((size_t)1 << 36)
enum { CLASSES_MAX = 1 << 16 };

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

/* Both parts while they are still one. */
typedef struct Table {
    QnArena *arena;
    QnCsvTable features, targets; /* targets.path is NULL: the same file */
    int64_t rows, feature_count, target_count;
    float *x, *y;
    const char **label_texts;
    int64_t *labels, *lines;
    const char **classes;
    int64_t class_count;
} Table;

static QnStatus csv_label(const QnDataset *ds, int64_t index, void *y)
{
    const CsvSet *s = (const CsvSet *)ds;
    if (s->labels)
        *(int64_t *)y = s->labels[index];
    else
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
    return i >= 0 && i < s->feature_count ? s->names[i] : NULL;
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

/* ---- roles of the columns ---- */

/* Gives each column in the comma-separated list a role: QN_CSV_DROP, or 0, 1, … for targets. */
static QnStatus set_roles(QnCsvTable *t, const char *list, bool is_drop, int64_t *count)
{
    *count = 0;
    while (*list) {
        size_t n = strcspn(list, ",");
        char *what = qn_arena_printf(t->arena, "%.*s", (int)QN_MIN(n, 4096U), list);
        if (!what)
            return QN_ENOMEM;
        int64_t column;
        QN_TRY(qn_csv_table_find(t, what, &column));
        if (t->columns[column].role != QN_CSV_FEATURE)
            return qn_fail(QN_EARG, "%s: column '%s' is named twice, as target or dropped", t->path,
                           what);
        t->columns[column].role = is_drop ? QN_CSV_DROP : (int)*count;
        ++*count;
        list += n + (list[n] == ',');
    }
    return QN_OK;
}

static QnStatus choose_columns(Table *t, const QnCsvOptions *o)
{
    QnCsvTable *f = &t->features, *with_target = t->targets.path ? &t->targets : f;
    int64_t dropped = 0;
    if (o->drop)
        QN_TRY(set_roles(f, o->drop, true, &dropped));
    if (o->target || !t->targets.path) {
        QN_TRY(set_roles(with_target, o->target ? o->target : "-1", false, &t->target_count));
    } else {
        for (int64_t i = 0; i < t->targets.column_count; i++)
            t->targets.columns[i].role = (int)t->target_count++;
    }
    if (t->target_count < 1 || (!o->regression && t->target_count > 1))
        return qn_fail(QN_EARG, "%s: %" PRId64 " target columns: a class target is one column%s",
                       o->path, t->target_count,
                       o->regression ? "" : "; for several numbers set regression");
    for (int64_t i = 0; i < f->column_count; i++) {
        const QnCsvColumn *c = &f->columns[i];
        if (c->role != QN_CSV_FEATURE)
            continue;
        t->feature_count++;
        if (c->text_line)
            return qn_fail(QN_EFORMAT,
                           "%s:%" PRId64 ": %s: '%s' is not a number: drop the column or encode "
                           "it as numbers",
                           f->path, c->text_line, c->name, c->text_cell);
    }
    if (!t->feature_count)
        return qn_fail(QN_EARG, "%s: no column is left as a feature", o->path);
    return QN_OK;
}

/* ---- classes ---- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int compare_wholes(const void *a, const void *b)
{
    long long x = atoll(*(const char *const *)a), y = atoll(*(const char *const *)b);
    return x < y ? -1 : x > y;
}

/* Classes are what the header names, else the distinct labels in order. */
static QnStatus find_classes(Table *t, bool is_text)
{
    const QnCsvTable *f = &t->features;
    int (*compare)(const void *, const void *) = is_text ? compare_texts : compare_wholes;
    if (f->class_count && !is_text && !t->targets.path) {
        t->classes = f->classes;
        t->class_count = f->class_count;
        for (int64_t i = 0; i < t->rows; i++) {
            t->labels[i] = atoll(t->label_texts[i]);
            if (t->labels[i] < 0 || t->labels[i] >= t->class_count)
                return qn_fail(QN_EFORMAT,
                               "%s:%" PRId64 ": class %" PRId64 ", but the header names %" PRId64,
                               f->path, t->lines[i], t->labels[i], t->class_count);
        }
        return QN_OK;
    }
    const char **sorted = qn_arena_copy(t->arena, t->label_texts, (size_t)t->rows * sizeof *sorted);
    if (!sorted)
        return QN_ENOMEM;
    qsort(sorted, (size_t)t->rows, sizeof *sorted, compare);
    int64_t n = 0;
    for (int64_t i = 0; i < t->rows; i++)
        if (!n || compare(&sorted[n - 1], &sorted[i]))
            sorted[n++] = sorted[i];
    if (n > CLASSES_MAX)
        return qn_fail(QN_EFORMAT,
                       "%s: the target has %" PRId64 " different values: for numbers "
                       "set the regression target",
                       f->path, n);
    t->classes = sorted;
    t->class_count = n;
    for (int64_t i = 0; i < t->rows; i++) {
        const char **at = bsearch(&t->label_texts[i], sorted, (size_t)n, sizeof *sorted, compare);
        t->labels[i] = at - sorted;
    }
    return QN_OK;
}

/* ---- cells ---- */

static QnStatus load_cells(Table *t, const QnCsvOptions *o)
{
    bool apart = t->targets.path != NULL;
    t->rows = t->features.row_count;
    if (apart && t->targets.row_count != t->rows)
        return qn_fail(QN_EFORMAT,
                       "%s: %" PRId64 " targets, but %s has %" PRId64
                       " rows: the files do not belong together",
                       o->target_path, t->targets.row_count, o->path, t->rows);
    size_t rows = (size_t)t->rows;
    t->x = qn_alloc_array(rows * (size_t)t->feature_count, sizeof *t->x);
    t->lines = qn_alloc_array(rows, sizeof *t->lines);
    if (!t->x || !t->lines)
        return QN_ENOMEM;
    QnCsvSink targets = { .target_count = t->target_count };
    if (o->regression) {
        targets.y = t->y = qn_alloc_array(rows * (size_t)t->target_count, sizeof *t->y);
        if (!t->y)
            return QN_ENOMEM;
    } else {
        targets.labels = t->label_texts = qn_alloc_array(rows, sizeof *t->label_texts);
        t->labels = qn_alloc_array(rows, sizeof *t->labels);
        if (!t->label_texts || !t->labels)
            return QN_ENOMEM;
    }
    QnCsvSink sink = apart ? (QnCsvSink){ 0 } : targets;
    sink.x = t->x;
    sink.feature_count = t->feature_count;
    sink.lines = t->lines;
    sink.allow_missing = o->fill_missing;
    QN_TRY(qn_csv_table_fill(&t->features, &sink));
    if (apart)
        QN_TRY(qn_csv_table_fill(&t->targets, &targets));
    if (o->regression)
        return QN_OK;
    const QnCsvTable *with_target = apart ? &t->targets : &t->features;
    bool is_text = false;
    for (int64_t i = 0; i < with_target->column_count; i++)
        if (with_target->columns[i].role >= 0)
            is_text = with_target->columns[i].text_line > 0;
    return find_classes(t, is_text);
}

/* ---- parts and statistics ---- */

/* Mean and deviation of each column over the given rows; missing values (NaN) do not count. */
static QnStatus measure(const float *values, int64_t columns, const int64_t *order, int64_t n,
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
    return QN_OK;
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

static QnStatus part_alloc(CsvSet *s, const Table *t, int64_t n)
{
    size_t rows = (size_t)n, d = (size_t)t->feature_count, m = (size_t)t->target_count;
    s->feature_count = t->feature_count;
    s->x = qn_alloc_array(rows * d, sizeof *s->x);
    s->lines = qn_alloc_array(rows, sizeof *s->lines);
    s->names = qn_alloc_array(d, sizeof *s->names);
    if (t->y)
        s->y = qn_alloc_array(rows * m, sizeof *s->y);
    else
        s->labels = qn_alloc_array(rows, sizeof *s->labels);
    if (!s->x || !s->lines || !s->names || (!s->y && !s->labels))
        return QN_ENOMEM;
    QN_TRY(scale_new(t->feature_count, &s->x_scale));
    return scale_new(t->target_count, &s->y_scale);
}

static QnStatus name_features(CsvSet *s, const Table *t)
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
static QnStatus make_part(const Table *t, const QnCsvOptions *o, const int64_t *order, int64_t n,
                          const int64_t *stats_order, int64_t stats_n, QnDataset **out)
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
        else
            s->labels[i] = t->labels[order[i]];
        s->lines[i] = t->lines[order[i]];
    }
    if (o->standardize || o->fill_missing) {
        QN_TRY_DONE(measure(t->x, d, stats_order, stats_n, &s->x_scale));
        apply_scale(s->x, n, d, &s->x_scale, o->standardize);
    }
    if (s->y && o->standardize_target) {
        QN_TRY_DONE(measure(t->y, m, stats_order, stats_n, &s->y_scale));
        apply_scale(s->y, n, m, &s->y_scale, true);
    }
    s->head.count = n;
    s->head.spec = (QnSampleSpec){ .x_rank = 1,
                                   .x_dims = { d },
                                   .y_kind = s->y ? QN_LABEL_VECTOR : QN_LABEL_CLASS,
                                   .y_count = s->y ? m : 1 };
    QN_TRY_DONE(qn_dataset_set_classes(&s->head, t->classes, t->class_count));
    *out = &s->head;
    s = NULL;
done:
    if (s)
        qn_dataset_free(&s->head);
    return st;
}

static QnStatus make_parts(const Table *t, const QnCsvOptions *o, QnDataset **train,
                           QnDataset **test)
{
    double f = o->train_fraction;
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
    Table t = { .arena = qn_arena_new() };
    if (!t.arena)
        return QN_ENOMEM;
    QnStatus st = QN_OK;
    QN_TRY_DONE(
        qn_csv_table_scan(&t.features, t.arena, o->path, text, size, o->delimiter, o->header));
    if (target_text)
        QN_TRY_DONE(qn_csv_table_scan(&t.targets, t.arena, o->target_path, target_text, target_size,
                                      o->delimiter, QN_CSV_HEADER_AUTO));
    QN_TRY_DONE(choose_columns(&t, o));
    QN_TRY_DONE(load_cells(&t, o));
    st = make_parts(&t, o, train, test);
done:
    qn_free(t.x);
    qn_free(t.y);
    qn_free(t.label_texts);
    qn_free(t.labels);
    qn_free(t.lines);
    qn_arena_free(t.arena);
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
