/* quern plan MODEL --explain GPU: where the step's time and memory go, and what would change it. */
#include "cli/plan_explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HEAVIEST = 10 };

/* ---- text ---- */

static const char *time_text(char out[QN_STR_NUMBER], double seconds)
{
    return qn_str_duration(out, (int64_t)(seconds * 1e9));
}

static void print_part(const QnExplain *e, const char *name, const QnExplainPart *p)
{
    char time[QN_STR_NUMBER], flops[QN_STR_NUMBER], bytes[QN_STR_NUMBER];
    printf("  %-34s %6.0f  %9s  %4.1f %%  %-8s  %5.1f %%  %5.1f %%  %9s  %9s\n", name, p->count,
           time_text(time, p->seconds), 100 * p->seconds / e->step_s, qn_limit_name(p->limit),
           100 * p->flop_share, 100 * p->byte_share, qn_str_si(flops, p->flops),
           qn_str_si(bytes, p->bytes));
}

static void print_rest(const QnExplain *e, const char *name, double seconds)
{
    char time[QN_STR_NUMBER];
    if (seconds > 0)
        printf("  %-34s %6s  %9s  %4.1f %%\n", name, "", time_text(time, seconds),
               100 * seconds / e->step_s);
}

static void print_parts(const QnExplain *e)
{
    char name[64];
    const char *head = "  %-34s %6s  %9s  %6s  %-8s  %7s  %7s  %9s  %9s\n";
    printf(head, "kinds of work", "times", "time", "share", "limit", "of peak", "of mem.", "FLOPs",
           "bytes");
    for (int i = 0; i < QN_WORK_KINDS; i++)
        if (e->kinds[i].count > 0)
            print_part(e, qn_work_kind_name((QnWorkKind)i), &e->kinds[i]);
    print_rest(e, "communication that is not hidden", e->link_s);
    print_rest(e, "between the kernels", e->rest_s);
    printf("\n");
    printf(head, "ten heaviest (rows x columns x depth)", "times", "time", "share", "limit",
           "of peak", "of mem.", "FLOPs", "bytes");
    for (int64_t i = 0; i < e->n_parts && i < HEAVIEST; i++) {
        qn_explain_name(e->parts[i].work, name, sizeof name);
        print_part(e, name, &e->parts[i]);
    }
}

static void print_memory(const QnExplain *e)
{
    QnMemoryTerm terms[QN_MEMORY_TERMS];
    int n = qn_explain_memory(&e->offer, terms);
    double room = 0x1p30 * e->offer.card->memory_gb, all = e->offer.cost.memory_bytes;
    printf("\n  memory of one device\n");
    for (int i = 0; i < n; i++)
        printf("  %-34s %9.3f GB  %5.1f %%\n", terms[i].name, 1e-9 * terms[i].bytes,
               100 * terms[i].bytes / room);
    printf("  %-34s %9.3f GB  %5.1f %% of %.4g GB%s\n", "in all", 1e-9 * all, 100 * all / room,
           1e-9 * room, all > room ? ": does not fit" : "");
}

static void print_what_ifs(const QnExplain *e)
{
    const QnOffer *was = &e->offer;
    printf("\n  %-34s %9s  %12s  %12s  %s\n", "what would change it", "speed", "memory, GB", "USD",
           "");
    for (int i = 0; i < e->n_what_ifs; i++) {
        const QnOffer *o = &e->what_if[i].offer;
        if (o->error[0]) {
            printf("  %-34s %s\n", e->what_if[i].text, o->error);
            continue;
        }
        char usd[40] = "-";
        if (o->usd > 0)
            snprintf(usd, sizeof usd, "%.4g (%+.3g)", o->usd, o->usd - was->usd);
        printf("  %-34s %+7.1f %%  %+12.3f  %12s  %s\n", e->what_if[i].text,
               100 * (o->items_s / was->items_s - 1),
               1e-9 * (o->cost.memory_bytes - was->cost.memory_bytes), usd,
               o->cost.fits ? "" : "does not fit");
    }
    if (was->usd > 0)
        printf("  (USD for %.4g %s; now %.4g)\n", e->job.items,
               was->count->tokens > 0 ? "tokens" : "examples", was->usd);
}

