/* quern plan upgrade: from the device that one has to another. */
#include "cli/plan.h"
#include "cli/plan_columns.h"
#include "cli/plan_sink.h"

#include "plan/upgrade.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FROM = QN_PLAN_OWN, RESALE };

static const QnOption options[] = {
    QN_PLAN_OPTIONS_TASK,
    QN_PLAN_OPTIONS_MODEL,
    QN_PLAN_OPTIONS_WORK,
    QN_PLAN_OPTIONS_MONEY,
    QN_PLAN_OPTIONS_GPU,
    QN_PLAN_OPTIONS_OUTPUT,
    [QN_PLAN_BUDGET] = QN_PLAN_TEXT("--budget", "USD", "the net price at most"),
    [QN_PLAN_POWER] = QN_PLAN_TEXT("--power", "W", "that the new device may draw"),
    [FROM] = QN_PLAN_TEXT("--from", "NAME[:N]", "the device that is there"),
    [RESALE] =
        QN_PLAN_TEXT("--resale", "USD",
                     "what that is sold for; default: of desktop devices 84 % of the price a year "
                     "as a guess, of others --residual after --years"),
};

typedef struct Candidate {
    const QnOffer *offer;
    QnUpgrade u;
    bool within; /* budget and power */
} Candidate;

typedef struct Upgrade {
    QnPlanTable table;
    QnOffer from;
    bool guessed;               /* the resale */
    double resale, usd_an_item; /* renting the work of an item */
    Candidate *list;
    int n;
} Upgrade;

static double years_since(double year)
{
    time_t now = time(NULL);
    struct tm t;
    return gmtime_r(&now, &t) ? QN_MAX(0, 1900 + t.tm_year + t.tm_yday / 365.0 - year) : 0;
}

static QnStatus price_from(const QnArgs *a, Upgrade *u)
{
    QnPlanTable *t = &u->table;
    const QnCard *card;
    int n;
    if (!a->text[FROM])
        return qn_fail(QN_EUSAGE, "say which device is there: --from \"RTX 3060\"");
    QN_TRY(qn_plan_device(&t->catalogue, "--from", a->text[FROM], &card, &n));
    QN_TRY(qn_offer_price(t->counts, &t->job, card, n, &t->coefs, &u->from));
    QnMoney money = t->job.money;
    if (a->text[QN_PLAN_RESIDUAL])
        money.resale = pow(money.residual, 1 / money.years);
    u->resale = n * qn_money_resale(&money, card, years_since(card->year));
    u->guessed = !a->text[RESALE];
    return qn_plan_number(a, RESALE, u->resale, &u->resale);
}

/* Soonest paid first, then by gain. */
static int by_hours(const void *pa, const void *pb)
{
    const Candidate *a = pa, *b = pb;
    double x = isnan(a->u.hours) ? 1e301 : QN_MIN(a->u.hours, 1e300),
           y = isnan(b->u.hours) ? 1e301 : QN_MIN(b->u.hours, 1e300);
    if (a->within != b->within)
        return a->within ? -1 : 1;
    if (x != y)
        return x < y ? -1 : 1;
    if (a->offer->items_s != b->offer->items_s)
        return a->offer->items_s > b->offer->items_s ? -1 : 1;
    return strcmp(a->offer->card->name, b->offer->card->name);
}

/* Those that are faster by a twentieth at least, or fit where the old one does not. */
static QnStatus find_candidates(Upgrade *u)
{
    const QnPlanTable *t = &u->table;
    u->list = qn_alloc_array((size_t)t->n + 1, sizeof *u->list);
    if (!u->list)
        return QN_ENOMEM;
    u->usd_an_item = qn_upgrade_rent(t->offers, t->n);
    for (int i = 0; i < t->n; i++) {
        const QnOffer *o = &t->offers[i];
        if (o->error[0] || !o->cost.fits ||
            (o->card == u->from.card && o->n_cards == u->from.n_cards))
            continue;
        Candidate c = { .offer = o };
        c.u = qn_upgrade_of(&t->job.money, &u->from, o, u->usd_an_item, u->resale);
        c.u.price *= o->n_cards;
        c.within = !(t->job.power_w > 0 && o->cost.power_w > t->job.power_w) &&
                   !(t->job.budget_usd > 0 && !(c.u.price > 0 && c.u.net <= t->job.budget_usd));
        if (c.u.gain >= 1.05)
            u->list[u->n++] = c;
    }
    qsort(u->list, (size_t)u->n, sizeof *u->list, by_hours);
    return QN_OK;
}

/* ---- printing ---- */

/* Months of a device that works for `utilisation` of its hours. */
static double months(const QnMoney *m, double hours)
{
    return hours / (730 * m->utilisation);
}

