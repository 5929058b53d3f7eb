/* Max pool of a batch norm's ReLU, and the gradient of all three, in f32 and either layout; images
 * of 16 bits are widened block by block, what there is by channel as a whole. */
#include "backend/cpu/channels.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/pool.h"
#include "backend/cpu/stream.h"
#include "backend/cpu/widen.h"
#include "ops/ops.h"

typedef struct PoolNormState {
    QnPool p;
    const QnPoolNormFns *fns;
    QnPoolReach reach;
    int64_t scratch, sums; /* floats of a worker; of all images' sums */
    bool streams;
} PoolNormState;

static bool is_grad(const QnNode *n)
{
    return n->op == &qn_op_batch_norm_relu_pool_grad;
}

static const QnType *image(const QnNode *n)
{
    return &n->in[is_grad(n)]->type;
}

static const QnType *pooled(const QnNode *n)
{
    return is_grad(n) ? &n->in[0]->type : &n->out[0].type;
}

/* Operands that are images: these are not widened as a whole. */
static unsigned images(const QnNode *n)
{
    return is_grad(n) ? 3u | 1u << n->n_in : 1u | 1u << n->n_in;
}

static const char *pool_norm_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    const QnType *x = image(n), *y = pooled(n);
    QnWindow w = qn_window_pool(n->attr, &x->shape, &y->shape);
    if (x->dtype != y->dtype || x->layout != y->layout || n->out[0].type.layout != x->layout)
        return "its images differ in layout or type";
    if (w.k[0] * w.k[1] * w.k[2] > QN_POOL_NORM_TAPS)
        return "takes windows of at most 127 elements";
    return qn_widen_refuses(n);
}

static QnStatus pool_norm_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    const QnType *x = image(n), *y = pooled(n);
    PoolNormState *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    *s = (PoolNormState){ .fns = qn_pool_norm_find(p->env->isa) };
    s->p = (QnPool){ .w = qn_window_pool(n->attr, &x->shape, &y->shape),
                     .n = x->shape.dim[0],
                     .c = x->shape.dim[1],
                     .plain = x->layout == QN_LAYOUT_PLAIN,
                     .dtype = x->dtype,
                     .convert = qn_convert_find(p->env->isa) };
    s->scratch = (qn_pool_scratch(&s->p) + 15) / 16 * 16;
    s->sums = is_grad(n) ? (2 * s->p.n + 2) * s->p.c : 0;
    p->state = s;
    p->workspace_bytes = (size_t)(s->scratch * p->env->n_threads + s->sums) * sizeof(float);
    if (!is_grad(n)) {
        qn_widen_prepare_but(p, images(n));
        return QN_OK;
    }
    s->streams = qn_stream_for(p->env->isa, (size_t)qn_type_bytes(x)) != NULL;
    p->workspace_bytes += (size_t)qn_shape_count(&y->shape); /* who won */
    qn_widen_prepare_but(p, images(n));
    return qn_pool_reach_init(&s->reach, &s->p.w);
}

static void pool_norm_fini(QnPrepared *p)
{
    PoolNormState *s = p->state;
    if (s)
        qn_pool_reach_fini(&s->reach);
    qn_free(s);
}

typedef struct PoolNormRun {
    const PoolNormState *s;
    QnPoolNorm k;
    const void *x, *dy;
    void *y;
    float *scratch, *sums;
    QnChannelJoin join;
} PoolNormRun;

static float *scratch_of(const PoolNormRun *r, int worker)
{
    return r->scratch + worker * r->s->scratch;
}

static int64_t units(const PoolNormState *s)
{
    return s->p.n * qn_pool_blocks(&s->p);
}

static void max_unit(void *ctx, int worker, int64_t unit)
{
    const PoolNormRun *r = ctx;
    r->s->fns->max(&r->s->p, &r->k, r->x, r->y, unit, scratch_of(r, worker));
}

static QnStatus max_f32(const QnPrepared *p, const void *const *in, void *const *out,
                        void *workspace)
{
    PoolNormRun r = { .s = p->state,
                      .k = { .mean = in[1], .factor = in[2], .bias = in[3] },
                      .x = in[0],
                      .y = out[0],
                      .scratch = workspace };
    qn_cpu_units(qn_cpu_threads(p), units(r.s), max_unit, &r);
    return QN_OK;
}

/* An image's sums lie beside each other, those of its blocks of channels in their places. */
static void sums_unit(void *ctx, int worker, int64_t unit)
{
    const PoolNormRun *r = ctx;
    const QnPool *p = &r->s->p;
    r->s->fns->sums(p, &r->k, r->dy, r->x, r->sums + unit / qn_pool_blocks(p) * 2 * p->c, unit,
                    scratch_of(r, worker));
}

static void join_unit(void *ctx, int64_t joint)
{
    qn_channels_join_grad(&((const PoolNormRun *)ctx)->join, joint);
}

static void grad_unit(void *ctx, int worker, int64_t unit)
{
    const PoolNormRun *r = ctx;
    r->s->fns->grad(&r->s->p, &r->k, r->dy, r->x, r->y, unit, scratch_of(r, worker));
}

static QnStatus grad_f32(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const PoolNormState *s = p->state;
    const QnPool *pool = &s->p;
    float *k0 = workspace;
    PoolNormRun r = { .s = s,
                      .k = { in[2], in[4], in[5], k0, k0 + pool->c, &s->reach },
                      .dy = in[0],
                      .x = in[1],
                      .y = out[0],
                      .sums = k0 + 2 * pool->c,
                      .scratch = k0 + s->sums };
    r.join = (QnChannelJoin){ .c = pool->c,
                              .n_parts = pool->n,
                              .step = 2 * pool->c,
                              .n = (double)(pool->n * qn_pool_in(pool)),
                              .parts = r.sums,
                              .rstd = in[3],
                              .to_k0 = k0,
                              .to_k1 = k0 + pool->c,
                              .dscale = out[1],
                              .dbias = out[2] };
    r.k.past = s->streams;
    r.k.who = (int8_t *)(r.scratch + s->scratch * p->env->n_threads);
    qn_cpu_units(qn_cpu_threads(p), units(s), sums_unit, &r);
    qn_cpu_parallel(qn_cpu_threads(p), (pool->c + QN_CHANNELS_JOINT - 1) / QN_CHANNELS_JOINT,
                    join_unit, &r);
    qn_cpu_units(qn_cpu_threads(p), units(s), grad_unit, &r);
    return QN_OK;
}

static QnStatus run(const QnPrepared *p, const void *const *in, void *const *out, void *workspace)
{
    return qn_widen_run_but(p, in, out, workspace, images(p->node),
                            is_grad(p->node) ? grad_f32 : max_f32);
}

const QnKernel qn_kernel_batch_norm_relu_pool_windows = {
    .name = "cpu.batch_norm_relu_pool.windows",
    .backend = "cpu",
    .op = &qn_op_batch_norm_relu_pool,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = pool_norm_accepts,
    .prepare = pool_norm_prepare,
    .run = run,
    .fini = pool_norm_fini,
};

const QnKernel qn_kernel_batch_norm_relu_pool_grad_windows = {
    .name = "cpu.batch_norm_relu_pool_grad.windows",
    .backend = "cpu",
    .op = &qn_op_batch_norm_relu_pool_grad,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = pool_norm_accepts,
    .prepare = pool_norm_prepare,
    .run = run,
    .fini = pool_norm_fini,
};
