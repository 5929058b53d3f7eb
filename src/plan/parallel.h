/* A step of training on many devices: data, tensor, pipeline and context parallel, ZeRO,
 * micro-batches, recomputation. Megatron's rules, on the counted layers of the model. */
#ifndef QN_PLAN_PARALLEL_H
#define QN_PLAN_PARALLEL_H

#include "plan/comm.h"
#include "plan/cost.h"
#include "plan/split.h"

typedef enum QnRecompute {
    QN_RECOMPUTE_NONE,
    QN_RECOMPUTE_SELECTIVE, /* attention's scores */
    QN_RECOMPUTE_HALF,      /* every second layer from its input */
    QN_RECOMPUTE_FULL,      /* each */
    QN_RECOMPUTES
} QnRecompute;
const char *qn_recompute_name(QnRecompute r);

typedef struct QnSharding {
    int data, tensor, pipeline, context;
    int zero;       /* 0 to 3: optimizer, gradients and weights divided among the data groups */
    int interleave; /* pieces of the pipeline that a device holds */
    bool sequence_parallel;
    bool overlap_tensor; /* collectives of the tensor group behind its products */
    QnRecompute recompute;
    int64_t micro_batch, global_batch; /* sequences */
} QnSharding;

/* What the software does, beside the layout. */
typedef struct QnTraining {
    const QnCard *card;
    QnNumbers numbers;
    QnLinks links;
    bool flash;         /* attention is one kernel: no scores in memory, causal ones at half */
    bool tuned;         /* attention made for the device (FlashAttention-3, cuDNN), even rings */
    bool overlap;       /* gradients travel behind the last micro-batch, what stages send behind
                         * their work */
    bool offload;       /* the optimizer and its state are the host's */
    double host;        /* factor on what a launch costs the host; below 1 where it compiles */
    double compression; /* of gradients; 1: none */
    double logit_bytes; /* that each score of a class keeps; 0: the loss is worked out in pieces */
} QnTraining;

typedef struct QnParallelMemory {
    double weights, gradients, optimizer, activations, reserve, total; /* of the fullest device */
} QnParallelMemory;

typedef struct QnParallelResult {
    double step_s;
    /* its parts, which add up */
    double compute_s, bubble_s, tensor_s, pipeline_s, data_s, update_s;
    double host_share; /* of compute_s that waits for launches */
    QnParallelMemory memory;
    bool fits;
    double flops, mfu; /* of all devices; attention counted in full, recomputation not */
    double exposed;    /* share of the step that is communication nobody hides */
} QnParallelResult;

/* An error says what of the layout cannot be: devices that do not divide layers or batches. */
QnStatus qn_parallel_check(const QnSplit *s, const QnSharding *l);
QnStatus qn_parallel_step(const QnSplit *s, const QnSharding *l, const QnTraining *t,
                          const QnFleet *f, QnParallelResult *out);
QnParallelMemory qn_parallel_memory(const QnSplit *s, const QnSharding *l, const QnTraining *t);
/* Share of the data sheet's rate for products that the best of them reach, against an A100's. */
double qn_parallel_reach(const QnCard *card);

#endif
