#include "cli/plan_html.h"

#include "cli/plan_charts.h"

#include "base/file.h"
#include "base/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- style ---- */

static const char style[] =
    ":root{--bg:#fcfcfb;--card:#fff;--ink:#1c2024;--soft:#60646c;--line:#e3e4e8;--grid:#eceef1;"
    "--blue:#0a6ebd;--orange:#d9622b;--green:#0a8a6a;--pink:#b8568f;--gold:#c98a00;--sky:#3fa3d8;"
    "--red:#c62f2f;--room:#edeff2;--shade:#0001}\n"
    "@media (prefers-color-scheme:dark){:root{--bg:#121417;--card:#1a1d21;--ink:#e8eaed;"
    "--soft:#a0a6b0;--line:#30343b;--grid:#272b31;--blue:#5aaeec;--orange:#f08a55;--green:#3cc29b;"
    "--pink:#e08dbd;--gold:#e9b949;--sky:#8ccdf2;--red:#f06a6a;--room:#2b3037;--shade:#0006}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);"
    "font:16px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Noto Sans\",sans-serif}\n"
    "main{max-width:1080px;margin:0 auto;padding:32px 20px 64px}"
    "h1{font-size:30px;line-height:1.2;margin:0;letter-spacing:-.01em}"
    "h2{font-size:20px;margin:0 0 4px}p{margin:0 0 12px}.sub,.note{color:var(--soft)}"
    ".sub{margin:6px 0 24px}.note{font-size:14px}\n"
    "section{background:var(--card);border:1px solid var(--line);border-radius:12px;"
    "padding:22px 24px;margin:0 0 20px;box-shadow:0 1px 2px var(--shade)}"
    ".take{border-left:5px solid var(--green)}.take "
    "h2{font-size:24px}.none{border-color:var(--red)}\n"
    "dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:14px 20px;"
    "margin:16px 0 0}dt{color:var(--soft);font-size:13px}dd{margin:0;font-size:19px;"
    "font-weight:600;font-variant-numeric:tabular-nums}dd small{font-weight:400;font-size:13px;"
    "color:var(--soft);display:block}\n"
    "svg{display:block;width:100%;height:auto;overflow:visible;font-size:13px}"
    "svg text{fill:var(--ink)}svg .tick,svg .label,svg .faint{fill:var(--soft)}"
    "svg .tick{font-size:12px}svg .name{font-size:12px;font-weight:600;paint-order:stroke;"
    "stroke:var(--card);stroke-width:3px;stroke-linejoin:round}"
    "svg .faint,svg .op-name{font-weight:400}svg .row{font-weight:500}"
    "svg .value{fill:var(--soft);font-size:12px}svg .bad{fill:var(--red)}"
    ".grid{stroke:var(--grid);fill:none}.axis{stroke:var(--soft);fill:none}"
    ".leader{stroke:var(--soft);stroke-width:.8;fill:none}\n"
    ".front{fill:none;stroke:var(--blue);stroke-width:2;stroke-linejoin:round;opacity:.55}"
    ".dot{fill:var(--blue);stroke:var(--card);stroke-width:1.5}.beaten{fill:var(--soft);opacity:.5}"
    ".best{fill:var(--green)}.point:hover circle{stroke:var(--ink);stroke-width:2;opacity:1}\n"
    ".roof{fill:none;stroke:var(--ink);stroke-width:2.2}.plain{stroke:var(--soft);"
    "stroke-width:1.4;stroke-dasharray:6 4}.op{stroke:var(--card);opacity:.8}"
    ".k0{fill:var(--blue)}.k1{fill:var(--orange)}.k2{fill:var(--gold)}.k3{fill:var(--green)}"
    ".k4{fill:var(--sky)}.k5{fill:var(--pink)}.k6{fill:var(--red)}.k7{fill:var(--ink)}"
    ".k8{fill:var(--soft)}\n"
    ".limit0,.term0{fill:var(--blue)}.limit1,.term3{fill:var(--orange)}.limit2{fill:var(--gold)}"
    ".limit3,.term1{fill:var(--pink)}.term2{fill:var(--green)}.term4{fill:var(--soft)}.term5{fill:"
    "var(--gold)}"
    ".room{fill:var(--room)}.bar{stroke:var(--card);stroke-width:.6}.bar:hover{opacity:.75}\n"
    ".legend{display:flex;flex-wrap:wrap;gap:4px 18px;font-size:13px;color:var(--soft);"
    "margin:0 0 10px}.legend svg{width:11px;height:11px;display:inline;vertical-align:-1px;"
    "margin-right:6px}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:14px;"
    "font-variant-numeric:tabular-nums}th,td{padding:5px 7px;text-align:right;white-space:nowrap;"
    "border-bottom:1px solid var(--line)}th{color:var(--soft);font-weight:500;font-size:13px}"
    "th:first-child,td:first-child{text-align:left}tr:last-child td{border-bottom:0}"
    "tr.best td{font-weight:600}tr.no td{color:var(--soft)}td.text{text-align:left;"
    "white-space:normal}.bad{color:var(--red)}.speed{position:relative;min-width:110px}"
    ".speed "
    "i{position:absolute;left:0;bottom:0;height:3px;background:var(--blue);border-radius:2px}"
    "ul{margin:0;padding-left:20px}li{margin:0 0 4px}\n"
    "@media print{section{break-inside:avoid;box-shadow:none}}\n";

