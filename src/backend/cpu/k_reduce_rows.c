/* logsumexp, variance, argmax and argmin of rows, in f32, f16 and bf16. Rows whose elements are not
 * adjacent, and those of halves, are gathered piece by piece. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/fold.h"
#include "ops/ops.h"
#include "ops/util.h"

#include <math.h>

enum { UNIT = 16384 };

typedef struct RowsState {
    const QnFoldFns *fns;
    QnDtype dtype;
    QnRows r; /* row k lies at k / inner * n * inner + k % inner */
    double correction;
} RowsState;

/* The axes of a reduction as (outer, n, inner); false: the folded ones are not neighbours. */
static bool as_rows(const QnNode *n, QnRows *r)
{
    unsigned mask = 0;
    const QnShape *s = &n->in[0]->type.shape;
    const QnReduceAttr *attr = n->attr; /* of reductions over axes; others have one axis */
    int axis = 0;
    if (n->op == &qn_op_argmax || n->op == &qn_op_argmin) {
        qn_shape_axis(s, *(const int64_t *)qn_cpu_attr(n, "axis"), &axis);
        *r = qn_util_rows(s, axis);
        return true;
    }
    if (qn_util_axes_mask(n->op->name, s, &attr->axes, &mask) != QN_OK)
        return false;
    *r = (QnRows){ 1, 1, 1 };
    bool folded = false, after = false;
    for (int i = 0; i < s->rank; i++) {
        bool fold = mask >> i & 1;
        if (s->dim[i] == 1)
            continue;
        if (fold && after)
            return false;
        folded |= fold;
        after |= folded && !fold;
        *(fold ? &r->n : after ? &r->inner : &r->outer) *= s->dim[i];
    }
    return true;
}

static const char *rows_accepts(const QnNode *n, const QnKernelEnv *env)
{
    QnDtype d = n->in[0]->type.dtype;
    QnRows r;
    (void)env;
    if (d != QN_DTYPE_F32 && d != QN_DTYPE_F16 && d != QN_DTYPE_BF16)
        return "takes f32, f16 and bf16";
    if (qn_shape_count(&n->in[0]->type.shape) == 0)
        return "takes no empty tensors";
    if (!as_rows(n, &r))
        return "takes folded axes that are neighbours";
    return qn_cpu_need_plain(n);
}

static QnStatus rows_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    RowsState *s = p->state = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->fns = qn_fold_find(p->env->isa);
    s->dtype = n->in[0]->type.dtype;
    as_rows(n, &s->r);
    if (n->op == &qn_op_variance)
        s->correction = *(const double *)qn_cpu_attr(n, "correction");
    return QN_OK;
}

typedef struct RowsRun {
    const RowsState *s;
    const QnOp *op;
    const char *x;
    void *y;
} RowsRun;

/* Elements [i, i + n) of a row as adjacent floats. */
static const float *piece(const RowsRun *r, int64_t row, int64_t i, int64_t n, float *own)
{
    const QnRows *s = &r->s->r;
    size_t size = qn_dtype_bytes(r->s->dtype), step = (size_t)s->inner * size;
    const char *x = r->x + (size_t)(row / s->inner * s->n * s->inner + row % s->inner) * size +
                    (size_t)i * step;
    if (s->inner == 1 && r->s->dtype == QN_DTYPE_F32)
        return (const float *)(const void *)x;
    if (s->inner == 1) {
        qn_dtype_to_f32(r->s->dtype, x, own, n);
    } else if (r->s->dtype == QN_DTYPE_F32) {
        for (int64_t k = 0; k < n; k++)
            own[k] = ((const float *)(const void *)x)[k * s->inner];
    } else {
        for (int64_t k = 0; k < n; k++)
            qn_dtype_to_f32(r->s->dtype, x + (size_t)k * step, &own[k], 1);
    }
    return own;
}

/* What one pass over a row yields, its pieces joined in double. */
typedef enum Pass { PASS_MAX, PASS_MIN, PASS_SUM, PASS_EXP, PASS_SQUARES } Pass;

