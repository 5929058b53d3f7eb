/* `precision: auto`: each layer, that is each weight that products or look-ups read, computes in a
 * type of its own, which follows the statistics of its gradients. Before some updates a probe
 * computes the gradients in fp32 on the first samples of the batch; a policy (precision_policy.h)
 * decides, a trial step confirms, and the training graph is built anew. Where it stands is a state
 * of the run beside the optimizer's, so that a resumed run decides alike. */
#ifndef QN_TRAIN_PRECISION_AUTO_H
#define QN_TRAIN_PRECISION_AUTO_H

#include "base/json.h"
#include "train/precision_policy.h"
#include "train/session.h"

/* Of a step as long as the session's, in one precision. */
typedef struct QnAutoCost {
    bool known;            /* a device may have had no room for another plan */
    QnCost step;           /* one micro-batch: forward, backward, and the update if it is in it */
    int64_t planned_bytes; /* its activations and workspaces */
} QnAutoCost;
enum { QN_AUTO_COMPARED = 4 }; /* auto as it stands, bf16, fp16, fp32 */

typedef struct QnAutoPrecision {
    QnArena *arena;
    QnAutoLayer *layers; /* in the order in which the graph reads them */
    int64_t n, cap;
    int64_t switches;
    bool suspect; /* the last update was left out: a probe is due, whatever its number */
} QnAutoPrecision;

/* One layer's move; texts live until the callback returns. */
typedef struct QnAutoSwitch {
    int64_t update; /* before which */
    const char *layer;
    QnPrecision from, to;
    QnPrecision of; /* the type that stats are of */
    QnRoundingStats stats;
    const char *why; /* a line for the log */
} QnAutoSwitch;
typedef QnStatus (*QnAutoTell)(void *ctx, const QnAutoSwitch *s);

/* The parameter among a node's inputs, moved or as it is; NULL: none. */
const char *qn_auto_weight_of(const QnNode *n);

/* Layers of a forward graph in fp32. */
QnStatus qn_auto_new(const QnSession *s, const QnGraph *g, QnAutoPrecision **out);
void qn_auto_free(QnAutoPrecision *m);
/* All in fp8 that may be, others in fp32: so built, a graph has every state that a run may need. */
void qn_auto_widest(QnAutoPrecision *m);
void qn_auto_reset(QnAutoPrecision *m);
/* A graph with no more than the policy's own state. */
QnStatus qn_auto_state_graph(const QnAutoPrecision *m, QnGraph **out);

/* For QnPrecisionOptions.of. Products without a weight compute as the one before them in the graph.
 */
typedef struct QnAutoChoice {
    const QnAutoPrecision *mix;
    QnDtype last;
} QnAutoChoice;
QnDtype qn_auto_of(void *choice, const QnNode *n);

/* Appends what a probe reads: "grad_norm" over the parameters, and by layer the gradients of its
 * weight and of what its products give, and that itself. */
QnStatus qn_auto_watch(const QnAutoPrecision *m, QnGraph *g, QnValue *loss, QnValue *const *params,
                       int n_params);

/* Before an update, on its first batch: probes if that is due, and tells of every switch. */
QnStatus qn_auto_step(QnSession *s, const QnBatch *b, int64_t update, QnAutoTell tell, void *ctx);
/* After it. left_out: its gradients were not finite. */
void qn_auto_count(QnAutoPrecision *m, bool left_out);

/* To the store before a checkpoint, and from it after one was loaded (which builds the graphs). */
QnStatus qn_auto_keep(const QnSession *s);
QnStatus qn_auto_recall(QnSession *s);

QnAutoCost qn_auto_cost(const QnSession *s, QnPrecision precision);
/* The share of updates times layers in each type, and what steps of qn_auto_cost cost, in the order
 * of QN_AUTO_COMPARED. */
QnStatus qn_auto_report(const QnSession *s, const QnAutoCost *costs, QnStr *out);
void qn_auto_report_json(const QnSession *s, const QnAutoCost *costs, QnJsonWriter *w);
/* The costs of all that is compared; nothing where the session has no such precision. */
void qn_auto_costs(const QnSession *s, QnAutoCost costs[QN_AUTO_COMPARED]);

#endif
