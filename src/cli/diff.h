/* `quern diff`: all values of a run beside their references. */
#ifndef QN_CLI_DIFF_H
#define QN_CLI_DIFF_H

#include "cli/cli.h"
#include "onnx/check.h"

typedef struct QnDiffSide { /* a model, run with all its values kept */
    QnOnnxModel *model;
    QnOnnxExposed all;
    QnItem **in, **out; /* of model; of all */
} QnDiffSide;

typedef struct QnDiffNames { /* in an arena */
    const char **name;
    int64_t n, cap;
} QnDiffNames;

typedef struct QnDiff {
    QnArena *arena;
    QnDevice *device;
    QnOnnxProblems problems;
    QnTolerance tolerance;
    QnDiffSide a, b;
    const char *folder; /* of the references; NULL: they are b's */
    /* found by qn_diff_compare: */
    int64_t bad; /* the first value that differs; -1: none */
    QnDifference difference;
    int64_t n_compared, n_different; /* values */
    int64_t n_agreed;                /* nodes before the bad one with references, all equal */
    QnDiffNames without;             /* values that have no reference */
    QnDiffNames unknown;             /* references that are no values of a */
} QnDiff;

/* ENOTFOUND: no value has a reference at all. */
QnStatus qn_diff_compare(QnDiff *d);
QnStatus qn_diff_print(const QnDiff *d);
QnStatus qn_diff_print_json(const QnDiff *d);

#endif
