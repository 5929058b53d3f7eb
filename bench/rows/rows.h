/* Rows of the speed table: each is a graph built as training builds it, timed as a plan. */
#ifndef QN_BENCH_ROWS_H
#define QN_BENCH_ROWS_H

#include "backend/cpu/limits.h"
#include "nn/optim.h"
#include "rt/select.h"

typedef struct Row Row;

/* What a row builds into: a graph, the net that collects its parameters, and what its inputs of
 * integers may hold. */
typedef struct Build {
    QnGraph *g;
    QnNet *net;
    const int64_t *dim; /* the row's */
    int64_t classes;    /* labels and tokens lie below */
    bool bf16;          /* products in bfloat16; g is then another graph in the end */
} Build;

typedef enum Unit {
    UNIT_GFLOPS, /* work: FLOPs of a run */
    UNIT_GBPS,   /* work: bytes of a run */
    UNIT_IMAGES, /* a second; work: images of a run */
    UNIT_S,
    UNIT_MS,
    UNIT_US,
    UNIT_MB, /* resident at most, of this process */
} Unit;

typedef enum How {
    HOW_PLAN,       /* the plan's run */
    HOW_LAYOUTS,    /* the same in both orders of images, and the faster counts: inside a net the
                     * layout pass chooses between them */
    HOW_EPOCH,      /* an epoch of a recipe, with its loader */
    HOW_STEP,       /* a step of a recipe */
    HOW_FIRST_STEP, /* from the start of the process to the end of a recipe's first step */
    HOW_MEMORY,     /* a few runs, for what they take */
} How;

struct Row {
    const char *name;
    Unit unit;
    How how;
    QnStatus (*build)(Build *b, QnLayout layout); /* of plans */
    int64_t dim[6];
    double work;
    bool evaluates; /* built as for prediction */
    bool bf16;      /* trains in mixed precision */
};

/* NULL: there is no such row. */
const Row *row_find(const char *name);
const Row *row_at(int i); /* NULL past the end */

/* ---- builders (ops.c, nets.c) ---- */
QnStatus build_matmul(Build *b, QnLayout layout);      /* M, N, K */
QnStatus build_matmul_bf16(Build *b, QnLayout layout); /* M, N, K */
QnStatus build_conv(Build *b, QnLayout layout);        /* N, C, H, M, kernel, stride */
QnStatus build_conv_dx(Build *b, QnLayout layout);
QnStatus build_conv_dw(Build *b, QnLayout layout);
QnStatus build_softmax(Build *b, QnLayout layout); /* rows, columns */
QnStatus build_layer_norm(Build *b, QnLayout layout);
QnStatus build_gelu(Build *b, QnLayout layout);
QnStatus build_adamw(Build *b, QnLayout layout);        /* tensors, rows, columns */
QnStatus build_block(Build *b, QnLayout layout);        /* B, T, C, heads */
QnStatus build_mlp(Build *b, QnLayout layout);          /* batch */
QnStatus build_resnet_train(Build *b, QnLayout layout); /* batch */
QnStatus build_resnet_infer(Build *b, QnLayout layout); /* batch */
QnStatus build_gpt2(Build *b, QnLayout layout);         /* batch, tokens */

/* ---- measuring (measure.c, recipe.c) ---- */

typedef struct MeasureOptions {
    int n_threads;
    double seconds;      /* to measure for */
    bool cpu_time;       /* of this process; a measure for one thread on a busy machine */
    bool profile;        /* print where the time goes */
    bool tune;           /* choose kernels for what was never measured, and keep the choices */
    const char *choices; /* file of choices; NULL: ranks decide */
    QnLimits peaks;      /* zeros: to be measured */
    const char *recipe;
} MeasureOptions;

int64_t measure_clock_ns(const MeasureOptions *o);

typedef struct Measured {
    double value;
    double limit;       /* the same, at the measured peaks of the machine; NaN: there is none */
    int64_t runs;       /* the value is the median of */
    const char *layout; /* that was faster, of a row that tries both; else NULL */
} Measured;

typedef struct Bench Bench;

/* Builds, compiles and, if asked, tunes. */
QnStatus bench_open(const Row *row, const MeasureOptions *o, Bench **out);
QnStatus bench_measure(Bench *b, Measured *out); /* again and again */
void bench_close(Bench *b);

typedef struct RecipeBench RecipeBench;
/* o, d and choices are borrowed. */
QnStatus recipe_open(const Row *row, const MeasureOptions *o, QnDevice *d, const QnChoices *choices,
                     RecipeBench **out);
QnPlan *recipe_plan(const RecipeBench *r);
int64_t recipe_steps(const RecipeBench *r); /* of one run */
/* Nanoseconds of one run: an epoch, or a step. */
QnStatus recipe_run(RecipeBench *r, double *ns);
void recipe_close(RecipeBench *r);

/* What a plan, made to profile, spends between begin and end, which prints it. */
typedef struct Profile {
    const QnPlan *plan;
    uint64_t *ns; /* of each step before */
    uint64_t runs;
} Profile;
QnStatus profile_begin(const QnPlan *p, Profile *out);
QnStatus profile_end(Profile *f, const QnLimits *limits);

#endif
