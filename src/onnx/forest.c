#include "onnx/forest.h"

#include "ir/dtype.h"
#include "ops/ops.h"

#include <math.h>
#include <string.h>

enum { DEPTH_MOST = 1000, WEIGHTS_MOST = 1 << 28 };

QnStatus qn_forest_new(QnOnnxNode *n, int64_t nodes, int64_t trees, int64_t targets, QnForest *f)
{
    if (nodes < 1 || trees < 1 || targets < 1)
        return qn_fail(QN_EFORMAT, "%lld nodes in %lld trees for %lld results", (long long)nodes,
                       (long long)trees, (long long)targets);
    if (nodes > WEIGHTS_MOST / targets)
        return qn_onnx_refuse(n, "%lld nodes with weights for %lld results", (long long)nodes,
                              (long long)targets);
    *f = (QnForest){ .n = nodes, .cap = nodes, .n_trees = trees, .targets = targets };
    f->node = qn_arena_array(n->arena, (size_t)nodes, sizeof *f->node);
    f->root = qn_arena_array(n->arena, (size_t)trees, sizeof *f->root);
    f->weight = qn_arena_array(n->arena, (size_t)(nodes * targets), sizeof *f->weight);
    return f->node && f->root && f->weight ? QN_OK : QN_ENOMEM;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static QnStatus check_node(const QnForest *f, int64_t i, int64_t features)
{
    const QnForestNode *d = &f->node[i];
    if (d->test == QN_FOREST_LEAF)
        return QN_OK;
    if (d->feature < 0 || d->feature >= features)
        return qn_fail(QN_EFORMAT, "node %lld looks at feature %lld of %lld", (long long)i,
                       (long long)d->feature, (long long)features);
    if (d->yes < 0 || d->yes >= f->n || d->no < 0 || d->no >= f->n)
        return qn_fail(QN_EFORMAT, "node %lld leads to nodes %lld and %lld of %lld", (long long)i,
                       (long long)d->yes, (long long)d->no, (long long)f->n);
    return QN_OK;
}

/* Nobody leads to a root, and one node to each other that is no leaf: then no way is a circle. */
static QnStatus count_parents(QnOnnxNode *n, const QnForest *f)
{
    unsigned char *parents = qn_arena_array(n->arena, (size_t)f->n, 1);
    if (!parents)
        return QN_ENOMEM;
    for (int64_t i = 0; i < f->n_trees; i++) {
        if (f->root[i] < 0 || f->root[i] >= f->n)
            return qn_fail(QN_EFORMAT, "tree %lld begins at node %lld of %lld", (long long)i,
                           (long long)f->root[i], (long long)f->n);
        if (f->node[f->root[i]].test != QN_FOREST_LEAF && parents[f->root[i]]++)
            return qn_fail(QN_EFORMAT, "two trees begin at node %lld", (long long)f->root[i]);
    }
    for (int64_t i = 0; i < f->n; i++) {
        const QnForestNode *d = &f->node[i];
        int64_t to[] = { d->yes, d->no };
        for (int k = 0; k < 2 && d->test != QN_FOREST_LEAF; k++)
            if (f->node[to[k]].test != QN_FOREST_LEAF && parents[to[k]]++)
                return qn_fail(QN_EFORMAT, "node %lld is led to twice: that is no tree",
                               (long long)to[k]);
    }
    return QN_OK;
}

/* The longest way down; a set counts as so many comparisons. */
static QnStatus find_depth(QnOnnxNode *n, QnForest *f)
{
    int64_t *level = qn_arena_array(n->arena, (size_t)f->n, sizeof *level);
    int64_t *queue = qn_arena_array(n->arena, (size_t)(f->n + f->n_trees), sizeof *queue);
    int64_t end = 0;
    if (!level || !queue)
        return QN_ENOMEM;
    for (int64_t i = 0; i < f->n_trees; i++)
        queue[end++] = f->root[i];
    for (int64_t at = 0; at < end; at++) {
        const QnForestNode *d = &f->node[queue[at]];
        if (d->test == QN_FOREST_LEAF)
            continue;
        int64_t below = level[queue[at]] + QN_MAX(d->n_members, 1), to[] = { d->yes, d->no };
        f->depth = QN_MAX(f->depth, below);
        if (f->depth > DEPTH_MOST)
            return qn_onnx_refuse(n, "trees that are more than %d deep", DEPTH_MOST);
        for (int k = 0; k < 2; k++)
            if (f->node[to[k]].test != QN_FOREST_LEAF) {
                level[to[k]] = below;
                queue[end++] = to[k];
            }
    }
    return QN_OK;
}

/* A set becomes a chain of comparisons, each of which may say yes; an empty one is never hit. */
static QnStatus expand_sets(QnOnnxNode *n, QnForest *f)
{
    int64_t more = 0, was = f->n;
    for (int64_t i = 0; i < f->n; i++)
        more += f->node[i].test == QN_FOREST_MEMBER ? QN_MAX(f->node[i].n_members - 1, 0) : 0;
    QnForest big;
    QN_TRY(qn_forest_new(n, was + more, f->n_trees, f->targets, &big));
    big.depth = f->depth;
    memcpy(big.node, f->node, (size_t)was * sizeof *f->node);
    memcpy(big.weight, f->weight, (size_t)(was * f->targets) * sizeof *f->weight);
    memcpy(big.root, f->root, (size_t)f->n_trees * sizeof *f->root);
    for (int64_t i = 0, free = was; i < was; i++) {
        QnForestNode *d = &big.node[i];
        const QnForestNode set = *d;
        if (set.test != QN_FOREST_MEMBER)
            continue;
        d->test = QN_FOREST_EQ;
        d->value = set.n_members ? set.member[0] : (double)NAN;
        for (int64_t k = 1; k < set.n_members; k++) {
            d->no = free;
            d = &big.node[free++];
            *d = set;
            d->test = QN_FOREST_EQ;
            d->value = set.member[k];
        }
    }
    *f = big;
    return QN_OK;
}

QnStatus qn_forest_check(QnOnnxNode *n, QnForest *f, int64_t features)
{
    bool sets = false;
    for (int64_t i = 0; i < f->n; i++) {
        QN_TRY(check_node(f, i, features));
        sets |= f->node[i].test == QN_FOREST_MEMBER;
    }
    QN_TRY(count_parents(n, f));
    QN_TRY(find_depth(n, f));
    return sets ? expand_sets(n, f) : QN_OK;
}

/* ---- the graph ------------------------------------------------------------------------------- */

typedef struct Tables { /* columns of the nodes, as constants */
    QnValue *feature, *value, *yes, *no, *nan_yes;
    QnValue *is[QN_FOREST_MEMBER]; /* which nodes make this test; NULL: none, or all */
    int n_tests;
} Tables;

static bool is_leaf(const QnForest *f, int64_t i)
{
    return f->node[i].test == QN_FOREST_LEAF;
}

static QnValue *of_doubles(QnGraph *g, QnDtype t, const QnShape *s, const double *v)
{
    QnValue *c = qn_constant(g, QN_DTYPE_F64, s, v);
    return qn_cast(g, c, t);
}

/* A leaf leads to itself, so that short ways wait for the long ones. */
static QnStatus make_tables(QnGraph *g, const QnForest *f, QnDtype t, Tables *out)
{
    QnShape s = QN_SHAPE(f->n);
    int64_t *i64 = qn_alloc_array((size_t)f->n, 3 * sizeof *i64);
    double *f64 = qn_alloc_array((size_t)f->n, sizeof *f64);
    bool *flag = qn_alloc_array((size_t)f->n, sizeof *flag), any = false;
    *out = (Tables){ 0 };
    if (i64 && f64 && flag) {
        for (int64_t i = 0; i < f->n; i++) {
            const QnForestNode *d = &f->node[i];
            i64[i] = is_leaf(f, i) ? 0 : d->feature;
            i64[f->n + i] = is_leaf(f, i) ? i : d->yes;
            i64[2 * f->n + i] = is_leaf(f, i) ? i : d->no;
            f64[i] = is_leaf(f, i) ? 0 : d->value;
            flag[i] = !is_leaf(f, i) && d->nan_yes;
            any |= flag[i];
        }
        out->feature = qn_constant(g, QN_DTYPE_I64, &s, i64);
        out->yes = qn_constant(g, QN_DTYPE_I64, &s, i64 + f->n);
        out->no = qn_constant(g, QN_DTYPE_I64, &s, i64 + 2 * f->n);
        out->value = of_doubles(g, t, &s, f64);
        out->nan_yes = any ? qn_constant(g, QN_DTYPE_BOOL, &s, flag) : NULL;
        for (int k = 0; k < QN_FOREST_MEMBER; k++) {
            any = false;
            for (int64_t i = 0; i < f->n; i++)
                any |= flag[i] = f->node[i].test == (QnForestTest)k;
            out->is[k] = any ? qn_constant(g, QN_DTYPE_BOOL, &s, flag) : NULL;
            out->n_tests += any;
        }
    }
    QnStatus st = out->value ? QN_OK : QN_ENOMEM;
    qn_free(i64);
    qn_free(f64);
    qn_free(flag);
    return st;
}

static QnValue *compare(QnGraph *g, QnForestTest test, QnValue *x, QnValue *v)
{
    switch (test) {
    case QN_FOREST_LEQ: return qn_less_equal(g, x, v);
    case QN_FOREST_LT: return qn_less(g, x, v);
    case QN_FOREST_GTE: return qn_greater_equal(g, x, v);
    case QN_FOREST_GT: return qn_greater(g, x, v);
    case QN_FOREST_EQ: return qn_equal(g, x, v);
    default: return qn_not_equal(g, x, v);
    }
}

static QnValue *step_down(QnGraph *g, const Tables *t, QnValue *x, QnValue *at)
{
    QnValue *v = qn_gather_elements(g, x, qn_gather(g, t->feature, at, 0), 1);
    QnValue *with = qn_gather(g, t->value, at, 0), *yes = NULL;
    for (int k = 0; k < QN_FOREST_MEMBER; k++) {
        if (!t->is[k])
            continue;
        QnValue *one = compare(g, (QnForestTest)k, v, with);
        if (t->n_tests > 1)
            one = qn_logical_and(g, one, qn_gather(g, t->is[k], at, 0));
        yes = yes ? qn_logical_or(g, yes, one) : one;
    }
    if (t->nan_yes) {
        QnValue *nan = qn_logical_and(g, qn_is_nan(g, v), qn_gather(g, t->nan_yes, at, 0));
        yes = qn_logical_or(g, yes, nan);
    }
    return qn_where(g, yes, qn_gather(g, t->yes, at, 0), qn_gather(g, t->no, at, 0));
}

QnValue *qn_forest_emit(QnGraph *g, const QnForest *f, QnValue *x, QnForestFold fold)
{
    const QnType *t = qn_value_type(x);
    QnDtype dtype = t->dtype;
    QnShape all = QN_SHAPE(t->shape.dim[0], f->n_trees);
    Tables tables;
    if (make_tables(g, f, dtype, &tables) != QN_OK)
        return qn_graph_poison(g);
    QnValue *root = qn_constant(g, QN_DTYPE_I64, &QN_SHAPE(1, f->n_trees), f->root);
    QnValue *at = qn_expand(g, root, &all);
    for (int64_t i = 0; i < f->depth; i++)
        at = step_down(g, &tables, x, at);
    QnValue *weight = of_doubles(g, dtype, &QN_SHAPE(f->n, f->targets), f->weight);
    QnValue *each = qn_gather(g, weight, at, 0); /* (N,trees,targets) */
    QnInts trees = { 1, { 1 } };
    switch (fold) {
    case QN_FOREST_MIN: return qn_reduce_min(g, each, trees, false);
    case QN_FOREST_MAX: return qn_reduce_max(g, each, trees, false);
    case QN_FOREST_AVERAGE: return qn_mean(g, each, trees, false);
    default: return qn_sum(g, each, trees, false);
    }
}
