/* What another device would bring whoever has one, and when it has paid for itself. */
#ifndef QN_PLAN_UPGRADE_H
#define QN_PLAN_UPGRADE_H

#include "plan/advice.h"

typedef struct QnUpgrade {
    double gain;          /* speed over that of the old one; HUGE_VAL: that cannot do the job */
    double price;         /* with what of a computer has to come along; 0: not known */
    double net;           /* price less what the old device is sold for */
    double work_usd_h;    /* what the work that it does more is worth, an hour of use */
    double electricity_h; /* what it saves of electricity for the same work, an hour of use; < 0:
                           * it takes more */
    double hours, hours_electricity; /* of use until net is paid, by both, and by electricity alone;
                                      * HUGE_VAL: never, NaN: the price is not known */
} QnUpgrade;

/* Devices of desktops go into the computer that is there, others bring theirs, unless m->host says
 * so. usd_an_item: what renting the work costs, 0: it is worth nothing. */
QnUpgrade qn_upgrade_of(const QnMoney *m, const QnOffer *from, const QnOffer *to,
                        double usd_an_item, double resale);

/* The least that an item costs on a device that can be rented; 0: none can. */
double qn_upgrade_rent(const QnOffer *offers, int n);

#endif
