/* Decision trees as a graph: all trees step down at once, a level at a time. */
#ifndef QN_ONNX_FOREST_H
#define QN_ONNX_FOREST_H

#include "ops/onnx.h"

typedef enum QnForestTest { /* which way a node sends x[feature]; numbers as TreeEnsemble-5's */
                            QN_FOREST_LEQ,
                            QN_FOREST_LT,
                            QN_FOREST_GTE,
                            QN_FOREST_GT,
                            QN_FOREST_EQ,
                            QN_FOREST_NEQ,
                            QN_FOREST_MEMBER, /* of a set */
                            QN_FOREST_LEAF,
} QnForestTest;

typedef struct QnForestNode {
    QnForestTest test;
    bool nan_yes;         /* NaN goes to `yes` */
    int64_t feature;      /* of x */
    double value;         /* what x[feature] is compared with */
    int64_t yes, no;      /* nodes */
    const double *member; /* the set */
    int64_t n_members;
} QnForestNode;

typedef struct QnForest {
    QnForestNode *node; /* room for `cap` */
    int64_t n, cap;
    int64_t *root;
    int64_t n_trees;
    double *weight; /* what a leaf adds: (n,targets) */
    int64_t targets;
    int64_t depth; /* found by qn_forest_check */
} QnForest;

typedef enum QnForestFold { /* of the trees' weights; numbers as TreeEnsemble-5's */
                            QN_FOREST_AVERAGE,
                            QN_FOREST_SUM,
                            QN_FOREST_MIN,
                            QN_FOREST_MAX,
} QnForestFold;

/* Room for n nodes, none of which is set; weights are zeros. */
QnStatus qn_forest_new(QnOnnxNode *n, int64_t nodes, int64_t trees, int64_t targets, QnForest *f);
/* That nodes and features exist, and that each tree is one; sets are written out as comparisons. */
QnStatus qn_forest_check(QnOnnxNode *n, QnForest *f, int64_t features);
/* x (N,features) of a float dtype, which comparisons and sums are in, to (N,targets). */
QnValue *qn_forest_emit(QnGraph *g, const QnForest *f, QnValue *x, QnForestFold fold);

#endif
