#include "plan/money.h"

#include <math.h>
#include <string.h>

enum { HOURS_A_YEAR = 8760 };

QnMoney qn_money_default(void)
{
    return (QnMoney){
        .electricity = 0.15, .pue = 1.2, .years = 3, .utilisation = 0.5, .residual = 0.3
    };
}

QnStatus qn_money_check(const QnMoney *m)
{
    const struct {
        const char *name;
        double value, min, max;
    } all[] = {
        { "electricity", m->electricity, 0, 100 }, { "pue", m->pue, 1, 10 },
        { "years", m->years, 0.01, 100 },          { "utilisation", m->utilisation, 0.001, 1 },
        { "residual", m->residual, 0, 1 },         { "host", m->host, 0, 100 }
    };
    for (int i = 0; i < QN_COUNT(all); i++)
        if (!(all[i].value >= all[i].min && all[i].value <= all[i].max))
            return qn_fail(QN_EUSAGE, "--%s: expected %g to %g, found %g", all[i].name, all[i].min,
                           all[i].max, all[i].value);
    return QN_OK;
}

double qn_money_host(const QnMoney *m, const QnCard *card)
{
    if (m->host > 0)
        return m->host;
    return !strcmp(card->kind, "consumer") ? 2 : !strcmp(card->kind, "edge") ? 1 : 1.5;
}

double qn_money_purchase(const QnMoney *m, const QnCard *card)
{
    return card->price_usd * qn_money_host(m, card);
}

double qn_money_electricity(const QnMoney *m, double kw)
{
    return kw * m->pue * m->electricity;
}

double qn_money_own_rate(const QnMoney *m, const QnCard *card, double kw)
{
    if (!(card->price_usd > 0))
        return 0;
    double hours = m->years * HOURS_A_YEAR * m->utilisation;
    return qn_money_purchase(m, card) * (1 - m->residual) / hours + qn_money_electricity(m, kw);
}

double qn_money_rate(const QnMoney *m, const QnCard *card, double kw, bool *rented)
{
    *rented = m->by != QN_PAY_BUY && card->cloud_usd > 0;
    if (*rented)
        return card->cloud_usd;
    return m->by == QN_PAY_RENT ? 0 : qn_money_own_rate(m, card, kw);
}

double qn_money_break_even(const QnMoney *m, const QnCard *card, double kw)
{
    if (!(card->price_usd > 0) || !(card->cloud_usd > 0))
        return NAN;
    double saved = card->cloud_usd - qn_money_electricity(m, kw);
    return saved > 0 ? qn_money_purchase(m, card) * (1 - m->residual) / saved : HUGE_VAL;
}

double qn_money_resale(const QnMoney *m, const QnCard *card, double years)
{
    bool sold_on = !strcmp(card->kind, "consumer") || !strcmp(card->kind, "workstation");
    double a_year = m->resale > 0 ? m->resale : sold_on ? 0.84 : pow(m->residual, 1 / m->years);
    return card->price_usd * pow(a_year, years);
}
