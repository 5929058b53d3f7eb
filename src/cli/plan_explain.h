/* What quern plan --explain prints. */
#ifndef QN_CLI_PLAN_EXPLAIN_H
#define QN_CLI_PLAN_EXPLAIN_H

#include "cli/plan.h"
#include "plan/explain.h"

QnStatus qn_plan_explain(const QnArgs *a, const QnExplain *e);

#endif
