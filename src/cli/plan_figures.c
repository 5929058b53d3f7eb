/* quern plan --score and --fit on tables of collectives, parallel training, memory and power. */
#include "cli/plan.h"

#include "plan/figures.h"

#include <stdio.h>
#include <string.h>

static QnStatus put_row(const QnFigure *r)
{
    QnStr text = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &text, 0);
    qn_json_open_object(&w);
    qn_json_put_int(&w, "line", r->line);
    qn_json_put_string(&w, "name", r->name);
    qn_json_put_string(&w, "gpu", r->gpu);
    qn_json_put_string(&w, "unit", r->unit);
    qn_json_put_double(&w, "measured", r->measured);
    if (r->error < 0) {
        qn_json_put_string(&w, "not_expressed", r->reason ? r->reason : "no prediction");
    } else {
        qn_json_put_double(&w, "predicted", r->predicted);
        qn_json_put_double(&w, "error_pct", 100 * r->error);
    }
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&text);
    qn_str_fini(&text);
    return st;
}

static void print_row(const QnFigure *r)
{
    if (r->error < 0)
        printf("%-64s %10.5g %-4s not expressed: %s\n", r->name, r->measured, r->unit,
               r->reason ? r->reason : "no prediction");
    else
        printf("%-64s %10.5g %-4s predicted %10.5g %6.1f %%\n", r->name, r->measured, r->unit,
               r->predicted, 100 * r->error);
}

static void print_sum(const QnFigureSum *g)
{
    printf("  %-36.36s %5lld rows  mean %6.1f %%  median %6.1f %%  in the interval %3.0f %%\n",
           g->name ? g->name : "all", (long long)g->expressed, 100 * g->mean, 100 * g->median,
           100 * g->inside);
}

static const char *text_of(const QnFigure *r, int key)
{
    return key == 0 ? r->gpu : key == 1 ? r->model : r->group;
}

static QnStatus print_groups(const QnFigures *s, const QnFleet *f)
{
    static const char *const keys[] = { "device", "model or size", "group" };
    for (int key = 0; key < 3; key++) {
        printf("by %s\n", keys[key]);
        for (int64_t i = 0; i < s->n; i++) {
            const char *name = text_of(&s->rows[i], key);
            int64_t j = 0;
            while (j < i && strcmp(text_of(&s->rows[j], key), name) != 0)
                j++;
            if (j < i)
                continue;
            QnFigureSum g;
            QN_TRY(qn_figures_sum(s, f, key, name, &g));
            if (g.expressed)
                print_sum(&g);
        }
    }
    return QN_OK;
}

static QnStatus put_sum(const QnFigures *s, const QnFigureSum *all)
{
    QnStr text = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &text, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "table", s->kind->name);
    qn_json_put_double(&w, "median_error_pct", 100 * all->median);
    qn_json_put_double(&w, "mean_error_pct", 100 * all->mean);
    qn_json_put_double(&w, "expressed_pct",
                       all->n ? 100 * (double)all->expressed / (double)all->n : 0);
    qn_json_put_double(&w, "interval_coverage_pct", 100 * all->inside);
    qn_json_put_double(&w, "goal_mean_error_pct", 100 * s->kind->goal);
    qn_json_put_int(&w, "rows", all->n);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&text);
    qn_str_fini(&text);
    return st;
}

static QnStatus score(const QnArgs *a, QnFigures *s, const QnFleet *f)
{
    QnFigureSum all;
    QN_TRY(qn_figures_score(s, f, a->text[QN_PLAN_HOLD_OUT]));
    for (int64_t i = 0; i < s->n; i++) {
        if (a->json)
            QN_TRY(put_row(&s->rows[i]));
        else
            print_row(&s->rows[i]);
    }
    QN_TRY(qn_figures_sum(s, f, 0, NULL, &all));
    if (a->json)
        return put_sum(s, &all);
    QN_TRY(print_groups(s, f));
    printf("in all\n");
    print_sum(&all);
    printf("  %lld of %lld rows expressed; the goal is a mean of %.3g %%\n",
           (long long)all.expressed, (long long)all.n, 100 * s->kind->goal);
    return QN_OK;
}

static QnStatus fit(QnFigures *s, QnFleet *f)
{
    for (int i = s->kind->first; i < s->kind->last; i++)
        f->x[i] = qn_fleet_info(i).start;
    QN_TRY(qn_figures_fit(s, NULL, f));
    printf("coefficient,value\n");
    for (int i = 0; i < QN_FLEET_COUNT; i++)
        printf("%s,%.5g\n", qn_fleet_info(i).name, f->x[i]);
    return QN_OK;
}

QnStatus qn_plan_figures(const QnArgs *a, const char *path, const char *text, size_t bytes)
{
    QnCatalogue c = { 0 };
    QnDevice *device = NULL;
    QnCounts *counts = NULL;
    QnFigures s = { 0 };
    QnFleet f;
    QnStatus st = qn_fleet_open(&f);
    QN_TRY_DONE(st);
    QN_TRY_DONE(qn_catalogue_open(&c));
    QN_TRY_DONE(qn_device_open_named("null", NULL, &device));
    counts = qn_counts_new(device);
    if (!counts)
        QN_TRY_DONE(QN_ENOMEM);
    QN_TRY_DONE(qn_figures_parse(&s, qn_figures_kind(text, bytes), &c, counts, path, text, bytes));
    QN_TRY_DONE(a->text[QN_PLAN_SCORE] ? score(a, &s, &f) : fit(&s, &f));
done:
    qn_figures_fini(&s);
    qn_counts_free(counts);
    qn_device_close(device);
    qn_catalogue_fini(&c);
    return st;
}
