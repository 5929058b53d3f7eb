/* matmul of bf16 without widening: two products at a time, where the instruction set adds them to
 * sums in f32. That instruction takes subnormal elements as zeros, and subnormal sums become zeros,
 * whatever the modes of the thread: below 2^-126 the product is less exact than cpu.matmul.gemm's.
 * Sums have one order, so that bits do not hang on threads or on the part of the product. Whether
 * it is faster hangs on the CPU: cores do twice as many multiply-adds so, or half as many. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/product.h"
#include "ops/ops.h"

static const char *matmul_accepts(const QnNode *n, const QnKernelEnv *env)
{
    if (n->out[0].type.dtype != QN_DTYPE_BF16)
        return "takes bf16";
    const char *why = qn_cpu_need_plain(n);
    return why ? why : qn_matmul_bf16_find(env->isa) ? NULL : "no such instruction set";
}

static QnStatus matmul_prepare(QnPrepared *p)
{
    QnMatmul of = qn_matmul_of(p->node);
    return qn_product_prepare(p, &of, qn_matmul_bf16_find(p->env->isa));
}

const QnKernel qn_kernel_matmul_bf16 = {
    .name = "cpu.matmul.dots_bf16",
    .backend = "cpu",
    .op = &qn_op_matmul,
    .rank = 58, /* below cpu.matmul.gemm: `quern tune` measures both */
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = matmul_accepts,
    .prepare = matmul_prepare,
    .run = qn_product_run_node,
    .fini = qn_product_fini,
};
