/* ai.onnx.ml: ensembles of decision trees. */
#include "ir/dtype.h"
#include "onnx/forest.h"
#include "onnx/mapping.h"
#include "onnx/ml.h"
#include "ops/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists of attributes --------------------------------------------------------------------- */

/* count -1: any number of them, else that many. Left out: NULL, where `optional`. */
static QnStatus ints_of(const QnOnnxNode *n, const char *name, int64_t count, bool optional,
                        const int64_t **out)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, name);
    *out = NULL;
    if ((!a || a->n == 0) && optional)
        return QN_OK;
    if (!a || a->kind != QN_ONNX_INTS || (count >= 0 && a->n != count))
        return qn_fail(QN_EFORMAT, "attribute '%s' must hold %lld integers", name,
                       (long long)count);
    *out = a->ints;
    return QN_OK;
}

/* Numbers of any type, as an attribute of floats or as a tensor. */
static QnStatus doubles_of(QnOnnxNode *n, const char *floats, const char *tensor, int64_t count,
                           const double **out, QnDtype *dtype)
{
    const QnOnnxAttr *a = floats ? qn_onnx_attr(n, floats) : NULL, *t = qn_onnx_attr(n, tensor);
    *out = NULL;
    if (t && t->kind == QN_ONNX_TENSOR && !t->tensor->text &&
        qn_shape_count(&t->tensor->type.shape) == count) {
        double *v = qn_arena_array(n->arena, (size_t)count + 1, sizeof *v);
        if (!v)
            return QN_ENOMEM;
        qn_dtype_to_f64(t->tensor->type.dtype, t->tensor->data, v, count);
        *dtype = t->tensor->type.dtype;
        *out = v;
        return QN_OK;
    }
    if (!a || a->kind != QN_ONNX_FLOATS || a->n != count)
        return qn_fail(QN_EFORMAT, "attribute '%s' must hold %lld numbers",
                       floats ? floats : tensor, (long long)count);
    double *v = qn_arena_array(n->arena, (size_t)count + 1, sizeof *v);
    if (!v)
        return QN_ENOMEM;
    for (int64_t i = 0; i < count; i++)
        v[i] = (double)a->floats[i];
    *dtype = QN_DTYPE_F32;
    *out = v;
    return QN_OK;
}

static int64_t length_of(const QnOnnxNode *n, const char *name)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, name);
    return a && a->kind == QN_ONNX_INTS ? a->n : 0;
}

/* x as (N,features) in the trees' type. */
static QnStatus take_x(QnOnnxNode *n, QnDtype dtype, QnForest *f, QnValue **x)
{
    const QnType *t = qn_onnx_type(n, 0);
    int rank = t ? t->shape.rank : 0;
    if (rank < 1 || rank > 2)
        return qn_fail(QN_ESHAPE, "input 0 must be (N,features)");
    QN_TRY(qn_forest_check(n, f, t->shape.dim[rank - 1]));
    *x = qn_cast(n->g, qn_onnx_in(n, 0), dtype);
    *x = rank == 1 ? qn_unsqueeze(n->g, *x, 0) : *x;
    return QN_OK;
}

/* ---- nodes by the numbers of tree and node: versions 1 and 3 --------------------------------- */

typedef struct Key {
    int64_t tree, node, index;
} Key;

