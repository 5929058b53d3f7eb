/* max_pool, avg_pool and their gradients in f32, to which 16-bit tensors are widened block by
 * block, in either layout. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/pool.h"
#include "ops/ops.h"

typedef struct PoolState {
    QnPool p;
    const QnPoolFns *fns;
    int64_t scratch;
} PoolState;

static const char *pool_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    const QnType *t = &n->out[0].type;
    if (t->dtype != QN_DTYPE_F32 && t->dtype != QN_DTYPE_F16 && t->dtype != QN_DTYPE_BF16)
        return "takes f32, f16 and bf16";
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i]->type.layout != t->layout || n->in[i]->type.dtype != t->dtype)
            return "its tensors differ in layout or type";
    }
    return NULL;
}

/* x and y: shapes before and after the pool. */
static QnStatus pool_init(QnPrepared *p, const QnPoolAttr *attr, const QnShape *x, const QnShape *y)
{
    PoolState *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->p.w = qn_window_pool(attr, x, y);
    s->p.n = x->dim[0];
    s->p.c = x->dim[1];
    s->p.plain = p->node->out[0].type.layout == QN_LAYOUT_PLAIN;
    s->p.dtype = p->node->out[0].type.dtype;
    s->p.convert = qn_convert_find(p->env->isa);
    s->p.count_pad = attr->count_include_pad;
    s->fns = qn_pool_find(p->env->isa);
    s->scratch = (qn_pool_scratch(&s->p) + 15) / 16 * 16;
    p->state = s;
    p->workspace_bytes = (size_t)(s->scratch * p->env->n_threads) * sizeof(float);
    return QN_OK;
}

/* The gradients' attribute structs begin with the pool's. */
static QnStatus pool_prepare(QnPrepared *p)
{
    return pool_init(p, p->node->attr, &p->node->in[0]->type.shape, &p->node->out[0].type.shape);
}

static QnStatus pool_grad_prepare(QnPrepared *p)
{
    return pool_init(p, p->node->attr, &p->node->out[0].type.shape, &p->node->in[0]->type.shape);
}

static void pool_fini(QnPrepared *p)
{
    qn_free(p->state);
}

typedef struct PoolRun {
    const PoolState *s;
    const QnOp *op;
    const void *a, *b; /* inputs */
    void *y;
    float *scratch;
} PoolRun;

static void pool_unit(void *ctx, int worker, int64_t unit)
{
    const PoolRun *r = ctx;
    const PoolState *s = r->s;
    float *scratch = r->scratch + worker * s->scratch;
    if (r->op == &qn_op_max_pool)
        s->fns->max(&s->p, r->a, r->y, unit, scratch);
    else if (r->op == &qn_op_max_pool_grad)
        s->fns->max_grad(&s->p, r->a, r->b, r->y, unit, scratch);
    else if (r->op == &qn_op_avg_pool)
        s->fns->avg(&s->p, r->a, r->y, unit, scratch);
    else
        s->fns->avg_grad(&s->p, r->a, r->y, unit, scratch);
}

static QnStatus pool_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const PoolState *s = p->state;
    PoolRun r = { .s = s, .op = p->node->op, .a = in[0], .y = out[0], .scratch = workspace };
    if (p->node->n_in > 1)
        r.b = in[1];
    qn_cpu_units(qn_cpu_threads(p), s->p.n * qn_pool_blocks(&s->p), pool_unit, &r);
    return QN_OK;
}

const QnKernel qn_kernel_max_pool_windows = {
    .name = "cpu.max_pool.windows",
    .backend = "cpu",
    .op = &qn_op_max_pool,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = pool_accepts,
    .prepare = pool_prepare,
    .run = pool_run,
    .fini = pool_fini,
};

const QnKernel qn_kernel_max_pool_grad_windows = {
    .name = "cpu.max_pool_grad.windows",
    .backend = "cpu",
    .op = &qn_op_max_pool_grad,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = pool_accepts,
    .prepare = pool_grad_prepare,
    .run = pool_run,
    .fini = pool_fini,
};

const QnKernel qn_kernel_avg_pool_windows = {
    .name = "cpu.avg_pool.windows",
    .backend = "cpu",
    .op = &qn_op_avg_pool,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = pool_accepts,
    .prepare = pool_prepare,
    .run = pool_run,
    .fini = pool_fini,
};

const QnKernel qn_kernel_avg_pool_grad_windows = {
    .name = "cpu.avg_pool_grad.windows",
    .backend = "cpu",
    .op = &qn_op_avg_pool_grad,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = pool_accepts,
    .prepare = pool_grad_prepare,
    .run = pool_run,
    .fini = pool_fini,
};