/* ---- small things ---- */

static void add_row_cell(QnStr *out, const char *text)
{
    qn_str_add(out, "<td>");
    qn_svg_escape(out, text);
    qn_str_add(out, "</td>");
}

static void add_fact(QnStr *out, const char *name, const char *value, const char *small)
{
    qn_str_add(out, "<div><dt>");
    qn_svg_escape(out, name);
    qn_str_add(out, "</dt><dd>");
    qn_svg_escape(out, value);
    if (small) {
        qn_str_add(out, "<small>");
        qn_svg_escape(out, small);
        qn_str_add(out, "</small>");
    }
    qn_str_add(out, "</dd></div>\n");
}

static void add_key(QnStr *out, const char *class, const char *text)
{
    qn_str_printf(out,
                  "<span><svg viewBox=\"0 0 11 11\" aria-hidden=\"true\"><rect width=\"11\" "
                  "height=\"11\" rx=\"2\" class=\"%s\"/></svg>",
                  class);
    qn_svg_escape(out, text);
    qn_str_add(out, "</span>\n");
}

static const char *unit_of(const QnPlanTable *t)
{
    return t->job.model->family->image ? "images" : "tokens";
}

static const char *span(char out[QN_STR_NUMBER], double seconds)
{
    return qn_str_duration(out, (int64_t)QN_MIN(seconds * 1e9, 9e18));
}

/* ---- what to take ---- */

static void add_facts(QnStr *out, const QnPlanTable *t, const QnOffer *o)
{
    char text[96], small[96], a[QN_STR_NUMBER], b[QN_STR_NUMBER];
    qn_str_add(out, "<dl>\n");
    snprintf(text, sizeof text, "%s a second", unit_of(t));
    snprintf(small, sizeof small, "80 %%: %s to %s", qn_str_si(a, o->low_s),
             qn_str_si(b, o->high_s));
    add_fact(out, text, qn_str_si(a, o->items_s), small);
    double s, usd;
    if (qn_plan_point(t, o, &s, &usd)) {
        snprintf(text, sizeof text, "$%.4g", usd);
        snprintf(small, sizeof small, "%s, of %s %s", o->rented ? "rented" : "owned",
                 qn_str_si(a, qn_plan_priced_items(t)), unit_of(t));
        add_fact(out, "price", text, small);
        snprintf(small, sizeof small, "%.4g kWh", 1e-3 * o->cost.power_w * s / 3600);
        add_fact(out, "time", span(a, s), small);
    }
    snprintf(text, sizeof text, "%.1f GB", 1e-9 * o->cost.memory_bytes);
    snprintf(small, sizeof small, "of %.4g GB; most is %s", 0x1p30 * 1e-9 * o->card->memory_gb,
             o->term);
    add_fact(out, "memory", text, small);
    snprintf(text, sizeof text, "%lld", (long long)o->batch);
    add_fact(out, "batch of a device", text, qn_numbers_name(o->numbers));
    snprintf(text, sizeof text, "%.0f W", o->cost.power_w);
    snprintf(small, sizeof small, "%.1f %% of the peak rate", 100 * o->cost.mfu);
    add_fact(out, "power", text, small);
    qn_str_add(out, "</dl>\n");
}