static int compare_keys(const void *a, const void *b)
{
    const Key *x = a, *y = b;
    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static QnStatus find(const Key *keys, int64_t n, int64_t tree, int64_t node, int64_t *index)
{
    Key key = { tree, node, 0 }, *at = bsearch(&key, keys, (size_t)n, sizeof *keys, compare_keys);
    if (!at)
        return qn_fail(QN_EFORMAT, "tree %lld has no node %lld", (long long)tree, (long long)node);
    *index = at->index;
    return QN_OK;
}

static QnStatus test_of(const QnOnnxNode *n, QnText mode, QnForestTest *out)
{
    static const char *const names[] = { "BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ", "?",          "LEAF" };
    for (int i = 0; i < (int)QN_COUNT(names); i++)
        if (mode.n == strlen(names[i]) && !memcmp(mode.s, names[i], mode.n)) {
            *out = (QnForestTest)i;
            return QN_OK;
        }
    return qn_onnx_refuse(n, "mode '%.*s'", (int)QN_MIN(mode.n, 40), mode.s);
}

/* Roots are the nodes that no other leads to. */
static QnStatus find_roots(QnOnnxNode *n, QnForest *f)
{
    bool *is_below = qn_arena_array(n->arena, (size_t)f->n, sizeof *is_below);
    int64_t roots = 0;
    if (!is_below)
        return QN_ENOMEM;
    for (int64_t i = 0; i < f->n; i++)
        if (f->node[i].test != QN_FOREST_LEAF)
            is_below[f->node[i].yes] = is_below[f->node[i].no] = true;
    for (int64_t i = 0; i < f->n; i++)
        if (!is_below[i] && roots++ < f->n_trees)
            f->root[roots - 1] = i;
    return roots == f->n_trees ? QN_OK
                               : qn_fail(QN_EFORMAT, "%lld nodes that none leads to, in %lld trees",
                                         (long long)roots, (long long)f->n_trees);
}

static QnStatus link_nodes(QnOnnxNode *n, Key *keys, QnForest *f)
{
    const int64_t *tree, *yes, *no, *feature, *nan;
    const double *value;
    const QnOnnxAttr *mode = qn_onnx_attr(n, "nodes_modes");
    QnDtype dtype;
    QN_TRY(ints_of(n, "nodes_treeids", f->n, false, &tree));
    QN_TRY(ints_of(n, "nodes_truenodeids", f->n, false, &yes));
    QN_TRY(ints_of(n, "nodes_falsenodeids", f->n, false, &no));
    QN_TRY(ints_of(n, "nodes_featureids", f->n, false, &feature));
    QN_TRY(ints_of(n, "nodes_missing_value_tracks_true", f->n, true, &nan));
    QN_TRY(doubles_of(n, "nodes_values", "nodes_values_as_tensor", f->n, &value, &dtype));
    if (!mode || mode->kind != QN_ONNX_STRINGS || mode->n != f->n)
        return qn_fail(QN_EFORMAT, "attribute 'nodes_modes' must hold %lld words", (long long)f->n);
    for (int64_t i = 0; i < f->n; i++) {
        QnForestNode *d = &f->node[i];
        QN_TRY(test_of(n, mode->strings[i], &d->test));
        d->feature = feature[i];
        d->value = value[i];
        d->nan_yes = nan && nan[i];
        if (d->test == QN_FOREST_LEAF)
            continue;
        QN_TRY(find(keys, f->n, tree[i], yes[i], &d->yes));
        QN_TRY(find(keys, f->n, tree[i], no[i], &d->no));
    }
    return find_roots(n, f);
}

/* Weights of leaves: attributes PREFIX_treeids, _nodeids, _ids, _weights. *only: the one result
 * that has all weights, or -1. */
static QnStatus add_weights(QnOnnxNode *n, bool classes, const Key *keys, QnForest *f,
                            int64_t *only)
{
    const int64_t *tree, *node, *id;
    const double *weight;
    QnDtype dtype;
    int64_t count = length_of(n, classes ? "class_ids" : "target_ids");
    QN_TRY(ints_of(n, classes ? "class_treeids" : "target_treeids", count, false, &tree));
    QN_TRY(ints_of(n, classes ? "class_nodeids" : "target_nodeids", count, false, &node));
    QN_TRY(ints_of(n, classes ? "class_ids" : "target_ids", count, false, &id));
    QN_TRY(doubles_of(n, classes ? "class_weights" : "target_weights",
                      classes ? "class_weights_as_tensor" : "target_weights_as_tensor", count,
                      &weight, &dtype));
    *only = count ? id[0] : -1;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = 0;
        if (id[i] < 0 || id[i] >= f->targets)
            return qn_fail(QN_EFORMAT, "a weight for result %lld of %lld", (long long)id[i],
                           (long long)f->targets);
        QN_TRY(find(keys, f->n, tree[i], node[i], &at));
        f->weight[at * f->targets + id[i]] += weight[i];
        *only = id[i] == *only ? *only : -1;
    }
    return QN_OK;
}

