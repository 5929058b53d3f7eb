/* Where a single device does not hold the model: what would, and who plans for many. */
#include "cli/plan.h"

#define GIB 1073741824.0

static void add_cluster(QnStr *out, const QnArgs *a, const QnPlanTable *t, const QnCard *card)
{
    if (!t->job.train)
        return;
    qn_str_printf(
        out,
        "many devices that share the model in the best way: quern plan cluster %s --gpu \"%s\"",
        a->positional[0], card->name);
    if (a->text[QN_PLAN_TOKENS])
        qn_str_printf(out, " --tokens %s", a->text[QN_PLAN_TOKENS]);
    qn_str_add(out, "\n");
}

/* Where most do not hold it, or many are asked for. The fastest of its kind is named. */
void qn_plan_add_cluster_hint(QnStr *out, const QnArgs *a, const QnPlanTable *t,
                              const QnOffer *best)
{
    const QnOffer *fast = NULL;
    int many = 0;
    for (int i = 0; i < t->n; i++) {
        const QnOffer *o = &t->offers[i];
        if (o->error[0])
            continue;
        many += !o->cost.fits || o->n_cards >= 8;
        if (!fast || o->cost.peak_flops > fast->cost.peak_flops)
            fast = o;
    }
    bool large = best && best->n_cards >= 8 && t->job.model->family->sequence > 0;
    fast = large ? best : fast;
    if (fast && (2 * many > t->n || large))
        add_cluster(out, a, t, fast->card);
}

static void add_remedy(QnStr *out, const QnPlanTable *t, const QnRemedy *r)
{
    char rate[QN_STR_NUMBER], time[QN_STR_NUMBER], name[QN_PLAN_NAME], usd[QN_STR_NUMBER];
    const QnOffer *o = &r->offer;
    qn_str_printf(out, "  %s with %s: %.0f %% of its memory%s, %s %s a second",
                  qn_plan_name(o, name), r->text, 100 * o->cost.memory_bytes / qn_offer_room(o),
                  qn_offer_is_tight(o) ? " (tight)" : "", qn_str_si(rate, o->items_s),
                  qn_plan_things(t));
    if (t->job.items > 0)
        qn_str_printf(out, ", %s", qn_plan_span(o->hours, time));
    if (o->usd > 0)
        qn_str_printf(out, ", %s USD", qn_plan_usd_text(o->usd, usd));
    else if (o->usd_per_hour > 0)
        qn_str_printf(out, ", %.2f USD an hour", o->usd_per_hour);
    qn_str_add(out, "\n");
}

void qn_plan_add_remedies(QnStr *out, const QnArgs *a, const QnPlanTable *t)
{
    if (!t->n_remedies && !t->n_hopeless) {
        qn_str_printf(out,
                      "\nno device here can do it; --precision auto takes what each is best at\n");
        return;
    }
    qn_str_printf(out, "\nnothing fits. What would:\n");
    for (int i = 0; i < t->n_remedies; i++)
        add_remedy(out, t, &t->remedies[i]);
    for (int i = 0; i < t->n_hopeless; i++) {
        const QnOffer *o = t->hopeless[i];
        qn_str_printf(out, "  %s: nothing; it lacks %.3g GiB, most of it goes to %s\n",
                      o->card->name, (o->cost.memory_bytes - qn_offer_room(o)) / GIB, o->term);
    }
    const QnCard *card = t->n_remedies ? t->remedies[0].offer.card : t->hopeless[0]->card;
    add_cluster(out, a, t, card);
}
