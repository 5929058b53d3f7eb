/* layer_norm, also of a sum, rms_norm and their gradients in f32, to which 16-bit tensors are
 * widened. The parameters' gradients are summed over parts of the rows, as many as the shape says,
 * and the parts in order. */
#include "backend/cpu/convert.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/stream.h"
#include "backend/cpu/widen.h"
#include "ops/ops.h"

#include <string.h>

enum { GRAIN = 8192, MOST_PARTS = 64 };
/* Of workspace: the result of the row at hand, sums for scale and bias; of a sum that is
 * normalised, its row and the same in 16 bits. */
enum { ROWS_A_PART = 3 };

typedef struct NormState {
    const QnRowFns *fns;
    QnStreamFn *stream; /* of y or dx, or NULL */
    int64_t rows, n, n_parts;
    bool center;
    float eps;
} NormState;

static const char *norm_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    const char *why = qn_cpu_need_plain(n);
    return why ? why : qn_widen_refuses(n);
}

/* rstd (of rank `axis`) says what the rows are. */
static QnStatus norm_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    bool grad = n->op == &qn_op_layer_norm_grad || n->op == &qn_op_rms_norm_grad;
    bool center = n->op != &qn_op_rms_norm && n->op != &qn_op_rms_norm_grad;
    const QnShape *rstd =
        grad ? &n->in[center ? 3 : 2]->type.shape : &n->out[n->n_out - 1].type.shape;
    const QnShape *x = &n->in[grad ? 1 : 0]->type.shape;
    NormState *s = p->state = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->fns = qn_rows_find(p->env->isa);
    s->stream = qn_stream_for(p->env->isa, (size_t)qn_type_bytes(&n->out[0].type));
    s->center = center;
    s->rows = qn_shape_count(rstd);
    s->n = 1;
    for (int i = rstd->rank; i < x->rank; i++)
        s->n *= x->dim[i];
    s->n_parts = QN_MAX(1, QN_MIN(QN_MIN(s->rows, MOST_PARTS), s->rows * s->n / GRAIN));
    if (!grad)
        s->eps = (float)*(const double *)qn_cpu_attr(n, "eps");
    p->workspace_bytes = (size_t)(s->n_parts * ROWS_A_PART * s->n) * sizeof(float);
    qn_widen_prepare(p);
    return QN_OK;
}

static void norm_fini(QnPrepared *p)
{
    qn_free(p->state);
}

typedef struct NormRun {
    const NormState *s;
    const float *dy, *x, *scale, *bias, *mean, *rstd;
    const float *more;         /* added to dx or x; NULL: nothing is */
    const QnConvertFns *round; /* of the sum, to `dtype`; NULL: it is exact */
    QnDtype dtype;
    float *y, *sum, *out_mean, *out_rstd, *work;
} NormRun;

/* Where row `row` of a result at `to` is made: slot 0 or 1 of the part's workspace. */
static float *row_of(const NormRun *r, float *to, int64_t part, int slot, int64_t row)
{
    const NormState *s = r->s;
    return s->stream ? r->work + (part * ROWS_A_PART + slot) * s->n : to + row * s->n;
}

static void row_done(const NormRun *r, const float *made, float *to, int64_t row)
{
    const NormState *s = r->s;
    if (s->stream)
        s->stream(made, to + row * s->n, (size_t)s->n * sizeof(float));
}

/* To the 16 bits in which the sum is stored: whoever normalises that again finds the same bits. */
static void round_sum(const NormRun *r, int64_t part, float *sum)
{
    void *narrow = r->work + (part * ROWS_A_PART + 2) * r->s->n;
    r->round->from_f32(r->dtype, sum, narrow, r->s->n);
    r->round->to_f32(r->dtype, narrow, sum, r->s->n);
}

/* The row that is normalised: of x, or of the sum, which is stored if it is kept. */
static const float *summed(const NormRun *r, int64_t part, int64_t row)
{
    const NormState *s = r->s;
    const float *x = r->x + row * s->n;
    if (!r->more)
        return x;
    float *sum = row_of(r, r->sum ? r->sum : r->y, part, r->sum != NULL, row);
    s->fns->add(x, r->more + row * s->n, sum, s->n);
    if (r->round)
        round_sum(r, part, sum);
    if (r->sum)
        row_done(r, sum, r->sum, row);
    return sum;
}

static void norm_part(void *ctx, int64_t part)
{
    const NormRun *r = ctx;
    const NormState *s = r->s;
    int64_t end = qn_cpu_part_begin(s->rows, s->n_parts, part + 1);
    for (int64_t i = qn_cpu_part_begin(s->rows, s->n_parts, part); i < end; i++) {
        const float *x = summed(r, part, i);
        float *y = row_of(r, r->y, part, 0, i);
        s->fns->norm(x, y, r->scale, r->bias, s->n, s->eps, s->center ? r->out_mean + i : NULL,
                     r->out_rstd + i);
        row_done(r, y, r->y, i);
    }
    qn_stream_end();
}

