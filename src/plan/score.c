#include "plan/score.h"

#include "plan/rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FOLDS = 8, FEW_FOLDS = 5 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- predictions ---- */

/* FNV-1a, so that a name's fold is the same in every file. */
static int fold_of(const char *name, int folds)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return (int)((h ^ h >> 16) % (uint32_t)folds);
}

static const char *held_out(const QnMeasured *m, QnHoldOut how)
{
    return how == QN_HOLD_OUT_GPU ? m->gpu : m->model;
}

static void predict(QnScored *r, const QnCoefs *k)
{
    const QnMeasured *m = r->row;
    QnCostResult c;
    r->error = -1;
    if (m->reason || qn_measured_predict(m, k, &c) != QN_OK)
        return;
    r->predicted = m->is_time ? c.step_s * m->per_step : m->per_step / c.step_s;
    r->error = fabs(r->predicted - m->value) / m->value;
    r->inside = m->measured_s >= c.low_s && m->measured_s <= c.high_s;
    r->deviations = c.deviation > 0 ? fabs(log(c.step_s / m->measured_s)) / c.deviation : 0;
}

/* One fold from a fit that has not seen it. */
static QnStatus predict_fold(const QnMeasuredSet *s, const bool *use, QnScored *rows)
{
    QnStr table = { 0 };
    QnCoefs k;
    QnStatus st = qn_fit(s, use, &table);
    if (st == QN_OK)
        st = qn_coefs_parse(&k, "fit", qn_str_text(&table), table.n);
    for (int64_t i = 0; i < s->n && st == QN_OK; i++)
        if (!use[i])
            predict(&rows[i], &k);
    qn_str_fini(&table);
    return st;
}

/* The deviations that 80 % of the rows lie within, without those of one fold (-1: of none). */
static double width_of(const QnMeasuredSet *s, const QnScored *rows, QnHoldOut how, int folds,
                       int without, double *room)
{
    size_t n = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (rows[i].error >= 0 && rows[i].deviations > 0 &&
            (without < 0 || fold_of(held_out(&s->rows[i], how), folds) != without))
            room[n++] = rows[i].deviations;
    qsort(room, n, sizeof *room, by_value);
    return n ? room[n * 4 / 5] : 1.28;
}

/* Intervals of a fold are as wide as the other folds' errors say. */
static void set_inside(const QnMeasuredSet *s, QnHoldOut how, QnScored *rows, double *room)
{
    for (int fold = 0; fold < FOLDS; fold++) {
        double width = width_of(s, rows, how, FOLDS, fold, room);
        for (int64_t i = 0; i < s->n; i++)
            if (rows[i].deviations > 0 && fold_of(held_out(&s->rows[i], how), FOLDS) == fold)
                rows[i].inside = rows[i].deviations <= width;
    }
}

static QnStatus predict_folds(const QnMeasuredSet *s, QnHoldOut how, int folds, QnScored *rows)
{
    bool *use = qn_alloc((size_t)s->n + 1);
    QnStatus st = use ? QN_OK : QN_ENOMEM;
    for (int fold = 0; fold < folds && st == QN_OK; fold++) {
        for (int64_t i = 0; i < s->n; i++)
            use[i] = fold_of(held_out(&s->rows[i], how), folds) != fold;
        st = predict_fold(s, use, rows);
    }
    qn_free(use);
    return st;
}

QnStatus qn_score_width(const QnMeasuredSet *s, QnHoldOut how, const QnCoefs *k, double *width)
{
    QnScored *rows = qn_alloc_array((size_t)s->n + 1, sizeof *rows);
    double *room = qn_alloc_array((size_t)s->n + 1, sizeof *room);
    QnStatus st = rows && room ? QN_OK : QN_ENOMEM;
    for (int64_t i = 0; i < s->n && st == QN_OK; i++) {
        rows[i].row = &s->rows[i];
        if (how == QN_HOLD_OUT_NONE)
            predict(&rows[i], k);
    }
    if (st == QN_OK && how != QN_HOLD_OUT_NONE)
        st = predict_folds(s, how, FEW_FOLDS, rows);
    if (st == QN_OK)
        *width = QN_MIN(QN_MAX(width_of(s, rows, how, FEW_FOLDS, -1, room), 0.2), 8);
    qn_free(rows);
    qn_free(room);
    return st;
}

/* ---- statistics ---- */

/* errors: n, sorted here. */
static void fill_group(QnScoreGroup *g, double *errors, int64_t inside)
{
    double sum = 0;
    qsort(errors, (size_t)g->n, sizeof *errors, by_value);
    for (int64_t i = 0; i < g->n; i++)
        sum += errors[i];
    g->mean = g->n ? sum / (double)g->n : 0;
    g->median = g->n ? (errors[(g->n - 1) / 2] + errors[g->n / 2]) / 2 : 0;
    g->inside = g->n ? (double)inside / (double)g->n : 0;
}

