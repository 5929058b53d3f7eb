/* The table of quern plan and its recommendation. */
#include "cli/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_speed(const void *pa, const void *pb)
{
    const QnOffer *a = pa, *b = pb;
    if (a->cost.fits != b->cost.fits)
        return a->cost.fits ? -1 : 1;
    return a->items_s > b->items_s   ? -1
           : a->items_s < b->items_s ? 1
                                     : strcmp(a->card->name, b->card->name);
}

static const char *fit_text(const QnOffer *c, char *text, size_t bytes)
{
    double room = 1.073741824e9 * c->card->memory_gb;
    if (c->cost.fits)
        snprintf(text, bytes, "%.0f %%", 100 * c->cost.memory_bytes / room);
    else
        snprintf(text, bytes, "no: %.3gx, %s", c->cost.memory_bytes / room, c->term);
    return text;
}

void qn_plan_offer_name(const QnOffer *c, char *text, size_t bytes)
{
    if (c->n_cards > 1)
        snprintf(text, bytes, "%s:%d", c->card->name, c->n_cards);
    else
        snprintf(text, bytes, "%s", c->card->name);
}

static void print_offer(const QnPlanTable *t, const QnOffer *c)
{
    char name[80], fit[48], rate[QN_STR_NUMBER], low[QN_STR_NUMBER], high[QN_STR_NUMBER],
        time[QN_STR_NUMBER], usd[32] = "-";
    qn_plan_offer_name(c, name, sizeof name);
    if (c->error[0]) {
        printf("%-28s %s\n", name, c->error);
        return;
    }
    printf("%-28s %-8s %5lld  %-22s %8s (%s to %s)", name, qn_numbers_name(c->numbers),
           (long long)c->batch, fit_text(c, fit, sizeof fit), qn_str_si(rate, c->items_s),
           qn_str_si(low, c->low_s), qn_str_si(high, c->high_s));
    if (c->cost.fits)
        printf("  %4.1f %%  %-12s", 100 * c->cost.mfu, qn_limit_name(c->cost.limit));
    if (c->cost.fits && t->job.items > 0) {
        if (c->usd > 0)
            snprintf(usd, sizeof usd, "$%.2f %s", c->usd, c->rented ? "rent" : "own");
        printf("  %9s  %8.4g kWh  %s", qn_str_duration(time, (int64_t)(c->hours * 3.6e12)), c->kwh,
               usd);
    }
    printf("\n");
}

static QnStatus json_offer(const QnPlanTable *t, const QnOffer *c)
{
    QnStr text = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &text, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "device", c->card->name);
    qn_json_put_int(&w, "count", c->n_cards);
    if (c->error[0]) {
        qn_json_put_string(&w, "error", c->error);
    } else {
        qn_json_put_string(&w, "precision", qn_numbers_name(c->numbers));
        qn_json_put_int(&w, "batch", c->batch);
        qn_json_put_bool(&w, "fits", c->cost.fits);
        qn_json_put_double(&w, "memory_bytes", c->cost.memory_bytes);
        qn_json_put_string(&w, "largest_term", c->term);
        qn_json_put_double(&w, "step_ms", 1e3 * c->cost.step_s);
        qn_json_put_double(&w, "throughput", c->items_s);
        qn_json_put_double(&w, "throughput_low", c->low_s);
        qn_json_put_double(&w, "throughput_high", c->high_s);
        qn_json_put_double(&w, "mfu", c->cost.mfu);
        qn_json_put_string(&w, "limit", qn_limit_name(c->cost.limit));
        qn_json_put_double(&w, "power_w", c->cost.power_w);
        if (t->job.items > 0) {
            qn_json_put_double(&w, "hours", c->hours);
            qn_json_put_double(&w, "kwh", c->kwh);
            qn_json_put_double(&w, "usd", c->usd);
            qn_json_put_bool(&w, "rented", c->rented);
        }
    }
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&text);
    qn_str_fini(&text);
    return st;
}

/* What would make it fit, where nothing does. */
static void print_nothing(const QnPlanTable *t)
{
    const QnOffer *nearest = NULL;
    for (int i = 0; i < t->n; i++) {
        const QnOffer *c = &t->offers[i];
        if (!c->error[0] && !c->cost.fits &&
            (!nearest || c->cost.memory_bytes / c->card->memory_gb <
                             nearest->cost.memory_bytes / nearest->card->memory_gb))
            nearest = c;
    }
    bool limits = t->job.budget_usd > 0 || t->job.deadline_s > 0;
    if (limits)
        printf("nothing meets the limits: raise --budget or --deadline, or give more devices "
               "(--gpu NAME:N)\n");
    else if (nearest)
        printf("nothing fits; %s comes nearest and lacks %.1f GB, most of it goes to %s%s\n",
               nearest->card->name,
               nearest->cost.memory_bytes / 1e9 - 1.073741824 * nearest->card->memory_gb,
               nearest->term, nearest->batch > 1 ? ": a smaller --batch helps" : "");
}

static void print_advice(const QnPlanTable *t)
{
    QnAdvice a = qn_advice_of(&t->job, t->offers, t->n);
    char name[80], time[QN_STR_NUMBER];
    if (a.best < 0) {
        print_nothing(t);
        return;
    }
    const QnOffer *best = &t->offers[a.best], *fast = &t->offers[a.fastest];
    qn_plan_offer_name(best, name, sizeof name);
    if (t->job.items > 0)
        printf("take %s: %s, %s%.2f USD (%s), the cheapest%s; batch %lld in %s\n", name,
               qn_str_duration(time, (int64_t)(best->hours * 3.6e12)),
               best->usd > 0 ? "" : "about ", best->usd, best->rented ? "rented" : "owned",
               t->job.deadline_s > 0 ? " that meets the deadline" : "", (long long)best->batch,
               qn_numbers_name(best->numbers));
    qn_plan_offer_name(fast, name, sizeof name);
    printf("the fastest%s is %s\n", t->job.budget_usd > 0 ? " within the budget" : "", name);
}

QnStatus qn_plan_print(const QnArgs *a, QnPlanTable *t)
{
    qsort(t->offers, (size_t)t->n, sizeof *t->offers, by_speed);
    if (!a->json)
        printf("%s, %s, under %s; %s a second, 80 %% of cases lie in the interval\n"
               "%-28s %-8s %5s  %-22s %8s\n",
               t->job.model->name, t->job.train ? "training" : "inference",
               qn_tier_name(t->job.tier), t->job.model->family->image ? "images" : "tokens",
               "device", "numbers", "batch", "memory", "speed");
    for (int i = 0; i < t->n; i++) {
        if (a->json)
            QN_TRY(json_offer(t, &t->offers[i]));
        else
            print_offer(t, &t->offers[i]);
    }
    if (!a->json)
        print_advice(t);
    return QN_OK;
}
