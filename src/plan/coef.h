/* The coefficients of the cost model: what share of a data sheet's figures is reached, by software
 * stack and architecture, and what each kernel and step costs besides. */
#ifndef QN_PLAN_COEF_H
#define QN_PLAN_COEF_H

#include "base/str.h"
#include "plan/fleet.h"

/* The software that runs the model: on equal hardware it moves throughput by up to three times. */
typedef enum QnTier {
    QN_TIER_QUERN,
    QN_TIER_EAGER,      /* PyTorch as it is, images (N,C,H,W) */
    QN_TIER_CHANNELS,   /* the same with images (N,H,W,C) */
    QN_TIER_COMPILED,   /* torch.compile, XLA */
    QN_TIER_TENSORFLOW, /* TensorFlow and MXNet */
    QN_TIER_FUSED,      /* kernels made for one benchmark: MLPerf submissions */
    QN_TIER_MEGATRON,   /* training of large language models */
    QN_TIER_TENSORRT,   /* engines for inference */
    QN_TIER_LLAMA_CPP,
    QN_TIER_HABANA,
    QN_TIER_OLD, /* before 2018: Caffe2, Torch7, PyTorch 0.x */
    QN_TIERS
} QnTier;

enum { /* of a tier */
       QN_COEF_GEMM,
       QN_COEF_CONV,
       QN_COEF_DEPTHWISE,
       QN_COEF_ATTENTION,
       QN_COEF_RECURRENT,
       QN_COEF_MOVE,      /* share of the memory bandwidth in maps, norms and sums */
       QN_COEF_GAP_US,    /* between two kernels on the device */
       QN_COEF_LAUNCH_US, /* of the host, for each kernel */
       QN_COEF_UPDATE,    /* launches of the optimizer for each tensor */
       QN_COEF_STEP_US,   /* of a step, whatever is in it */
       QN_COEF_SPREAD,    /* standard deviation of what is left, as a logarithm */
       QN_COEFS_OF_TIER
};

enum { /* of an architecture: factors on the above */
       QN_COEF_COMPUTE,
       QN_COEF_TENSOR, /* for products in 16 bits and less, tf32 too */
       QN_COEF_MEMORY,
       QN_COEFS_OF_ARCH
};

enum {                   /* of all */
       QN_COEF_HALF_K,   /* a product this deep runs at half its best rate */
       QN_COEF_WINOGRAD, /* how much faster 3x3 convolutions are without matrix units */
       QN_COEF_STREAM,   /* share of the memory bandwidth in products */
       QN_COEF_SCATTER,  /* share of `move` in gathers and sorts */
       QN_COEF_CACHE,    /* the last cache's rate over the memory's */
       QN_COEF_POWER,    /* exponent: how power limits the rate of products */
       QN_COEF_ASYNC,    /* exponent: how host and device overlap, 1 not at all */
       QN_COEF_COPY_GBS, /* of pageable memory to the device, where a step waits for that */
       QN_COEF_LINK,     /* share of PCIe's rate in an all-reduce between peers */
       QN_COEF_LINK_US,  /* latency of one hop */
       QN_COEF_OVERLAP,  /* share of the backward pass behind which communication hides */
       QN_COEF_HOST,     /* share of it through the memory of the host */
       QN_COEF_REPLICA,  /* the host's work for each device where one process drives them all */
       QN_COEF_INTERVAL, /* half the width of an interval in standard deviations */
       QN_COEF_INTERVAL_CARD,  /* the same where the device is not known */
       QN_COEF_INTERVAL_MODEL, /* and the model */
       QN_COEFS_OF_ALL
};

enum { QN_ARCHS = 15 };

typedef struct QnCoefs {
    double tier[QN_TIERS][QN_COEFS_OF_TIER];
    double arch[QN_ARCHS][QN_COEFS_OF_ARCH];
    double all[QN_COEFS_OF_ALL];
    QnFleet fleet; /* of many devices: its own table and fits */
    /* The lines of the table after those: what known devices, models and stacks deviate by (see
     * effect.h), sorted; of the text that was parsed. */
    const char *effects;
    size_t effects_bytes;
} QnCoefs;

enum {
    QN_COEF_COUNT = QN_TIERS * QN_COEFS_OF_TIER + QN_ARCHS * QN_COEFS_OF_ARCH + (int)QN_COEFS_OF_ALL
};

/* What is known of the i-th of all, in the order of the struct. */
typedef struct QnCoefInfo {
    char name[64];          /* "eager.conv", "volta.tensor", "all.link" */
    double start, min, max; /* of the fit */
    int tier, arch;         /* whose it is, -1: not a tier's, not an architecture's */
    int which;              /* of the enums above */
} QnCoefInfo;
QnCoefInfo qn_coef_info(int i);
double *qn_coef_at(QnCoefs *c, int i);

void qn_coefs_start(QnCoefs *c); /* before any fit */
/* The embedded table plan/coefficients.csv over the start values. */
QnStatus qn_coefs_open(QnCoefs *c);
/* The text must outlive c. */
QnStatus qn_coefs_parse(QnCoefs *c, const char *path, const char *text, size_t bytes);

/* As qn_coefs_parse reads it. */
void qn_coefs_print(const QnCoefs *c, QnStr *table);

const char *qn_tier_name(QnTier tier);
QnStatus qn_tier_find(const char *name, QnTier *tier);
/* Whether it runs each operation as a kernel of its own. */
bool qn_tier_is_eager(QnTier tier);
/* Row of QnCoefs.arch. */
int qn_arch_of(const QnCard *card);
const char *qn_arch_name(int arch);
/* Whether the card is a processor that computes for itself. */
bool qn_card_is_cpu(const QnCard *card);

#endif
