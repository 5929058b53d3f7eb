/* The table, the plot and the rows of quern plan cluster. */
#include "cli/plan_cluster.h"

#include "base/chart.h"
#include "base/term.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LAYOUT = 64 };

static const char *items_of(const QnClusterPlan *p)
{
    return p->split.sequence ? "tokens" : p->split.model->family->image ? "images" : "examples";
}

/* "DP16 TP8 PP4x2 ZeRO1 mb2 full": only what is not 1. */
static const char *layout_text(const QnSharding *l, char out[LAYOUT])
{
    QnStr text = { 0 };
    qn_str_printf(&text, "DP%d", l->data);
    if (l->tensor > 1)
        qn_str_printf(&text, " TP%d", l->tensor);
    if (l->context > 1)
        qn_str_printf(&text, " CP%d", l->context);
    if (l->pipeline > 1)
        qn_str_printf(&text, " PP%d", l->pipeline);
    if (l->interleave > 1)
        qn_str_printf(&text, "x%d", l->interleave);
    if (l->zero)
        qn_str_printf(&text, " ZeRO%d", l->zero);
    qn_str_printf(&text, " mb%lld", (long long)l->micro_batch);
    if (l->recompute)
        qn_str_printf(&text, " %s", qn_recompute_name(l->recompute));
    snprintf(out, LAYOUT, "%s", qn_str_text(&text));
    qn_str_fini(&text);
    return out;
}

static const char *largest_term(const QnParallelMemory *m)
{
    const struct {
        const char *name;
        double bytes;
    } terms[] = { { "weights", m->weights },
                  { "gradients", m->gradients },
                  { "optimizer", m->optimizer },
                  { "activations", m->activations } };
    int best = 0;
    for (int i = 1; i < QN_COUNT(terms); i++)
        best = terms[i].bytes > terms[best].bytes ? i : best;
    return terms[best].name;
}

static void print_point(const QnClusterPlan *p, const QnClusterPoint *at)
{
    char layout[LAYOUT], time[QN_STR_NUMBER], rate[QN_STR_NUMBER], need[QN_STR_NUMBER];
    double room = p->card->memory_gb * 1024 * 1024 * 1024;
    if (!at->found && !at->any) {
        int64_t batch = (p->job.global_batch + at->n - 1) / at->n * at->n;
        printf("%7d  no layout divides a batch of %lld; one of %lld would be divided\n", at->n,
               (long long)p->job.global_batch, (long long)batch);
        return;
    }
    if (!at->found) {
        printf("%7d  does not fit: %s on each at least, %.3g x what it has (%s; %s)\n", at->n,
               qn_str_bytes(need, (uint64_t)at->least_memory.total), at->least_memory.total / room,
               largest_term(&at->least_memory), layout_text(&at->least, layout));
        return;
    }
    const QnParallelResult *r = &at->step;
    printf("%7d  %-34s %9s %9s %5.1f %%  %5.1f %% %5.0f %%  %5.1f %%  %5.1f %% %5.1f %%", at->n,
           layout_text(&at->layout, layout), qn_str_duration(time, (int64_t)(1e9 * r->step_s)),
           qn_str_si(rate, at->items_s), 100 * r->mfu, 100 * at->efficiency,
           100 * r->memory.total / room, 100 * r->exposed, 100 * r->bubble_s / r->step_s,
           100 * at->lost);
    if (p->job.items > 0)
        printf("  %8.1f h", at->hours);
    if (at->usd > 0)
        printf("  $%s", qn_str_si(rate, at->usd));
    printf("\n");
}

/* ---- the plot ---- */

static void add_bars(QnStr *out, const QnClusterPlan *p, const char *title,
                     double (*value)(const QnClusterPoint *), const char *unit,
                     const QnChartText *how)
{
    QnChartBar bars[QN_CLUSTER_MOST];
    char labels[QN_CLUSTER_MOST][16], texts[QN_CLUSTER_MOST][48], number[QN_STR_NUMBER];
    int n = 0;
    for (int i = 0; i < p->n_counts; i++) {
        const QnClusterPoint *at = &p->points[i];
        if (!at->found || !(value(at) > 0))
            continue;
        snprintf(labels[n], sizeof labels[n], "%7d", at->n);
        snprintf(texts[n], sizeof texts[n], "%s%s", qn_str_si(number, value(at)), unit);
        bars[n] = (QnChartBar){ labels[n], value(at), texts[n] };
        n++;
    }
    if (n < 2)
        return;
    qn_str_printf(out, "\n%s\n", title);
    qn_chart_bars(out, bars, n, 0, how);
}

