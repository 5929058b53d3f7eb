#include "io/csv_cells.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES_MAX = 1 << 16 };

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

/* Leaves out what would be the target: by name where there is such a column, by number where the
 * file has more columns than the model takes. */
static QnStatus drop_targets(QnCsvTable *t, const QnCsvOptions *o, int64_t left)
{
    const char *list = o->target ? o->target : "-1";
    while (*list) {
        size_t n = strcspn(list, ",");
        int64_t column = -1;
        for (int64_t i = 0; i < t->column_count && column < 0; i++)
            if (!strncmp(t->columns[i].name, list, n) && !t->columns[i].name[n])
                column = i;
        if (column < 0 && o->given_count && left > o->given_count) {
            char *what = qn_arena_printf(t->arena, "%.*s", (int)QN_MIN(n, 4096U), list);
            if (!what)
                return QN_ENOMEM;
            if (qn_csv_table_find(t, what, &column) != QN_OK)
                column = -1; /* a name that is not there: nothing to leave out */
        }
        if (column >= 0 && t->columns[column].role == QN_CSV_FEATURE) {
            t->columns[column].role = QN_CSV_DROP;
            left--;
        }
        list += n + (list[n] == ',');
    }
    return QN_OK;
}

QnStatus qn_csv_cells_choose(QnCsvCells *t, const QnCsvOptions *o)
{
    QnCsvTable *f = &t->features, *with_target = t->targets.path ? &t->targets : f;
    int64_t dropped = 0;
    if (o->drop)
        QN_TRY(set_roles(f, o->drop, true, &dropped));
    if (o->no_target) {
        QN_TRY(drop_targets(f, o, f->column_count - dropped));
    } else if (o->target || !t->targets.path) {
        QN_TRY(set_roles(with_target, o->target ? o->target : "-1", false, &t->target_count));
    } else {
        for (int64_t i = 0; i < t->targets.column_count; i++)
            t->targets.columns[i].role = (int)t->target_count++;
    }
    if (!o->no_target && (t->target_count < 1 || (!o->regression && t->target_count > 1)))
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
    if (o->given_count && o->given_count != t->feature_count)
        return qn_fail(QN_ESHAPE,
                       "%s: %" PRId64 " features, but the model was trained on %" PRId64
                       ": the columns must be the same",
                       o->path, t->feature_count, o->given_count);
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
static QnStatus find_classes(QnCsvCells *t, bool is_text)
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

QnStatus qn_csv_cells_load(QnCsvCells *t, const QnCsvOptions *o)
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
    if (o->no_target) {
        /* nothing more to fill */
    } else if (o->regression) {
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
    if (o->regression || o->no_target)
        return QN_OK;
    const QnCsvTable *with_target = apart ? &t->targets : &t->features;
    bool is_text = false;
    for (int64_t i = 0; i < with_target->column_count; i++)
        if (with_target->columns[i].role >= 0)
            is_text = with_target->columns[i].text_line > 0;
    return find_classes(t, is_text);
}

void qn_csv_cells_fini(QnCsvCells *t)
{
    qn_free(t->x);
    qn_free(t->y);
    qn_free(t->label_texts);
    qn_free(t->labels);
    qn_free(t->lines);
    qn_arena_free(t->arena);
}
