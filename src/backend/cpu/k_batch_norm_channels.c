/* batch_norm and its gradient in f32, to which 16-bit tensors are widened, in either layout: two
 * passes over the tensor, the first in parts that fit the cache. */
#include "backend/cpu/channels.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/widen.h"
#include "ops/ops.h"

#include <math.h>

typedef struct NormState {
    QnChannels s;
    const QnChannelFns *fns;
    float eps;
} NormState;

typedef struct NormRun {
    const NormState *n;
    const float *dy, *x, *mean, *scale, *bias, *k0, *k1;
    float *y, *parts;
} NormRun;

/* The tensors of x's shape must lie alike. */
static const char *norm_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    bool grad = n->op == &qn_op_batch_norm_grad;
    QnLayout x = n->in[0]->type.layout;
    if (n->out[0].type.layout != x || (grad && n->in[1]->type.layout != x))
        return "x and y differ in layout";
    return qn_widen_refuses(n);
}

static QnStatus norm_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    NormState *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->s = qn_channels_of(&n->in[0]->type);
    s->fns = qn_channels_find(p->env->isa);
    if (n->op == &qn_op_batch_norm)
        s->eps = (float)*(const double *)qn_cpu_attr(n, "eps");
    p->state = s;
    p->workspace_bytes = (size_t)((3 * s->s.n_parts + 3) * s->s.c) * sizeof(float);
    qn_widen_prepare(p);
    return QN_OK;
}

static void norm_fini(QnPrepared *p)
{
    qn_free(p->state);
}

static int64_t part_pixels(const QnChannels *s, int64_t part)
{
    return (s->outer / s->n_parts + (part < s->outer % s->n_parts)) * s->inner;
}

/* ---- batch_norm ---- */

static void stats_unit(void *ctx, int worker, int64_t part)
{
    const NormRun *r = ctx;
    (void)worker;
    r->n->fns->stats(&r->n->s, r->x, part, r->parts + part * 3 * r->n->s.c);
}

static void affine_unit(void *ctx, int worker, int64_t part)
{
    const NormRun *r = ctx;
    (void)worker;
    r->n->fns->affine(&r->n->s, r->x, r->mean, r->scale, r->bias, r->y, part);
}

/* Mean and mean squared difference of channel c over all parts. */
static void join_parts(const QnChannels *s, const float *parts, int64_t c, double *mean,
                       double *square)
{
    double n = 0, m = 0, q = 0;
    for (int64_t i = 0; i < s->n_parts; i++) {
        double k = (double)part_pixels(s, i), d = parts[i * 3 * s->c + c] - m;
        n += k;
        m += n > 0 ? d * k / n : 0;
        q += parts[i * 3 * s->c + s->c + c] + (n > 0 ? d * d * k * (n - k) / n : 0);
    }
    *mean = m;
    *square = q;
}

static QnStatus batch_norm_f32(const QnPrepared *p, const void *const *in, void *const *out,
                               void *workspace)
{
    const NormState *n = p->state;
    const QnChannels *s = &n->s;
    const float *gamma = in[1];
    float *scale = workspace, *mean = out[1], *rstd = out[2], *var = out[3];
    double count = (double)(s->outer * s->inner);
    NormRun r = { .n = n, .x = in[0], .mean = mean, .bias = in[2] };
    r.scale = scale;
    r.y = out[0];
    r.parts = scale + s->c;
    qn_cpu_units(qn_cpu_threads(p), s->n_parts, stats_unit, &r);
    for (int64_t c = 0; c < s->c; c++) {
        double m, q;
        join_parts(s, r.parts, c, &m, &q);
        double inverse = 1 / sqrt(q / count + (double)n->eps);
        scale[c] = (float)(inverse * gamma[c]);
        mean[c] = (float)m;
        rstd[c] = (float)inverse;
        var[c] = (float)(q / fmax(count - 1, 1));
    }
    qn_cpu_units(qn_cpu_threads(p), s->n_parts, affine_unit, &r);
    return QN_OK;
}

static QnStatus batch_norm_run(const QnPrepared *p, const void *const *in, void *const *out,
                               void *workspace)
{
    return qn_widen_run(p, in, out, workspace, batch_norm_f32);
}

/* ---- batch_norm_grad ---- */

static void grad_sums_unit(void *ctx, int worker, int64_t part)
{
    const NormRun *r = ctx;
    (void)worker;
    r->n->fns->grad_sums(&r->n->s, r->dy, r->x, r->mean, part, r->parts + part * 3 * r->n->s.c);
}

static void grad_unit(void *ctx, int worker, int64_t part)
{
    const NormRun *r = ctx;
    (void)worker;
    r->n->fns->grad(&r->n->s, r->dy, r->x, r->mean, r->scale, r->k0, r->k1, r->y, part);
}

static QnStatus batch_norm_grad_f32(const QnPrepared *p, const void *const *in, void *const *out,
                                    void *workspace)
{
    const NormState *n = p->state;
    const QnChannels *s = &n->s;
    const float *rstd = in[3], *gamma = in[4];
    float *scale = workspace, *k0 = scale + s->c, *k1 = k0 + s->c, *dscale = out[1],
          *dbias = out[2];
    double count = (double)(s->outer * s->inner);
    NormRun r = { .n = n, .dy = in[0], .x = in[1], .mean = in[2], .y = out[0], .parts = k1 + s->c };
    r.scale = scale;
    r.k0 = k0;
    r.k1 = k1;
    qn_cpu_units(qn_cpu_threads(p), s->n_parts, grad_sums_unit, &r);
    for (int64_t c = 0; c < s->c; c++) {
        double sum = 0, dot = 0;
        for (int64_t i = 0; i < s->n_parts; i++) {
            sum += r.parts[i * 3 * s->c + c];
            dot += r.parts[i * 3 * s->c + s->c + c];
        }
        scale[c] = gamma[c] * rstd[c];
        k0[c] = (float)(sum / count);
        k1[c] = (float)(dot / count * rstd[c] * rstd[c]);
        dscale[c] = (float)(dot * rstd[c]);
        dbias[c] = (float)sum;
    }
    qn_cpu_units(qn_cpu_threads(p), s->n_parts, grad_unit, &r);
    return QN_OK;
}

static QnStatus batch_norm_grad_run(const QnPrepared *p, const void *const *in, void *const *out,
                                    void *workspace)
{
    return qn_widen_run(p, in, out, workspace, batch_norm_grad_f32);
}

const QnKernel qn_kernel_batch_norm_channels = {
    .name = "cpu.batch_norm.channels",
    .backend = "cpu",
    .op = &qn_op_batch_norm,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = norm_accepts,
    .prepare = norm_prepare,
    .run = batch_norm_run,
    .fini = norm_fini,
};

const QnKernel qn_kernel_batch_norm_grad_channels = {
    .name = "cpu.batch_norm_grad.channels",
    .backend = "cpu",
    .op = &qn_op_batch_norm_grad,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = norm_accepts,
    .prepare = norm_prepare,
    .run = batch_norm_grad_run,
    .fini = norm_fini,
};
