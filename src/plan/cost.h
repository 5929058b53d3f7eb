/* Time, memory, energy and money of counted work on a device. */
#ifndef QN_PLAN_COST_H
#define QN_PLAN_COST_H

#include "plan/coef.h"
#include "plan/count.h"

typedef enum QnNumbers {
    QN_NUMBERS_FP32,
    QN_NUMBERS_TF32,
    QN_NUMBERS_FP16_AMP,
    QN_NUMBERS_BF16_AMP,
    QN_NUMBERS_FP16,
    QN_NUMBERS_BF16,
    QN_NUMBERS_INT8,
    QN_NUMBERS_FP8,
    QN_NUMBERS_COUNT
} QnNumbers;

const char *qn_numbers_name(QnNumbers p);
QnStatus qn_numbers_find(const char *name, QnNumbers *p);
int qn_numbers_low(QnNumbers p, bool train); /* for QnCountRequest.low */

/* What holds a step back most. */
typedef enum QnLimit {
    QN_LIMIT_COMPUTE,
    QN_LIMIT_MEMORY,
    QN_LIMIT_LAUNCH,
    QN_LIMIT_LINK,
    QN_LIMITS
} QnLimit;
const char *qn_limit_name(QnLimit limit);

typedef struct QnCostRequest {
    const QnCard *card;
    int n_cards; /* data-parallel; the count is of one card's batch */
    QnNumbers numbers;
    QnTier tier;
    bool train;
    bool no_update; /* forward and backward alone */
    /* What the run is, where that is known; NULL: not */
    const char *model, *family, *framework;
    double copied_bytes; /* from the host in each step, which waits for it */
    double ways;         /* devices that share each step of serving, 0 and 1: none */
    double weight_bits;  /* of matrices, as counted; 0: as the numbers */
    bool decodes;        /* most of the time goes into one token after the other */
    bool bridged;        /* NVLink between pairs of cards that have a bridge for it */
    bool accumulates;    /* gradients of so many steps that update and all-reduce hardly count */
    bool one_process;    /* weights go out from one device and gradients back to it, each step */
} QnCostRequest;

/* What a step's time is made of: factors of these are what effects (see effect.h) and coefficients
 * are. */
typedef enum QnTimePart {
    QN_PART_PLAIN, /* arithmetic without matrix units */
    QN_PART_TENSOR,
    QN_PART_MEMORY,
    QN_PART_GEMM, /* kernels by their kind, whatever bounds them */
    QN_PART_CONV,
    QN_PART_DEPTHWISE,
    QN_PART_ATTENTION,
    QN_PART_RECURRENT,
    QN_PART_MOVE,
    QN_PART_HOST,
    QN_PART_LINK,
    QN_PART_ALL,
    QN_EFFECT_PARTS,
    QN_PART_GEMM_RATE = QN_EFFECT_PARTS, /* of coefficients alone */
    QN_PART_CONV_RATE,
    QN_PART_DEPTHWISE_RATE,
    QN_PART_ATTENTION_RATE,
    QN_PART_RECURRENT_RATE,
    QN_PART_MOVE_RATE,
    QN_PART_GAP,
    QN_PART_LAUNCH,
    QN_PART_UPDATE,
    QN_PART_STEP,
    QN_PART_HALF_K,
    QN_PART_WINOGRAD,
    QN_PART_STREAM,
    QN_PART_SCATTER,
    QN_PART_CACHE,
    QN_PART_POWER,
    QN_PARTS
} QnTimePart;
const char *qn_part_name(QnTimePart part); /* of those that effects have */

typedef struct QnCostResult {
    double step_s;              /* expected */
    double low_s, high_s;       /* 80 % of cases lie within */
    double by_limit[QN_LIMITS]; /* seconds attributed to each */
    QnLimit limit;
    double busy_s; /* of step_s, in which the device runs kernels, one after the other */
    double mfu;    /* arithmetic that is really done / (step * peak_flops) of one card: Winograd's
                    * convolutions count as the fewer products that they are */
    double peak_flops; /* by the data sheet, of the arithmetic that is used: TF32's where fp32 runs
                        * faster than its own units could; 0: not known */
    double memory_bytes;  /* all terms and the reserve */
    double reserve_bytes; /* context, fragmentation */
    bool fits;
    double power_w;   /* of all cards */
    double deviation; /* standard, of the step's logarithm */
    double earlier;   /* factor in it by what n_earlier runs took; 0: there was none */
    int64_t n_earlier;
} QnCostResult;

/* An error says what the device cannot do. */
QnStatus qn_cost_step(const QnCount *c, const QnCostRequest *r, const QnCoefs *k,
                      QnCostResult *out);
/* A prompt's step (NULL: none) and `times` steps of c after it, as serving takes them. */
QnStatus qn_cost_steps(const QnCount *prompt, const QnCount *c, double times,
                       const QnCostRequest *r, const QnCoefs *k, QnCostResult *out);
/* One kernel of it, as qn_cost_step reckons; the device must have a peak rate. */
typedef struct QnWorkCost {
    double compute_s, memory_s, launch_s; /* each alone */
    double flops;                         /* that one device really does of it */
    double seconds;
    QnLimit limit;
} QnWorkCost;
QnWorkCost qn_cost_work(const QnWork *w, const QnCostRequest *r, const QnCoefs *k);

/* ---- for fits: the same reckoning with its derivatives ---- */

/* A kernel by what the data sheet alone says of it. */
typedef struct QnCostItem {
    QnWorkKind kind;
    bool winograd;         /* on other units, where that pays */
    bool tensor;           /* runs on matrix units */
    double compute;        /* seconds at peak rate, shape and waves reckoned in */
    double per_k;          /* 1 / depth of the product, 0: none */
    double memory, cached; /* seconds at the bandwidth: of what misses the cache, of what may hit */
    double watts;          /* log of peak TFLOP/s for each watt of the limit */
    double exchanged;      /* bytes that devices which share the step have to bring together */
    double count;
} QnCostItem;
/* Of one count; items: c->n_work of them. Returns how many. */
int64_t qn_cost_items(const QnCount *c, const QnCostRequest *r, QnCostItem *items);

typedef struct QnCostSum {
    double device_s;         /* without gaps */
    double kernels, updates; /* launches */
    double exchanges, exchanged;
    double compute_s, memory_s;
    double flops;            /* that are done, of qn_cost_steps alone */
    double part_s[QN_PARTS]; /* d device_s / d log(part) */
} QnCostSum;
/* log: of QN_EFFECT_PARTS. */
void qn_cost_add(QnCostSum *sum, const QnCostItem *items, int64_t n, const QnCostRequest *r,
                 const QnCoefs *k, const double *log, double times);
/* Seconds of it all; out may be NULL. `count` says what is reduced between devices. */
double qn_cost_close(const QnCostSum *sum, const QnCount *count, double steps,
                     const QnCostRequest *r, const QnCoefs *k, const double *log,
                     QnCostResult *out);

/* Peak rate of products, FLOP/s; 0: the data sheet has none. */
double qn_cost_peak(const QnCard *card, QnNumbers p);
/* Whether it has the precision itself, and does not fall back to a wider one. */
bool qn_cost_has(const QnCard *card, QnNumbers p);

#endif
