/* What a step computes and moves: the graph of a model through the passes and the plan of the null
 * device, as a short list of equal pieces of work. Nothing is computed and no weight is allocated,
 * so a model of any size can be counted. */
#ifndef QN_PLAN_COUNT_H
#define QN_PLAN_COUNT_H

#include "plan/models.h"
#include "rt/device.h"
#include "rt/plan.h"

typedef enum QnWorkKind {
    QN_WORK_GEMM,      /* matrix products */
    QN_WORK_CONV,      /* convolutions, as the products that they are */
    QN_WORK_DEPTHWISE, /* convolutions of few channels a group, which memory bounds */
    QN_WORK_ATTENTION,
    QN_WORK_MOVE,      /* maps, norms, sums, pools: what memory bounds */
    QN_WORK_UPDATE,    /* the optimizer */
    QN_WORK_RECURRENT, /* the product of one time step of a recurrent net, which waits for the last
                        */
    QN_WORK_GATHER,    /* rows by their numbers: embeddings and their gradients */
    QN_WORK_SORT,      /* sorting, the largest k, running sums */
    QN_WORK_KINDS
} QnWorkKind;

/* One kernel, `count` times. Products are m x n x k, `groups` of them. */
typedef struct QnWork {
    QnWorkKind kind;
    const char *op;              /* the operator's name; static */
    const char *kernel;          /* of QnCountRequest.here that runs it; static, else NULL */
    double flops, read, written; /* of one */
    double m, n, k, groups;      /* of attention: queries, keys, width and number of heads */
    double count;
    bool winograd; /* a convolution that fewer multiplications can do: 3x3 at stride 1 */
} QnWork;

typedef struct QnCountRequest {
    bool train;       /* else one pass forward */
    bool recompute;   /* cheap values are computed again rather than kept, all that can be */
    int low;          /* 0: float32; 1: 16 bits, weights also in 32; 2: all in 16 bits */
    int64_t batch;    /* examples of one device */
    int64_t image;    /* height; 0: the model's own */
    int64_t width;    /* 0: as image, or the model's own */
    int64_t depth;    /* of volumes, likewise */
    int64_t sequence; /* tokens; 0: the model's own, or 1 where it generates */
    /* One step of generation: `sequence` new tokens after `context` others, of which keys and
     * values are kept; scores of the last one alone. context 0 is the prompt. */
    bool generate;
    int64_t context;
    int64_t source; /* tokens that the answers of models which read and write apart are about */
    /* Bits of a matrix's weight where they are fewer than what is computed with (low 2 alone): 4.85
     * for q4_K_M. 0: they are not. */
    double weight_bits;
    double cache_bits; /* likewise of what generation keeps */
    QnDevice *here;    /* the passes are those of this device, and all steps count; NULL: of none */
    const struct QnChoices *choices; /* of its kernels, or NULL */
    bool unfused; /* each operation is a kernel: frameworks that compile nothing */
} QnCountRequest;

typedef struct QnCount {
    QnWork *work;
    int64_t n_work, cap_work;
    double params;
    double macs;         /* multiply-adds of the pass forward: convolutions and products */
    double matrices;     /* those of params that are in matrices */
    double trained;      /* those whose gradients data-parallel devices sum: not what is frozen, nor
                          * rows of large tables */
    double tables;       /* those of large tables, which devices divide among each other */
    double flops, bytes; /* of all work */
    /* memory, bytes */
    double weights, gradients, optimizer, activations;
    double cache;            /* what generation keeps between steps */
    double examples, tokens; /* of a step */
} QnCount;

/* One step of a plan. */
QnWork qn_work_of(const QnPlanStep *s, const QnCountRequest *r);
/* null_device: opened as "null". An error names the model and, where the graph was at fault, the
 * node. */
QnStatus qn_count_model(const QnModel *m, const QnCountRequest *r, QnDevice *null_device,
                        QnCount *out);
void qn_count_fini(QnCount *c);

#endif
