/* A fit's rows, the groups that they belong to, and the parameters of these. For fit.c alone. */
#ifndef QN_PLAN_FIT_ROWS_H
#define QN_PLAN_FIT_ROWS_H

#include "plan/effect.h"
#include "plan/measured.h"

enum { QN_FIT_KEYS = QN_EFFECT_GROUPS + 3 };

/* What a parameter multiplies: a part of the device's time, or something of the step that the
 * derivative by trial finds. */
enum {
    QN_SLOT_TRIAL = QN_PARTS, /* and on: the coefficients that qn_cost_close reads */
    QN_SLOT_GAP = QN_SLOT_TRIAL,
    QN_SLOT_LAUNCH,
    QN_SLOT_UPDATE,
    QN_SLOT_STEP,
    QN_SLOT_ASYNC,
    QN_SLOT_COPY,
    QN_SLOT_LINK,
    QN_SLOT_LINK_US,
    QN_SLOT_OVERLAP,
    QN_SLOT_HOST,
    QN_SLOT_REPLICA,
    QN_SLOTS
};

typedef struct QnFitRow {
    const QnMeasured *m;
    QnCostItem *prompt, *items;
    int64_t n_prompt, n_items;
    int key[QN_FIT_KEYS];
    int n_keys;
    double slot[QN_SLOTS]; /* d log(seconds) / d log(what) */
    double logs[QN_EFFECT_PARTS];
    double left, weight; /* log(measured / predicted); 1 / variance */
} QnFitRow;

/* Rows that have a tier, an architecture, or a group's key in common. */
typedef struct QnFitKey {
    char *name; /* of an effect; NULL: of coefficients */
    QnEffectGroup group;
    int *rows;
    int n, cap;
} QnFitKey;

typedef struct QnFitParam {
    int key, slot, coef; /* coef -1: an effect */
    double sign;         /* of the slot: rates divide */
    double value, sigma; /* value: log of factor on the start */
    double step, variance;
} QnFitParam;

typedef struct QnFit {
    QnArena *arena;
    QnCoefs coefs;
    QnFitRow *rows;
    int n_rows;
    QnFitKey *keys;
    int64_t n_keys, cap_keys;
    int *table; /* of keys by hash, -1: free */
    int n_table;
    QnFitParam *params;
    int64_t n_params, cap_params;
    double sigma[QN_EFFECT_GROUPS][QN_EFFECT_PARTS];
    double noise[QN_TIERS];
} QnFit;

/* use[i]: whether row i takes part; NULL: all do. */
QnStatus qn_fit_open(QnFit *f, const QnMeasuredSet *s, const bool *use);
void qn_fit_close(QnFit *f);

#endif
