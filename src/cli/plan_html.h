/* quern plan --html: one page that needs nothing else. */
#ifndef QN_CLI_PLAN_HTML_H
#define QN_CLI_PLAN_HTML_H

#include "cli/plan.h"
#include "plan/explain.h"

/* e: of the device whose operators are drawn; NULL: none could be priced. */
QnStatus qn_plan_html(const char *path, const QnPlanTable *t, const QnExplain *e);

#endif
