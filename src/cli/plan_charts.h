/* The charts of quern plan's page, as SVG. */
#ifndef QN_CLI_PLAN_CHARTS_H
#define QN_CLI_PLAN_CHARTS_H

#include "cli/plan.h"
#include "plan/explain.h"

/* What a price is of: the job's items, or a million where no job was said. */
double qn_plan_priced_items(const QnPlanTable *t);
/* Seconds and USD of them; false: the offer has no price or does not fit. */
bool qn_plan_point(const QnPlanTable *t, const QnOffer *o, double *seconds, double *usd);
/* Marks the offers that none beats in both time and price; gives their number. */
int qn_plan_front(const QnPlanTable *t, bool *front);

/* Time against price, those on the front named. */
void qn_plan_chart_front(QnStr *out, const QnPlanTable *t);
/* The device's roof, and how near the operators come. */
void qn_plan_chart_roofline(QnStr *out, const QnExplain *e);
/* Bars of a step's time by kind of work, each by what holds it back. */
void qn_plan_chart_time(QnStr *out, const QnExplain *e);
/* What the memory of each device would hold, against what there is; *shown of them. */
void qn_plan_chart_memory(QnStr *out, const QnPlanTable *t, int *shown);

/* The term of memory that has colour i; NULL: there are no more. */
const char *qn_plan_term_name(int i);

#endif