static double hours_of(const QnClusterPoint *at)
{
    return at->hours;
}

static double step_of(const QnClusterPoint *at)
{
    return at->step.step_s;
}

static double efficiency_of(const QnClusterPoint *at)
{
    return 100 * at->efficiency;
}

static double usd_of(const QnClusterPoint *at)
{
    return at->usd;
}

static QnStatus print_plot(const QnClusterPlan *p)
{
    QnStr text = { 0 };
    QnChartText how = { .width = QN_MIN(qn_term_width(stdout), 90),
                        .unicode = qn_term_unicode(),
                        .color = qn_term_color(stdout) };
    if (p->job.items > 0)
        add_bars(&text, p, "time of the run against devices", hours_of, " h", &how);
    else
        add_bars(&text, p, "time of a step against devices", step_of, " s", &how);
    add_bars(&text, p, "efficiency against devices", efficiency_of, " %", &how);
    add_bars(&text, p, "cost of the run against devices", usd_of, " USD", &how);
    QnStatus st = text.st;
    if (st == QN_OK)
        fputs(qn_str_text(&text), stdout);
    qn_str_fini(&text);
    return st;
}

/* ---- the table ---- */

static void print_head(const QnClusterPlan *p)
{
    char params[QN_STR_NUMBER];
    const QnSplit *s = &p->split;
    printf("%s: %s parameters, %lld %s a step", s->model->name,
           qn_str_si(params, (double)s->layers * s->layer_params + s->ends_params),
           (long long)p->job.global_batch, s->sequence ? "sequences" : items_of(p));
    if (s->sequence)
        printf(" of %lld tokens", (long long)s->sequence);
    printf("; %s, %s, %.4g GB/s of network each, %d a node\n", p->card->name,
           qn_numbers_name(p->job.training.numbers), 1e-9 * p->job.training.links.network,
           p->job.training.links.per_node);
    printf("%7s  %-34s %9s %9s %7s %8s %6s %8s %8s %7s%s\n", "devices", "layout", "step",
           s->sequence               ? "tokens/s"
           : s->model->family->image ? "images/s"
                                     : "examples/s",
           "MFU", "effic.", "memory", "exposed", "bubble", "lost",
           p->job.items > 0 ? "        time  cost" : "");
}

static void print_best(const QnClusterPlan *p)
{
    const QnClusterPoint *cheap = NULL, *fast = NULL;
    for (int i = 0; i < p->n_counts; i++) {
        const QnClusterPoint *at = &p->points[i];
        if (!at->found)
            continue;
        if (!fast || at->items_s * (1 - at->lost) > fast->items_s * (1 - fast->lost))
            fast = at;
        if (!cheap ||
            at->items_s * (1 - at->lost) / at->n > cheap->items_s * (1 - cheap->lost) / cheap->n)
            cheap = at;
    }
    if (!fast)
        return;
    char layout[LAYOUT], interval[QN_STR_NUMBER], write[QN_STR_NUMBER];
    printf("\ncheapest by what it does: %d devices, %s; fastest: %d, ", cheap->n,
           layout_text(&cheap->layout, layout), fast->n);
    printf("%s\n", layout_text(&fast->layout, layout));
    printf("with %d devices, each failing once in %.6g h: %.3g failures a day; a checkpoint (%s) "
           "every %s, %.2g %% of the time is lost\n",
           fast->n, p->job.mtbf_hours, fast->failures_day,
           qn_str_duration(write, (int64_t)(1e9 * fast->checkpoint_s)),
           qn_str_duration(interval, (int64_t)(1e9 * fast->interval_s)), 100 * fast->lost);
    printf("80 %% of the measured steps that this is fitted to lie within %.0f %%\n",
           100 * (exp(p->coefs.fleet.x[QN_FLEET_PARALLEL_SPREAD]) - 1));
    if (p->job.items > 0 && cheap->kwh > 0)
        printf("the run takes %s kWh on %d devices, %s kWh on %d, with their machines\n",
               qn_str_si(write, cheap->kwh), cheap->n, qn_str_si(interval, fast->kwh), fast->n);
}

static void print_legend(void)
{
    printf("DP: data parallel, TP: tensor, CP: context, PP: pipeline (xN: N parts of each device "
           "interleaved), ZeRO: its stage,\nmb: micro-batch, full or selective: what is computed "
           "again; effic.: speed a device over that of the first row\n");
}

