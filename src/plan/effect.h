/* What known devices, models and stacks deviate by from the coefficients: shrunk logarithms of
 * time, by what part of a step's time they are a factor of. Where nothing is known they are 0 and
 * the interval is wider. */
#ifndef QN_PLAN_EFFECT_H
#define QN_PLAN_EFFECT_H

#include "plan/cost.h"

typedef enum QnEffectGroup {
    QN_EFFECT_STACK_ARCH,
    QN_EFFECT_STACK_NUMBERS,
    QN_EFFECT_CLASS,
    QN_EFFECT_CARD,
    QN_EFFECT_CARD_NUMBERS,
    QN_EFFECT_CARD_COUNT,
    QN_EFFECT_FRAMEWORK,
    QN_EFFECT_FRAMEWORK_NUMBERS,
    QN_EFFECT_FRAMEWORK_ARCH,
    QN_EFFECT_FRAMEWORK_CARD,
    QN_EFFECT_FAMILY_STACK,
    QN_EFFECT_FAMILY_ARCH,
    QN_EFFECT_MODEL,
    QN_EFFECT_MODEL_NUMBERS,
    QN_EFFECT_MODEL_STACK,
    QN_EFFECT_MODEL_FRAMEWORK,
    QN_EFFECT_MODEL_ARCH,
    QN_EFFECT_RUN, /* equal runs but for the batch; never in the table */
    QN_EFFECT_GROUPS
} QnEffectGroup;

enum { QN_EFFECT_KEY_BYTES = 256 };

/* "card:RTX 3090."; false: the request does not say enough. Without commas, whatever the names. */
bool qn_effect_key(const QnCostRequest *r, QnEffectGroup g, char key[QN_EFFECT_KEY_BYTES]);
/* Start of the standard deviation of a group's effects on a part; 0: it has none on it. */
double qn_effect_sigma(QnEffectGroup g, QnTimePart part);
const char *qn_effect_group_name(QnEffectGroup g);

/* All that the table says of this request: log[part], and the variances of what it does not. */
typedef struct QnEffects {
    double log[QN_EFFECT_PARTS];
    double variance[QN_EFFECT_PARTS];
    bool card, model; /* whether the table has any of these */
} QnEffects;
void qn_effects_of(const QnCoefs *k, const QnCostRequest *r, QnEffects *out);
/* Whether the lines are sorted and numbers where numbers must be. */
QnStatus qn_effects_check(const QnCoefs *k, const char *path);

#endif
