/* The table of quern plan as JSON, an object a line, or CSV. */
#include "cli/plan.h"

#include <stdio.h>
#include <string.h>

/* One row goes to JSON, to CSV, or names its columns. */
typedef struct Sink {
    QnJsonWriter json;
    QnStr text;
    enum { JSON, CSV, HEAD } how;
    int n; /* cells so far */
} Sink;

static void begin(Sink *s)
{
    s->n = 0;
    if (s->how != JSON)
        return;
    qn_json_begin(&s->json, &s->text, 0);
    qn_json_open_object(&s->json);
}

/* In CSV, quotes go around what has a comma or a quote. */
static void put_cell(Sink *s, const char *text)
{
    if (s->n++)
        qn_str_add(&s->text, ",");
    if (!strpbrk(text, ",\"\n")) {
        qn_str_add(&s->text, text);
        return;
    }
    qn_str_add(&s->text, "\"");
    for (; *text; text++)
        qn_str_add_bytes(&s->text, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    qn_str_add(&s->text, "\"");
}

static void put_text(Sink *s, const char *name, const char *value)
{
    if (s->how == JSON)
        qn_json_put_string(&s->json, name, value);
    else
        put_cell(s, s->how == HEAD ? name : value);
}

static void put_number(Sink *s, const char *name, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.6g", value);
    if (s->how == JSON)
        qn_json_put_double(&s->json, name, value);
    else
        put_cell(s, s->how == HEAD ? name : text);
}

static void put_int(Sink *s, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    if (s->how == JSON)
        qn_json_put_int(&s->json, name, value);
    else
        put_cell(s, s->how == HEAD ? name : text);
}

static void put_bool(Sink *s, const char *name, bool value)
{
    if (s->how == JSON)
        qn_json_put_bool(&s->json, name, value);
    else
        put_cell(s, s->how == HEAD ? name : value ? "true" : "false");
}

static QnStatus end(Sink *s)
{
    QnStatus st = s->text.st;
    if (s->how == JSON) {
        qn_json_close(&s->json);
        st = qn_json_end(&s->json);
    }
    if (st == QN_OK)
        qn_cli_print_json(&s->text);
    qn_str_fini(&s->text);
    return st;
}

static void put_memory(Sink *s, const QnOffer *o)
{
    const QnCount *c = o->count;
    put_bool(s, "fits", o->cost.fits);
    put_number(s, "memory_bytes", o->cost.memory_bytes);
    put_number(s, "memory_low_bytes", o->memory_low);
    put_number(s, "memory_high_bytes", o->memory_high);
    put_number(s, "room_bytes", qn_offer_room(o));
    put_text(s, "largest_term", o->term ? o->term : "");
    put_number(s, "weights_bytes", c->weights);
    put_number(s, "gradients_bytes", c->gradients);
    put_number(s, "optimizer_bytes", c->optimizer);
    put_number(s, "activations_bytes", c->activations);
    put_number(s, "reserve_bytes", o->cost.reserve_bytes);
}

static void put_job(Sink *s, const QnJob *job, const QnOffer *o)
{
    put_number(s, "hours", o->hours);
    put_number(s, "kwh", o->kwh);
    put_number(s, "usd", o->usd);
    put_number(s, "usd_per_epoch", job->epochs > 0 ? o->usd / job->epochs : 0);
}

static void put_offer(Sink *s, const QnJob *job, const QnOffer *o)
{
    static const QnCount none = { 0 };
    QnOffer blank = *o;
    if (s->how == JSON && o->error[0]) {
        put_text(s, "error", o->error);
        return;
    }
    if (!o->count) {
        blank.count = &none;
        o = &blank;
    }
    put_text(s, "precision", qn_numbers_name(o->numbers));
    put_int(s, "batch", o->batch);
    put_int(s, "accumulate", o->accumulate);
    put_memory(s, o);
    put_number(s, "step_ms", 1e3 * o->cost.step_s);
    put_number(s, "throughput", o->items_s);
    put_number(s, "throughput_low", o->low_s);
    put_number(s, "throughput_high", o->high_s);
    put_number(s, "mfu", o->cost.mfu);
    put_text(s, "limit", o->error[0] ? "" : qn_offer_limit(o));
    put_number(s, "power_w", o->cost.power_w);
    put_number(s, "usd_per_hour", o->usd_per_hour);
    put_bool(s, "rented", o->rented);
    if (job->items > 0)
        put_job(s, job, o);
    if (s->how != JSON)
        put_text(s, "error", o->error);
}

static QnStatus put_row(Sink *s, const QnJob *job, const QnOffer *o)
{
    begin(s);
    put_text(s, "device", o->card->name);
    put_int(s, "count", o->n_cards);
    put_offer(s, job, o);
    return end(s);
}

/* The last line of JSON: the names of what is recommended. */
static QnStatus put_advice(const QnPlanTable *t)
{
    Sink s = { .how = JSON };
    QnAdvice a = qn_advice_of(&t->job, t->offers, t->n);
    const QnOffer *best = qn_plan_best(t);
    char name[QN_PLAN_NAME];
    begin(&s);
    put_text(&s, "model", t->job.model->name);
    put_text(&s, "task", t->job.train ? "train" : "infer");
    put_text(&s, "stack", qn_tier_name(t->job.tier));
    put_text(&s, "best", best ? qn_plan_name(best, name) : "");
    put_text(&s, "fastest", a.fastest < 0 ? "" : qn_plan_name(&t->offers[a.fastest], name));
    put_text(&s, "cheapest", a.cheapest < 0 ? "" : qn_plan_name(&t->offers[a.cheapest], name));
    return end(&s);
}

QnStatus qn_plan_rows(const QnArgs *a, const QnPlanTable *t)
{
    Sink s = { .how = a->json ? JSON : HEAD };
    if (!a->json && t->n) {
        QN_TRY(put_row(&s, &t->job, &t->offers[0]));
        s.how = CSV;
    }
    for (int i = 0; i < t->n; i++)
        QN_TRY(put_row(&s, &t->job, &t->offers[i]));
    if (t->more_found)
        QN_TRY(put_row(&s, &t->job, &t->more));
    return a->json ? put_advice(t) : QN_OK;
}
