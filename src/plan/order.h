/* The order that nodes had before they were scheduled. A schedule follows sizes, and these the
 * batch; in the order before it, the steps of two batches stand side by side. */
#ifndef QN_PLAN_ORDER_H
#define QN_PLAN_ORDER_H

#include "rt/plan.h"

typedef struct QnOrder {
    struct QnPlace *place; /* by address */
    int64_t n;
} QnOrder;

QnStatus qn_order_init(QnOrder *o, const QnGraph *g);
void qn_order_fini(QnOrder *o);
/* The numbers of the plan's steps in that order; freed by qn_free. */
QnStatus qn_order_steps(const QnOrder *o, const QnPlan *p, int64_t **steps);

#endif