/* What comes nearest, where nothing is to be recommended. */
static void add_nothing(QnStr *out, const QnPlanTable *t)
{
    const QnOffer *near = NULL;
    double least = INFINITY;
    char name[80];
    for (int i = 0; i < t->n; i++) {
        const QnOffer *o = &t->offers[i];
        double part = o->cost.memory_bytes / (0x1p30 * o->card->memory_gb);
        if (!o->error[0] && part < least) {
            least = part;
            near = o;
        }
    }
    qn_str_add(out, "<section class=\"take none\">\n<h2>Nothing to recommend</h2>\n<p>");
    if (near && !near->cost.fits) {
        qn_plan_offer_name(near, name, sizeof name);
        qn_svg_escape(out, name);
        qn_str_printf(out, " comes nearest and lacks %.2f GB; most of it goes to %s.",
                      1e-9 * near->cost.memory_bytes - 0x1p30 * 1e-9 * near->card->memory_gb,
                      near->term);
    } else {
        qn_str_add(out, near ? "It fits, but no device keeps the limits."
                             : "No device of the table can run it.");
    }
    qn_str_add(out, "</p>\n</section>\n");
}

static void add_advice(QnStr *out, const QnPlanTable *t)
{
    QnAdvice a = qn_advice_of(&t->job, t->offers, t->n);
    char name[80], fast[80];
    if (a.best < 0) {
        add_nothing(out, t);
        return;
    }
    qn_str_add(out, "<section class=\"take\">\n");
    const QnOffer *best = &t->offers[a.best];
    qn_plan_offer_name(best, name, sizeof name);
    qn_plan_offer_name(&t->offers[a.fastest], fast, sizeof fast);
    qn_str_add(out, "<h2>Take ");
    qn_svg_escape(out, name);
    qn_str_add(out, "</h2>\n<p class=\"note\">");
    qn_str_add(out, a.best == a.cheapest ? "The cheapest" : "The fastest");
    qn_str_add(out, t->job.deadline_s > 0 ? " that meets the deadline" : " of those that fit");
    qn_str_add(out, t->job.budget_usd > 0 ? " within the budget." : ".");
    if (a.fastest != a.best) {
        qn_str_add(out, " The fastest is ");
        qn_svg_escape(out, fast);
        qn_str_add(out, ".");
    }
    qn_str_add(out, "</p>\n");
    add_facts(out, t, best);
    qn_str_add(out, "</section>\n");
}

/* ---- charts ---- */

static void add_front(QnStr *out, const QnPlanTable *t)
{
    char text[200];
    int priced = 0;
    double s, usd;
    for (int i = 0; i < t->n; i++)
        priced += qn_plan_point(t, &t->offers[i], &s, &usd);
    if (!priced)
        return;
    qn_str_add(out, "<section>\n<h2>Time against price</h2>\n");
    snprintf(
        text, sizeof text,
        "<p class=\"note\">%d of %d devices fit and have a price. Those on the line are beaten "
        "by none in both; point at a dot for its figures.</p>\n",
        priced, t->n);
    qn_str_add(out, text);
    qn_plan_chart_front(out, t);
    qn_str_add(out, "</section>\n");
}

