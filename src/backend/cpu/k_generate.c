/* Small operators that fill or mask: one_hot, arange, eye, trilu; and running sums. Plain
 * loops over elements in f32 and, by the last conversion, in every other dtype. */
#include "backend/cpu/cpu.h"
#include "ops/ops.h"
#include "ops/util.h"

#include <math.h>
#include <string.h>

enum { GRAIN = 16384, TILE = 1024 };

typedef struct FillRun {
    const QnNode *n;
    const void *in;
    char *out;
    int64_t count, parts;
} FillRun;

static int64_t id_at(const FillRun *r, int64_t i)
{
    return r->n->in[0]->type.dtype == QN_DTYPE_I64 ? ((const int64_t *)r->in)[i]
                                                   : ((const int32_t *)r->in)[i];
}

static double element(const FillRun *r, int64_t i)
{
    const QnNode *n = r->n;
    const QnShape *s = &n->out[0].type.shape;
    int64_t columns = s->dim[s->rank - 1];
    if (n->op == &qn_op_one_hot)
        return id_at(r, i / columns) == i % columns;
    if (n->op == &qn_op_eye)
        return i % columns - i / columns == *(const int64_t *)qn_cpu_attr(n, "k");
    double start = *(const double *)qn_cpu_attr(n, "start");
    return start + *(const double *)qn_cpu_attr(n, "step") * (double)i;
}

static void fill_part(void *ctx, int64_t part)
{
    const FillRun *r = ctx;
    QnDtype d = r->n->out[0].type.dtype;
    int64_t begin = qn_cpu_part_begin(r->count, r->parts, part);
    int64_t end = qn_cpu_part_begin(r->count, r->parts, part + 1);
    double tile[TILE];
    for (int64_t at = begin; at < end; at += TILE) {
        int64_t n = QN_MIN((int64_t)TILE, end - at);
        for (int64_t i = 0; i < n; i++)
            tile[i] = element(r, at + i);
        qn_dtype_from_f64(d, tile, r->out + (size_t)at * qn_dtype_bytes(d), n);
    }
}

static const char *fill_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    return qn_cpu_need_plain(n);
}

static QnStatus fill_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const QnNode *n = p->node;
    FillRun r = { n, n->n_in ? in[0] : NULL, out[0], qn_shape_count(&n->out[0].type.shape), 1 };
    (void)workspace;
    r.parts = qn_cpu_parts(p->env->n_threads, r.count, GRAIN);
    qn_cpu_parallel(qn_cpu_threads(p), r.parts, fill_part, &r);
    return QN_OK;
}

/* ---- trilu: rows are copied up to or from the diagonal ---- */

typedef struct TriluRun {
    const char *x;
    char *y;
    size_t size;
    int64_t rows, columns, all_rows, k, parts;
    bool upper;
} TriluRun;

static void trilu_part(void *ctx, int64_t part)
{
    const TriluRun *r = ctx;
    int64_t end = qn_cpu_part_begin(r->all_rows, r->parts, part + 1);
    size_t row_bytes = (size_t)r->columns * r->size;
    for (int64_t i = qn_cpu_part_begin(r->all_rows, r->parts, part); i < end; i++) {
        /* The first column that an upper triangle keeps, or that a lower one drops; k may be any
         * number, so it is brought near first. */
        int64_t k = QN_MAX(-r->rows - 1, QN_MIN(r->k, r->columns + 1));
        int64_t edge = i % r->rows + k + !r->upper;
        size_t cut = (size_t)QN_MAX(0, QN_MIN(edge, r->columns)) * r->size;
        char *y = r->y + (size_t)i * row_bytes;
        const char *x = r->x + (size_t)i * row_bytes;
        size_t from = r->upper ? cut : 0, n = r->upper ? row_bytes - cut : cut;
        if (x != y)
            memcpy(y + from, x + from, n);
        memset(r->upper ? y : y + cut, 0, row_bytes - n);
    }
}

