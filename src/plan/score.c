#include "plan/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FOLDS = 20 };

/* ---- predictions ---- */

/* FNV-1a, so that a name's fold is the same in every file. */
static int fold_of(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return (int)((h ^ h >> 16) % FOLDS);
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
}

/* One fold from a fit that has not seen it. */
static QnStatus predict_fold(const QnMeasuredSet *s, const bool *use, QnScore *out)
{
    QnStr table = { 0 };
    QnCoefs k;
    QnStatus st = qn_fit(s, use, &table);
    if (st == QN_OK)
        st = qn_coefs_parse(&k, "fit", qn_str_text(&table), table.n);
    for (int64_t i = 0; i < s->n && st == QN_OK; i++)
        if (!use[i])
            predict(&out->rows[i], &k);
    qn_str_fini(&table);
    return st;
}

static QnStatus predict_folds(const QnMeasuredSet *s, QnHoldOut how, QnScore *out)
{
    bool *use = qn_alloc((size_t)s->n + 1);
    QnStatus st = use ? QN_OK : QN_ENOMEM;
    for (int fold = 0; fold < FOLDS && st == QN_OK; fold++) {
        for (int64_t i = 0; i < s->n; i++)
            use[i] = fold_of(held_out(&s->rows[i], how)) != fold;
        st = predict_fold(s, use, out);
    }
    qn_free(use);
    return st;
}

/* ---- statistics ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

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

/* ---- ranks of devices ---- */

static int by_job(const void *pa, const void *pb)
{
    const QnMeasured *a = (*(const QnScored *const *)pa)->row;
    const QnMeasured *b = (*(const QnScored *const *)pb)->row;
    const char *texts[][2] = { { a->model, b->model },
                               { a->task, b->task },
                               { a->precision, b->precision },
                               { a->framework, b->framework },
                               { a->unit, b->unit } };
    for (int i = 0; i < QN_COUNT(texts); i++) {
        int c = strcmp(texts[i][0], texts[i][1]);
        if (c)
            return c;
    }
    return (a->count->examples > b->count->examples) - (a->count->examples < b->count->examples);
}

/* Kendall's pairs: of those with different measurements, agreeing minus disagreeing, as a share. */
static double agreement(const QnScored *const *rows, int64_t n)
{
    double agree = 0, pairs = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) {
            double m = rows[i]->row->value - rows[j]->row->value;
            double p = rows[i]->predicted - rows[j]->predicted;
            if (m == 0 || rows[i]->row->request.card == rows[j]->row->request.card)
                continue;
            pairs++;
            agree += p == 0 ? 0 : (p > 0) == (m > 0) ? 1 : -1;
        }
    }
    return pairs > 0 ? agree / pairs : NAN;
}

static QnStatus rank_devices(QnScore *s)
{
    const QnScored **rows = qn_alloc_array((size_t)s->n + 1, sizeof *rows);
    int64_t n = 0;
    double sum = 0;
    if (!rows)
        return QN_ENOMEM;
    for (int64_t i = 0; i < s->n; i++)
        if (s->rows[i].error >= 0 && s->rows[i].row->request.n_cards == 1)
            rows[n++] = &s->rows[i];
    qsort(rows, (size_t)n, sizeof *rows, by_job);
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && !by_job(&rows[i], &rows[end]); end++)
            continue;
        double t = end - i >= 4 ? agreement(rows + i, end - i) : NAN;
        if (isnan(t))
            continue;
        sum += t;
        s->n_ranked++;
    }
    s->rank_correlation = s->n_ranked ? sum / (double)s->n_ranked : NAN;
    qn_free(rows);
    return QN_OK;
}

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
        st = predict_folds(s, hold_out, out);
    if (st == QN_OK) {
        fill_by_cards(out, errors, 1, 1 << 30, &out->all);
        fill_by_cards(out, errors, 1, 1, &out->single);
        fill_by_cards(out, errors, 2, 1 << 30, &out->multi);
        out->n_expressed = out->all.n;
        st = rank_devices(out);
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