static void put_time(QnStr *cell, const QnMoney *m, double hours)
{
    if (isnan(hours))
        qn_str_add(cell, "?");
    else if (hours <= 0)
        qn_str_add(cell, "at once");
    else if (!isfinite(hours) || months(m, hours) > 600)
        qn_str_add(cell, "never");
    else if (months(m, hours) < 24)
        qn_str_printf(cell, "%.1f months", months(m, hours));
    else
        qn_str_printf(cell, "%.1f years", months(m, hours) / 12);
}

static void put_usd(QnStr *cell, double usd, bool known)
{
    if (known)
        qn_str_printf(cell, "$%.0f", usd);
    else
        qn_str_add(cell, "?");
}

enum { DEVICE, NUMBERS, BATCH, SPEED, GAIN, PRICE, NET, WATTS, PAID, ENERGY, COLUMNS };

static const QnColumn columns[COLUMNS] = {
    [DEVICE] = { "device", 'l', 0 },  [NUMBERS] = { "precision", 'l', 7 },
    [BATCH] = { "batch", 'r', 6 },    [SPEED] = { "speed", 'r', 2 },
    [GAIN] = { "gain", 'r', 0 },      [PRICE] = { "price", 'r', 5 },
    [NET] = { "net", 'r', 1 },        [WATTS] = { "watts", 'r', 4 },
    [PAID] = { "paid back", 'r', 0 }, [ENERGY] = { "by electricity", 'r', 3 },
};

static QnStatus add_row(QnColumns *c, const QnMoney *m, const Candidate *k, QnRowStyle style)
{
    char name[QN_PLAN_NAME], rate[QN_STR_NUMBER];
    const QnOffer *o = k->offer;
    QnStr *cell = qn_columns_row(c, style, NULL);
    if (!cell)
        return QN_ENOMEM;
    qn_str_add(&cell[DEVICE], qn_plan_name(o, name));
    qn_str_add(&cell[NUMBERS], qn_numbers_name(o->numbers));
    qn_str_printf(&cell[BATCH], "%lld", (long long)o->batch);
    qn_str_add(&cell[SPEED], qn_str_si(rate, o->items_s));
    if (isfinite(k->u.gain))
        qn_str_printf(&cell[GAIN], "%.2fx", k->u.gain);
    else
        qn_str_add(&cell[GAIN], "fits");
    put_usd(&cell[PRICE], k->u.price, k->u.price > 0);
    put_usd(&cell[NET], k->u.net, k->u.price > 0);
    qn_str_printf(&cell[WATTS], "%.0f", o->cost.power_w);
    put_time(&cell[PAID], m, k->u.hours);
    put_time(&cell[ENERGY], m, k->u.hours_electricity);
    return QN_OK;
}

static void print_head(const Upgrade *u)
{
    const QnOffer *o = &u->from;
    const QnJob *job = &u->table.job;
    char name[QN_PLAN_NAME], rate[QN_STR_NUMBER];
    printf("%s, %s under %s; from %s: ", job->model->name, job->train ? "training" : "inference",
           qn_tier_name(job->tier), qn_plan_name(o, name));
    if (o->error[0])
        printf("cannot do it (%s)", o->error);
    else if (!o->cost.fits)
        printf("does not fit, it takes %.3g times its memory, most of it for %s",
               o->cost.memory_bytes / qn_offer_room(o), o->term);
    else
        printf("%s a second at batch %lld in %s, %.0f W", qn_str_si(rate, o->items_s),
               (long long)o->batch, qn_numbers_name(o->numbers), o->cost.power_w);
    printf("; sold for %.0f USD%s\n", u->resale, u->guessed ? " as a guess: --resale USD" : "");
}

static void print_best(const Upgrade *u)
{
    const Candidate *best = u->n && u->list[0].within ? &u->list[0] : NULL;
    const QnMoney *m = &u->table.job.money;
    char name[QN_PLAN_NAME], was[QN_STR_NUMBER], is[QN_STR_NUMBER];
    QnStr time = { 0 };
    if (!best) {
        if (!u->n)
            printf("\nnothing here is faster\n");
        return;
    }
    put_time(&time, m, best->u.hours);
    printf("\ntake %s: ", qn_plan_name(best->offer, name));
    if (isfinite(best->u.gain))
        printf("%.2f times as fast", best->u.gain);
    else
        printf("it fits");
    if (best->u.price > 0)
        printf(", %.0f USD net, paid back in %s of use at %.0f %%", best->u.net, qn_str_text(&time),
               100 * m->utilisation);
    if (u->table.job.items > 0 && u->from.hours > 0 && isfinite(best->u.gain))
        printf("; the job takes %s instead of %s", qn_plan_span(best->offer->hours, is),
               qn_plan_span(u->from.hours, was));
    printf("\n");
    qn_str_fini(&time);
}

