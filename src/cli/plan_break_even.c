/* quern plan break-even: from how many hours of use on buying is cheaper than renting. */
#include "cli/plan.h"
#include "cli/plan_columns.h"
#include "cli/plan_sink.h"

#include "base/chart.h"
#include "base/term.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { START = QN_PLAN_OWN };

static const QnOption options[] = {
    QN_PLAN_OPTIONS_TASK,
    QN_PLAN_OPTIONS_MODEL,
    QN_PLAN_OPTIONS_WORK,
    QN_PLAN_OPTIONS_MONEY,
    QN_PLAN_OPTIONS_GPU,
    QN_PLAN_OPTIONS_OUTPUT,
    [START] = QN_PLAN_TEXT("--start", "YYYY-MM-DD", "the day of purchase; default today"),
};

typedef struct Row {
    const QnCard *card;
    const char *error; /* of the model there; NULL: none */
    int n;
    double kw, power_usd; /* one device; electricity of its hour */
    double purchase, rent;
    double hours;     /* of use until both have cost the same */
    double job_hours; /* 0: not asked */
} Row;

typedef struct BreakEven {
    QnPlanTable table; /* opened where there is a model */
    QnMoney money;
    QnCatalogue catalogue;
    Row *rows;
    int n, priced, unpriced;
    bool named; /* devices by --gpu: none of them is left out */
    time_t start;
} BreakEven;

/* ---- what is asked ---- */

