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
    QnMatmul of = qn_matmul_of(p->node);
    return qn_product_prepare(p, &of, qn_gemm_find(p->env->isa));
}

const QnKernel qn_kernel_matmul_gemm = {
    .name = "cpu.matmul.gemm",
    .backend = "cpu",
    .op = &qn_op_matmul,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = matmul_accepts,
    .prepare = matmul_prepare,
    .run = qn_product_run_node,
    .fini = qn_product_fini,
};