static QnStatus read_nodes(QnOnnxNode *n, bool classes, int64_t targets, QnForest *f, int64_t *only)
{
    const int64_t *tree, *node;
    int64_t count = length_of(n, "nodes_nodeids"), trees = 0;
    QN_TRY(ints_of(n, "nodes_treeids", count, false, &tree));
    QN_TRY(ints_of(n, "nodes_nodeids", count, false, &node));
    Key *keys = qn_arena_array(n->arena, (size_t)count + 1, sizeof *keys);
    if (!keys)
        return QN_ENOMEM;
    for (int64_t i = 0; i < count; i++)
        keys[i] = (Key){ tree[i], node[i], i };
    qsort(keys, (size_t)count, sizeof *keys, compare_keys);
    for (int64_t i = 0; i < count; i++) {
        if (i > 0 && compare_keys(&keys[i], &keys[i - 1]) == 0)
            return qn_fail(QN_EFORMAT, "tree %lld has two nodes %lld", (long long)keys[i].tree,
                           (long long)keys[i].node);
        trees += i == 0 || keys[i].tree != keys[i - 1].tree;
    }
    QN_TRY(qn_forest_new(n, count, trees, targets, f));
    QN_TRY(link_nodes(n, keys, f));
    return add_weights(n, classes, keys, f, only);
}

/* base_values: one for each result, or one. */
static QnStatus add_base(QnOnnxNode *n, int64_t targets, QnValue **y)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, "base_values");
    const QnOnnxAttr *t = qn_onnx_attr(n, "base_values_as_tensor");
    int64_t count = t && t->kind == QN_ONNX_TENSOR ? qn_shape_count(&t->tensor->type.shape)
                    : a                            ? a->n
                                                   : 0;
    const double *v;
    QnDtype dtype;
    if (count == 0)
        return QN_OK;
    if (count != 1 && count != targets)
        return qn_fail(QN_EFORMAT, "%lld base values for %lld results", (long long)count,
                       (long long)targets);
    QN_TRY(doubles_of(n, "base_values", "base_values_as_tensor", count, &v, &dtype));
    QnValue *base = qn_constant(n->g, QN_DTYPE_F64, &QN_SHAPE(count), v);
    *y = qn_add(n->g, *y, qn_cast(n->g, base, qn_value_type(*y)->dtype));
    return QN_OK;
}

/* Doubles where x or the tensors are. */
static QnDtype computing_dtype(const QnOnnxNode *n, const char *tensor)
{
    const QnType *x = qn_onnx_type(n, 0);
    const QnOnnxAttr *t = qn_onnx_attr(n, tensor);
    bool wide = (x && x->dtype == QN_DTYPE_F64) ||
                (t && t->kind == QN_ONNX_TENSOR && t->tensor->type.dtype == QN_DTYPE_F64);
    return wide ? QN_DTYPE_F64 : QN_DTYPE_F32;
}

static QnStatus import_tree_regressor(QnOnnxNode *n)
{
    static const char *const folds[] = { "AVERAGE", "SUM", "MIN", "MAX" };
    QnForest f;
    QnMlAfter after;
    QnValue *x;
    int64_t only;
    int fold = 0;
    QN_TRY(qn_ml_after(n, &after));
    while (fold < 4 && !qn_onnx_is(n, "aggregate_function", folds[fold], "SUM"))
        fold++;
    int64_t targets = qn_onnx_int(n, "n_targets", 1);
    if (fold == 4 || (fold >= QN_FOREST_MIN && targets > 1))
        return qn_onnx_refuse(n, "this aggregate_function for %lld results", (long long)targets);
    QN_TRY(read_nodes(n, false, targets, &f, &only));
    QN_TRY(take_x(n, computing_dtype(n, "nodes_values_as_tensor"), &f, &x));
    QnValue *y = qn_forest_emit(n->g, &f, x, (QnForestFold)fold);
    QN_TRY(add_base(n, targets, &y));
    return qn_onnx_out0(n, qn_cast(n->g, qn_ml_transform(n->g, y, after), QN_DTYPE_F32));
}

