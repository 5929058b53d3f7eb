/* Reductions whose device text runs in two stages, and those of folded axes that are apart. */
#ifndef QN_TEST_BACKEND_DEVICE_FOLDS_H
#define QN_TEST_BACKEND_DEVICE_FOLDS_H

#include "backend/device_node.h"

typedef struct Fold {
    QnShape x;
    QnInts axes;
} Fold;

static inline void put(QnGraph *g, const char *name, QnValue *v)
{
    assert_ok(qn_graph_output(g, name, v));
}

static inline QnGraph *fold_graph(const Fold *f, QnDtype dtype)
{
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", dtype, &f->x);
    put(g, "sum", qn_sum(g, x, f->axes, false));
    put(g, "mean", qn_mean(g, x, f->axes, false));
    put(g, "most", qn_reduce_max(g, x, f->axes, false));
    put(g, "least", qn_reduce_min(g, x, f->axes, false));
    put(g, "l1", qn_norm_l1(g, x, f->axes, false));
    put(g, "l2", qn_norm_l2(g, x, f->axes, false));
    put(g, "product", qn_prod(g, x, f->axes, false));
    return g;
}

static inline QnGraph *bool_graph(const Fold *f)
{
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", QN_DTYPE_BOOL, &f->x);
    put(g, "all", qn_reduce_all(g, x, f->axes, false));
    put(g, "any", qn_reduce_any(g, x, f->axes, false));
    return g;
}

static const Fold folds[] = {
    { QN_SHAPE(20011), { 0 } },                     /* one output */
    { QN_SHAPE(3, 9001), { 1, { 1 } } },            /* few rows */
    { QN_SHAPE(4099, 37), { 1, { 0 } } },           /* columns, of two tiles */
    { QN_SHAPE(4500, 3), { 1, { 0 } } },            /* fewer than a tile */
    { QN_SHAPE(2, 1500, 33), { 1, { 1 } } },        /* in the middle */
    { QN_SHAPE(5, 7, 23, 29), { 3, { 0, 2, 3 } } }, /* a convolution's bias */
    { QN_SHAPE(16, 2, 31, 9), { 3, { 0, 2, 3 } } }, /* the same in two stages */
    { QN_SHAPE(3, 900), { 1, { 0 } } },             /* short columns */
};

/* Channels so few and large that several groups share one, and their gradient. */
static inline QnGraph *batch_norm_graph(QnDtype dtype)
{
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", dtype, &QN_SHAPE(9, 3, 31, 37));
    QnValue *dy = qn_input(g, "dy", dtype, &QN_SHAPE(9, 3, 31, 37));
    QnValue *scale = qn_input(g, "scale", dtype, &QN_SHAPE(3));
    QnNode *n = qn_batch_norm(g, x, scale, qn_input(g, "bias", dtype, &QN_SHAPE(3)), 1e-5);
    QnNode *b = qn_emit(g, &qn_op_batch_norm_grad, NULL,
                        (QnValue *[]){ dy, x, &n->out[1], &n->out[2], scale }, 5);
    static const char *const names[] = { "y", "mean", "rstd", "var" };
    static const char *const grads[] = { "dx", "dscale", "dbias" };
    for (int i = 0; i < 4; i++)
        put(g, names[i], &n->out[i]);
    for (int i = 0; i < 3; i++)
        put(g, grads[i], &b->out[i]);
    return g;
}

static inline void check_batch_norm(QnDevice *d)
{
    check_on_device(d, batch_norm_graph(QN_DTYPE_F32), "batch_norm", 0, 2e-4);
}

/* Indices that come once, twice, very often, and not at all. */
static inline void check_scatter_add(QnDevice *d)
{
    static const double rows[] = { 3, 700, 100000 };
    for (int i = 0; i < QN_COUNT(rows); i++) {
        for (int wide = 0; wide < 2; wide++) {
            int64_t n = (int64_t)rows[i];
            QnGraph *g = qn_graph_new();
            QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(2, n, 3));
            QnValue *at = qn_input(g, "at", wide ? QN_DTYPE_I64 : QN_DTYPE_I32, &QN_SHAPE(1003));
            QnValue *u = qn_input(g, "u", QN_DTYPE_F32, &QN_SHAPE(2, 1003, 3));
            put(g, "y", qn_scatter_add(g, x, at, u, 1));
            check_on_device(d, g, "scatter_add", rows[i], 1e-5);
        }
    }
}

static inline void check_folds(QnDevice *d)
{
    static const QnDtype types[] = { QN_DTYPE_F32, QN_DTYPE_F16, QN_DTYPE_BF16 };
    static const double tol[] = { 2e-5, 2e-3, 2e-2 };
    for (int i = 0; i < QN_COUNT(folds); i++) {
        char what[64];
        for (int t = 0; t < QN_COUNT(types); t++) {
            snprintf(what, sizeof what, "fold %d in %s", i, qn_dtype_name(types[t]));
            check_on_device(d, fold_graph(&folds[i], types[t]), what, 0, tol[t]);
        }
        snprintf(what, sizeof what, "fold %d of bools", i);
        check_on_device(d, bool_graph(&folds[i]), what, 0, 0);
    }
}

#endif
