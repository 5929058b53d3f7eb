/* quern plan edge: one example at a time on small devices. */
#include "cli/plan.h"
#include "cli/plan_columns.h"
#include "cli/plan_sink.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LATENCY = QN_PLAN_OWN, FPS };
enum { SMALL_W = 75 }; /* what a slot gives without a cable */

static const QnOption options[] = {
    QN_PLAN_OPTIONS_MODEL,
    QN_PLAN_OPTIONS_OUTPUT,
    [QN_PLAN_GPU] = QN_PLAN_TEXT("--gpu", "NAME,…",
                                 "devices; default: those of class edge, and others up to --power"),
    [QN_PLAN_POWER] = QN_PLAN_TEXT("--power", "W",
                                   "the most that may be drawn at the plug; default: what "
                                   "has a data sheet of at most 75 W"),
    [QN_PLAN_PRICE] = QN_PLAN_TEXT("--price", "[NAME=]USD,…", "price of a device"),
    [QN_PLAN_BUDGET] = QN_PLAN_TEXT("--budget", "USD", "the price at most"),
    [LATENCY] = QN_PLAN_TEXT("--latency", "MS", "the milliseconds at most that a frame may take"),
    [FPS] = QN_PLAN_TEXT("--fps", "N", "the frames a second that are needed"),
};

typedef struct Edge {
    QnPlanTable table;
    double latency_ms, fps; /* needed; 0: not said */
    int best;               /* of the offers; -1: none does */
} Edge;

/* A frame is an example; where answers are generated, a token. */
static double frames_of(const QnOffer *o)
{
    return o->token_s > 0 ? o->items_s : (double)o->batch / o->cost.step_s;
}

static double latency_of(const QnOffer *o)
{
    return o->token_s > 0 ? o->token_s : o->cost.step_s;
}

static double low_ms(const QnOffer *o)
{
    return 1e3 * latency_of(o) * o->cost.low_s / o->cost.step_s;
}

static double high_ms(const QnOffer *o)
{
    return 1e3 * latency_of(o) * o->cost.high_s / o->cost.step_s;
}

/* 0: the data sheet has no power. */
static double frames_a_joule(const QnOffer *o)
{
    return o->cost.power_w > 0 ? frames_of(o) / o->cost.power_w : 0;
}

static bool can(const QnOffer *o)
{
    return !o->error[0] && o->cost.fits;
}

static bool is_frugal(const QnJob *job, const QnOffer *o)
{
    return !(job->power_w > 0) || (o->cost.power_w > 0 && o->cost.power_w <= job->power_w);
}

static bool is_cheap(const QnJob *job, const QnOffer *o)
{
    return !(job->budget_usd > 0) ||
           (o->card->price_usd > 0 && o->card->price_usd <= job->budget_usd);
}

static bool is_fast(const Edge *e, const QnOffer *o)
{
    return !(e->latency_ms > 0 && 1e3 * latency_of(o) > e->latency_ms);
}

static bool keeps_up(const Edge *e, const QnOffer *o)
{
    return !(e->fps > 0 && frames_of(o) < e->fps);
}

static bool does(const Edge *e, const QnOffer *o)
{
    const QnJob *job = &e->table.job;
    return can(o) && is_fast(e, o) && keeps_up(e, o) && is_frugal(job, o) && is_cheap(job, o);
}

/* The cheapest that does where something is asked, else the one with most frames a joule. */
static void choose(Edge *e)
{
    const QnOffer *all = e->table.offers;
    bool by_price = e->latency_ms > 0 || e->fps > 0;
    e->best = -1;
    for (int i = 0; i < e->table.n; i++) {
        if (!does(e, &all[i]))
            continue;
        const QnOffer *best = e->best < 0 ? NULL : &all[e->best];
        double price = all[i].card->price_usd > 0 ? all[i].card->price_usd : HUGE_VAL;
        double least = best && best->card->price_usd > 0 ? best->card->price_usd : HUGE_VAL;
        if (!best || (by_price && price != least ? price < least
                                                 : frames_a_joule(&all[i]) > frames_a_joule(best)))
            e->best = i;
    }
}

static void sort(Edge *e)
{
    QnOffer *all = e->table.offers;
    for (int i = 1; i < e->table.n; i++) {
        QnOffer o = all[i];
        int k = i;
        for (; k > 0; k--) {
            const QnOffer *was = &all[k - 1];
            bool before = can(&o) != can(was) ? can(&o)
                          : can(&o)           ? frames_a_joule(&o) > frames_a_joule(was)
                                              : strcmp(o.card->name, was->card->name) < 0;
            if (!before)
                break;
            all[k] = all[k - 1];
        }
        all[k] = o;
    }
}

