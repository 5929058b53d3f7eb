/* The parts of quern_bench_gpu: rows that build a graph, check what it computes, and time it on one
 * device. A row that fails says why, and the others go on. */
#ifndef QN_BENCH_GPU_H
#define QN_BENCH_GPU_H

#include "nn/optim.h"
#include "rt/plan.h"

typedef struct Options {
    const char *device, *json, *only; /* json, only: NULL unless given */
    bool quick;
    bool fp32;      /* nets train in f32 instead of bf16 */
    double seconds; /* to time each row for */
    double limit_s; /* of the whole; what comes later is left out. 0: none */
    double peak;    /* FLOP/s of the device's data sheet, for MFU; 0: the measured product's */
} Options;

typedef struct Result {
    char name[64];
    const char *part; /* "limits", "nets", "operators" */
    double rate;      /* 0: none */
    const char *unit; /* of the rate, a second */
    double ns;        /* of one run; 0: not timed */
    double share;     /* of the limit that binds it; NaN: none */
    double first_s;   /* from an empty graph to the end of the first run; NaN: not told */
    double flops;     /* of one run, as MFU counts them; 0: not told */
    int64_t params;   /* of a net; 0: none */
    char note[200], goal[64];
    bool failed;
} Result;

typedef struct Bench {
    Options o;
    QnDevice *device;
    double copy;       /* bytes a second, read and written, of the device's own copies */
    double product[2]; /* FLOP/s of a large matrix product in f32, bf16 */
    int64_t begin_ns;
    Result *results;
    int64_t n, cap;
    int n_failed;
} Bench;

/* ---- report.c ---- */
Result bench_result(const char *part, const char *name);
/* Prints it and keeps it. */
QnStatus bench_report(Bench *b, const Result *r);
/* The same for a row that failed with the last error. */
QnStatus bench_report_failure(Bench *b, const char *part, const char *name);
void bench_heading(const char *part);
QnStatus bench_write_json(const Bench *b, const char *path);
/* FLOP/s that MFU is of. */
double bench_peak(const Bench *b);
/* Whether the row is to be run: by its name, and as long as there is time. */
bool bench_wants(const Bench *b, const char *name);

/* ---- made.c ---- */

enum { MAX_WHOLE = 9 };

typedef struct Whole { /* a state of integers or bools, which lie in lo..hi */
    const char *name;  /* borrowed until made_finish */
    double lo, hi;
} Whole;

/* A graph made ready to run. Inputs are states, so that they stay on the device. */
typedef struct Made {
    QnGraph *g;
    QnStore *store;
    QnPlan *plan;
    Whole whole[MAX_WHOLE];
    int n_whole;
    int64_t begin_ns;
    double first_s; /* from made_begin to the end of the first run */
} Made;

QnStatus made_begin(Made *m);
/* An input that keeps its content: floats are drawn from [lo, hi), the rest from lo..hi. */
QnValue *made_data(Made *m, const char *name, QnDtype dtype, const QnShape *s, double lo,
                   double hi);
/* Passes, states and plan. Inputs hold nothing yet: without a run, they are written first. */
QnStatus made_plan(Bench *b, Made *m, bool no_capture);
/* The same, and the first run. */
QnStatus made_finish(Bench *b, Made *m, bool no_capture);
void made_free(Made *m);
/* Best time of one run, all of it; *host: of the calls alone, before the device is done. */
QnStatus made_time(Bench *b, Made *m, double seconds, double *ns, double *host);
/* "as one graph", or why not. */
const char *made_how(const Made *m);
/* What all steps do and move; `products`: only matrix products, convolutions and attention. */
QnCost made_cost(const Made *m, bool products);
bool made_is_product(const char *op);
QnStatus bench_wait(Bench *b);

/* ---- the rows ---- */
QnStatus bench_limits(Bench *b);
QnStatus bench_nets(Bench *b);
QnStatus bench_operators(Bench *b);

#endif