/* Two classes, all weights given to number 0: they are those of number 1, and the other gets the
 * rest, to 1 for probabilities, to 0 for what becomes probabilities at the end. */
static QnValue *both_classes(QnGraph *g, QnValue *y, QnMlAfter after)
{
    QnValue *s = qn_slice_axis(g, y, 1, 0, 1), *rest = qn_neg(g, s);
    if (after == QN_ML_NONE)
        rest = qn_add_scalar(g, rest, 1);
    return qn_concat(g, (QnValue *[]){ rest, s }, 2, 1);
}

static QnStatus import_tree_classifier(QnOnnxNode *n)
{
    QnForest f;
    QnMlAfter after;
    QnMlLabels labels;
    QnValue *x;
    int64_t only;
    QN_TRY(qn_ml_after(n, &after));
    QN_TRY(qn_ml_labels(n, "classlabels_int64s", "classlabels_strings", &labels));
    if (labels.n < 2)
        return qn_onnx_refuse(n, "a classifier with one label");
    QN_TRY(read_nodes(n, true, labels.n, &f, &only));
    QN_TRY(take_x(n, computing_dtype(n, "nodes_values_as_tensor"), &f, &x));
    QnValue *y = qn_forest_emit(n->g, &f, x, QN_FOREST_SUM);
    QN_TRY(add_base(n, labels.n, &y));
    if (labels.n == 2 && only == 0)
        y = both_classes(n->g, y, after);
    y = qn_cast(n->g, qn_ml_transform(n->g, y, after), QN_DTYPE_F32);
    return qn_ml_classify(n, &labels, y);
}

/* ---- TreeEnsemble, version 5: inner nodes and leaves have lists of their own ------------------
 */

/* Sets stand one after another in the order of their nodes, a NaN behind each. */
static QnStatus take_sets(QnOnnxNode *n, int64_t inner, QnForest *f)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, "membership_values");
    const double *v = NULL;
    int64_t at = 0, count = a && a->kind == QN_ONNX_TENSOR && !a->tensor->text
                                ? qn_shape_count(&a->tensor->type.shape)
                                : 0;
    QnDtype dtype;
    if (count)
        QN_TRY(doubles_of(n, NULL, "membership_values", count, &v, &dtype));
    for (int64_t i = 0; i < inner; i++) {
        QnForestNode *d = &f->node[i];
        if (d->test != QN_FOREST_MEMBER)
            continue;
        if (at >= count)
            return qn_fail(QN_EFORMAT, "membership_values ends before the set of node %lld",
                           (long long)i);
        d->member = v + at;
        while (at < count && !isnan(v[at])) {
            d->n_members++;
            at++;
        }
        at++;
    }
    return QN_OK;
}

static QnStatus take_inner(QnOnnxNode *n, int64_t inner, int64_t leaves, QnForest *f,
                           QnDtype *dtype)
{
    const int64_t *feature, *yes, *no, *yes_leaf, *no_leaf, *nan;
    const double *split, *mode;
    QnDtype ignored;
    QN_TRY(ints_of(n, "nodes_featureids", inner, false, &feature));
    QN_TRY(ints_of(n, "nodes_truenodeids", inner, false, &yes));
    QN_TRY(ints_of(n, "nodes_falsenodeids", inner, false, &no));
    QN_TRY(ints_of(n, "nodes_trueleafs", inner, false, &yes_leaf));
    QN_TRY(ints_of(n, "nodes_falseleafs", inner, false, &no_leaf));
    QN_TRY(ints_of(n, "nodes_missing_value_tracks_true", inner, true, &nan));
    QN_TRY(doubles_of(n, NULL, "nodes_splits", inner, &split, dtype));
    QN_TRY(doubles_of(n, NULL, "nodes_modes", inner, &mode, &ignored));
    for (int64_t i = 0; i < inner; i++) {
        if (!(mode[i] >= 0 && mode[i] <= QN_FOREST_MEMBER))
            return qn_onnx_refuse(n, "mode %g", mode[i]);
        if (yes[i] < 0 || no[i] < 0 || yes[i] >= (yes_leaf[i] ? leaves : inner) ||
            no[i] >= (no_leaf[i] ? leaves : inner))
            return qn_fail(QN_EFORMAT, "node %lld leads to %lld and %lld, which are none",
                           (long long)i, (long long)yes[i], (long long)no[i]);
        f->node[i] = (QnForestNode){ .test = (QnForestTest)mode[i],
                                     .feature = feature[i],
                                     .value = split[i],
                                     .nan_yes = nan && nan[i],
                                     .yes = yes[i] + (yes_leaf[i] ? inner : 0),
                                     .no = no[i] + (no_leaf[i] ? inner : 0) };
    }
    return take_sets(n, inner, f);
}