static QnStatus price(const QnArgs *a, Edge *e)
{
    QnPlanTable *t = &e->table;
    double most = t->job.power_w > 0 ? t->job.power_w : SMALL_W;
    if (a->text[QN_PLAN_GPU])
        return qn_plan_table_price(t, a);
    for (int i = 0; i < t->catalogue.n_cards; i++) {
        const QnCard *card = &t->catalogue.cards[i];
        bool small = card->tdp_w > 0 && card->tdp_w <= most;
        if (strcmp(card->kind, "edge") != 0 && !small)
            continue;
        QN_TRY(qn_offer_price(t->counts, &t->job, card, 1, &t->coefs, &t->offers[t->n]));
        t->n++;
    }
    return QN_OK;
}

/* ---- printing ---- */

enum { DEVICE, NUMBERS, MEMORY, TIME, RANGE, FRAMES, WATTS, PER_JOULE, PRICE, LIMIT, COLUMNS };

static const QnColumn columns[COLUMNS] = {
    [DEVICE] = { "device", 'l', 0 },       [NUMBERS] = { "precision", 'l', 5 },
    [MEMORY] = { "memory", 'l', 4 },       [TIME] = { "latency", 'r', 0 },
    [RANGE] = { "80 % interval", 'l', 6 }, [FRAMES] = { "frames/s", 'r', 0 },
    [WATTS] = { "watts", 'r', 1 },         [PER_JOULE] = { "frames/J", 'r', 2 },
    [PRICE] = { "price", 'r', 3 },         [LIMIT] = { "limited by", 'l', 7 },
};

static QnStatus add_row(QnColumns *c, const Edge *e, const QnOffer *o, QnRowStyle style)
{
    const QnJob *job = &e->table.job;
    double part = o->cost.memory_bytes / qn_offer_room(o);
    QnStr *cell = qn_columns_row(c, style, o->error[0] ? o->error : NULL);
    char rate[QN_STR_NUMBER], high[QN_STR_NUMBER];
    if (!cell)
        return QN_ENOMEM;
    qn_str_add(&cell[DEVICE], o->card->name);
    if (o->error[0])
        return QN_OK;
    qn_str_add(&cell[NUMBERS], qn_numbers_name(o->numbers));
    if (!o->cost.fits) {
        qn_str_printf(&cell[MEMORY], "no: %.3g times what it has, mostly %s", part, o->term);
        c->row[c->rows - 1].last = MEMORY;
        return QN_OK;
    }
    qn_str_printf(&cell[MEMORY], "%.0f %%", 100 * part);
    qn_str_printf(&cell[TIME], "%s ms", qn_plan_amount(1e3 * latency_of(o), rate));
    qn_str_add(&cell[TIME], is_fast(e, o) ? "" : " !");
    qn_str_printf(&cell[RANGE], "%s to %s", qn_plan_amount(low_ms(o), rate),
                  qn_plan_amount(high_ms(o), high));
    qn_str_add(&cell[FRAMES], qn_str_si(rate, frames_of(o)));
    qn_str_add(&cell[FRAMES], keeps_up(e, o) ? "" : " !");
    qn_str_printf(&cell[WATTS], "%.3g", o->cost.power_w);
    qn_str_add(&cell[WATTS], is_frugal(job, o) ? "" : " !");
    qn_str_printf(&cell[PER_JOULE], "%.3g", frames_a_joule(o));
    if (o->card->price_usd > 0)
        qn_str_printf(&cell[PRICE], "$%.0f%s", o->card->price_usd, is_cheap(job, o) ? "" : " !");
    qn_str_add(&cell[LIMIT], qn_offer_limit(o));
    return QN_OK;
}

/* What is asked, and nothing does it: how near the best comes. */
static QnStatus refuse(const Edge *e)
{
    const QnOffer *all = e->table.offers, *fast = NULL;
    char time[QN_STR_NUMBER];
    for (int i = 0; i < e->table.n; i++)
        if (can(&all[i]) && (!fast || latency_of(&all[i]) < latency_of(fast)))
            fast = &all[i];
    if (!fast)
        return qn_fail(QN_EUSAGE,
                       "%s fits into none of these devices; --precision int8, a smaller "
                       "--image or another --power may help",
                       e->table.job.model->name);
    return qn_fail(
        QN_EUSAGE,
        "none of these devices is within all limits (! in the table); the fastest is %s: %s ms, "
        "%.3g frames a second, %.3g W",
        fast->card->name, qn_plan_amount(1e3 * latency_of(fast), time), frames_of(fast),
        fast->cost.power_w);
}

