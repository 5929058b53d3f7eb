/* Money: the hour's price, break-even, upgrades, by arithmetic that is done here by hand. */
#include "test.h"

#include "plan/upgrade.h"

#include <math.h>

#define assert_near(got, want)                                                                     \
    do {                                                                                           \
        double g_ = (got), w_ = (want);                                                            \
        if (!(fabs(g_ - w_) <= 1e-9 * fabs(w_)))                                                   \
            fail_msg("%s is %.12g, want %.12g", #got, g_, w_);                                     \
    } while (0)

static const QnCard desktop = {
    .name = "D", .kind = "consumer", .price_usd = 1600, .cloud_usd = 0.7, .tdp_w = 450
};
static const QnCard server = { .name = "S", .kind = "datacenter", .price_usd = 10000 };
static const QnCard board = { .name = "B", .kind = "edge", .price_usd = 500, .cloud_usd = 0 };

static const QnMoney money = {
    .electricity = 0.15, .pue = 1.2, .years = 2, .utilisation = 0.25, .residual = 0.4
};

static void test_rates(void **state)
{
    bool rented;
    assert_near(qn_money_purchase(&money, &desktop), 3200);
    assert_near(qn_money_purchase(&money, &server), 15000);
    assert_near(qn_money_purchase(&money, &board), 500);
    assert_near(qn_money_electricity(&money, 0.5), 0.09);
    /* 3200 less 40 %, over 2 * 8760 / 4 hours of use */
    assert_near(qn_money_own_rate(&money, &desktop, 0.5), 1920.0 / 4380 + 0.09);
    assert_near(qn_money_rate(&money, &desktop, 0.5, &rented), 0.7);
    assert_true(rented);
    assert_near(qn_money_rate(&money, &server, 0, &rented), 9000.0 / 4380);
    assert_false(rented);
    QnMoney buy = money, rent = money;
    buy.by = QN_PAY_BUY;
    rent.by = QN_PAY_RENT;
    buy.host = 1;
    assert_near(qn_money_rate(&buy, &desktop, 0, &rented), 960.0 / 4380);
    assert_false(rented);
    assert_near(qn_money_rate(&rent, &server, 0.5, &rented) + 1, 1); /* none is known */
}

static void test_break_even(void **state)
{
    QnMoney m = { .electricity = 0.15, .pue = 1, .years = 3, .utilisation = 0.5, .host = 1 };
    QnCard card = desktop;
    card.price_usd = 1599;
    card.cloud_usd = 0.69;
    assert_near(qn_money_break_even(&m, &card, 0.45), 1599 / (0.69 - 0.0675));
    /* both have cost the same then */
    double hours = qn_money_break_even(&money, &desktop, 0.45);
    assert_near(0.7 * hours, 3200 * 0.6 + hours * qn_money_electricity(&money, 0.45));
    card.cloud_usd = 0.06; /* less than its electricity */
    assert_true(isinf(qn_money_break_even(&m, &card, 0.45)));
    assert_true(isnan(qn_money_break_even(&m, &server, 0.45)));
    /* a desktop's device is sold on; a server's keeps 40 % after two years, 16 % after four */
    card = desktop;
    assert_near(qn_money_resale(&money, &card, 1), 1600 * 0.84);
    card.kind = "datacenter";
    assert_near(qn_money_resale(&money, &card, 4), 1600 * 0.16);
    m = money;
    m.resale = 0.5;
    assert_near(qn_money_resale(&m, &desktop, 2), 1600 * 0.25);
}

static void test_ranges(void **state)
{
    QnMoney m = money;
    assert_ok(qn_money_check(&m));
    QnMoney fallback = qn_money_default();
    assert_ok(qn_money_check(&fallback));
    m.pue = 0.9;
    assert_fails(qn_money_check(&m), QN_EUSAGE, "--pue: expected 1 to 10, found 0.9");
    m = money;
    m.utilisation = 0;
    assert_fails(qn_money_check(&m), QN_EUSAGE, "--utilisation");
    m = money;
    m.residual = NAN;
    assert_fails(qn_money_check(&m), QN_EUSAGE, "--residual");
}

static QnOffer offer(const QnCard *card, double items_s, double watts)
{
    return (QnOffer){ .card = card,
                      .n_cards = 1,
                      .items_s = items_s,
                      .usd_per_hour = card->cloud_usd,
                      .cost = { .fits = true, .power_w = watts } };
}

static void test_upgrade(void **state)
{
    QnMoney m = { .electricity = 0.2, .pue = 1, .years = 3, .utilisation = 0.5, .residual = 0.3 };
    QnOffer old = offer(&desktop, 100, 300), new = offer(&desktop, 300, 400);
    /* 200 items a second more, at 1 USD a million: 0.72 USD an hour, less 0.1 kW more */
    QnUpgrade u = qn_upgrade_of(&m, &old, &new, 1e-6, 100);
    assert_near(u.gain, 3);
    assert_near(u.price, 1600); /* the computer is there */
    assert_near(u.net, 1500);
    assert_near(u.work_usd_h, 0.72);
    assert_near(u.hours, 1500 / (0.72 - 0.02));
    assert_near(u.electricity_h, (3 * 0.3 - 0.4) * 0.2);
    assert_near(u.hours_electricity, 1500 / 0.1);
    /* to a server, which brings its computer; from what cannot do it */
    old.cost.fits = false;
    new = offer(&server, 300, 400);
    u = qn_upgrade_of(&m, &old, &new, 1e-6, 0);
    assert_true(isinf(u.gain) && isinf(u.hours_electricity));
    assert_near(u.price, 15000);
    assert_near(u.hours, 15000 / (1.08 - 0.08));
    /* a resale that pays for it */
    u = qn_upgrade_of(&m, &old, &new, 1e-6, 20000);
    assert_near(u.hours + 1, 1);
    QnCard free = server;
    free.price_usd = 0;
    new.card = &free;
    assert_true(isnan(qn_upgrade_of(&m, &old, &new, 1e-6, 0).hours));
}

static void test_rent_of_work(void **state)
{
    QnCard dear = desktop;
    dear.cloud_usd = 3.6;
    QnOffer all[] = { offer(&desktop, 100, 1), offer(&dear, 1000, 1), offer(&server, 1e9, 1) };
    assert_near(qn_upgrade_rent(all, 3), 3.6 / 3.6e6);
    all[1].cost.fits = false;
    assert_near(qn_upgrade_rent(all, 3), 0.7 / 3.6e5);
    assert_near(qn_upgrade_rent(all + 2, 1) + 1, 1);
}

/* Offers by hand: what limits choose, and how far each would have to move. */
static void test_limits(void **state)
{
    QnOffer all[] = { offer(&desktop, 1, 100), offer(&desktop, 1, 300), offer(&desktop, 1, 500) };
    double hours[] = { 10, 5, 2 }, usd[] = { 3, 6, 30 };
    QnJob job = { .items = 1 };
    for (int i = 0; i < 3; i++) {
        all[i].hours = hours[i];
        all[i].usd = all[i].outlay = usd[i];
        all[i].items_s = 1 / (3600 * hours[i]);
        all[i].usd_per_hour = usd[i] / hours[i];
    }
    assert_int_equal(qn_advice_of(&job, all, 3).best, 0);
    assert_int_equal(qn_advice_of(&job, all, 3).fastest, 2);
    job.deadline_s = 6 * 3600;
    assert_int_equal(qn_advice_of(&job, all, 3).best, 1);
    job.power_w = 200; /* that one takes 300 */
    assert_int_equal(qn_advice_of(&job, all, 3).best, -1);
    QnRelaxed r = qn_advice_relax(&job, all, 3);
    assert_int_equal(r.deadline, 0); /* 10 h at 100 W */
    assert_int_equal(r.power, 1);    /* 300 W within 6 h */
    assert_int_equal(r.budget, -1);
    job.power_w = 0;
    job.budget_usd = 4;
    r = qn_advice_relax(&job, all, 3);
    assert_int_equal(r.deadline, 0);
    assert_int_equal(r.budget, 1);
    assert_int_equal(r.power, -1);
    /* what is paid at once is compared with the budget, not the share of it that the job wears */
    all[1].outlay = 600;
    assert_int_equal(qn_advice_relax(&job, all, 3).budget, 2);
    all[1].outlay = 3;
    assert_int_equal(qn_advice_of(&job, all, 3).best, 1);
    /* what may not fit is taken only where nothing else is left */
    all[1].memory_high = 1e300;
    job.budget_usd = 100;
    assert_int_equal(qn_advice_of(&job, all, 3).best, 2);
    job.budget_usd = 4;
    assert_int_equal(qn_advice_of(&job, all, 3).best, 1);
    all[1].memory_high = 0;
    all[1].outlay = 6;
    job.deadline_s = 3600; /* nothing at any price */
    job.budget_usd = 1;
    r = qn_advice_relax(&job, all, 3);
    assert_true(r.deadline < 0 && r.budget < 0 && r.power < 0);
    /* the deadline in the middle, and at the end of the interval */
    QnOffer o = offer(&desktop, 1, 100);
    o.hours = 10;
    o.low_s = 0.5;
    o.high_s = 2;
    job.deadline_s = 36000;
    assert_near(qn_advice_chance(&job, &o), 0.5);
    job.deadline_s = 72000;
    assert_true(fabs(qn_advice_chance(&job, &o) - 0.9) < 1e-4);
    job.deadline_s = 18000;
    assert_true(fabs(qn_advice_chance(&job, &o) - 0.1) < 1e-4);
}