static QnStatus norm_f32(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const NormState *s = p->state;
    const QnNode *n = p->node;
    int add = n->op == &qn_op_add_layer_norm, stats = s->center + 1, y = n->n_out - stats - 1;
    NormRun r = { .s = s, .x = in[0], .y = out[y], .work = workspace };
    r.more = add ? in[1] : NULL;
    r.dtype = n->in[0]->type.dtype;
    r.round = add && r.dtype != QN_DTYPE_F32 ? qn_convert_find(p->env->isa) : NULL;
    r.sum = y ? out[0] : NULL;
    r.scale = n->n_in > add + 1 ? in[add + 1] : NULL;
    r.bias = n->n_in > add + 2 ? in[add + 2] : NULL;
    r.out_mean = s->center ? out[y + 1] : NULL;
    r.out_rstd = out[n->n_out - 1];
    qn_cpu_parallel(qn_cpu_threads(p), s->n_parts, norm_part, &r);
    return QN_OK;
}

static QnStatus norm_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    return qn_widen_run(p, in, out, workspace, norm_f32);
}

static void grad_part(void *ctx, int64_t part)
{
    const NormRun *r = ctx;
    const NormState *s = r->s;
    float *dscale = r->work + (part * ROWS_A_PART + 1) * s->n, *dbias = dscale + s->n;
    int64_t end = qn_cpu_part_begin(s->rows, s->n_parts, part + 1);
    memset(dscale, 0, (size_t)(2 * s->n) * sizeof *dscale);
    for (int64_t i = qn_cpu_part_begin(s->rows, s->n_parts, part); i < end; i++) {
        float *dx = row_of(r, r->y, part, 0, i);
        s->fns->norm_grad(r->dy + i * s->n, r->x + i * s->n, r->scale, s->n, s->center,
                          s->center ? r->mean[i] : 0, r->rstd[i],
                          r->more ? r->more + i * s->n : NULL, dx, dscale,
                          s->center ? dbias : NULL);
        row_done(r, dx, r->y, i);
    }
    qn_stream_end();
}

/* out[i] = sum over parts of work[part][which][i] */
static void join(const NormState *s, const float *work, int which, float *out)
{
    memcpy(out, work + which * s->n, (size_t)s->n * sizeof *out);
    for (int64_t k = 1; k < s->n_parts; k++) {
        const float *part = work + (k * ROWS_A_PART + which) * s->n;
        for (int64_t i = 0; i < s->n; i++)
            out[i] += part[i];
    }
}

static QnStatus norm_grad_f32(const QnPrepared *p, const void *const *in, void *const *out,
                              void *workspace)
{
    const NormState *s = p->state;
    const QnNode *n = p->node;
    int rstd = s->center ? 3 : 2;
    NormRun r = { .s = s, .dy = in[0], .x = in[1], .rstd = in[rstd], .y = out[0] };
    r.mean = s->center ? in[2] : NULL;
    r.scale = n->n_in > rstd + 1 ? in[rstd + 1] : NULL;
    r.more = n->n_in > rstd + 2 ? in[rstd + 2] : NULL;
    r.work = workspace;
    qn_cpu_parallel(qn_cpu_threads(p), s->n_parts, grad_part, &r);
    for (int i = 1; i < n->n_out; i++)
        join(s, r.work, i, out[i]);
    return QN_OK;
}

static QnStatus norm_grad_run(const QnPrepared *p, const void *const *in, void *const *out,
                              void *workspace)
{
    return qn_widen_run(p, in, out, workspace, norm_grad_f32);
}

const QnKernel qn_kernel_layer_norm_rows = {
    .name = "cpu.layer_norm.rows",
    .backend = "cpu",
    .op = &qn_op_layer_norm,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = norm_accepts,
    .prepare = norm_prepare,
    .run = norm_run,
    .fini = norm_fini,
};

const QnKernel qn_kernel_add_layer_norm_rows = {
    .name = "cpu.add_layer_norm.rows",
    .backend = "cpu",
    .op = &qn_op_add_layer_norm,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = norm_accepts,
    .prepare = norm_prepare,
    .run = norm_run,
    .fini = norm_fini,
};

const QnKernel qn_kernel_layer_norm_grad_rows = {
    .name = "cpu.layer_norm_grad.rows",
    .backend = "cpu",
    .op = &qn_op_layer_norm_grad,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = norm_accepts,
    .prepare = norm_prepare,
    .run = norm_grad_run,
    .fini = norm_fini,
};

const QnKernel qn_kernel_rms_norm_rows = {
    .name = "cpu.rms_norm.rows",
    .backend = "cpu",
    .op = &qn_op_rms_norm,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = norm_accepts,
    .prepare = norm_prepare,
    .run = norm_run,
    .fini = norm_fini,
};

const QnKernel qn_kernel_rms_norm_grad_rows = {
    .name = "cpu.rms_norm_grad.rows",
    .backend = "cpu",
    .op = &qn_op_rms_norm_grad,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = norm_accepts,
    .prepare = norm_prepare,
    .run = norm_grad_run,
    .fini = norm_fini,
};
