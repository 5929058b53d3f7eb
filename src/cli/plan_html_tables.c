/* The tables of quern plan's page. */
#include "cli/plan_charts.h"
#include "cli/plan_html_impl.h"

#include "base/svg.h"

#include <stdio.h>

static void add_row_cell(QnStr *out, const char *text)
{
    qn_str_add(out, "<td>");
    qn_svg_escape(out, text);
    qn_str_add(out, "</td>");
}

void qn_plan_html_what_ifs(QnStr *out, const QnExplain *e)
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
    qn_str_printf(out, "<td>%.1f %%</td><td>%s</td>", 100 * o->cost.mfu, qn_offer_limit(o));
    if (o->cost.fits)
        qn_str_printf(out, "<td>%.0f %%</td>",
                      100 * o->cost.memory_bytes / (0x1p30 * o->card->memory_gb));
    else
        qn_str_printf(out, "<td class=\"bad\">%.3g times</td>",
                      o->cost.memory_bytes / (0x1p30 * o->card->memory_gb));
    if (qn_plan_point(t, o, &s, &usd))
        qn_str_printf(out, "<td>%s</td><td>$%.4g %s</td></tr>\n", qn_plan_html_span(a, s), usd,
                      o->rented ? "rent" : "own");
    else if (o->cost.fits)
        qn_str_printf(out, "<td>%s</td><td>–</td></tr>\n",
                      qn_plan_html_span(a, qn_plan_priced_items(t) / o->items_s));
    else
        qn_str_add(out, "<td>–</td><td>–</td></tr>\n");
}

void qn_plan_html_offers(QnStr *out, const QnPlanTable *t)
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
        qn_plan_html_unit(t), qn_plan_html_unit(t));
    for (int i = 0; i < t->n; i++)
        add_offer(out, t, &t->offers[i], i == best, most);
    qn_str_add(out, "</table></div>\n</section>\n");
}

static void add_money(QnStr *out, const QnMoney *m)
{
    qn_str_printf(
        out,
        "<li>%s What is bought is used for %g years at %.0f %% of their hours and sold for "
        "%.0f %% of its price; ",
        m->by == QN_PAY_RENT  ? "Devices are rented."
        : m->by == QN_PAY_BUY ? "Devices are bought."
                              : "Devices are rented where the catalogue has a rent, else "
                                "bought.",
        m->years, 100 * m->utilisation, 100 * m->residual);
    if (m->host > 0)
        qn_str_printf(out, "with its computer it costs %g times as much. ", m->host);
    else
        qn_str_add(out,
                   "with its computer it costs twice as much (desktop) or 1.5 times (server). ");
    qn_str_printf(out,
                  "Electricity is %g USD a kWh, and the building draws %g times what its "
                  "computers do.</li>\n",
                  m->electricity, m->pue);
}

void qn_plan_html_assumptions(QnStr *out, const QnPlanTable *t)
{
    qn_str_add(out, "<section>\n<h2>What this rests on</h2>\n<ul>\n");
    qn_str_printf(out,
                  "<li>The model's graph is compiled and its operations and bytes are counted; "
                  "nothing was run. The software is taken to be <b>%s</b>.</li>\n",
                  qn_tier_name(t->job.tier));
    qn_str_add(out,
               "<li>Rates, bandwidths and powers are those of data sheets, times the shares that "
               "published measurements reach.</li>\n"
               "<li>80 % of the measurements that the model was fitted to lie in the interval; new "
               "devices "
               "and models may be further off.</li>\n"
               "<li>Memory is what the planner would allocate, and a reserve for the context and "
               "fragmentation.</li>\n");
    add_money(out, &t->job.money);
    qn_str_add(
        out,
        "<li>Loading data is not part of the step unless its rate is given: a slow loader makes "
        "any device wait.</li>\n"
        "</ul>\n</section>\n");
}