/* Under limits: what is within them, or which one to relax and by how much. */
static void print_advice(const QnClusterPlan *p)
{
    char layout[LAYOUT], a[QN_PLAN_NAME], usd[QN_STR_NUMBER];
    const QnClusterPoint *fast = NULL, *cheap = NULL;
    if (p->advised) {
        printf("within the limits: %d devices, %s: %s, $%s", p->advised->n,
               layout_text(&p->advised->layout, layout),
               qn_plan_time_text(3600 * p->advised->hours, a), qn_str_si(usd, p->advised->usd));
        if (p->purchase_usd > 0)
            printf(", $%s to pay at once", qn_str_si(usd, qn_cluster_outlay(p, p->advised)));
        printf("\n");
        return;
    }
    for (int i = 0; i < p->n_counts; i++) {
        const QnClusterPoint *at = &p->points[i];
        if (!at->found || !(at->hours > 0))
            continue;
        bool in_time = !(p->deadline_s > 0) || 3600 * at->hours <= p->deadline_s;
        bool in_money = !(p->budget_usd > 0) ||
                        (qn_cluster_outlay(p, at) > 0 && qn_cluster_outlay(p, at) <= p->budget_usd);
        if (in_time && (!cheap || qn_cluster_outlay(p, at) < qn_cluster_outlay(p, cheap)))
            cheap = at;
        if (in_money && (!fast || at->hours < fast->hours))
            fast = at;
    }
    printf("no number of devices is within the limits");
    if (cheap && cheap->usd > 0 && p->budget_usd > 0)
        printf("; --budget %s would do (%d devices)",
               qn_plan_amount(ceil(qn_cluster_outlay(p, cheap)), usd), cheap->n);
    if (fast && p->deadline_s > 0)
        printf("; --deadline %s would do (%d devices)", qn_plan_time_text(3600 * fast->hours, a),
               fast->n);
    printf("%s\n", cheap || fast ? "" : "; more devices (--gpus) or more of both is needed");
}

static void print_way_out(const QnClusterPlan *p)
{
    char layout[LAYOUT], rate[QN_STR_NUMBER];
    printf("\nnothing fits, with everything computed again and micro-batches of one\n");
    if (p->offloaded.found) {
        printf("  it would on %d of %s with the optimizer in the host's memory: %s, %s %s/s",
               p->offloaded.n, p->card->name, layout_text(&p->offloaded.layout, layout),
               qn_str_si(rate, p->offloaded.items_s), items_of(p));
        printf(p->job.usd_hour > 0 ? ", $%.4g an hour\n" : "\n", p->job.usd_hour * p->offloaded.n);
    }
    if (p->more.found) {
        printf("  it would on %d of %s: %s, %s %s/s", p->more.n, p->card->name,
               layout_text(&p->more.layout, layout), qn_str_si(rate, p->more.items_s), items_of(p));
        printf(p->job.usd_hour > 0 ? ", $%.4g an hour\n" : "\n", p->job.usd_hour * p->more.n);
    }
    if (p->other) {
        printf("  and on %d of %s: %s, ", p->other_point.n, p->other->name,
               layout_text(&p->other_point.layout, layout));
        printf("%s %s/s, $%.4g an hour\n", qn_str_si(rate, p->other_point.items_s), items_of(p),
               p->other_usd * p->other_point.items_s * p->other_point.n);
    }
    if (!p->more.found && !p->other && !p->offloaded.found)
        printf("  nor on 65536 of them, nor on any device of the catalogue: a smaller --sequence "
               "or model is needed\n");
}

/* Memory has nothing to do with it where no layout divides the batch. */
static void print_none(const QnClusterPlan *p)
{
    int64_t batch = p->job.global_batch;
    bool divided = false;
    for (int i = 0; i < p->n_counts; i++)
        divided = divided || p->points[i].any;
    if (divided) {
        print_way_out(p);
        return;
    }
    int64_t n = p->counts_of[0], fewer = QN_MIN(n, batch);
    while (batch % fewer)
        fewer--;
    printf(
        "\nthe batch is shared equally: --batch %lld for %lld devices, or --gpus %lld for a batch "
        "of %lld\n",
        (long long)((batch + n - 1) / n * n), (long long)n, (long long)fewer, (long long)batch);
}

/* ---- rows ---- */

/* Null in JSON. */
static double or_unknown(double value)
{
    return value > 0 ? value : NAN;
}