static QnStatus trilu_run(const QnPrepared *p, const void *const *in, void *const *out,
                          void *workspace)
{
    const QnNode *n = p->node;
    const QnShape *s = &n->in[0]->type.shape;
    TriluRun r = { .x = in[0], .y = out[0], .size = qn_dtype_bytes(n->in[0]->type.dtype) };
    (void)workspace;
    if (qn_shape_count(s) == 0)
        return QN_OK;
    r.rows = s->dim[s->rank - 2];
    r.columns = s->dim[s->rank - 1];
    r.all_rows = qn_shape_count(s) / r.columns;
    r.k = *(const int64_t *)qn_cpu_attr(n, "k");
    r.upper = *(const bool *)qn_cpu_attr(n, "upper");
    r.parts = qn_cpu_parts(p->env->n_threads, r.all_rows, 1 + GRAIN / r.columns);
    qn_cpu_parallel(qn_cpu_threads(p), r.parts, trilu_part, &r);
    return QN_OK;
}

/* ---- running sums and products: one row after another, in double ---- */

typedef struct RunningRun {
    const float *x;
    float *y;
    QnRows r;
    int64_t parts;
    bool product, exclusive, reverse;
} RunningRun;

static void running_part(void *ctx, int64_t part)
{
    const RunningRun *r = ctx;
    int64_t rows = r->r.outer * r->r.inner, end = qn_cpu_part_begin(rows, r->parts, part + 1);
    for (int64_t row = qn_cpu_part_begin(rows, r->parts, part); row < end; row++) {
        int64_t base = row / r->r.inner * r->r.n * r->r.inner + row % r->r.inner;
        double s = r->product;
        for (int64_t i = 0; i < r->r.n; i++) {
            int64_t at = base + (r->reverse ? r->r.n - 1 - i : i) * r->r.inner;
            double v = (double)r->x[at], next = r->product ? s * v : s + v;
            r->y[at] = (float)(r->exclusive ? s : next);
            s = next;
        }
    }
}

static const char *running_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    if (n->in[0]->type.dtype != QN_DTYPE_F32)
        return "takes only f32";
    return qn_cpu_need_plain(n);
}

static QnStatus running_run(const QnPrepared *p, const void *const *in, void *const *out,
                            void *workspace)
{
    const QnNode *n = p->node;
    const QnShape *s = &n->in[0]->type.shape;
    RunningRun r = { .x = in[0], .y = out[0], .product = n->op == &qn_op_cumprod };
    int axis = 0;
    (void)workspace;
    if (qn_shape_count(s) == 0)
        return QN_OK;
    qn_shape_axis(s, *(const int64_t *)qn_cpu_attr(n, "axis"), &axis);
    r.r = qn_util_rows(s, axis);
    r.exclusive = *(const bool *)qn_cpu_attr(n, "exclusive");
    r.reverse = *(const bool *)qn_cpu_attr(n, "reverse");
    r.parts = qn_cpu_parts(p->env->n_threads, r.r.outer * r.r.inner, 1 + GRAIN / r.r.n);
    qn_cpu_parallel(qn_cpu_threads(p), r.parts, running_part, &r);
    return QN_OK;
}

const QnKernel qn_kernel_one_hot_loop = {
    .name = "cpu.one_hot.loop",
    .backend = "cpu",
    .op = &qn_op_one_hot,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = fill_accepts,
    .run = fill_run,
};

const QnKernel qn_kernel_eye_loop = {
    .name = "cpu.eye.loop",
    .backend = "cpu",
    .op = &qn_op_eye,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = fill_accepts,
    .run = fill_run,
};

const QnKernel qn_kernel_arange_loop = {
    .name = "cpu.arange.loop",
    .backend = "cpu",
    .op = &qn_op_arange,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = fill_accepts,
    .run = fill_run,
};

const QnKernel qn_kernel_trilu_loop = {
    .name = "cpu.trilu.loop",
    .backend = "cpu",
    .op = &qn_op_trilu,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = fill_accepts,
    .run = trilu_run,
};

const QnKernel qn_kernel_cumsum_loop = {
    .name = "cpu.cumsum.loop",
    .backend = "cpu",
    .op = &qn_op_cumsum,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = running_accepts,
    .run = running_run,
};

const QnKernel qn_kernel_cumprod_loop = {
    .name = "cpu.cumprod.loop",
    .backend = "cpu",
    .op = &qn_op_cumprod,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = running_accepts,
    .run = running_run,
};
