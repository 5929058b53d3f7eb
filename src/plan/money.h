/* What an hour of a device costs: rented, or bought for some years. All amounts are in USD. */
#ifndef QN_PLAN_MONEY_H
#define QN_PLAN_MONEY_H

#include "plan/device.h"

typedef enum QnPayBy {
    QN_PAY_EITHER, /* rent where the catalogue has one, else purchase */
    QN_PAY_RENT,
    QN_PAY_BUY
} QnPayBy;

typedef struct QnMoney {
    QnPayBy by;
    double electricity; /* a kWh */
    double pue;         /* what a building draws over what its computers draw */
    double years;       /* a bought device is used */
    double utilisation; /* share of their hours that it works */
    double residual;    /* share of the price that it is sold for then */
    double resale; /* share of the price that a year leaves on the market of used devices; 0: by
                    * kind */
    double host;   /* price with its share of a computer over that of the device; 0: by class */
} QnMoney;

QnMoney qn_money_default(void);
/* An error names what is out of range. */
QnStatus qn_money_check(const QnMoney *m);

/* 2 for devices of desktops, 1 for what is a computer itself, else 1.5. */
double qn_money_host(const QnMoney *m, const QnCard *card);
/* What has to be paid at once, with the share of a computer; 0: no price is known. */
double qn_money_purchase(const QnMoney *m, const QnCard *card);
/* Electricity of an hour at this power of the device. */
double qn_money_electricity(const QnMoney *m, double kw);
/* An hour of use of a bought device; 0: no price is known. */
double qn_money_own_rate(const QnMoney *m, const QnCard *card, double kw);
/* As m->by says; 0: not known. */
double qn_money_rate(const QnMoney *m, const QnCard *card, double kw, bool *rented);

/* Hours of use after which a bought device, sold for its residual value, has cost what renting it
 * would have; HUGE_VAL: never, NaN: price or rent is not known. */
double qn_money_break_even(const QnMoney *m, const QnCard *card, double kw);
/* What the device is worth after so many years, by m->resale of its price a year; 0 there: by its
 * kind. */
double qn_money_resale(const QnMoney *m, const QnCard *card, double years);

#endif
