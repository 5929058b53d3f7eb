/* Which products of matrices a run makes by 8-bit operands, where its recipe leaves that to
 * measurement. `quern tune` times each product of the recipe with its gradients in bf16 and in fp8,
 * as the device runs them, and keeps the faster among the choices of kernels (rt/select.h). A run
 * that begins takes what it finds there; since that changes numbers, it writes what it took under
 * the layer's name into its own folder, and goes by that whatever is measured later, and wherever
 * it goes on. */
#ifndef QN_TRAIN_F8_CHOICE_H
#define QN_TRAIN_F8_CHOICE_H

#include "train/session.h"

/* y (m,n) = x (m,k) * w (k,n), w possibly as (n,k), plus a bias. */
typedef struct QnF8Product {
    const char *name; /* of its weight, else of its node */
    int64_t m, n, k;
    bool trans_b, bias;
    bool is_recorded; /* the run decided when it began */
    bool is_measured; /* on this device */
    bool by_f8;
} QnF8Product;

typedef struct QnF8Choice {
    QnArena *arena;
    QnF8Product *items;
    int64_t n, cap;
} QnF8Choice;

/* Whether the recipe asks for it. */
bool qn_f8_choice_is_asked(const QnRecipe *r);

/* Of the products of a forward graph in fp32 that could be in 8 bits (qn_precision_takes_f8). c
 * (may be NULL) has what was measured or recorded; what it does not know is not in 8 bits. */
QnStatus qn_f8_choice_new(const QnGraph *g, QnDevice *d, const QnChoices *c, QnF8Choice **out);
void qn_f8_choice_free(QnF8Choice *f);

/* Whether the node, of a forward graph in fp32, is to be by 8 bits. f may be NULL: what is recorded
 * in c counts. */
bool qn_f8_choice_of(const QnF8Choice *f, const QnChoices *c, const QnNode *n);

/* For the run's folder. */
QnStatus qn_f8_choice_record(const QnF8Choice *f, QnChoices *c);
/* Adds to c what a run has recorded of itself. */
QnStatus qn_f8_choice_recall(const QnChoices *run, QnChoices *c);

/* One line for the log. */
void qn_f8_choice_tell(const QnF8Choice *f, char *text, size_t bytes);

/* ---- measuring ---- */

#define QN_F8_GAIN 0.97 /* fp8 is taken where it needs no more than so much of bf16's time */

typedef struct QnF8Time {
    bool is_emulated; /* the device has no such product: nothing was timed */
    double bf16_ns, fp8_ns;
} QnF8Time;

/* Times the product and its gradients; kernels as c (may be NULL) has them. */
QnStatus qn_f8_measure(QnDevice *d, const QnChoices *c, const QnF8Product *p, QnF8Time *out);
/* Keeps the answer in c, and in p. */
QnStatus qn_f8_choice_set(QnDevice *d, QnChoices *c, QnF8Product *p, const QnF8Time *t);

#endif
