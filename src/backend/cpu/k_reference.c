/* Any operator in any dtype, by its float64 reference: the floor that everything stands on. */
#include "backend/cpu/cpu.h"
#include "ir/eval.h"

#include <string.h>

static const char *reference_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    if (!n->op->ref && !n->op->map)
        return "a composite, to be lowered first";
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] && n->in[i]->type.layout != QN_LAYOUT_PLAIN)
            return "reads only the plain layout";
    }
    for (int i = 0; i < n->n_out; i++) {
        if (n->out[i].type.layout != QN_LAYOUT_PLAIN)
            return "writes only the plain layout";
    }
    return NULL;
}

static size_t wide_bytes(const QnType *t)
{
    return ((size_t)qn_shape_count(&t->shape) * sizeof(double) + 63) / 64 * 64 + 64;
}

static QnStatus reference_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    p->workspace_bytes = (size_t)n->n_in * sizeof(double *) + 64;
    for (int i = 0; i < n->n_in; i++)
        p->workspace_bytes += n->in[i] ? wide_bytes(&n->in[i]->type) : 0;
    for (int i = 0; i < n->n_out; i++)
        p->workspace_bytes += wide_bytes(&n->out[i].type);
    return QN_OK;
}

static QnStatus reference_run(const QnPrepared *p, const void *const *in, void *const *out,
                              void *workspace)
{
    const QnNode *n = p->node;
    const double **wide_in = workspace;
    double *wide_out[QN_MAX_OUT];
    char *at = (char *)workspace + ((size_t)n->n_in * sizeof(double *) + 63) / 64 * 64;
    for (int i = 0; i < n->n_in; i++) {
        if (!in[i]) {
            wide_in[i] = NULL;
            continue;
        }
        const QnType *t = &n->in[i]->type;
        if (qn_eval_is_bits(n, t, i))
            memcpy(at, in[i], (size_t)qn_type_bytes(t));
        else
            qn_dtype_to_f64(t->dtype, in[i], (double *)(void *)at, qn_shape_count(&t->shape));
        wide_in[i] = (double *)(void *)at;
        at += wide_bytes(t);
    }
    for (int i = 0; i < n->n_out; i++) {
        wide_out[i] = (double *)(void *)at;
        at += wide_bytes(&n->out[i].type);
    }
    QN_TRY(qn_eval_node(n, wide_in, wide_out, true));
    for (int i = 0; i < n->n_out; i++) {
        const QnType *t = &n->out[i].type;
        if (qn_eval_is_bits(n, t, -1))
            memcpy(out[i], wide_out[i], (size_t)qn_type_bytes(t));
        else
            qn_dtype_from_f64(t->dtype, wide_out[i], out[i], qn_shape_count(&t->shape));
    }
    return QN_OK;
}

const QnKernel qn_kernel_reference = {
    .name = "reference",
    .backend = "cpu",
    .rank = 0,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = reference_accepts,
    .prepare = reference_prepare,
    .run = reference_run,
};
