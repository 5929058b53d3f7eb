/* quern plan cluster: what its two files share. */
#ifndef QN_CLI_PLAN_CLUSTER_H
#define QN_CLI_PLAN_CLUSTER_H

#include "cli/plan.h"
#include "plan/cluster.h"
#include "plan/money.h"

enum { QN_CLUSTER_MOST = 64 }; /* numbers of devices */

typedef struct QnClusterPlan {
    QnPlanSubject subject;
    QnCatalogue catalogue;
    QnDevice *device;
    QnCounts *counts;
    QnArena *arena;
    QnCoefs coefs;
    QnSplit split;
    const QnCard *card;
    QnClusterJob job;
    QnMoney money;
    double purchase_usd; /* of a device with its computer, where it is bought; 0: it is rented */
    double deadline_s, budget_usd; /* 0: none */
    const QnClusterPoint *advised; /* the cheapest within both; NULL: there is none */
    int counts_of[QN_CLUSTER_MOST + 1], n_counts;
    QnClusterPoint *points;
    /* where nothing fits */
    QnClusterPoint more, offloaded;
    const QnCard *other;
    double other_usd; /* of an item, by the second and device */
    QnClusterPoint other_point;
} QnClusterPlan;

/* What is paid for the run: rent, or the whole price and electricity; 0: not known. This is what a
 * budget is compared with. */
double qn_cluster_outlay(const QnClusterPlan *p, const QnClusterPoint *at);
QnStatus qn_cluster_print(const QnArgs *a, const QnClusterPlan *p, bool csv);

#endif