static void add_roofline(QnStr *out, const QnExplain *e)
{
    char name[80], class[16];
    double without = 0;
    for (int64_t i = 0; i < e->n_parts; i++)
        without += e->parts[i].flops > 0 ? 0 : e->parts[i].seconds;
    qn_plan_offer_name(&e->offer, name, sizeof name);
    qn_str_add(out, "<section>\n<h2>The operators under the roof of ");
    qn_svg_escape(out, name);
    qn_str_printf(out,
                  "</h2>\n<p class=\"note\">A circle's area is its share of the step; under the "
                  "slope memory is the limit, under the flat line arithmetic.%s",
                  without > 0.0005 * e->step_s ? "" : "</p>\n");
    if (without > 0.0005 * e->step_s)
        qn_str_printf(out,
                      " Operators that only move data, %.1f %% of the time, are not drawn.</p>\n",
                      100 * without / e->step_s);
    qn_str_add(out, "<div class=\"legend\">\n");
    for (int i = 0; i < QN_WORK_KINDS; i++) {
        snprintf(class, sizeof class, "k%d", i);
        if (e->kinds[i].flops > 0)
            add_key(out, class, qn_work_kind_name((QnWorkKind)i));
    }
    qn_str_add(out, "</div>\n");
    qn_plan_chart_roofline(out, e);
    qn_str_add(out, "</section>\n");
}

static void add_time(QnStr *out, const QnExplain *e)
{
    char time[QN_STR_NUMBER], class[16];
    qn_str_printf(out,
                  "<section>\n<h2>Where a step's %s go</h2>\n<p class=\"note\">By kind of work, "
                  "and by what holds each kernel back.</p>\n<div class=\"legend\">\n",
                  span(time, e->step_s));
    for (int i = 0; i < QN_LIMITS; i++) {
        snprintf(class, sizeof class, "limit%d", i);
        if (e->offer.cost.by_limit[i] > 0)
            add_key(out, class, qn_limit_name((QnLimit)i));
    }
    qn_str_add(out, "</div>\n");
    qn_plan_chart_time(out, e);
    qn_str_add(out, "</section>\n");
}

static void add_memory(QnStr *out, const QnPlanTable *t)
{
    static const char *const terms[] = {
        "weights",        "gradients", "optimizer", "activations", "context and fragmentation",
        "keys and values"
    };
    QnStr chart = { 0 };
    int shown;
    char class[16];
    qn_plan_chart_memory(&chart, t, &shown);
    if (shown) {
        qn_str_add(out, "<section>\n<h2>Memory</h2>\n<p class=\"note\">What a device would hold, "
                        "before the pale bar of what it has");
        if (shown < t->n)
            qn_str_printf(out, "; %d of %d devices: the front, and the fastest of each size", shown,
                          t->n);
        qn_str_add(out, ".</p>\n<div class=\"legend\">\n");
        for (int i = 0; i < QN_COUNT(terms); i++) {
            snprintf(class, sizeof class, "term%d", i);
            add_key(out, class, terms[i]);
        }
        add_key(out, "room", "free");
        qn_str_add(out, "</div>\n");
        qn_str_add(out, qn_str_text(&chart));
        qn_str_add(out, "</section>\n");
    }
    if (chart.st)
        out->st = chart.st;
    qn_str_fini(&chart);
}

/* ---- tables ---- */

