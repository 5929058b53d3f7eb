/* matmul by cuBLASLt: one product, or a batch of them at a stride. */
#include "backend/cuda/cuda.h"

#include <string.h>

#include "backend/cuda/host.h"

static bool flag_of(const QnNode *n, const char *name)
{
    for (int i = 0; i < n->op->n_fields; i++) {
        if (!strcmp(n->op->fields[i].name, name))
            return *(const bool *)((const char *)n->attr + n->op->fields[i].offset);
    }
    return false;
}

/* Whether the operand's batch axes are those of y (*full), or none; false: some of both. */
static bool batch_of(const QnShape *s, const QnShape *y, bool *full)
{
    bool same = true, none = true;
    for (int i = 3; i <= y->rank; i++) {
        int64_t d = i <= s->rank ? s->dim[s->rank - i] : 1, of_y = y->dim[y->rank - i];
        same = same && d == of_y;
        none = none && d == 1;
    }
    *full = same;
    return same || none;
}

static const char *check_bias(const QnNode *n)
{
    if (n->n_in < 3 || !n->in[2])
        return NULL;
    const QnShape *c = &n->in[2]->type.shape, *y = &n->out[0].type.shape;
    bool is_row = c->rank > 0 && c->dim[c->rank - 1] == y->dim[y->rank - 1];
    for (int i = 0; i < c->rank - 1; i++)
        is_row = is_row && c->dim[i] == 1;
    return is_row ? NULL : "cublasLt adds a bias that is one row";
}

static const char *find_product(const QnNode *n, QnCudaProduct *p)
{
    const QnShape *a = &n->in[0]->type.shape, *b = &n->in[1]->type.shape;
    const QnShape *y = &n->out[0].type.shape;
    bool full_a, full_b;
    *p = (QnCudaProduct){ .trans_a = flag_of(n, "trans_a"),
                          .trans_b = flag_of(n, "trans_b"),
                          .has_bias = n->n_in > 2 && n->in[2],
                          .dtype = n->out[0].type.dtype };
    p->m = y->dim[y->rank - 2];
    p->n = y->dim[y->rank - 1];
    p->k = a->dim[a->rank - (p->trans_a ? 2 : 1)];
    p->batch = 1;
    for (int i = 0; i < y->rank - 2; i++)
        p->batch *= y->dim[i];
    if (!batch_of(a, y, &full_a) || !batch_of(b, y, &full_b))
        return "cublasLt's batches are at one stride, and some axes are broadcast";
    p->stride_a = full_a ? p->m * p->k : 0;
    p->stride_b = full_b ? p->k * p->n : 0;
    if (!full_b && full_a && !p->trans_a) { /* one weight for all: rows of one matrix */
        p->m *= p->batch;
        p->batch = 1;
    }
    if (p->m == 0 || p->n == 0 || p->k == 0 || p->batch == 0)
        return "cublasLt takes no empty matrices";
    if (p->batch > INT32_MAX)
        return "cublasLt takes fewer than 2^31 matrices";
    return check_bias(n);
}

static const char *blas_accepts(const QnNode *n, const QnKernelEnv *env)
{
    QnCuda *c = env->impl;
    QnCudaProduct p;
    const QnCudaChoice *choice;
    if (strcmp(n->op->name, "matmul"))
        return "another operator's";
    if (!c->blas.handle)
        return c->blas_error;
    QnDtype type = n->out[0].type.dtype;
    if (type != QN_DTYPE_F32 && type != QN_DTYPE_F16 && type != QN_DTYPE_BF16)
        return "cublasLt multiplies f32, f16 and bf16";
    if (type == QN_DTYPE_BF16 && !(c->arch->math & QN_CUDA_BF16))
        return "the device has no products of bf16";
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] && n->in[i]->type.layout != QN_LAYOUT_PLAIN)
            return "reads only the plain layout";
    }
    const char *reason = find_product(n, &p);
    if (reason)
        return reason;
    if (qn_cuda_enter(c) != QN_OK ||
        qn_cuda_product_choose(&c->blas, &c->choices, &p, &choice) != QN_OK)
        return "cublasLt failed when it was asked for an algorithm";
    return choice->is_known ? NULL : "cublasLt knows no algorithm for this product";
}

typedef struct BlasState {
    QnCudaProductDesc d;
    cublasLtMatmulAlgo_t algo;
    bool has_bias;
} BlasState;

static QnStatus blas_prepare(QnPrepared *p)
{
    QnCuda *c = p->env->impl;
    QnCudaProduct product;
    const QnCudaChoice *choice;
    find_product(p->node, &product);
    QN_TRY(qn_cuda_enter(c));
    QN_TRY(qn_cuda_product_choose(&c->blas, &c->choices, &product, &choice));
    BlasState *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->algo = choice->algo;
    s->has_bias = product.has_bias;
    QnStatus st = qn_cuda_product_init(&c->blas, &product, &s->d);
    if (st != QN_OK) {
        qn_free(s);
        return st;
    }
    p->workspace_bytes = choice->workspace_bytes;
    p->state = s;
    return QN_OK;
}

static QnStatus blas_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    QnCuda *c = p->env->impl;
    const BlasState *s = p->state;
    const float one = 1, zero = 0;
    QN_TRY(qn_cuda_enter(c));
    if (s->has_bias)
        QN_CUDA_BLAS_TRY(&c->blas, cublasLtMatmulDescSetAttribute(s->d.desc,
                                                                  CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                                  &in[2], sizeof in[2]));
    QN_CUDA_BLAS_TRY(&c->blas,
                     cublasLtMatmul(c->blas.handle, s->d.desc, &one, in[1], s->d.b, in[0], s->d.a,
                                    &zero, out[0], s->d.y, out[0], s->d.y, &s->algo, workspace,
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
