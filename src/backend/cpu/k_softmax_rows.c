/* softmax, log_softmax, cross_entropy, its gradient and both in one, in f32. Rows of 16 bits, and
 * those whose elements are not adjacent, are brought into the worker's scratch memory. */
#include "backend/cpu/convert.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/stream.h"
#include "backend/cpu/widen.h"
#include "ops/loss.h"
#include "ops/ops.h"
#include "ops/util.h"

#include <string.h>

enum { GRAIN = 4096 }; /* elements of a work unit at least */

typedef struct RowState {
    const QnRowFns *fns;
    const QnConvertFns *convert;
    QnDtype dtype;                     /* of rows */
    bool half;                         /* it has 16 bits */
    QnStreamFn *stream;                /* of what is written, or NULL */
    int64_t n, inner, rows, unit_rows; /* row r lies at r / inner * n * inner + r % inner */
    int64_t scratch;                   /* floats a worker */
    float even;
    int64_t ignore;
} RowState;

static const char *rows_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    const char *why = qn_cpu_need_plain(n);
    return why ? why : qn_widen_refuses(n);
}

/* Where the rows are among the inputs: before a loss's labels. */
static int rows_in(const QnNode *n)
{
    return n->n_in > 1 ? n->n_in - 2 : 0;
}

/* Operands that are not widened as a whole: rows of 16 bits, read and written. */
static unsigned kept(const QnNode *n)
{
    bool writes =
        n->out[0].type.dtype == n->in[rows_in(n)]->type.dtype && n->op != &qn_op_cross_entropy;
    return 1u << rows_in(n) | (writes ? 1u << n->n_in : 0);
}

static QnStatus state_new(QnPrepared *p, const QnShape *x, int axis, RowState **out)
{
    RowState *s = p->state = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    QnRows r = qn_util_rows(x, axis);
    s->fns = qn_rows_find(p->env->isa);
    s->convert = qn_convert_find(p->env->isa);
    s->dtype = p->node->in[rows_in(p->node)]->type.dtype;
    s->half = s->dtype != QN_DTYPE_F32;
    s->stream = qn_stream_for(p->env->isa, (size_t)qn_type_bytes(&p->node->out[0].type));
    s->n = r.n;
    s->inner = r.inner;
    s->rows = r.outer * r.inner;
    s->unit_rows = QN_MAX(1, GRAIN / QN_MAX(r.n, 1));
    s->scratch = (2 * r.n + 15) / 16 * 16;
    p->workspace_bytes = (size_t)(s->scratch * p->env->n_threads) * sizeof(float);
    qn_widen_prepare_but(p, kept(p->node));
    *out = s;
    return QN_OK;
}

static QnStatus softmax_prepare(QnPrepared *p)
{
    RowState *s;
    int axis = 0;
    const QnShape *x = &p->node->in[0]->type.shape;
    qn_shape_axis(x, *(const int64_t *)qn_cpu_attr(p->node, "axis"), &axis);
    return state_new(p, x, axis, &s);
}

static QnStatus loss_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    RowState *s;
    QN_TRY(state_new(p, &n->in[rows_in(n)]->type.shape, 1, &s));
    s->even = (float)*(const double *)qn_cpu_attr(n, "label_smoothing");
    s->ignore = *(const int64_t *)qn_cpu_attr(n, "ignore_index");
    return QN_OK;
}

static void rows_fini(QnPrepared *p)
{
    qn_free(p->state);
}

typedef struct RowRun {
    const RowState *s;
    const QnOp *op;
    const void *x;
    const float *dy;
    const void *labels;
    QnDtype label_type;
    void *y; /* this and the next two: NULL where the operator has none */
    float *loss, *weight, *scratch;
} RowRun;

static int64_t label_at(const RowRun *r, int64_t row)
{
    return r->label_type == QN_DTYPE_I32 ? ((const int32_t *)r->labels)[row]
                                         : ((const int64_t *)r->labels)[row];
}

static void run_loss(const RowRun *r, int64_t row, const float *x, float *dx, float *scratch)
{
    const RowState *s = r->s;
    int64_t label = label_at(r, row);
    bool counts = label != s->ignore;
    float loss = 0;
    if (r->weight)
        r->weight[row] = counts ? 1 : 0;
    if (counts && r->dy)
        loss = s->fns->cross_entropy_grad(x, dx, s->n, label, s->even, r->dy[row], r->loss != NULL);
    else if (counts)
        loss = s->fns->cross_entropy(x, s->n, label, s->even, scratch);
    else if (r->dy)
        memset(dx, 0, (size_t)s->n * sizeof *dx);
    if (r->loss)
        r->loss[row] = loss;
}

static void run_row(const RowRun *r, int64_t row, const float *x, float *y, float *scratch)
{
    const RowState *s = r->s;
    if (r->op == &qn_op_softmax)
        s->fns->softmax(x, y, s->n);
    else if (r->op == &qn_op_log_softmax)
        s->fns->log_softmax(x, y, s->n, scratch);
    else
        run_loss(r, row, x, y, scratch);
}

/* The row from element `at` on, into `own`. */
static void load_row(const RowState *s, const void *x, int64_t at, float *own, float *scratch)
{
    const uint16_t *half = (const uint16_t *)x + at;
    uint16_t *packed = (void *)scratch;
    if (!s->half) {
        for (int64_t i = 0; i < s->n; i++)
            own[i] = ((const float *)x)[at + i * s->inner];
        return;
    }
    for (int64_t i = 0; s->inner > 1 && i < s->n; i++)
        packed[i] = half[i * s->inner];
    s->convert->to_f32(s->dtype, s->inner > 1 ? packed : half, own, s->n);
}

