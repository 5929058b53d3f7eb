#include "plan/upgrade.h"

#include <math.h>
#include <string.h>

static bool can(const QnOffer *o)
{
    return !o->error[0] && o->cost.fits && o->items_s > 0;
}

static double price_of(const QnMoney *m, const QnCard *card)
{
    bool goes_in = !strcmp(card->kind, "consumer") || !strcmp(card->kind, "workstation");
    return m->host > 0 || !goes_in ? qn_money_purchase(m, card) : card->price_usd;
}

static double until(double net, double an_hour)
{
    return net <= 0 ? 0 : an_hour > 0 ? net / an_hour : HUGE_VAL;
}

QnUpgrade qn_upgrade_of(const QnMoney *m, const QnOffer *from, const QnOffer *to,
                        double usd_an_item, double resale)
{
    QnUpgrade u = { .price = price_of(m, to->card) };
    double old_rate = can(from) ? from->items_s : 0,
           old_kw = can(from) ? from->cost.power_w / 1e3 : 0;
    double kw = to->cost.power_w / 1e3;
    u.gain = old_rate > 0 ? to->items_s / old_rate : HUGE_VAL;
    u.net = u.price - resale;
    u.work_usd_h = 3600 * (to->items_s - old_rate) * usd_an_item;
    /* the work of an hour takes the old device `gain` hours */
    u.electricity_h = old_rate > 0 ? qn_money_electricity(m, u.gain * old_kw - kw) : 0;
    double more = qn_money_electricity(m, kw - old_kw); /* for doing more */
    u.hours = u.price > 0 ? until(u.net, u.work_usd_h - more) : NAN;
    u.hours_electricity = u.price > 0 ? until(u.net, u.electricity_h) : NAN;
    return u;
}

double qn_upgrade_rent(const QnOffer *offers, int n)
{
    double least = 0;
    for (int i = 0; i < n; i++) {
        const QnOffer *o = &offers[i];
        if (!can(o) || !(o->card->cloud_usd > 0))
            continue;
        double usd = o->n_cards * o->card->cloud_usd / (3600 * o->items_s);
        least = least > 0 ? QN_MIN(least, usd) : usd;
    }
    return least;
}