static QnStatus json_point(const QnClusterPlan *p, const QnClusterPoint *at)
{
    QnStr text = { 0 };
    QnJsonWriter w;
    char layout[LAYOUT];
    const QnSharding *l = at->found ? &at->layout : &at->least;
    const QnParallelMemory *m = at->found ? &at->step.memory : &at->least_memory;
    qn_json_begin(&w, &text, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "device", p->card->name);
    qn_json_put_int(&w, "count", at->n);
    qn_json_put_bool(&w, "fits", at->found);
    if (at->any) {
        qn_json_put_string(&w, "layout", layout_text(l, layout));
        qn_json_put_int(&w, "data_parallel", l->data);
        qn_json_put_int(&w, "tensor_parallel", l->tensor);
        qn_json_put_int(&w, "pipeline_parallel", l->pipeline);
        qn_json_put_int(&w, "context_parallel", l->context);
        qn_json_put_int(&w, "interleave", l->interleave);
        qn_json_put_int(&w, "zero", l->zero);
        qn_json_put_int(&w, "micro_batch", l->micro_batch);
        qn_json_put_string(&w, "recompute", qn_recompute_name(l->recompute));
        qn_json_put_double(&w, "memory_bytes", m->total);
        qn_json_put_double(&w, "weights_bytes", m->weights);
        qn_json_put_double(&w, "gradients_bytes", m->gradients);
        qn_json_put_double(&w, "optimizer_bytes", m->optimizer);
        qn_json_put_double(&w, "activations_bytes", m->activations);
    }
    if (at->found) {
        const QnParallelResult *r = &at->step;
        qn_json_put_double(&w, "step_ms", 1e3 * r->step_s);
        double spread = p->coefs.fleet.x[QN_FLEET_PARALLEL_SPREAD];
        qn_json_put_double(&w, "throughput", at->items_s);
        qn_json_put_double(&w, "throughput_low", at->items_s * exp(-spread));
        qn_json_put_double(&w, "throughput_high", at->items_s * exp(spread));
        qn_json_put_double(&w, "mfu", r->mfu);
        qn_json_put_double(&w, "efficiency", at->efficiency);
        qn_json_put_double(&w, "exposed", r->exposed);
        qn_json_put_double(&w, "bubble", r->bubble_s / r->step_s);
        qn_json_put_double(&w, "lost", at->lost);
        qn_json_put_double(&w, "checkpoint_interval_s", at->interval_s);
        qn_json_put_double(&w, "failures_a_day", at->failures_day);
        qn_json_put_double(&w, "hours", or_unknown(at->hours));
        qn_json_put_double(&w, "usd", or_unknown(at->usd));
        qn_json_put_double(&w, "kwh", or_unknown(at->kwh));
    }
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&text);
    qn_str_fini(&text);
    return st;
}

/* Empty in CSV where it is not. */
static const char *known(double value, char out[QN_STR_NUMBER])
{
    snprintf(out, QN_STR_NUMBER, "%.6g", value);
    return value > 0 ? out : "";
}

static void csv_point(const QnClusterPoint *at)
{
    const QnSharding *l = at->found ? &at->layout : &at->least;
    const QnParallelResult *r = &at->step;
    char hours[QN_STR_NUMBER], usd[QN_STR_NUMBER];
    printf("%d,%d,%d,%d,%d,%d,%d,%d,%lld,%s,%.6g,%.6g,%.4g,%.4g,%.6g,%.4g,%.4g,%.4g,%s,%s\n", at->n,
           at->found, l->data, l->tensor, l->pipeline, l->context, l->interleave, l->zero,
           (long long)l->micro_batch, qn_recompute_name(l->recompute), 1e3 * r->step_s, at->items_s,
           r->mfu, at->efficiency, at->found ? r->memory.total : at->least_memory.total, r->exposed,
           r->step_s > 0 ? r->bubble_s / r->step_s : 0, at->lost, known(at->hours, hours),
           known(at->usd, usd));
}

QnStatus qn_cluster_print(const QnArgs *a, const QnClusterPlan *p, bool csv)
{
    bool any = false;
    if (csv && !a->json)
        printf("devices,fits,data,tensor,pipeline,context,interleave,zero,micro_batch,recompute,"
               "step_ms,throughput,mfu,efficiency,memory_bytes,exposed,bubble,lost,hours,usd\n");
    if (!csv && !a->json)
        print_head(p);
    for (int i = 0; i < p->n_counts; i++) {
        const QnClusterPoint *at = &p->points[i];
        any = any || at->found;
        if (a->json)
            QN_TRY(json_point(p, at));
        else if (csv)
            csv_point(at);
        else
            print_point(p, at);
    }
    if (a->json || csv)
        return QN_OK;
    print_legend();
    if (!any) {
        print_none(p);
        return QN_OK;
    }
    print_best(p);
    if (p->deadline_s > 0 || p->budget_usd > 0)
        print_advice(p);
    return print_plot(p);
}