static QnStatus take_leaves(QnOnnxNode *n, int64_t inner, int64_t leaves, QnForest *f)
{
    const int64_t *target;
    const double *weight;
    QnDtype dtype;
    QN_TRY(ints_of(n, "leaf_targetids", leaves, false, &target));
    QN_TRY(doubles_of(n, NULL, "leaf_weights", leaves, &weight, &dtype));
    for (int64_t i = 0; i < leaves; i++) {
        if (target[i] < 0 || target[i] >= f->targets)
            return qn_fail(QN_EFORMAT, "leaf %lld is for result %lld of %lld", (long long)i,
                           (long long)target[i], (long long)f->targets);
        f->node[inner + i].test = QN_FOREST_LEAF;
        f->weight[(inner + i) * f->targets + target[i]] = weight[i];
    }
    return QN_OK;
}

static QnStatus import_tree_ensemble(QnOnnxNode *n)
{
    static const QnMlAfter afters[] = { QN_ML_NONE, QN_ML_SOFTMAX, QN_ML_LOGISTIC,
                                        QN_ML_SOFTMAX_ZERO };
    int64_t inner = length_of(n, "nodes_featureids"), leaves = length_of(n, "leaf_targetids");
    int64_t trees = length_of(n, "tree_roots"), targets = qn_onnx_int(n, "n_targets", 1);
    int64_t fold = qn_onnx_int(n, "aggregate_function", 1);
    int64_t after = qn_onnx_int(n, "post_transform", 0);
    const int64_t *root;
    QnForest f;
    QnDtype dtype;
    QnValue *x;
    if (fold < 0 || fold > QN_FOREST_MAX || (fold >= QN_FOREST_MIN && targets > 1) || after < 0 ||
        after >= (int64_t)QN_COUNT(afters))
        return qn_onnx_refuse(n, "aggregate_function %lld, post_transform %lld for %lld results",
                              (long long)fold, (long long)after, (long long)targets);
    QN_TRY(qn_forest_new(n, inner + leaves, trees, targets, &f));
    QN_TRY(ints_of(n, "tree_roots", trees, false, &root));
    memcpy(f.root, root, (size_t)trees * sizeof *root);
    QN_TRY(take_inner(n, inner, leaves, &f, &dtype));
    QN_TRY(take_leaves(n, inner, leaves, &f));
    QnDtype as = dtype == QN_DTYPE_F64 ? dtype : QN_DTYPE_F32;
    QN_TRY(take_x(n, as, &f, &x));
    QnValue *y = qn_forest_emit(n->g, &f, x, (QnForestFold)fold);
    return qn_onnx_out0(n, qn_cast(n->g, qn_ml_transform(n->g, y, afters[after]), dtype));
}

const QnOnnxMap qn_onnx_trees[] = {
    { "TreeEnsembleRegressor", QN_ML, 1, 0, import_tree_regressor, NULL },
    { "TreeEnsembleClassifier", QN_ML, 1, 0, import_tree_classifier, NULL },
    { "TreeEnsemble", QN_ML, 5, 0, import_tree_ensemble, NULL },
    { 0 },
};