static QnStatus print(const Edge *e)
{
    const QnPlanTable *t = &e->table;
    QnColumns c = { .column = columns, .n = COLUMNS, .least = 20 };
    QnStatus st = QN_OK;
    printf("%s, inference under %s, batch %lld%s\n", t->job.model->name, qn_tier_name(t->job.tier),
           (long long)t->job.batch, t->job.generate ? "; a frame is a token" : "");
    for (int i = 0; i < t->n && st == QN_OK; i++)
        st = add_row(&c, e, &t->offers[i],
                     i == e->best              ? QN_ROW_BEST
                     : !does(e, &t->offers[i]) ? QN_ROW_FAINT
                                               : QN_ROW_PLAIN);
    if (st == QN_OK)
        st = qn_columns_print(&c, stdout);
    qn_columns_fini(&c);
    QN_TRY(st);
    if (e->best < 0)
        return refuse(e);
    const QnOffer *o = &t->offers[e->best];
    char time[QN_STR_NUMBER], low[QN_STR_NUMBER], high[QN_STR_NUMBER];
    printf("\ntake %s: %s ms (%s to %s) in %s, %.3g W, %.3g frames a joule: %s\n", o->card->name,
           qn_plan_amount(1e3 * latency_of(o), time), qn_plan_amount(low_ms(o), low),
           qn_plan_amount(high_ms(o), high), qn_numbers_name(o->numbers), o->cost.power_w,
           frames_a_joule(o),
           e->latency_ms > 0 || e->fps > 0 ? "the cheapest that does it"
                                           : "the most work for its energy");
    return QN_OK;
}

static QnStatus put_row(QnSink *s, const Edge *e, const QnOffer *o)
{
    qn_sink_begin(s);
    qn_sink_text(s, "device", o->card->name);
    qn_sink_text(s, "precision", qn_numbers_name(o->numbers));
    qn_sink_bool(s, "fits", can(o));
    qn_sink_number(s, "memory_bytes", o->cost.memory_bytes);
    qn_sink_number(s, "latency_ms", can(o) ? 1e3 * latency_of(o) : NAN);
    qn_sink_number(s, "latency_low_ms", can(o) ? low_ms(o) : NAN);
    qn_sink_number(s, "latency_high_ms", can(o) ? high_ms(o) : NAN);
    qn_sink_number(s, "frames_per_second", can(o) ? frames_of(o) : NAN);
    qn_sink_number(s, "power_w", can(o) ? o->cost.power_w : NAN);
    qn_sink_number(s, "frames_per_joule", can(o) ? frames_a_joule(o) : NAN);
    qn_sink_number(s, "price_usd", o->card->price_usd > 0 ? o->card->price_usd : NAN);
    qn_sink_bool(s, "within_limits", does(e, o));
    qn_sink_text(s, "error", o->error);
    return qn_sink_end(s);
}

static QnStatus print_rows(const QnArgs *a, const Edge *e)
{
    QnSink s = { .how = a->json ? QN_SINK_JSON : QN_SINK_HEAD };
    if (!a->json && e->table.n)
        QN_TRY(put_row(&s, e, &e->table.offers[0]));
    s.how = a->json ? QN_SINK_JSON : QN_SINK_CSV;
    for (int i = 0; i < e->table.n; i++)
        QN_TRY(put_row(&s, e, &e->table.offers[i]));
    return e->best < 0 ? refuse(e) : QN_OK;
}

static QnStatus answer(QnArgs *a, Edge *e)
{
    a->text[QN_PLAN_TASK] = "infer";
    if (!a->text[QN_PLAN_BATCH])
        a->text[QN_PLAN_BATCH] = "1";
    QN_TRY(qn_plan_table_open(&e->table, a));
    QN_TRY(qn_plan_number(a, LATENCY, 0, &e->latency_ms));
    QN_TRY(qn_plan_number(a, FPS, 0, &e->fps));
    QN_TRY(price(a, e));
    sort(e);
    choose(e);
    return a->json || a->text[QN_PLAN_CSV] ? print_rows(a, e) : print(e);
}

static int run(QnArgs *a)
{
    Edge e = { 0 };
    QnStatus st = answer(a, &e);
    qn_plan_table_close(&e.table);
    return st == QN_OK ? QN_EXIT_OK : qn_cli_fail_model(a, NULL);
}

const QnCommand qn_cmd_plan_edge = {
    .name = "plan edge",
    .summary = "Latency, watts and frames a joule of inference on small devices",
    .usage = "MODEL.onnx|NAME|RECIPE [options]",
    .examples = "  quern plan edge mobilenet_v2 --fps 30\n"
                "  quern plan edge model.onnx --latency 20 --budget 500 --stack tensorrt\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
