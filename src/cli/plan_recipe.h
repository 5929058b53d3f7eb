/* The recipe of an offer, as `quern train` takes it. */
#ifndef QN_CLI_PLAN_RECIPE_H
#define QN_CLI_PLAN_RECIPE_H

#include "cli/plan.h"

/* Of the recommended offer: a given recipe with batch, micro-batches, precision and recomputation
 * of the offer; for a model that has a name in recipes, one with --data's folder or text. What
 * recipes cannot say is a comment. */
QnStatus qn_plan_recipe_write(const QnArgs *a, const QnPlanTable *t);
/* The same as text; *text is the caller's to qn_free. */
QnStatus qn_plan_recipe_print(const QnArgs *a, const QnPlanTable *t, const QnOffer *o, char **text);

/* What a given recipe has to be set to for the offer, as words of `quern train --set`; gives their
 * number. */
enum { QN_PLAN_SETTINGS = 8, QN_PLAN_SETTING = 64 };
int qn_plan_recipe_settings(const QnOffer *o, char out[QN_PLAN_SETTINGS][QN_PLAN_SETTING]);

#endif