static void add_what_ifs(QnStr *out, const QnExplain *e)
{
    char name[80], text[96], items[QN_STR_NUMBER];
    const QnOffer *was = &e->offer;
    qn_plan_offer_name(was, name, sizeof name);
    qn_str_add(out, "<section>\n<h2>What would change it on ");
    qn_svg_escape(out, name);
    qn_str_printf(out,
                  "</h2>\n<p class=\"note\">Against batch %lld in %s under %s; prices are of %s "
                  "%s.</p>\n<div class=\"wide\"><table>\n<tr><th>one change</th><th>speed</th>"
                  "<th>memory</th><th>price</th><th></th></tr>\n",
                  (long long)was->batch, qn_numbers_name(was->numbers), qn_tier_name(e->job.tier),
                  qn_str_si(items, e->job.items), was->count->tokens > 0 ? "tokens" : "images");
    for (int i = 0; i < e->n_what_ifs; i++) {
        const QnOffer *o = &e->what_if[i].offer;
        qn_str_add(out, "<tr>");
        add_row_cell(out, e->what_if[i].text);
        if (o->error[0]) {
            qn_str_add(out, "<td></td><td></td><td></td><td class=\"text\">");
            qn_svg_escape(out, o->error);
            qn_str_add(out, "</td></tr>\n");
            continue;
        }
        snprintf(text, sizeof text, "%+.1f %%", 100 * (o->items_s / was->items_s - 1));
        add_row_cell(out, text);
        snprintf(text, sizeof text, "%+.2f GB",
                 1e-9 * (o->cost.memory_bytes - was->cost.memory_bytes));
        add_row_cell(out, text);
        snprintf(text, sizeof text, "$%.4g", o->usd);
        add_row_cell(out, o->usd > 0 ? text : "–");
        qn_str_add(out, o->cost.fits ? "<td></td></tr>\n"
                                     : "<td class=\"bad\">does not fit</td></tr>\n");
    }
    qn_str_add(out, "</table></div>\n</section>\n");
}

static void add_offer(QnStr *out, const QnPlanTable *t, const QnOffer *o, bool best, double most)
{
    char text[96], a[QN_STR_NUMBER], b[QN_STR_NUMBER], c[QN_STR_NUMBER];
    double s, usd;
    qn_plan_offer_name(o, text, sizeof text);
    qn_str_printf(out, "<tr%s data-device=\"",
                  best                           ? " class=\"best\""
                  : o->error[0] || !o->cost.fits ? " class=\"no\""
                                                 : "");
    qn_svg_escape(out, text);
    if (o->error[0]) {
        qn_str_add(out, "\">");
        add_row_cell(out, text);
        qn_str_add(out, "<td colspan=\"9\" class=\"text\">");
        qn_svg_escape(out, o->error);
        qn_str_add(out, "</td></tr>\n");
        return;
    }
    qn_str_printf(
        out, "\" data-throughput=\"%.17g\" data-step-ms=\"%.17g\" data-memory-bytes=\"%.17g\">",
        o->items_s, 1e3 * o->cost.step_s, o->cost.memory_bytes);
    add_row_cell(out, text);
    add_row_cell(out, qn_numbers_name(o->numbers));
    qn_str_printf(out,
                  "<td>%lld</td><td class=\"speed\">%s<i style=\"width:%.2f%%\"></i></td>"
                  "<td class=\"note\">%s–%s</td>",
                  (long long)o->batch, qn_str_si(a, o->items_s), 100 * o->items_s / most,
                  qn_str_si(b, o->low_s), qn_str_si(c, o->high_s));
    qn_str_printf(out, "<td>%.1f %%</td><td>%s</td>", 100 * o->cost.mfu,
                  qn_limit_name(o->cost.limit));
    if (o->cost.fits)
        qn_str_printf(out, "<td>%.0f %%</td>",
                      100 * o->cost.memory_bytes / (0x1p30 * o->card->memory_gb));
    else
        qn_str_printf(out, "<td class=\"bad\">%.3g times</td>",
                      o->cost.memory_bytes / (0x1p30 * o->card->memory_gb));
    if (qn_plan_point(t, o, &s, &usd))
        qn_str_printf(out, "<td>%s</td><td>$%.4g %s</td></tr>\n", span(a, s), usd,
                      o->rented ? "rent" : "own");
    else if (o->cost.fits)
        qn_str_printf(out, "<td>%s</td><td>–</td></tr>\n",
                      span(a, qn_plan_priced_items(t) / o->items_s));
    else
        qn_str_add(out, "<td>–</td><td>–</td></tr>\n");
}

