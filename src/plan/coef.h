/* The coefficients of the cost model: what share of a data sheet's figures is reached, by software
 * stack and architecture, and what each kernel and step costs besides. */
#ifndef QN_PLAN_COEF_H
#define QN_PLAN_COEF_H

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
       QN_COEF_MOVE,      /* share of the memory bandwidth */
       QN_COEF_LAUNCH_US, /* between the starts of two kernels */
       QN_COEF_STEP_US,   /* of a step, whatever is in it */
       QN_COEF_SPREAD,    /* 80 % of what was measured lies within a factor of exp(this) */
       QN_COEFS_OF_TIER
};

enum { /* of an architecture: factors on the above */
       QN_COEF_COMPUTE,
       QN_COEF_TENSOR, /* for products in 16 bits and less, tf32 too */
       QN_COEF_MEMORY,
       QN_COEFS_OF_ARCH
};

enum {                  /* of all */
       QN_COEF_HALF_K,  /* a product this deep runs at half its best rate */
       QN_COEF_HALF_MB, /* kernels that move this much reach half the bandwidth */
       QN_COEF_LINK,    /* share of PCIe's rate in an all-reduce between peers */
       QN_COEF_LINK_US, /* latency of one hop */
       QN_COEF_OVERLAP, /* share of the backward pass behind which communication hides */
       QN_COEF_HOST,    /* share of it through the memory of the host */
       QN_COEFS_OF_ALL
};

enum { QN_ARCHS = 13 };

typedef struct QnCoefs {
    double tier[QN_TIERS][QN_COEFS_OF_TIER];
    double arch[QN_ARCHS][QN_COEFS_OF_ARCH];
    double all[QN_COEFS_OF_ALL];
    QnFleet fleet; /* of many devices: its own table and fits */
} QnCoefs;

enum { QN_COEF_COUNT = offsetof(QnCoefs, fleet) / sizeof(double) };

/* What is known of the i-th of all, in the order of the struct. */
typedef struct QnCoefInfo {
    char name[64];          /* "eager.conv", "volta.tensor", "all.link" */
    double start, min, max; /* of the fit */
} QnCoefInfo;
QnCoefInfo qn_coef_info(int i);
double *qn_coef_at(QnCoefs *c, int i);

void qn_coefs_start(QnCoefs *c); /* before any fit */
/* The embedded table plan/coefficients.csv over the start values. */
QnStatus qn_coefs_open(QnCoefs *c);
QnStatus qn_coefs_parse(QnCoefs *c, const char *path, const char *text, size_t bytes);

const char *qn_tier_name(QnTier tier);
QnStatus qn_tier_find(const char *name, QnTier *tier);
/* Row of QnCoefs.arch. */
int qn_arch_of(const QnCard *card);

#endif