static double pass_over(const RowsRun *r, Pass pass, int64_t row, float m)
{
    const QnFoldFns *f = r->s->fns;
    float own[QN_FOLD_RUN];
    double y = pass == PASS_MAX ? -INFINITY : pass == PASS_MIN ? INFINITY : 0;
    for (int64_t i = 0; i < r->s->r.n; i += QN_FOLD_RUN) {
        int64_t n = QN_MIN((int64_t)QN_FOLD_RUN, r->s->r.n - i);
        const float *x = piece(r, row, i, n, own);
        float v = pass == PASS_MAX   ? f->run(QN_FOLD_MAX, x, n)
                  : pass == PASS_MIN ? f->run(QN_FOLD_MIN, x, n)
                  : pass == PASS_SUM ? f->run(QN_FOLD_SUM, x, n)
                  : pass == PASS_EXP ? f->exp_sum(x, m, n)
                                     : f->off_squares(x, m, n);
        if (pass == PASS_MAX)
            y = (double)v > y || isnan(v) ? (double)v : y;
        else if (pass == PASS_MIN)
            y = (double)v < y || isnan(v) ? (double)v : y;
        else
            y += (double)v;
    }
    return y;
}

/* The first element that is m, or the first NaN if m is one. */
static int64_t find_first(const RowsRun *r, int64_t row, float m)
{
    float own[QN_FOLD_RUN];
    for (int64_t i = 0; i < r->s->r.n; i += QN_FOLD_RUN) {
        int64_t n = QN_MIN((int64_t)QN_FOLD_RUN, r->s->r.n - i);
        const float *x = piece(r, row, i, n, own);
        for (int64_t k = 0; k < n; k++) {
            if (x[k] == m || (isnan(m) && isnan(x[k])))
                return i + k;
        }
    }
    return 0;
}

static double reduce_row(const RowsRun *r, int64_t row)
{
    if (r->op == &qn_op_logsumexp) {
        double m = pass_over(r, PASS_MAX, row, 0);
        if (isnan(m))
            return m;
        float shift = isinf(m) ? 0.0f : (float)m; /* inf - inf would be NaN */
        return log(pass_over(r, PASS_EXP, row, shift)) + (double)shift;
    }
    double n = (double)r->s->r.n, mean = pass_over(r, PASS_SUM, row, 0) / n;
    float near = (float)mean; /* the true mean is off by d: squares are too large by n d^2 */
    double d = mean - (double)near, squares = pass_over(r, PASS_SQUARES, row, near) - n * d * d;
    return fmax(squares, 0) / fmax(n - r->s->correction, 0);
}

static void rows_unit(void *ctx, int worker, int64_t unit)
{
    const RowsRun *r = ctx;
    const RowsState *s = r->s;
    int64_t rows = s->r.outer * s->r.inner, each = QN_MAX(1, UNIT / s->r.n);
    bool index = r->op == &qn_op_argmax || r->op == &qn_op_argmin;
    (void)worker;
    for (int64_t row = unit * each; row < QN_MIN((unit + 1) * each, rows); row++) {
        if (index) {
            Pass pass = r->op == &qn_op_argmax ? PASS_MAX : PASS_MIN;
            ((int64_t *)r->y)[row] = find_first(r, row, (float)pass_over(r, pass, row, 0));
            continue;
        }
        double y = reduce_row(r, row);
        qn_dtype_from_f64(s->dtype, &y, (char *)r->y + (size_t)row * qn_dtype_bytes(s->dtype), 1);
    }
}

static QnStatus rows_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const RowsState *s = p->state;
    RowsRun r = { s, p->node->op, in[0], out[0] };
    int64_t each = QN_MAX(1, UNIT / s->r.n);
    (void)workspace;
    qn_cpu_units(qn_cpu_threads(p), (s->r.outer * s->r.inner + each - 1) / each, rows_unit, &r);
    return QN_OK;
}

static void rows_fini(QnPrepared *p)
{
    qn_free(p->state);
}

const QnKernel qn_kernel_logsumexp_rows = {
    .name = "cpu.logsumexp.rows",
    .backend = "cpu",
    .op = &qn_op_logsumexp,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = rows_accepts,
    .prepare = rows_prepare,
    .run = rows_run,
    .fini = rows_fini,
};

const QnKernel qn_kernel_variance_rows = {
    .name = "cpu.variance.rows",
    .backend = "cpu",
    .op = &qn_op_variance,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = rows_accepts,
    .prepare = rows_prepare,
    .run = rows_run,
    .fini = rows_fini,
};

const QnKernel qn_kernel_argmax_rows = {
    .name = "cpu.argmax.rows",
    .backend = "cpu",
    .op = &qn_op_argmax,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = rows_accepts,
    .prepare = rows_prepare,
    .run = rows_run,
    .fini = rows_fini,
};

const QnKernel qn_kernel_argmin_rows = {
    .name = "cpu.argmin.rows",
    .backend = "cpu",
    .op = &qn_op_argmin,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = rows_accepts,
    .prepare = rows_prepare,
    .run = rows_run,
    .fini = rows_fini,
};