static QnStatus read_start(const QnArgs *a, time_t *start)
{
    const char *text = a->text[START];
    struct tm t = { 0 };
    int used = 0;
    *start = time(NULL);
    if (!text)
        return QN_OK;
    bool read = sscanf(text, "%4d-%2d-%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday, &used) == 3;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    struct tm same = t;
    if (read && !text[used])
        *start = timegm(&same);
    if (!read || text[used] || same.tm_mday != t.tm_mday || same.tm_mon != t.tm_mon)
        return qn_fail(QN_EUSAGE, "--start: expected a day such as 2025-03-31, found '%s'", text);
    return QN_OK;
}

/* Where no model is given, the device draws its limit. */
static void add_row(BreakEven *b, const QnCard *card, int n, const QnOffer *o)
{
    const QnMoney *m = &b->money;
    Row r = { .card = card, .n = n, .kw = card->tdp_w / 1e3 };
    if (o && !o->error[0])
        r.kw = o->cost.power_w / 1e3 / n;
    if (o && o->error[0])
        r.error = o->error;
    else if (o && !o->cost.fits)
        r.error = "the model does not fit";
    if (o && !r.error)
        r.job_hours = o->hours;
    r.power_usd = qn_money_electricity(m, r.kw);
    r.purchase = qn_money_purchase(m, card);
    r.rent = card->cloud_usd;
    r.hours = qn_money_break_even(m, card, r.kw);
    bool known = !isnan(r.hours);
    b->priced += known;
    b->unpriced += !known;
    if (!known && b->named)
        r.error = card->price_usd > 0 ? "its rent is not known: --hourly"
                  : card->cloud_usd > 0
                      ? "its price is not known: --price"
                      : "neither its price nor its rent is known: --price, --hourly";
    if (known || b->named)
        b->rows[b->n++] = r;
}

static QnStatus with_model(const QnArgs *a, BreakEven *b)
{
    QnPlanTable *t = &b->table;
    QN_TRY(qn_plan_table_open(t, a));
    QN_TRY(qn_plan_table_price(t, a));
    for (int i = 0; i < t->n; i++)
        add_row(b, t->offers[i].card, t->offers[i].n_cards, &t->offers[i]);
    return QN_OK;
}

static QnStatus without_model(const QnArgs *a, BreakEven *b)
{
    const char *list = a->text[QN_PLAN_GPU];
    QN_TRY(qn_plan_catalogue(a, &b->catalogue));
    bool all = !list || !strcmp(list, "all");
    for (int i = 0; all && i < b->catalogue.n_cards && i < QN_PLAN_MOST; i++)
        add_row(b, &b->catalogue.cards[i], 1, NULL);
    char *text = all ? NULL : qn_strdup(list);
    QnStatus st = all || text ? QN_OK : QN_ENOMEM;
    for (char *name = text, *next; name && st == QN_OK && b->n < QN_PLAN_MOST; name = next) {
        const QnCard *card;
        int n;
        next = strchr(name, ',');
        if (next)
            *next++ = 0;
        st = qn_plan_device(&b->catalogue, "--gpu", name, &card, &n);
        if (st == QN_OK)
            add_row(b, card, n, NULL);
    }
    qn_free(text);
    return st;
}

static int by_hours(const void *pa, const void *pb)
{
    const Row *a = pa, *b = pb;
    if (!a->error != !b->error)
        return a->error ? 1 : -1;
    if (a->hours != b->hours && !isnan(a->hours) && !isnan(b->hours))
        return a->hours < b->hours ? -1 : 1;
    return strcmp(a->card->name, b->card->name);
}

/* ---- numbers ---- */

static double months_of(const QnMoney *m, double hours)
{
    return hours / (730 * m->utilisation);
}

/* "2027-06-30", or "" where it never comes. */
static void date_of(const BreakEven *b, double hours, char out[16])
{
    double seconds = hours / b->money.utilisation * 3600;
    time_t at = b->start + (time_t)QN_MIN(seconds, 1e10);
    struct tm t;
    out[0] = 0;
    if (seconds < 100 * 365.25 * 86400 && gmtime_r(&at, &t))
        strftime(out, 16, "%Y-%m-%d", &t);
}

static double own_cost(const BreakEven *b, const Row *r, double hours)
{
    return r->n * (r->purchase * (1 - b->money.residual) + r->power_usd * hours);
}

/* ---- for people ---- */

enum { DEVICE, PURCHASE, KEPT, RENT, POWER, HOURS, MONTHS, DATE, JOB, COLUMNS };

static const QnColumn columns[COLUMNS] = {
    [DEVICE] = { "device", 'l', 0 },
    [PURCHASE] = { "purchase", 'r', 4 },
    [KEPT] = { "less resale", 'r', 5 },
    [RENT] = { "rent an hour", 'r', 2 },
    [POWER] = { "electricity", 'r', 6 },
    [HOURS] = { "hours of use", 'r', 0 },
    [MONTHS] = { "months", 'r', 3 },
    [DATE] = { "paid back on", 'l', 1 },
    [JOB] = { "cheaper for this job", 'l', 1 },
};

static const char *verdict(const Row *r)
{
    return r->job_hours > r->hours ? "buy" : "rent";
}

static QnStatus add_cells(QnColumns *c, const BreakEven *b, const Row *r)
{
    char name[QN_PLAN_NAME], date[16];
    QnOffer o = { .card = r->card, .n_cards = r->n };
    QnStr *cell = qn_columns_row(c, r->error ? QN_ROW_FAINT : QN_ROW_PLAIN, r->error);
    if (!cell)
        return QN_ENOMEM;
    qn_str_add(&cell[DEVICE], qn_plan_name(&o, name));
    qn_str_printf(&cell[PURCHASE], "$%.0f", r->n * r->purchase);
    qn_str_printf(&cell[KEPT], "$%.0f", own_cost(b, r, 0));
    qn_str_printf(&cell[RENT], "$%.3g", r->n * r->rent);
    qn_str_printf(&cell[POWER], "$%.3f", r->n * r->power_usd);
    if (!isfinite(r->hours)) {
        qn_str_add(&cell[HOURS], "never");
        return QN_OK;
    }
    qn_str_printf(&cell[HOURS], "%.0f", r->hours);
    qn_str_printf(&cell[MONTHS], "%.1f", months_of(&b->money, r->hours));
    date_of(b, r->hours, date);
    qn_str_add(&cell[DATE], date);
    if (r->job_hours > 0)
        qn_str_printf(&cell[JOB], "%s: %.0f h, $%.2f rented", verdict(r), r->job_hours,
                      r->n * r->rent * r->job_hours);
    return QN_OK;
}

/* What both have cost by the month, until twice the break-even or the device's years. */
static QnStatus print_curve(const BreakEven *b, const Row *r)
{
    enum { POINTS = 61 };
    double months[POINTS], rent[POINTS], own[POINTS];
    double last = months_of(&b->money, r->hours) * 2;
    QnStr text = { 0 };
    last = isfinite(last) ? last : 12 * b->money.years;
    for (int i = 0; i < POINTS; i++) {
        months[i] = last * i / (POINTS - 1);
        double hours = months[i] * 730 * b->money.utilisation;
        rent[i] = r->n * r->rent * hours;
        own[i] = own_cost(b, r, hours);
    }
    QnChartSeries series[] = { { "rent", months, rent, POINTS }, { "own", months, own, POINTS } };
    QnChart chart = {
        .title = "USD so far", .x_label = "months", .series = series, .n_series = QN_COUNT(series)
    };
    QnChartText how = { .width = QN_MIN(qn_term_width(stdout) - 12, 72),
                        .height = 14,
                        .unicode = qn_term_unicode(),
                        .color = qn_term_color(stdout) };
    qn_chart_lines(&text, &chart, &how);
    QnStatus st = text.st;
    if (st == QN_OK)
        printf("\n%s", qn_str_text(&text));
    qn_str_fini(&text);
    return st;
}

static QnStatus print(const BreakEven *b)
{
    QnColumns c = { .column = columns, .n = COLUMNS };
    QnStatus st = QN_OK;
    for (int i = 0; i < b->n && st == QN_OK; i++)
        st = add_cells(&c, b, &b->rows[i]);
    if (st == QN_OK)
        st = qn_columns_print(&c, stdout);
    qn_columns_fini(&c);
    QN_TRY(st);
    if (b->n == 1 && !b->rows[0].error)
        QN_TRY(print_curve(b, &b->rows[0]));
    if (b->unpriced && !b->named)
        printf("%d devices of which rent or price is not known are left out; --hourly and --price "
               "give them\n",
               b->unpriced);
    printf("hours of use = price with computer x (1 - residual) / (rent - electricity); months at "
           "%.0f %% of the hours\n",
           100 * b->money.utilisation);
    qn_plan_print_money(&b->money);
    return QN_OK;
}

/* ---- for programs ---- */

static QnStatus put_row(QnSink *s, const BreakEven *b, const Row *r)
{
    char date[16] = "";
    bool known = !isnan(r->hours);
    if (known)
        date_of(b, r->hours, date);
    qn_sink_begin(s);
    qn_sink_text(s, "device", r->card->name);
    qn_sink_int(s, "count", r->n);
    qn_sink_known(s, "purchase_usd", r->n * r->purchase);
    qn_sink_number(s, "own_usd", r->purchase > 0 ? own_cost(b, r, 0) : NAN);
    qn_sink_known(s, "rent_usd_per_hour", r->n * r->rent);
    qn_sink_number(s, "electricity_usd_per_hour", r->n * r->power_usd);
    qn_sink_number(s, "break_even_hours", r->hours);
    qn_sink_number(s, "break_even_months", months_of(&b->money, r->hours));
    qn_sink_text(s, "break_even_date", date);
    if (b->table.job.items > 0) {
        qn_sink_number(s, "job_hours", r->job_hours > 0 ? r->job_hours : NAN);
        qn_sink_text(s, "cheaper", known && r->job_hours > 0 ? verdict(r) : "");
    }
    qn_sink_text(s, "error", r->error ? r->error : "");
    return qn_sink_end(s);
}

static QnStatus print_rows(const QnArgs *a, const BreakEven *b)
{
    QnSink s = { .how = a->json ? QN_SINK_JSON : QN_SINK_HEAD };
    if (!a->json)
        QN_TRY(put_row(&s, b, &b->rows[0]));
    s.how = a->json ? QN_SINK_JSON : QN_SINK_CSV;
    for (int i = 0; i < b->n; i++)
        QN_TRY(put_row(&s, b, &b->rows[i]));
    return QN_OK;
}

static QnStatus answer(const QnArgs *a, BreakEven *b)
{
    QN_TRY(qn_plan_money(a, &b->money));
    QN_TRY(read_start(a, &b->start));
    b->named = a->text[QN_PLAN_GPU] && strcmp(a->text[QN_PLAN_GPU], "all") != 0;
    b->rows = qn_alloc_array(QN_PLAN_MOST, sizeof *b->rows);
    if (!b->rows)
        return QN_ENOMEM;
    QN_TRY(a->n_positional ? with_model(a, b) : without_model(a, b));
    if (!b->priced)
        return qn_fail(QN_EUSAGE,
                       "of none of these devices both rent and price are known; --hourly "
                       "and --price give them");
    qsort(b->rows, (size_t)b->n, sizeof *b->rows, by_hours);
    return a->json || a->text[QN_PLAN_CSV] ? print_rows(a, b) : print(b);
}

static int run(QnArgs *a)
{
    BreakEven b = { 0 };
    QnStatus st = answer(a, &b);
    qn_free(b.rows);
    qn_plan_table_close(&b.table);
    qn_catalogue_fini(&b.catalogue);
    return st == QN_OK ? QN_EXIT_OK : qn_cli_fail_model(a, NULL);
}

const QnCommand qn_cmd_plan_break_even = {
    .name = "plan break-even",
    .summary = "Rent or buy: from how many hours of use on buying is cheaper",
    .usage = "[RECIPE|MODEL.onnx|NAME] [options]",
    .examples = "  quern plan break-even --gpu \"RTX 4090\" --price 1599 --hourly 0.69 --host 1\n"
                "  quern plan break-even resnet50 --samples 1.28M --epochs 90\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .max_positional = 1,
    .run = run,
};
