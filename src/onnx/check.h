/* Results beside expected ones. */
#ifndef QN_ONNX_CHECK_H
#define QN_ONNX_CHECK_H

#include "onnx/onnx.h"

/* |got - want| <= atol + rtol |want|; NaN equals NaN, infinity its own kind. Integers, booleans and
 * strings must be equal. */
typedef struct QnTolerance {
    double rtol, atol;
} QnTolerance;

typedef struct QnDifference {
    bool is_equal;
    char text[512];      /* the first difference: place, both values; or which types */
    double largest;      /* |got - want|, over all elements of all tensors */
    int64_t n_different; /* elements */
    int64_t n_compared;  /* elements of tensors of the same type */
    struct {             /* the element that is farthest off; a NaN or infinity alone: infinitely */
        double error, got, want;
        char at[160]; /* "[0,2]"; empty: all numbers are the same */
    } worst;
} QnDifference;

/* Items of the same kind; sequences item by item. Adds to *d. */
void qn_item_compare(const QnItem *got, const QnItem *want, const QnTolerance *tol,
                     const char *name, QnDifference *d);
/* For results of random operators: the same type, and mean and deviation as expected from so many
 * draws. */
void qn_item_compare_random(const QnItem *got, const QnItem *want, const char *name,
                            QnDifference *d);

/* A case of the ONNX test suites: a folder with model.onnx and test_data_set_*. */
typedef enum QnCaseResult {
    QN_CASE_PASS,
    QN_CASE_DIFFERENT,
    QN_CASE_UNSUPPORTED,
    QN_CASE_FAILED,
    QN_CASE_COUNT
} QnCaseResult;
extern const char *const qn_case_names[QN_CASE_COUNT];

typedef struct QnCase {
    QnCaseResult result;
    char op[64]; /* what the case is about: the operator that it has first */
    int64_t opset;
    char text[1024]; /* why it did not pass */
} QnCase;

/* Runs all data sets of the folder; never fails, but says so in *out. tol NULL: rtol 1e-3, atol
 * 1e-7, as the suite has them. */
void qn_case_run(const char *folder, QnDevice *d, const QnTolerance *tol, QnCase *out);
/* One data set (input_0.pb …, output_0.pb …) with an opened model. */
QnStatus qn_case_check(const QnOnnxModel *m, const char *set, QnDevice *d, const QnTolerance *tol,
                       QnDifference *diff, QnOnnxProblems *problems);
/* The folder's input_0.pb …, in[i] for input i. Old files list their weights among the inputs:
 * where there are as many files as inputs that are no weights, they are those. */
QnStatus qn_case_inputs(const QnOnnxGraph *g, const char *set, QnArena *arena, QnItem **in);
/* Operators of the model that draw random numbers. */
bool qn_case_is_random(const QnOnnxGraph *g);

#endif
