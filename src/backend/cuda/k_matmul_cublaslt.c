/* Products by cuBLASLt: one, or a batch of them at a stride, and what its epilogues compute behind
 * it. */
#include "backend/cuda/cuda.h"

#include <string.h>

#include "backend/cuda/form.h"

#include "backend/cuda/host.h"

static const char *check_types(const QnNode *n, const QnCuda *c)
{
    QnDtype type = n->out[0].type.dtype;
    if (type != QN_DTYPE_F32 && type != QN_DTYPE_F16 && type != QN_DTYPE_BF16)
        return "cublasLt multiplies f32, f16 and bf16";
    if (type == QN_DTYPE_BF16 && !(c->arch->math & QN_CUDA_BF16))
        return "the device has no products of bf16";
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] && n->in[i]->type.layout != QN_LAYOUT_PLAIN)
            return "reads only the plain layout";
    }
    return NULL;
}

static const char *blas_accepts(const QnNode *n, const QnKernelEnv *env)
{
    QnCuda *c = env->impl;
    QnCudaForm f;
    const QnCudaChoice *choice;
    if (!qn_cuda_form_is_product(n))
        return "another operator's";
    if (!c->blas.handle)
        return c->blas_error;
    const char *reason = check_types(n, c);
    if (!reason)
        reason = qn_cuda_form_of(n, &f);
    if (!reason && qn_cuda_product_is_f8(&f.product) && !(c->arch->math & QN_CUDA_FP8))
        reason = "the device has no products of 8 bits";
    if (reason)
        return reason;
    if (qn_cuda_enter(c) != QN_OK ||
        qn_cuda_product_choose(&c->blas, &c->choices, &f.product, &choice) != QN_OK)
        return "cublasLt failed when it was asked for an algorithm";
    return choice->is_known ? NULL : "cublasLt knows no algorithm for this product";
}

typedef struct BlasState {
    QnCudaForm form;
    QnCudaProductDesc d;
    cublasLtMatmulAlgo_t algo;
} BlasState;

static QnStatus blas_prepare(QnPrepared *p)
{
    QnCuda *c = p->env->impl;
    const QnCudaChoice *choice;
    BlasState *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    qn_cuda_form_of(p->node, &s->form);
    QnStatus st = qn_cuda_enter(c);
    if (st == QN_OK)
        st = qn_cuda_product_choose(&c->blas, &c->choices, &s->form.product, &choice);
    if (st == QN_OK) {
        s->algo = choice->algo;
        p->workspace_bytes = choice->workspace_bytes;
        st = qn_cuda_product_init(&c->blas, &s->form.product, &s->d);
    }
    if (st != QN_OK)
        qn_free(s);
    else
        p->state = s;
    return st;
}

static QnStatus set_pointer(const QnCudaBlas *blas, const BlasState *s,
                            cublasLtMatmulDescAttributes_t what, const void *to)
{
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulDescSetAttribute(s->d.desc, what, &to, sizeof to));
    return QN_OK;
}

/* Where a run's tensors lie: scales, a bias or its gradient, and what epilogues read or write
 * beside. The library's first operand is b. */
static QnStatus set_pointers(const QnCudaBlas *blas, const BlasState *s, const void *const *in,
                             void *const *out)
{
    const QnCudaForm *f = &s->form;
    if (f->scale_a_in >= 0) {
        QN_TRY(set_pointer(blas, s, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, in[f->scale_b_in]));
        QN_TRY(set_pointer(blas, s, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, in[f->scale_a_in]));
    }
    if (f->bias_in >= 0 || f->bias_out >= 0)
        QN_TRY(set_pointer(blas, s, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                           f->bias_in >= 0 ? in[f->bias_in] : out[f->bias_out]));
    if (f->aux_in >= 0 || f->aux_out >= 0)
        QN_TRY(set_pointer(blas, s, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
                           f->aux_in >= 0 ? in[f->aux_in] : out[f->aux_out]));
    return QN_OK;
}

static QnStatus blas_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    QnCuda *c = p->env->impl;
    const BlasState *s = p->state;
    const float one = 1, beta = s->form.sum_in >= 0 ? 1 : 0;
    const void *sum = s->form.sum_in >= 0 ? in[s->form.sum_in] : out[0];
    QN_TRY(qn_cuda_enter(c));
    QN_TRY(set_pointers(&c->blas, s, in, out));
    QN_CUDA_BLAS_TRY(&c->blas,
                     cublasLtMatmul(c->blas.handle, s->d.desc, &one, in[1], s->d.b, in[0], s->d.a,
                                    &beta, sum, s->d.y, out[0], s->d.y, &s->algo, workspace,
                                    p->workspace_bytes, (cudaStream_t)c->stream));
    return QN_OK;
}

static void blas_fini(QnPrepared *p)
{
    QnCuda *c = p->env->impl;
    BlasState *s = p->state;
    if (s)
        qn_cuda_product_fini(&c->blas, &s->d);
    qn_free(s);
}

const QnKernel qn_kernel_cuda_matmul_cublaslt = {
    .name = "cublaslt.matmul",
    .backend = "cuda",
    .rank = 90,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_LIBRARY,
    .accepts = blas_accepts,
    .prepare = blas_prepare,
    .run = blas_run,
    .fini = blas_fini,
};
