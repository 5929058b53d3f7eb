/* Ensembles of decision trees: ways down, missing values, sums, labels, and files that are wrong.
 */
#include "one_node.h"

#define RUN(c, op, attr, n_attr, x, n_out)                                                         \
    one_run_items(c, "ai.onnx.ml", op, 5, attr, n_attr, (QnItem *[]){ one_item(c, x) }, 1, n_out)

enum { TREES, NODES, FEATURES, VALUES, MODES, YES, NO, NAN_YES, AT_TREE, AT_NODE, IDS, WEIGHTS, N };

/* Tree 7: x0 <= 1 ? (x1 > 2 ? leaf 3: leaf 4) : leaf 2, its nodes in no order; tree 9: one leaf. */
#define TWO_TREES(of)                                                                              \
    {                                                                                              \
        INTS_ATTR("nodes_treeids", 6, 7, 7, 7, 9, 7, 7),                                           \
            INTS_ATTR("nodes_nodeids", 6, 3, 0, 1, 0, 2, 4),                                       \
            INTS_ATTR("nodes_featureids", 6, 0, 0, 1, 0, 0, 0),                                    \
            FLOATS_ATTR("nodes_values", 6, 0, 1, 2, 0, 0, 0),                                      \
            TEXTS_ATTR("nodes_modes", 6, TEXT("LEAF"), TEXT("BRANCH_LEQ"), TEXT("BRANCH_GT"),      \
                       TEXT("LEAF"), TEXT("LEAF"), TEXT("LEAF")),                                  \
            INTS_ATTR("nodes_truenodeids", 6, 0, 1, 3, 0, 0, 0),                                   \
            INTS_ATTR("nodes_falsenodeids", 6, 0, 2, 4, 0, 0, 0),                                  \
            INTS_ATTR("nodes_missing_value_tracks_true", 6, 0, 1, 0, 0, 0, 0),                     \
            INTS_ATTR(of "_treeids", 4, 7, 7, 7, 9), INTS_ATTR(of "_nodeids", 4, 2, 3, 4, 0),      \
            INTS_ATTR(of "_ids", 4, 0, 0, 0, 0),                                                   \
            FLOATS_ATTR(of "_weights", 4, 0.125F, 0.25F, 0.5F, 0.25F),                             \
    }

/* Ways: x0 > 1; x1 <= 2; x0 missing, which counts as yes, then x1 > 2 …; x1 missing. */
static const float rows[] = { 1, 3, 0, 2, 2, 9, NAN, 0 };
static const QnTensor x = { .type = { .dtype = QN_DTYPE_F32, .shape = { 2, { 4, 2 } } },
                            .data = rows };

static void test_regressor(void **state)
{
    One c;
    QnOnnxAttr a[N + 2];
    const QnOnnxAttr fresh[N] = TWO_TREES("target");
    one_open(&c);
    memcpy(a, fresh, sizeof fresh);
    assert_ok(RUN(&c, "TreeEnsembleRegressor", a, N, &x, 1));
    one_want(&c, 0, TENSOR(F32, QN_SHAPE(4, 1), float, 0.5F, 0.75F, 0.375F, 0.75F));
    a[N] = TEXT_ATTR("aggregate_function", "AVERAGE");
    a[N + 1] = FLOATS_ATTR("base_values", 1, 1);
    assert_ok(RUN(&c, "TreeEnsembleRegressor", a, N + 2, &x, 1));
    one_want(&c, 0, TENSOR(F32, QN_SHAPE(4, 1), float, 1.25F, 1.375F, 1.1875F, 1.375F));
    a[N] = TEXT_ATTR("aggregate_function", "MAX");
    assert_ok(RUN(&c, "TreeEnsembleRegressor", a, N + 1, &x, 1));
    one_want(&c, 0, TENSOR(F32, QN_SHAPE(4, 1), float, 0.25F, 0.5F, 0.25F, 0.5F));
    one_close(&c);
}

/* One class has all the weights. */
static void test_classifier(void **state)
{
    One c;
    QnOnnxAttr a[N + 2];
    const QnOnnxAttr fresh[N] = TWO_TREES("class");
    one_open(&c);
    memcpy(a, fresh, sizeof fresh);
    a[N] = TEXTS_ATTR("classlabels_strings", 2, TEXT("no"), TEXT("yes"));
    assert_ok(RUN(&c, "TreeEnsembleClassifier", a, N + 1, &x, 2));
    one_want(
        &c, 1,
        TENSOR(F32, QN_SHAPE(4, 2), float, 0.5F, 0.5F, 0.25F, 0.75F, 0.625F, 0.375F, 0.25F, 0.75F));
    const QnText *label = c.out[0]->known->text;
    assert_memory_equal(label[1].s, "yes", 3);
    assert_memory_equal(label[2].s, "no", 2);
    a[N] = INTS_ATTR("classlabels_int64s", 2, 4, 6);
    a[N + 1] = TEXT_ATTR("post_transform", "LOGISTIC");
    assert_ok(RUN(&c, "TreeEnsembleClassifier", a, N + 2, &x, 2));
    one_want(&c, 0, TENSOR(I64, QN_SHAPE(4), int64_t, 6, 6, 6, 6));
    const float *score = c.out[1]->known->data;
    assert_true(fabs((double)score[1] - 1 / (1 + exp(-0.5))) < 1e-6);
    assert_true(fabs((double)score[0] + (double)score[1] - 1) < 1e-6);
    a[IDS] = INTS_ATTR("class_ids", 4, 0, 1, 1, 0); /* both have some */
    assert_ok(RUN(&c, "TreeEnsembleClassifier", a, N + 1, &x, 2));
    one_want(&c, 1,
             TENSOR(F32, QN_SHAPE(4, 2), float, 0.25F, 0.25F, 0.25F, 0.5F, 0.375F, 0, 0.25F, 0.5F));
    one_want(&c, 0, TENSOR(I64, QN_SHAPE(4), int64_t, 4, 6, 4, 6));
    one_close(&c);
}

