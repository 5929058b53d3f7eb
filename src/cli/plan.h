/* quern plan: what its two files share. */
#ifndef QN_CLI_PLAN_H
#define QN_CLI_PLAN_H

#include "cli/cli.h"
#include "plan/advice.h"

enum {
    QN_PLAN_TASK,
    QN_PLAN_GPU,
    QN_PLAN_PRECISION,
    QN_PLAN_STACK,
    QN_PLAN_BATCH,
    QN_PLAN_IMAGE,
    QN_PLAN_SEQUENCE,
    QN_PLAN_SAMPLES,
    QN_PLAN_EPOCHS,
    QN_PLAN_TOKENS,
    QN_PLAN_BUDGET,
    QN_PLAN_DEADLINE,
    QN_PLAN_SCORE,
    QN_PLAN_FIT,
    QN_PLAN_HOLD_OUT,
    QN_PLAN_JSON,
};

enum { QN_PLAN_MOST = 512 };

typedef struct QnPlanTable {
    QnJob job;
    QnOffer *offers;
    int n;
} QnPlanTable;

/* The table, sorted by speed, and the recommendation. */
QnStatus qn_plan_print(const QnArgs *a, QnPlanTable *t);
/* --score and --fit. */
QnStatus qn_plan_measured(const QnArgs *a);

#endif