/* Rows of at least `least` and at most `most` devices. */
static void fill_by_cards(const QnScore *s, double *errors, int least, int most, QnScoreGroup *g)
{
    int64_t inside = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const QnScored *r = &s->rows[i];
        if (r->error < 0 || r->row->request.n_cards < least || r->row->request.n_cards > most)
            continue;
        errors[g->n++] = r->error;
        inside += r->inside;
    }
    fill_group(g, errors, inside);
}

/* ---- all ---- */

QnStatus qn_score(const QnMeasuredSet *s, const QnCoefs *k, QnHoldOut hold_out, QnScore *out)
{
    double *errors = qn_alloc_array((size_t)s->n + 1, sizeof *errors);
    *out = (QnScore){
        .n = s->n, .all.name = "all", .single.name = "one device", .multi.name = "several devices"
    };
    out->rows = qn_alloc_array((size_t)s->n + 1, sizeof *out->rows);
    QnStatus st = errors && out->rows ? QN_OK : QN_ENOMEM;
    for (int64_t i = 0; i < s->n && st == QN_OK; i++) {
        out->rows[i].row = &s->rows[i];
        if (hold_out == QN_HOLD_OUT_NONE)
            predict(&out->rows[i], k);
    }
    if (st == QN_OK && hold_out != QN_HOLD_OUT_NONE)
        st = predict_folds(s, hold_out, FOLDS, out->rows);
    if (st == QN_OK && hold_out != QN_HOLD_OUT_NONE)
        set_inside(s, hold_out, out->rows, errors);
    if (st == QN_OK) {
        fill_by_cards(out, errors, 1, 1 << 30, &out->all);
        fill_by_cards(out, errors, 1, 1, &out->single);
        fill_by_cards(out, errors, 2, 1 << 30, &out->multi);
        out->n_expressed = out->all.n;
        st = qn_rank_devices(out);
    }
    qn_free(errors);
    if (st != QN_OK)
        qn_score_fini(out);
    return st;
}

void qn_score_fini(QnScore *s)
{
    qn_free(s->rows);
    s->rows = NULL;
}

/* ---- groups ---- */

const char *qn_score_key_name(QnScoreKey key)
{
    static const char *const names[QN_SCORE_KEYS] = { "device", "model", "precision", "task",
                                                      "stack" };
    return names[key];
}

static const char *key_of(const QnScored *r, QnScoreKey key)
{
    switch (key) {
    case QN_SCORE_GPU: return r->row->gpu;
    case QN_SCORE_MODEL: return r->row->model;
    case QN_SCORE_PRECISION: return r->row->precision;
    case QN_SCORE_TASK: return r->row->task;
    case QN_SCORE_STACK: return qn_tier_name(r->row->request.tier);
    case QN_SCORE_KEYS: break;
    }
    return "";
}

static int by_size(const void *pa, const void *pb)
{
    const QnScoreGroup *a = pa, *b = pb;
    return a->n != b->n ? (a->n < b->n) - (a->n > b->n) : strcmp(a->name, b->name);
}

static bool is_known(const QnScoreGroup *groups, int64_t n, const char *name)
{
    for (int64_t i = 0; i < n; i++)
        if (!strcmp(groups[i].name, name))
            return true;
    return false;
}

QnStatus qn_score_groups(const QnScore *s, QnScoreKey key, QnScoreGroup **groups, int64_t *n)
{
    QnScoreGroup *all = qn_alloc_array((size_t)s->n + 1, sizeof *all);
    double *errors = qn_alloc_array((size_t)s->n + 1, sizeof *errors);
    if (!all || !errors) {
        qn_free(all);
        qn_free(errors);
        return QN_ENOMEM;
    }
    *n = 0;
    for (int64_t i = 0; i < s->n; i++) {
        QnScoreGroup g = { .name = key_of(&s->rows[i], key) };
        int64_t inside = 0;
        if (s->rows[i].error < 0 || is_known(all, *n, g.name))
            continue;
        for (int64_t j = i; j < s->n; j++) {
            if (s->rows[j].error < 0 || strcmp(key_of(&s->rows[j], key), g.name) != 0)
                continue;
            errors[g.n++] = s->rows[j].error;
            inside += s->rows[j].inside;
        }
        fill_group(&g, errors, inside);
        all[(*n)++] = g;
    }
    qn_free(errors);
    qsort(all, (size_t)*n, sizeof *all, by_size);
    *groups = all;
    return QN_OK;
}
