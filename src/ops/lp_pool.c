/* Norm of each window: y = (sum of |x|^p over the window)^(1/p). Padding counts as 0. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/onnx_window.h"
#include "ops/window.h"

typedef struct Attr {
    QnPoolAttr pool; /* first: QN_POOL_FIELDS */
    int64_t p;
} Attr;

static const QnAttrField lp_pool_fields[] = {
    QN_POOL_FIELDS,
    { .name = "p",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, p),
      .def = 2,
      .min = 1,
      .max = 64,
      .doc = "of the norm" },
};

static QnStatus lp_pool_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    const QnShape *x = &c->in[0]->shape;
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "lp_pool: needs floats, not %s", qn_dtype_name(c->in[0]->dtype));
    QN_TRY(qn_window_pool_shape(c->graph, "lp_pool", &a->pool, x, &c->out[0].shape));
    for (int i = 2; a->pool.ceil_mode && i < x->rank; i++) {
        if (x->dim[i] < 0)
            return qn_fail(QN_EUNSUPPORTED,
                           "lp_pool: spatial axis %d is symbolic; ceil_mode needs its length",
                           i - 2);
    }
    c->out[0].dtype = c->in[0]->dtype;
    return QN_OK;
}

/* With ceil_mode, zeros where windows stick out, so that all have the same number of elements. */
static QnValue *lp_pool_fill(QnGraph *g, QnValue *x, const QnShape *y, QnPoolAttr *pool)
{
    QnWindow w = qn_window_pool(pool, &x->type.shape, y);
    int n = x->type.shape.rank - 2;
    QnPadAttr pad = { .before = { .n = n + 2 }, .after = { .n = n + 2 } };
    for (int i = 0; i < n; i++) {
        int d = 3 - n + i;
        int64_t end = qn_window_at(&w, d, w.out[d] - 1, w.k[d] - 1) + 1 - w.in[d];
        pad.before.v[2 + i] = w.pad[d];
        pad.after.v[2 + i] = QN_MAX(end, 0);
    }
    pool->pads.n = 0;
    pool->ceil_mode = false;
    return qn_pad(g, x, &pad);
}

static void lp_pool_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    QnDtype t = n->in[0]->type.dtype;
    QnPoolAttr pool = a->pool;
    QnValue *x = qn_cast(g, n->in[0], qn_norm_stat(t));
    double taps = 1;
    for (int i = 0; i < pool.kernel.n; i++)
        taps *= (double)pool.kernel.v[i];
    if (a->p == 1)
        x = qn_abs(g, x);
    else if (a->p == 2)
        x = qn_square(g, x);
    else
        x = qn_pow(g, qn_abs(g, x), qn_scalar_like(g, x, (double)a->p));
    if (pool.ceil_mode && !qn_value_is_poison(x))
        x = lp_pool_fill(g, x, &n->out[0].type.shape, &pool);
    pool.count_include_pad = true;
    QnValue *s = qn_mul_scalar(g, qn_avg_pool(g, x, &pool), taps);
    if (a->p == 2)
        s = qn_sqrt(g, s);
    else if (a->p > 2)
        s = qn_pow(g, s, qn_scalar_like(g, s, 1 / (double)a->p));
    out[0] = qn_cast(g, s, t);
}

static const QnSample lp_pool_samples[] = {
    { .in = { { 4, { 2, 3, 6, 4 } } },
      .n_in = 1,
      .attr = &(Attr){ { .kernel = { 2, { 2, 2 } } }, 2 } },
    { .in = { { 3, { 1, 2, 130 }, .keep_off = 0.05 } },
      .n_in = 1,
      .attr = &(Attr){ { .kernel = { 1, { 4 } }, .strides = { 1, { 3 } }, .pads = { 2, { 2, 1 } } },
                       3 } },
    { .in = { { 4, { 1, 2, 7, 8 }, .keep_off = 0.05 } },
      .n_in = 1,
      .attr = &(Attr){ { .kernel = { 2, { 3, 3 } },
                         .strides = { 2, { 3, 2 } },
                         .pads = { 4, { 1, 0, 1, 1 } },
                         .ceil_mode = true },
                       1 } },
    { .in = { { 5, { 1, 1, 3, 4, 5 }, .keep_off = 0.05 } },
      .n_in = 1,
      .attr = &(Attr){ { .kernel = { 3, { 2, 2, 2 } },
                         .strides = { 3, { 1, 1, 1 } },
                         .dilations = { 3, { 1, 2, 1 } } },
                       2 } },
};

/* count_include_pad means nothing here. */
QN_API QnValue *qn_lp_pool(QnGraph *g, QnValue *x, const QnPoolAttr *attr, int64_t p)
{
    return qn_emit1(g, &qn_op_lp_pool, &(Attr){ *attr, p }, x);
}

static QnStatus lp_pool_import(QnOnnxNode *n)
{
    const QnShape *x;
    QnPoolAttr attr;
    const QnOnnxAttr *p = qn_onnx_attr(n, "p"); /* a float in opset 1 */
    int64_t norm = p && p->kind == QN_ONNX_FLOAT ? (int64_t)p->f : qn_onnx_int(n, "p", 2);
    QN_TRY(qn_onnx_window_input(n, &x));
    QN_TRY(qn_onnx_window_pool(n, x, &attr));
    if (norm < 1 || norm > 64)
        return qn_onnx_refuse(n, "attribute 'p' is %lld", (long long)norm);
    return qn_onnx_out0(n, qn_lp_pool(n->g, qn_onnx_in(n, 0), &attr, norm));
}

static const QnOnnxMap lp_pool_onnx[] = {
    { .name = "LpPool", .since = 1, .import = lp_pool_import },
};

const QnOp qn_op_lp_pool = {
    .name = "lp_pool",
    .version = 1,
    .doc = "norm of each window",
    .n_in = 1,
    QN_ATTRS(Attr, lp_pool_fields),
    .infer = lp_pool_infer,
    .lower = lp_pool_lower,
    QN_ONNX(lp_pool_onnx),
    QN_SAMPLES(lp_pool_samples),
};
#endif
