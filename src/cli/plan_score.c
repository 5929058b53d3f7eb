/* quern plan --score and --fit: predictions against published figures. */
#include "cli/plan.h"

#include "base/file.h"
#include "plan/figures.h"
#include "plan/score.h"
#include "quern/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct Opened {
    QnCatalogue catalogue;
    QnDevice *device;
    QnCounts *counts;
    QnMeasuredSet set;
    char *text;
} Opened;

static void close_all(Opened *o)
{
    qn_measured_fini(&o->set);
    qn_counts_free(o->counts);
    qn_device_close(o->device);
    qn_catalogue_fini(&o->catalogue);
    qn_free(o->text);
}

static QnStatus open_all(Opened *o, const char *path, size_t bytes)
{
    QN_TRY(qn_catalogue_open(&o->catalogue));
    QN_TRY(qn_device_open_named("null", NULL, &o->device));
    o->counts = qn_counts_new(o->device);
    if (!o->counts)
        return QN_ENOMEM;
    return qn_measured_parse(&o->set, &o->catalogue, o->counts, path, o->text, bytes);
}

/* ---- fit ---- */

static QnStatus fit(const Opened *o)
{
    QnStr table = { 0 }, whole = { 0 };
    QnCoefs k;
    QnStatus st = qn_fit(&o->set, NULL, &table);
    QN_TRY_DONE(st);
    QN_TRY_DONE(qn_coefs_parse(&k, "fit", qn_str_text(&table), table.n));
    /* intervals by errors on what was fitted, and on devices and models that were not */
    QN_TRY_DONE(qn_score_width(&o->set, QN_HOLD_OUT_NONE, &k, &k.all[QN_COEF_INTERVAL]));
    QN_TRY_DONE(qn_score_width(&o->set, QN_HOLD_OUT_GPU, &k, &k.all[QN_COEF_INTERVAL_CARD]));
    QN_TRY_DONE(qn_score_width(&o->set, QN_HOLD_OUT_MODEL, &k, &k.all[QN_COEF_INTERVAL_MODEL]));
    qn_coefs_print(&k, &whole);
    QN_TRY_DONE(whole.st);
    fputs(qn_str_text(&whole), stdout);
done:
    qn_str_fini(&table);
    qn_str_fini(&whole);
    return st;
}

/* ---- score ---- */

static void json_text(QnJsonWriter *w, const char *key, const char *text)
{
    qn_json_put_string(w, key, text ? text : "");
}

static QnStatus json_row(const QnScored *r)
{
    QnStr text = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &text, 0);
    qn_json_open_object(&w);
    json_text(&w, "id", r->row->id);
    json_text(&w, "model", r->row->model);
    json_text(&w, "task", r->row->task);
    json_text(&w, "gpu", r->row->gpu);
    qn_json_put_int(&w, "num_gpus", r->row->request.n_cards);
    json_text(&w, "precision", r->row->precision);
    json_text(&w, "unit", r->row->unit);
    qn_json_put_double(&w, "measured", r->row->value);
    if (r->error < 0) {
        json_text(&w, "not_expressed", r->row->reason);
        if (r->row->near)
            json_text(&w, "nearest", r->row->near);
    } else {
        json_text(&w, "stack", qn_tier_name(r->row->request.tier));
        qn_json_put_double(&w, "predicted", r->predicted);
        qn_json_put_double(&w, "error_pct", 100 * r->error);
        qn_json_put_bool(&w, "inside_interval", r->inside);
    }
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&text);
    qn_str_fini(&text);
    return st;
}

static void print_row(const QnScored *r)
{
    const QnMeasured *m = r->row;
    printf("%-8s %-24s %-5s %-22s %3d %-8s %-13s ", m->id, m->model, m->task, m->gpu,
           m->request.n_cards, m->precision, r->error < 0 ? "" : qn_tier_name(m->request.tier));
    if (r->error < 0)
        printf(m->near ? "%10.5g %-9s not expressed: %s; did you mean '%s'?\n"
                       : "%10.5g %-9s not expressed: %s\n",
               m->value, m->unit, m->reason, m->near);
    else
        printf("%10.5g %-9s predicted %10.5g %6.1f %%%s\n", m->value, m->unit, r->predicted,
               100 * r->error, r->inside ? "" : "  outside");
}

static void print_group(const QnScoreGroup *g)
{
    if (!g->n) /* an error of nothing is not 0 % */
        return;
    printf("  %-30s %6lld rows  mean %6.1f %%  median %6.1f %%  in the interval %3.0f %%\n",
           g->name, (long long)g->n, 100 * g->mean, 100 * g->median, 100 * g->inside);
}

static QnStatus print_groups(const QnScore *s)
{
    for (int key = 0; key < QN_SCORE_KEYS; key++) {
        QnScoreGroup *groups;
        int64_t n;
        QN_TRY(qn_score_groups(s, (QnScoreKey)key, &groups, &n));
        printf("by %s\n", qn_score_key_name((QnScoreKey)key));
        for (int64_t i = 0; i < n; i++)
            print_group(&groups[i]);
        qn_free(groups);
    }
    return QN_OK;
}

