/* Between the files that write quern plan's page. */
#ifndef QN_CLI_PLAN_HTML_IMPL_H
#define QN_CLI_PLAN_HTML_IMPL_H

#include "cli/plan.h"
#include "plan/explain.h"

extern const char qn_plan_html_style[];
const char *qn_plan_html_unit(const QnPlanTable *t);
const char *qn_plan_html_span(char out[QN_STR_NUMBER], double seconds);

void qn_plan_html_what_ifs(QnStr *out, const QnExplain *e);
void qn_plan_html_offers(QnStr *out, const QnPlanTable *t);
void qn_plan_html_assumptions(QnStr *out, const QnPlanTable *t);

#endif