static void test_wrong_trees(void **state)
{
    One c;
    QnOnnxAttr a[N];
    const QnOnnxAttr fresh[N] = TWO_TREES("target");
    one_open(&c);
    memcpy(a, fresh, sizeof fresh);
    a[YES] = INTS_ATTR("nodes_truenodeids", 6, 0, 1, 1, 0, 0, 0); /* a node that leads to itself */
    assert_fails(RUN(&c, "TreeEnsembleRegressor", a, N, &x, 1), QN_EFORMAT, "that none leads to");
    a[YES] = INTS_ATTR("nodes_truenodeids", 6, 0, 1, 8, 0, 0, 0);
    assert_fails(RUN(&c, "TreeEnsembleRegressor", a, N, &x, 1), QN_EFORMAT, "has no node 8");
    memcpy(a, fresh, sizeof fresh);
    a[NO] = INTS_ATTR("nodes_falsenodeids", 6, 0, 1, 4, 0, 0, 0); /* both ways to one node */
    assert_fails(RUN(&c, "TreeEnsembleRegressor", a, N, &x, 1), QN_EFORMAT, "");
    memcpy(a, fresh, sizeof fresh);
    a[FEATURES] = INTS_ATTR("nodes_featureids", 6, 0, 0, 2, 0, 0, 0);
    assert_fails(RUN(&c, "TreeEnsembleRegressor", a, N, &x, 1), QN_EFORMAT, "feature 2 of 2");
    memcpy(a, fresh, sizeof fresh);
    a[IDS] = INTS_ATTR("target_ids", 4, 0, 0, 0, 1);
    assert_fails(RUN(&c, "TreeEnsembleRegressor", a, N, &x, 1), QN_EFORMAT, "result 1 of 1");
    memcpy(a, fresh, sizeof fresh);
    a[NODES] = INTS_ATTR("nodes_nodeids", 6, 3, 0, 1, 0, 2, 3);
    assert_fails(RUN(&c, "TreeEnsembleRegressor", a, N, &x, 1), QN_EFORMAT, "two nodes 3");
    assert_fails(RUN(&c, "TreeEnsembleRegressor", NULL, 0, &x, 1), QN_EFORMAT, "attribute");
    one_close(&c);
}

/* x0 in {1, 3} ? 10 : x1 >= 2 ? 20 : 30 */
static void test_sets(void **state)
{
    One c;
    one_open(&c);
    const QnTensor split = TENSOR(F64, QN_SHAPE(2), double, 0, 2);
    const QnTensor mode = TENSOR(U8, QN_SHAPE(2), uint8_t, 6, 2);
    const QnTensor weight = TENSOR(F64, QN_SHAPE(3), double, 10, 20, 30);
    const QnTensor set = TENSOR(F64, QN_SHAPE(3), double, 1, 3, NAN);
    const QnTensor in = TENSOR(F64, QN_SHAPE(5, 2), double, 1, 5, 3, 1, 2, 2, 2, 1, NAN, 7);
    QnOnnxAttr a[] = {
        INTS_ATTR("tree_roots", 1, 0),
        INTS_ATTR("nodes_featureids", 2, 0, 1),
        INTS_ATTR("nodes_truenodeids", 2, 0, 1),
        INTS_ATTR("nodes_trueleafs", 2, 1, 1),
        INTS_ATTR("nodes_falsenodeids", 2, 1, 2),
        INTS_ATTR("nodes_falseleafs", 2, 0, 1),
        INTS_ATTR("leaf_targetids", 3, 0, 0, 0),
        { .name = "nodes_splits", .kind = QN_ONNX_TENSOR, .tensor = &split },
        { .name = "nodes_modes", .kind = QN_ONNX_TENSOR, .tensor = &mode },
        { .name = "leaf_weights", .kind = QN_ONNX_TENSOR, .tensor = &weight },
        { .name = "membership_values", .kind = QN_ONNX_TENSOR, .tensor = &set },
    };
    assert_ok(RUN(&c, "TreeEnsemble", a, 11, &in, 1));
    one_want(&c, 0, TENSOR(F64, QN_SHAPE(5, 1), double, 10, 10, 20, 30, 20));
    assert_fails(RUN(&c, "TreeEnsemble", a, 10, &in, 1), QN_EFORMAT, "membership_values");
    a[4] = INTS_ATTR("nodes_falsenodeids", 2, 0, 2);
    assert_fails(RUN(&c, "TreeEnsemble", a, 11, &in, 1), QN_EFORMAT, "that is no tree");
    a[4] = INTS_ATTR("nodes_falsenodeids", 2, 1, 3);
    assert_fails(RUN(&c, "TreeEnsemble", a, 11, &in, 1), QN_EFORMAT, "which are none");
    one_close(&c);
}
