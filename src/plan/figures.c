#include "plan/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FOLDS = 5, SWEEPS = 40 };

static const QnFigureKind *const kinds[] = { &qn_figures_comm, &qn_figures_parallel,
                                             &qn_figures_power, &qn_figures_memory };

/* ---- reading ---- */

const QnFigureKind *qn_figures_kind(const char *text, size_t bytes)
{
    for (int i = 0; i < QN_COUNT(kinds); i++) {
        size_t n = strlen(kinds[i]->columns), mark = qn_table_mark(text, bytes);
        if (bytes - mark >= n && !memcmp(text + mark, kinds[i]->columns, n))
            return kinds[i];
    }
    return NULL;
}

const char *qn_figures_cell(const QnFigures *s, int64_t row, const char *column)
{
    for (int i = 0; i < s->table.n_columns; i++)
        if (!strcmp(s->table.name[i], column))
            return s->table.row[row][i];
    return "";
}

QnStatus qn_figures_number(const QnFigures *s, int64_t row, const char *column, double otherwise,
                           double *out)
{
    int i;
    QN_TRY(qn_table_column(&s->table, column, &i));
    return qn_table_number(&s->table, row, i, otherwise, out);
}

QnStatus qn_figures_parse(QnFigures *s, const QnFigureKind *kind, const QnCatalogue *c,
                          QnCounts *counts, const char *path, const char *text, size_t bytes)
{
    QnStatus st = QN_OK;
    *s = (QnFigures){ .kind = kind, .catalogue = c, .counts = counts, .arena = qn_arena_new() };
    if (!s->arena)
        return QN_ENOMEM;
    QN_TRY_DONE(qn_table_parse(&s->table, s->arena, path, text, bytes));
    if (!s->table.n_rows)
        QN_TRY_DONE(qn_fail(QN_EFORMAT, "%s: no rows below the header", path));
    s->rows = qn_arena_array(s->arena, (size_t)s->table.n_rows + 1, sizeof *s->rows);
    if (!s->rows)
        QN_TRY_DONE(QN_ENOMEM);
    for (int64_t row = 0; row < s->table.n_rows; row++) {
        QnFigure *r = &s->rows[row];
        *r = (QnFigure){
            .gpu = "", .model = "", .group = "", .unit = "", .weight = 1, .line = s->table.line[row]
        };
        QN_TRY_DONE(kind->read(s, row, r));
        if (!r->reason && !(r->measured > 0))
            QN_TRY_DONE(qn_fail(QN_EFORMAT, "%s:%lld: what was measured must be above 0", path,
                                (long long)r->line));
        s->n++;
    }
done:
    if (st != QN_OK)
        qn_figures_fini(s);
    return st;
}

void qn_figures_fini(QnFigures *s)
{
    qn_table_fini(&s->table);
    qn_arena_free(s->arena);
    *s = (QnFigures){ 0 };
}

/* ---- fit ---- */

typedef struct Fit {
    const QnFigures *set;
    const bool *use;
} Fit;

static double loss(void *ctx, const QnFleet *f)
{
    const Fit *fit = ctx;
    const QnFigures *s = fit->set;
    double sum = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const QnFigure *r = &s->rows[i];
        if (r->reason || (fit->use && !fit->use[i]))
            continue;
        double p = s->kind->predict(s, r->job, f);
        sum += r->weight * (p > 0 ? QN_MIN(fabs(log(p / r->measured)), 1) : 1);
    }
    return sum;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

QnStatus qn_figures_fit(const QnFigures *s, const bool *use, QnFleet *f)
{
    Fit fit = { s, use };
    double *errors = qn_alloc_array((size_t)s->n + 1, sizeof *errors);
    size_t n = 0;
    if (!errors)
        return QN_ENOMEM;
    qn_fleet_descend(f, s->kind->first, s->kind->last, SWEEPS, loss, &fit);
    for (int64_t i = 0; i < s->n; i++) {
        const QnFigure *r = &s->rows[i];
        double p = r->reason || (use && !use[i]) ? 0 : s->kind->predict(s, r->job, f);
        if (p > 0)
            errors[n++] = fabs(log(p / r->measured));
    }
    qsort(errors, n, sizeof *errors, by_value);
    QnFleetInfo info = qn_fleet_info(s->kind->spread);
    if (n >= 10)
        f->x[s->kind->spread] = QN_MIN(QN_MAX(errors[n * 4 / 5], info.min), info.max);
    qn_free(errors);
    return QN_OK;
}

/* ---- scores ---- */

static const char *key_of(const QnFigure *r, int key)
{
    return key == 0 ? r->gpu : key == 1 ? r->model : r->group;
}

static int fold_of(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return (int)((h ^ h >> 16) % FOLDS);
}

static void predict(const QnFigures *s, QnFigure *r, const QnFleet *f)
{
    r->error = -1;
    r->predicted = r->reason ? 0 : s->kind->predict(s, r->job, f);
    if (r->predicted > 0)
        r->error = fabs(r->predicted - r->measured) / r->measured;
}

static QnStatus score_folds(QnFigures *s, int key)
{
    bool *use = qn_alloc((size_t)s->n + 1);
    QnStatus st = use ? QN_OK : QN_ENOMEM;
    for (int fold = 0; fold < FOLDS && st == QN_OK; fold++) {
        QnFleet f;
        qn_fleet_start(&f);
        int64_t held = 0;
        for (int64_t i = 0; i < s->n; i++) {
            use[i] = fold_of(key_of(&s->rows[i], key)) != fold;
            held += !use[i];
        }
        if (held)
            st = qn_figures_fit(s, use, &f);
        for (int64_t i = 0; i < s->n && st == QN_OK; i++)
            if (!use[i])
                predict(s, &s->rows[i], &f);
    }
    qn_free(use);
    return st;
}

QnStatus qn_figures_score(QnFigures *s, const QnFleet *f, const char *hold_out)
{
    static const char *const keys[] = { "gpu", "model", "group" };
    for (int k = 0; hold_out && k < QN_COUNT(keys); k++)
        if (!strcmp(hold_out, keys[k]))
            return score_folds(s, k);
    if (hold_out)
        return qn_fail(QN_EUSAGE, "--hold-out: expected gpu, model or group, found '%s'", hold_out);
    for (int64_t i = 0; i < s->n; i++)
        predict(s, &s->rows[i], f);
    return QN_OK;
}

QnStatus qn_figures_sum(const QnFigures *s, const QnFleet *f, int key, const char *name,
                        QnFigureSum *out)
{
    double *errors = qn_alloc_array((size_t)s->n + 1, sizeof *errors), sum = 0, inside = 0;
    *out = (QnFigureSum){ .name = name };
    if (!errors)
        return QN_ENOMEM;
    for (int64_t i = 0; i < s->n; i++) {
        const QnFigure *r = &s->rows[i];
        if (name && strcmp(key_of(r, key), name) != 0)
            continue;
        out->n++;
        if (r->error < 0)
            continue;
        inside += fabs(log(r->predicted / r->measured)) <= f->x[s->kind->spread];
        sum += r->error;
        errors[out->expressed++] = r->error;
    }
    int64_t n = out->expressed;
    qsort(errors, (size_t)n, sizeof *errors, by_value);
    if (n) {
        out->mean = sum / (double)n;
        out->inside = inside / (double)n;
        out->median = (errors[(n - 1) / 2] + errors[n / 2]) / 2;
    }
    qn_free(errors);
    return QN_OK;
}