/* Faster ones there are, but none within the limits: the least that each would have to be. */
static QnStatus refuse(const Upgrade *u)
{
    const QnJob *job = &u->table.job;
    const Candidate *cheap = NULL, *frugal = NULL;
    QnStr text = { 0 };
    for (int i = 0; i < u->n; i++) {
        const Candidate *c = &u->list[i];
        bool money = !(job->budget_usd > 0) || (c->u.price > 0 && c->u.net <= job->budget_usd);
        bool power = !(job->power_w > 0) || c->offer->cost.power_w <= job->power_w;
        if (power && !money && c->u.price > 0 && (!cheap || c->u.net < cheap->u.net))
            cheap = c;
        if (money && !power && (!frugal || c->offer->cost.power_w < frugal->offer->cost.power_w))
            frugal = c;
    }
    if (cheap)
        qn_str_printf(&text, "; --budget %.0f would do (%s)", ceil(cheap->u.net),
                      cheap->offer->card->name);
    if (frugal)
        qn_str_printf(&text, "; --power %.0f would do (%s)", ceil(frugal->offer->cost.power_w),
                      frugal->offer->card->name);
    QnStatus st = text.st == QN_OK
                      ? qn_fail(QN_EUSAGE, "nothing that is faster is within the limits%s",
                                text.n ? qn_str_text(&text) : "; both would have to move")
                      : text.st;
    qn_str_fini(&text);
    return st;
}

static QnStatus print(const Upgrade *u)
{
    QnColumns c = { .column = columns, .n = COLUMNS, .least = 20 };
    const QnMoney *m = &u->table.job.money;
    QnStatus st = QN_OK;
    print_head(u);
    for (int i = 0; i < u->n && st == QN_OK; i++)
        st = add_row(&c, m, &u->list[i],
                     !u->list[i].within ? QN_ROW_FAINT
                     : i                ? QN_ROW_PLAIN
                                        : QN_ROW_BEST);
    if (st == QN_OK && u->n)
        st = qn_columns_print(&c, stdout);
    qn_columns_fini(&c);
    QN_TRY(st);
    print_best(u);
    printf(
        "paid back: when the work that it does more, at what renting it costs (%.3g USD a "
        "million), "
        "less its electricity, has paid the net price; by electricity: when what it saves for the "
        "same work has\n",
        1e6 * u->usd_an_item);
    qn_plan_print_money(m);
    return QN_OK;
}

static QnStatus put_row(QnSink *s, const QnMoney *m, const Candidate *k)
{
    qn_sink_begin(s);
    qn_sink_text(s, "device", k->offer->card->name);
    qn_sink_int(s, "count", k->offer->n_cards);
    qn_sink_text(s, "precision", qn_numbers_name(k->offer->numbers));
    qn_sink_int(s, "batch", k->offer->batch);
    qn_sink_number(s, "throughput", k->offer->items_s);
    qn_sink_number(s, "gain", k->u.gain);
    qn_sink_number(s, "price_usd", k->u.price > 0 ? k->u.price : NAN);
    qn_sink_number(s, "net_usd", k->u.price > 0 ? k->u.net : NAN);
    qn_sink_number(s, "power_w", k->offer->cost.power_w);
    qn_sink_number(s, "payback_hours", k->u.hours);
    qn_sink_number(s, "payback_months", months(m, k->u.hours));
    qn_sink_number(s, "payback_hours_electricity", k->u.hours_electricity);
    qn_sink_bool(s, "within_limits", k->within);
    return qn_sink_end(s);
}

static QnStatus print_rows(const QnArgs *a, const Upgrade *u)
{
    QnSink s = { .how = a->json ? QN_SINK_JSON : QN_SINK_HEAD };
    const QnMoney *m = &u->table.job.money;
    if (!a->json && u->n)
        QN_TRY(put_row(&s, m, &u->list[0]));
    s.how = a->json ? QN_SINK_JSON : QN_SINK_CSV;
    for (int i = 0; i < u->n; i++)
        QN_TRY(put_row(&s, m, &u->list[i]));
    return QN_OK;
}

static int run(QnArgs *a)
{
    Upgrade u = { 0 };
    QnStatus st = qn_plan_table_open(&u.table, a);
    if (st == QN_OK)
        st = price_from(a, &u);
    if (st == QN_OK)
        st = qn_plan_table_price(&u.table, a);
    if (st == QN_OK)
        st = find_candidates(&u);
    if (st == QN_OK)
        st = a->json || a->text[QN_PLAN_CSV] ? print_rows(a, &u) : print(&u);
    if (st == QN_OK && u.n && !u.list[0].within)
        st = refuse(&u);
    qn_free(u.list);
    qn_plan_table_close(&u.table);
    return st == QN_OK ? QN_EXIT_OK : qn_cli_fail_model(a, NULL);
}

const QnCommand qn_cmd_plan_upgrade = {
    .name = "plan upgrade",
    .summary = "What another device would bring, cost, and when it has paid for itself",
    .usage = "RECIPE|MODEL.onnx|NAME --from DEVICE [options]",
    .examples = "  quern plan upgrade resnet50 --from \"RTX 3060\"\n"
                "  quern plan upgrade my.yaml --from \"GTX 1080 Ti\" --gpu \"RTX 4090,RTX 5090\" "
                "--resale 150\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