static void print_head(const QnExplain *e)
{
    const QnOffer *o = &e->offer;
    char name[80], step[QN_STR_NUMBER], low[QN_STR_NUMBER], high[QN_STR_NUMBER],
        rate[QN_STR_NUMBER];
    qn_plan_offer_name(o, name, sizeof name);
    printf("%s, %s, under %s, on %s: batch %lld in %s\n", e->job.model->name,
           e->job.train ? "training" : "inference", qn_tier_name(e->job.tier), name,
           (long long)o->batch, qn_numbers_name(o->numbers));
    if (!o->cost.fits)
        printf("it does not fit: it takes %.3g times the memory that there is; if it did,\n",
               o->cost.memory_bytes / qn_offer_room(o));
    printf("a step takes %s (80 %% of cases: %s to %s), %s %s a second, %.1f %% of the peak rate; "
           "%s holds it back most\n\n",
           time_text(step, o->cost.step_s), time_text(low, o->cost.low_s),
           time_text(high, o->cost.high_s), qn_str_si(rate, o->items_s),
           o->count->tokens > 0 ? "tokens" : "examples", 100 * o->cost.mfu,
           qn_limit_name(o->cost.limit));
}

/* ---- JSON ---- */

static void json_part(QnJsonWriter *w, const char *name, const QnExplainPart *p)
{
    qn_json_open_object(w);
    qn_json_put_string(w, "name", name);
    qn_json_put_double(w, "count", p->count);
    qn_json_put_double(w, "ms", 1e3 * p->seconds);
    qn_json_put_string(w, "limit", qn_limit_name(p->limit));
    qn_json_put_double(w, "peak_share", p->flop_share);
    qn_json_put_double(w, "bandwidth_share", p->byte_share);
    qn_json_put_double(w, "flops", p->flops);
    qn_json_put_double(w, "bytes", p->bytes);
    qn_json_close(w);
}

static void json_what_if(QnJsonWriter *w, const QnWhatIf *what)
{
    const QnOffer *o = &what->offer;
    qn_json_open_object(w);
    qn_json_put_string(w, "what", what->text);
    if (o->error[0]) {
        qn_json_put_string(w, "error", o->error);
    } else {
        qn_json_put_double(w, "throughput", o->items_s);
        qn_json_put_double(w, "memory_bytes", o->cost.memory_bytes);
        qn_json_put_bool(w, "fits", o->cost.fits);
        qn_json_put_double(w, "usd", o->usd > 0 ? o->usd : NAN);
    }
    qn_json_close(w);
}

static void json_all(QnJsonWriter *w, const QnExplain *e)
{
    const QnOffer *o = &e->offer;
    QnMemoryTerm terms[QN_MEMORY_TERMS];
    int n = qn_explain_memory(o, terms);
    char name[64];
    qn_json_put_string(w, "device", o->card->name);
    qn_json_put_int(w, "count", o->n_cards);
    qn_json_put_string(w, "precision", qn_numbers_name(o->numbers));
    qn_json_put_int(w, "batch", o->batch);
    qn_json_put_double(w, "step_ms", 1e3 * e->step_s);
    qn_json_put_double(w, "throughput", o->items_s);
    qn_json_put_double(w, "communication_ms", 1e3 * e->link_s);
    qn_json_put_double(w, "between_kernels_ms", 1e3 * e->rest_s);
    qn_json_key(w, "kinds");
    qn_json_open_array(w);
    for (int i = 0; i < QN_WORK_KINDS; i++)
        if (e->kinds[i].count > 0)
            json_part(w, qn_work_kind_name((QnWorkKind)i), &e->kinds[i]);
    qn_json_close(w);
    qn_json_key(w, "operators");
    qn_json_open_array(w);
    for (int64_t i = 0; i < e->n_parts && i < HEAVIEST; i++) {
        qn_explain_name(e->parts[i].work, name, sizeof name);
        json_part(w, name, &e->parts[i]);
    }
    qn_json_close(w);
    qn_json_key(w, "memory");
    qn_json_open_object(w);
    for (int i = 0; i < n; i++)
        qn_json_put_double(w, terms[i].name, terms[i].bytes);
    qn_json_close(w);
    qn_json_put_double(w, "memory_bytes", o->cost.memory_bytes);
    qn_json_put_double(w, "items", e->job.items);
    qn_json_put_double(w, "usd", o->usd > 0 ? o->usd : NAN);
    qn_json_key(w, "what_if");
    qn_json_open_array(w);
    for (int i = 0; i < e->n_what_ifs; i++)
        json_what_if(w, &e->what_if[i]);
    qn_json_close(w);
}

QnStatus qn_plan_explain(const QnArgs *a, const QnExplain *e)
{
    QnStr text = { 0 };
    QnJsonWriter w;
    if (!a->json) {
        print_head(e);
        print_parts(e);
        print_memory(e);
        print_what_ifs(e);
        return QN_OK;
    }
    qn_json_begin(&w, &text, 0);
    qn_json_open_object(&w);
    json_all(&w, e);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&text);
    qn_str_fini(&text);
    return st;
}