/* How many rows are left out for each reason. */
static void print_reasons(const QnScore *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        const char *reason = s->rows[i].row->reason;
        int64_t n = 0;
        bool first = reason != NULL;
        for (int64_t j = 0; j < s->n && first; j++) {
            bool same = s->rows[j].row->reason && !strcmp(s->rows[j].row->reason, reason);
            n += same;
            first = !(same && j < i);
        }
        if (first)
            printf("  %-62s %6lld rows\n", reason, (long long)n);
    }
}

static QnStatus json_summary(const QnScore *s)
{
    QnStr text = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &text, 0);
    qn_json_open_object(&w);
    qn_json_put_double(&w, "median_error_pct", 100 * s->all.median);
    qn_json_put_double(&w, "mean_error_pct", 100 * s->all.mean);
    qn_json_put_double(&w, "expressed_pct", s->n ? 100 * (double)s->n_expressed / (double)s->n : 0);
    qn_json_put_double(&w, "interval_coverage_pct", 100 * s->all.inside);
    qn_json_put_double(&w, "single_device_mean_error_pct", 100 * s->single.mean);
    qn_json_put_double(&w, "multi_device_mean_error_pct", 100 * s->multi.mean);
    qn_json_put_double(&w, "rank_correlation",
                       isnan(s->rank_correlation) ? 0 : s->rank_correlation);
    qn_json_put_double(&w, "top3_by_cost_pct", isnan(s->top3) ? 0 : 100 * s->top3);
    qn_json_put_int(&w, "rows", s->n);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&text);
    qn_str_fini(&text);
    return st;
}

static QnStatus print_score(const QnArgs *a, const QnMeasuredSet *set, const QnScore *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        if (a->json)
            QN_TRY(json_row(&s->rows[i]));
        else
            print_row(&s->rows[i]);
    }
    if (a->json)
        return json_summary(s);
    QN_TRY(print_groups(s));
    printf("not expressed\n");
    print_reasons(s);
    printf("in all\n");
    print_group(&s->all);
    print_group(&s->single);
    print_group(&s->multi);
    printf("  %lld of %lld rows expressed, %.1f %%; %lld that call themselves suspect are left "
           "out\n",
           (long long)s->n_expressed, (long long)s->n,
           s->n ? 100 * (double)s->n_expressed / (double)s->n : 0, (long long)set->suspect);
    if (!isnan(s->rank_correlation))
        printf("  ranks of devices for the same job: Kendall's tau %.3f over %lld jobs\n",
               s->rank_correlation, (long long)s->n_ranked);
    if (!isnan(s->top3))
        printf("  the cheapest device is among the three predicted in %.0f %% of %lld jobs\n",
               100 * s->top3, (long long)s->n_jobs);
    return QN_OK;
}

/* Values of the table: of the formulas and of known runs. */
static int64_t count_lines(const QnCoefs *k)
{
    int64_t n = QN_COEF_COUNT;
    for (size_t i = 0; i < k->effects_bytes; i++)
        n += k->effects[i] == '\n';
    return n;
}

static QnStatus score(const QnArgs *a, const Opened *o)
{
    const char *text = a->text[QN_PLAN_HOLD_OUT];
    QnHoldOut how = QN_HOLD_OUT_NONE;
    QnCoefs k;
    QnScore s;
    if (text && !strcmp(text, "gpu"))
        how = QN_HOLD_OUT_GPU;
    else if (text && !strcmp(text, "model"))
        how = QN_HOLD_OUT_MODEL;
    else if (text)
        return qn_fail(QN_EUSAGE, "--hold-out: expected gpu or model, found '%s'", text);
    QN_TRY(qn_coefs_open(&k));
    QN_TRY(qn_score(&o->set, &k, how, &s));
    QnStatus st = print_score(a, &o->set, &s);
    if (!a->json && how == QN_HOLD_OUT_NONE)
        printf("  by %lld coefficients and effects; rows that these were fitted to err less than "
               "others: see --hold-out\n",
               (long long)count_lines(&k));
    qn_score_fini(&s);
    return st;
}

QnStatus qn_plan_measured(const QnArgs *a)
{
    const char *path = a->text[QN_PLAN_SCORE] ? a->text[QN_PLAN_SCORE] : a->text[QN_PLAN_FIT];
    Opened o;
    if (a->text[QN_PLAN_SCORE] && a->text[QN_PLAN_FIT])
        return qn_fail(QN_EUSAGE, "--score and --fit: one of them at a time");
    if (a->n_positional)
        return qn_fail(QN_EUSAGE,
                       "'%s' beside --%s: the rows of the file say which models they are of; "
                       "leave it out",
                       a->positional[0], a->text[QN_PLAN_SCORE] ? "score" : "fit");
    size_t bytes;
    o = (Opened){ 0 };
    QnStatus st = qn_file_read(path, (size_t)1 << 30, &o.text, &bytes);
    QN_TRY_DONE(st);
    if (qn_figures_kind(o.text, bytes))
        QN_TRY_DONE(qn_plan_figures(a, path, o.text, bytes));
    else {
        QN_TRY_DONE(open_all(&o, path, bytes));
        QN_TRY_DONE(a->text[QN_PLAN_SCORE] ? score(a, &o) : fit(&o));
    }
done:
    close_all(&o);
    return st;
}
