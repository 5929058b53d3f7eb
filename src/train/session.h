/* A model made ready to train and to evaluate: graphs, parameters, plans, on one device. */
#ifndef QN_TRAIN_SESSION_H
#define QN_TRAIN_SESSION_H

#include "io/dataset.h"
#include "io/loader.h"
#include "nn/net.h"
#include "rt/plan.h"
#include "rt/staging.h"
#include "train/recipe.h"

typedef struct QnSession {
    const QnRecipe *recipe; /* borrowed */
    QnDevice *device;       /* borrowed */
    QnSampleSpec spec;
    QnPrecision precision;       /* the recipe's, or fp32 where the self-test asked for it */
    struct QnAutoPrecision *mix; /* precision auto, in training; else NULL */
    struct QnF8Choice *f8;       /* products that measurement decides on, in training; else NULL */
    QnPlanOptions planning;      /* of its plans */
    bool inference;              /* as the options say */
    bool no_passes;
    QnStore *store;
    struct QnModelFile *file; /* train/model_file.h; NULL: the model comes from no file */
    QnGraph *train_graph, *update_graph, *eval_graph;
    QnPlan *train_plan;  /* one micro-batch, forward and backward; the update too unless
                          * accumulate > 1 */
    QnPlan *update_plan; /* the update from accumulated gradients, or NULL */
    QnPlan *eval_plan;
    int64_t n_params; /* trainable numbers */
    int64_t batch, eval_batch;
    void *host_y;       /* labels of one evaluation batch, missing ones masked */
    float *host_weight; /* regression: 1 for samples that are there */
    float *host_logits; /* devices whose memory the host cannot read; else NULL */
    /* Devices that copy while they compute; else NULL. Each has x of the batch on its way, or NULL.
     */
    QnStaging *staging, *eval_staging;
    const void *sent, *eval_sent;
    int64_t eval_count; /* samples of the batch that eval_start was given */
    size_t trial_bytes; /* that the self-test took beside the plans, and gave back */
} QnSession;

typedef struct QnSessionOptions {
    const QnChoices *choices; /* kernel choices, or NULL; must outlive the session */
    bool training;            /* false: only what evaluation needs */
    bool profile, poison;
    bool no_passes;   /* run the graph as built (tests) */
    bool inference;   /* evaluation alone, by weights that are loaded into the store after this:
                       * they hold zeros, and nothing is planned until qn_session_freeze */
    bool build_only;  /* graphs as built, nothing else: for who looks at what would run */
    const char *onnx; /* the model's file, where the recipe has one; NULL: the recipe's */
    struct QnOnnxProblems *problems; /* all that keeps such a model from being trained; or NULL */
} QnSessionOptions;

/* Builds and compiles; parameters are initialised from the recipe's seed, or from its ONNX file.
 * The dataset's spec fixes input and output shapes. */
QnStatus qn_session_new(const QnRecipe *r, const QnSampleSpec *spec, QnDevice *d,
                        const QnSessionOptions *options, QnSession **out);
/* Of a session for inference, once its weights are loaded: they become constants, which passes
 * compute with and plans pack, and the store's memory is given back. After a failure the session
 * can only be freed. */
QnStatus qn_session_freeze(QnSession *s);
void qn_session_free(QnSession *s);

/* Bytes that session and plans take of the device. */
int64_t qn_session_planned_bytes(const QnSession *s);

/* Micro-batch number `micro` of the whole run in training mode; the last of each `accumulate` also
 * updates. *loss is the mean over the batch. */
typedef struct QnStepResult {
    double loss;
    double grad_norm;  /* NaN where it was not computed */
    double finite;     /* fp16: 0 if the update was left out; else NaN */
    double loss_scale; /* fp16: of this step; else NaN */
} QnStepResult;
QnStatus qn_session_step(QnSession *s, const QnBatch *b, int64_t micro, double lr,
                         QnStepResult *out);

/* The same in parts: between them the batch after this one can be sent, which travels while this
 * one is computed. The loader may then have been asked for it: `b` is needed by start alone. */
QnStatus qn_session_start(QnSession *s, const QnBatch *b, int64_t micro, double lr);
QnStatus qn_session_send(QnSession *s, const QnBatch *next);
QnStatus qn_session_finish(QnSession *s, QnStepResult *out);
/* Whether sending is of use. */
bool qn_session_sends(const QnSession *s);

/* After a step whose numbers were not finite: runs it again and names the first node that is to
 * blame, by failing with QN_ENUMERIC. QN_OK: this time all were finite. */
QnStatus qn_session_blame(QnSession *s, const QnBatch *b, int64_t micro, double lr);

/* Loss and norm of all gradients at the present parameters, on the first samples of a training
 * batch (at most QN_PROBE_SAMPLES) in a precision of one's choice. Nothing changes. fp16: where
 * gradients are not finite, at the largest loss scale at which they are. */
enum { QN_PROBE_SAMPLES = 32 };
QnStatus qn_session_probe(QnSession *s, const QnBatch *b, QnPrecision precision, double *loss,
                          double *grad_norm);
/* One step in fp32 and one in the session's precision, compared. If they differ by more than
 * QN_PROBE_LOSS (of 1 + the loss) or QN_PROBE_NORM (of the norm), *reason, a text of `bytes`, says
 * by how much and the session goes on in fp32; otherwise it is "". */
#define QN_PROBE_LOSS 0.02
#define QN_PROBE_NORM 0.1
#define QN_PROBE_FP8  3.0 /* times as much */
QnStatus qn_session_self_test(QnSession *s, const QnBatch *b, char *reason, size_t bytes);
/* Graphs and plans made anew in another precision; states keep what they hold. For inference:
 * before qn_session_freeze. */
QnStatus qn_session_set_precision(QnSession *s, QnPrecision precision);

/* Outputs of one batch in evaluation mode: (count, outputs) floats, or per token; loss_sum adds up
 * over the samples that are there. *logits is borrowed until the next call. */
typedef struct QnEvalResult {
    const float *logits;
    const void *labels; /* of the samples that are there; borrowed likewise */
    int64_t rows, outputs;
    double loss_sum; /* over rows that count */
    int64_t loss_rows;
} QnEvalResult;
QnStatus qn_session_eval(QnSession *s, const QnBatch *b, QnEvalResult *out);
/* The same in parts, as of qn_session_step. */
QnStatus qn_session_eval_start(QnSession *s, const QnBatch *b);
QnStatus qn_session_eval_send(QnSession *s, const QnBatch *next);
QnStatus qn_session_eval_finish(QnSession *s, QnEvalResult *out);

/* The model alone, for prediction: input "x", output "logits" (regression: "output"), no pass has
 * been over it. batch 0: a symbol of that name; a model of an ONNX file must have one. The session
 * must outlive the graph. */
QnStatus qn_session_model(const QnSession *s, int64_t batch, QnGraph **graph);

#endif
