/* attention and its gradient in f32, to which 16-bit tensors are widened, block by block of
 * queries. */
#include "backend/cpu/attention.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/widen.h"
#include "ops/ops.h"

typedef struct AttentionState {
    QnAttention a;
    const QnAttentionFns *fns;
    int64_t scratch; /* floats a worker */
    bool has_mask;
} AttentionState;

static const char *attention_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    const char *why = qn_cpu_need_plain(n);
    return why ? why : qn_widen_refuses(n);
}

static QnStatus attention_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    bool grad = n->op == &qn_op_attention_grad;
    int q = grad ? 1 : 0, m = grad ? 6 : 3;
    AttentionState *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->has_mask = n->n_in > m && n->in[m];
    s->a.h = qn_heads_make(n->attr, &n->in[q]->type.shape, &n->in[q + 1]->type.shape,
                           &n->in[q + 2]->type.shape, s->has_mask ? &n->in[m]->type.shape : NULL);
    qn_attention_blocks(&s->a);
    s->fns = qn_attention_find(p->env->isa);
    s->scratch = qn_attention_scratch(&s->a, grad);
    p->state = s;
    p->workspace_bytes = (size_t)(s->scratch * p->env->n_threads) * sizeof(float);
    qn_widen_prepare(p);
    return QN_OK;
}

static void attention_fini(QnPrepared *p)
{
    qn_free(p->state);
}

typedef struct AttentionRun {
    const AttentionState *s;
    QnAttentionIn in;
    float *out[3], *scratch;
} AttentionRun;

static void forward_unit(void *ctx, int worker, int64_t unit)
{
    const AttentionRun *r = ctx;
    r->s->fns->forward(&r->s->a, &r->in, r->out[0], r->out[1], unit,
                       r->scratch + worker * r->s->scratch);
}

static void backward_unit(void *ctx, int worker, int64_t unit)
{
    const AttentionRun *r = ctx;
    r->s->fns->backward(&r->s->a, &r->in, r->out[0], r->out[1], r->out[2], unit,
                        r->scratch + worker * r->s->scratch);
}

static QnStatus attention_f32(const QnPrepared *p, const void *const *in, void *const *out,
                              void *workspace)
{
    const AttentionState *s = p->state;
    AttentionRun r = { .s = s, .out = { out[0], out[1] }, .scratch = workspace };
    r.in = (QnAttentionIn){ .q = in[0], .k = in[1], .v = in[2] };
    r.in.mask = s->has_mask ? in[3] : NULL;
    qn_cpu_units(qn_cpu_threads(p), s->a.h.b * s->a.h.h * s->a.n_blocks, forward_unit, &r);
    return QN_OK;
}

static QnStatus attention_run(const QnPrepared *p, const void *const *in, void *const *out,
                              void *workspace)
{
    return qn_widen_run(p, in, out, workspace, attention_f32);
}

static QnStatus attention_grad_f32(const QnPrepared *p, const void *const *in, void *const *out,
                                   void *workspace)
{
    const AttentionState *s = p->state;
    AttentionRun r = { .s = s, .out = { out[0], out[1], out[2] }, .scratch = workspace };
    r.in = (QnAttentionIn){
        .dy = in[0], .q = in[1], .k = in[2], .v = in[3], .lse = in[4], .delta = in[5]
    };
    r.in.mask = s->has_mask ? in[6] : NULL;
    qn_cpu_units(qn_cpu_threads(p), s->a.h.b * s->a.h.hkv, backward_unit, &r);
    return QN_OK;
}

static QnStatus attention_grad_run(const QnPrepared *p, const void *const *in, void *const *out,
                                   void *workspace)
{
    return qn_widen_run(p, in, out, workspace, attention_grad_f32);
}

const QnKernel qn_kernel_attention_blocks = {
    .name = "cpu.attention.blocks",
    .backend = "cpu",
    .op = &qn_op_attention,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = attention_accepts,
    .prepare = attention_prepare,
    .run = attention_run,
    .fini = attention_fini,
};

const QnKernel qn_kernel_attention_grad_blocks = {
    .name = "cpu.attention_grad.blocks",
    .backend = "cpu",
    .op = &qn_op_attention_grad,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = attention_accepts,
    .prepare = attention_prepare,
    .run = attention_grad_run,
    .fini = attention_fini,
};
