/* matmul by Quern's own matrix product. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/product.h"
#include "ops/ops.h"

static const char *matmul_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    QnDtype d = n->out[0].type.dtype;
    if (d != QN_DTYPE_F32 && d != QN_DTYPE_F16 && d != QN_DTYPE_BF16)
        return "takes f32, f16 and bf16";
    return qn_cpu_need_plain(n);
}

static QnStatus matmul_prepare(QnPrepared *p)
{
    QnProduct *m = p->state = qn_alloc(sizeof *m);
    if (!m)
        return QN_ENOMEM;
    QnMatmul of = qn_matmul_of(p->node);
    qn_product_init(m, &of, p->env);
    p->workspace_bytes = qn_product_workspace(m);
    return QN_OK;
}

static QnStatus matmul_run(const QnPrepared *p, const void *const *in, void *const *out,
                           void *workspace)
{
    const char *const operand[] = { in[0], in[1], p->node->n_in > 2 ? in[2] : NULL, out[0] };
    qn_product_run(p->state, qn_cpu_threads(p), operand, workspace);
    return QN_OK;
}

static void matmul_fini(QnPrepared *p)
{
    qn_free(p->state);
}

const QnKernel qn_kernel_matmul_gemm = {
    .name = "cpu.matmul.gemm",
    .backend = "cpu",
    .op = &qn_op_matmul,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = matmul_accepts,
    .prepare = matmul_prepare,
    .run = matmul_run,
    .fini = matmul_fini,
};