static void store_row(const RowState *s, const float *own, void *y, int64_t at, float *scratch)
{
    uint16_t *half = (uint16_t *)y + at, *packed = (void *)scratch;
    if (!s->half) {
        for (int64_t i = 0; i < s->n; i++)
            ((float *)y)[at + i * s->inner] = own[i];
        return;
    }
    s->convert->from_f32(s->dtype, own, s->inner > 1 ? packed : half, s->n);
    for (int64_t i = 0; s->inner > 1 && i < s->n; i++)
        half[i * s->inner] = packed[i];
}

static void rows_unit(void *ctx, int worker, int64_t unit)
{
    const RowRun *r = ctx;
    const RowState *s = r->s;
    float *scratch = r->scratch + worker * s->scratch, *own = scratch + s->n;
    bool wide = r->y != NULL; /* writes a row */
    int64_t end = QN_MIN((unit + 1) * s->unit_rows, s->rows);
    for (int64_t row = unit * s->unit_rows; row < end; row++) {
        int64_t at = row / s->inner * s->n * s->inner + row % s->inner;
        if (s->inner > 1 || s->half) {
            load_row(s, r->x, at, own, scratch);
            run_row(r, row, own, own, scratch);
            if (wide)
                store_row(s, own, r->y, at, scratch);
            continue;
        }
        const float *x = (const float *)r->x + at;
        float *y = wide ? (float *)r->y + at : NULL;
        if (s->stream && wide && y != x) {
            run_row(r, row, x, own, scratch);
            s->stream(own, y, (size_t)s->n * sizeof(float));
        } else {
            run_row(r, row, x, y, scratch);
        }
    }
    qn_stream_end();
}

static QnStatus softmax_f32(const QnPrepared *p, const void *const *in, void *const *out,
                            void *workspace)
{
    const RowState *s = p->state;
    RowRun r = { .s = s, .op = p->node->op, .x = in[0], .y = out[0], .scratch = workspace };
    int64_t units = s->n ? (s->rows + s->unit_rows - 1) / s->unit_rows : 0;
    qn_cpu_units(qn_cpu_threads(p), units, rows_unit, &r);
    return QN_OK;
}

static QnStatus softmax_run(const QnPrepared *p, const void *const *in, void *const *out,
                            void *workspace)
{
    return qn_widen_run_but(p, in, out, workspace, kept(p->node), softmax_f32);
}

/* The labels are checked before anything is written. */
static QnStatus loss_f32(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const RowState *s = p->state;
    const QnNode *n = p->node;
    int x = rows_in(n); /* behind dy, where a gradient is wanted */
    QnLossRows rows = { s->rows, s->n, s->inner };
    RowRun r = { .s = s, .op = n->op, .x = in[x], .labels = in[x + 1] };
    r.label_type = n->in[x + 1]->type.dtype;
    r.dy = x ? in[0] : NULL;
    r.y = x ? out[0] : NULL;
    r.loss = !x ? out[0] : n->n_out > 1 ? out[1] : NULL;
    r.weight = x ? NULL : out[1];
    r.scratch = workspace;
    for (int64_t row = 0; row < s->rows; row++)
        QN_TRY(qn_loss_check(n->op->name, &rows, row, label_at(&r, row), s->ignore));
    qn_cpu_units(qn_cpu_threads(p), (s->rows + s->unit_rows - 1) / s->unit_rows, rows_unit, &r);
    return QN_OK;
}

static QnStatus loss_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    return qn_widen_run_but(p, in, out, workspace, kept(p->node), loss_f32);
}

static const char *loss_accepts(const QnNode *n, const QnKernelEnv *env)
{
    QnDtype labels = n->in[n->n_in - 1]->type.dtype;
    if (labels != QN_DTYPE_I64 && labels != QN_DTYPE_I32)
        return "takes labels in i64 and i32";
    return rows_accepts(n, env);
}

const QnKernel qn_kernel_softmax_rows = {
    .name = "cpu.softmax.rows",
    .backend = "cpu",
    .op = &qn_op_softmax,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = rows_accepts,
    .prepare = softmax_prepare,
    .run = softmax_run,
    .fini = rows_fini,
};

const QnKernel qn_kernel_log_softmax_rows = {
    .name = "cpu.log_softmax.rows",
    .backend = "cpu",
    .op = &qn_op_log_softmax,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = rows_accepts,
    .prepare = softmax_prepare,
    .run = softmax_run,
    .fini = rows_fini,
};

const QnKernel qn_kernel_cross_entropy_rows = {
    .name = "cpu.cross_entropy.rows",
    .backend = "cpu",
    .op = &qn_op_cross_entropy,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = loss_accepts,
    .prepare = loss_prepare,
    .run = loss_run,
    .fini = rows_fini,
};

const QnKernel qn_kernel_cross_entropy_grad_rows = {
    .name = "cpu.cross_entropy_grad.rows",
    .backend = "cpu",
    .op = &qn_op_cross_entropy_grad,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = loss_accepts,
    .prepare = loss_prepare,
    .run = loss_run,
    .fini = rows_fini,
};

const QnKernel qn_kernel_cross_entropy_both_rows = {
    .name = "cpu.cross_entropy_both.rows",
    .backend = "cpu",
    .op = &qn_op_cross_entropy_both,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = loss_accepts,
    .prepare = loss_prepare,
    .run = loss_run,
    .fini = rows_fini,
};