static void add_offers(QnStr *out, const QnPlanTable *t)
{
    char items[QN_STR_NUMBER];
    int best = qn_advice_of(&t->job, t->offers, t->n).best;
    double most = 1e-300;
    for (int i = 0; i < t->n; i++)
        most = QN_MAX(most, t->offers[i].error[0] ? 0 : t->offers[i].items_s);
    qn_str_printf(
        out,
        "<section>\n<h2>%s</h2>\n<p class=\"note\">80 %% of cases lie in the interval "
        "beside the speed; time and price are of %s %s.</p>\n<div class=\"wide\"><table>\n"
        "<tr><th>device</th><th>numbers</th><th>batch</th><th>%s a second</th><th>80 %%</th>"
        "<th>of peak</th><th>limit</th><th>memory</th><th>time</th><th>price</th></tr>\n",
        t->n == 1 ? "The device" : "All devices", qn_str_si(items, qn_plan_priced_items(t)),
        unit_of(t), unit_of(t));
    for (int i = 0; i < t->n; i++)
        add_offer(out, t, &t->offers[i], i == best, most);
    qn_str_add(out, "</table></div>\n</section>\n");
}

static void add_assumptions(QnStr *out, const QnPlanTable *t)
{
    qn_str_add(out, "<section>\n<h2>What this rests on</h2>\n<ul>\n");
    qn_str_printf(out,
                  "<li>The model's graph is compiled and its operations and bytes are counted; "
                  "nothing was run. The software is taken to be <b>%s</b>.</li>\n",
                  qn_tier_name(t->job.tier));
    qn_str_add(
        out,
        "<li>Rates, bandwidths and powers are those of data sheets, times the shares that "
        "published measurements reach.</li>\n"
        "<li>80 % of the measurements that the model was fitted to lie in the interval; new "
        "devices "
        "and models may be further off.</li>\n"
        "<li>Memory is what the planner would allocate, and a reserve for the context and "
        "fragmentation.</li>\n"
        "<li>Rent is the catalogue's hourly price; what is owned is written off over three years "
        "of half use in a host that doubles the price, with electricity at 0.15 USD a kWh.</li>\n"
        "<li>Loading data is not part of the step: a slow loader makes any device wait.</li>\n"
        "</ul>\n</section>\n");
}

/* ---- the page ---- */

static void add_page(QnStr *out, const QnPlanTable *t, const QnExplain *e)
{
    char items[QN_STR_NUMBER];
    const char *task = t->job.train ? "training" : "inference";
    qn_str_add(out, "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n"
                    "<head>\n<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" "
                    "content=\"width=device-width,initial-scale=1\"/>\n<meta name=\"color-scheme\" "
                    "content=\"light dark\"/>\n<title>");
    qn_svg_escape(out, t->job.model->name);
    qn_str_printf(out, ", %s: a plan</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n<h1>",
                  task, style);
    qn_svg_escape(out, t->job.model->name);
    qn_str_printf(out, ", %s</h1>\n<p class=\"sub\">under %s, on %d device%s", task,
                  qn_tier_name(t->job.tier), t->n, t->n == 1 ? "" : "s");
    if (t->job.items > 0)
        qn_str_printf(out, ", %s %s", qn_str_si(items, t->job.items), unit_of(t));
    qn_str_add(out, "</p>\n");
    add_advice(out, t);
    add_front(out, t);
    if (e) {
        add_time(out, e);
        add_roofline(out, e);
        add_what_ifs(out, e);
    }
    add_memory(out, t);
    add_offers(out, t);
    add_assumptions(out, t);
    qn_str_add(out, "</main>\n</body>\n</html>\n");
}

QnStatus qn_plan_html(const char *path, const QnPlanTable *t, const QnExplain *e)
{
    QnStr page = { 0 };
    struct stat s;
    if (!path[0])
        return qn_fail(QN_EUSAGE, "--html is empty: name a file, such as plan.html");
    if (stat(path, &s) == 0 && !S_ISREG(s.st_mode))
        return qn_fail(QN_EUSAGE, "--html: %s is %s: name a file, such as plan.html", path,
                       S_ISDIR(s.st_mode) ? "a folder" : "no plain file");
    add_page(&page, t, e);
    QnStatus st = page.st ? page.st : qn_file_write_atomic(path, qn_str_text(&page), page.n);
    qn_str_fini(&page);
    return st;
}
