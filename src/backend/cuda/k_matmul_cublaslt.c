/* matmul by cuBLASLt. Its matrices are column-major: what lies row-major in memory is to it the
 * transpose, so y' (N,M) = b' a' computes y (M,N) = a b, and a bias along N is one of its rows. */
#include "backend/cuda/cuda.h"

#include <string.h>

#include "backend/cuda/host.h"

enum { MOST_WORKSPACE = 32 << 20 };

/* The product as matrices in a row: y (m,n) of each of `batch`, a and b at a stride (0: the same).
 */
typedef struct Product {
    int64_t m, n, k, batch, stride_a, stride_b;
    bool trans_a, trans_b, has_bias;
} Product;

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

static const char *find_product(const QnNode *n, Product *p)
{
    const QnShape *a = &n->in[0]->type.shape, *b = &n->in[1]->type.shape;
    const QnShape *y = &n->out[0].type.shape;
    bool full_a, full_b;
    *p = (Product){ .trans_a = flag_of(n, "trans_a"),
                    .trans_b = flag_of(n, "trans_b"),
                    .has_bias = n->n_in > 2 && n->in[2] };
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
    const QnCuda *c = env->impl;
    Product p;
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
    return find_product(n, &p);
}

typedef struct BlasState {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, y;
    cublasLtMatmulAlgo_t algo;
    bool has_bias;
} BlasState;

static QnStatus set_desc(const QnCudaBlas *blas, BlasState *s, const Product *p,
                         cudaDataType_t type)
{
    cublasOperation_t op_a = p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N; /* of the first operand, b */
    cublasOperation_t op_b = p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t with = p->has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    int32_t bias_type = type;
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulDescCreate(&s->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_TRANSA,
                                                          &op_a, sizeof op_a));
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_TRANSB,
                                                          &op_b, sizeof op_b));
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                          &with, sizeof with));
    QN_CUDA_BLAS_TRY(blas,
                     cublasLtMatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                                                    &bias_type, sizeof bias_type));
    s->has_bias = p->has_bias;
    return QN_OK;
}

/* A row-major matrix of so many rows and columns in memory. */
static QnStatus set_layout(const QnCudaBlas *blas, cublasLtMatrixLayout_t *out, cudaDataType_t type,
                           int64_t rows, int64_t cols, int64_t batch, int64_t stride)
{
    int32_t count = (int32_t)batch;
    QN_CUDA_BLAS_TRY(blas,
                     cublasLtMatrixLayoutCreate(out, type, (uint64_t)cols, (uint64_t)rows, cols));
    QN_CUDA_BLAS_TRY(blas, cublasLtMatrixLayoutSetAttribute(
                               *out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    QN_CUDA_BLAS_TRY(
        blas, cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                               &stride, sizeof stride));
    return QN_OK;
}

/* The library's own choice, among algorithms whose sums have one order. */
static QnStatus ask(const QnCudaBlas *blas, const BlasState *s, cublasLtMatmulPreference_t want,
                    cublasLtMatmulHeuristicResult_t *found)
{
    size_t workspace = MOST_WORKSPACE;
    uint32_t schemes =
        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    int n = 0;
    QN_CUDA_BLAS_TRY(
        blas, cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                   &workspace, sizeof workspace));
    QN_CUDA_BLAS_TRY(
        blas, cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                   &schemes, sizeof schemes));
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulAlgoGetHeuristic(blas->handle, s->desc, s->b, s->a, s->y,
                                                          s->y, want, 1, found, &n));
    if (n < 1 || found->state != CUBLAS_STATUS_SUCCESS)
        return qn_fail(QN_EUNSUPPORTED, "cublasLt knows no algorithm for this product");
    return QN_OK;
}

static QnStatus choose(const QnCudaBlas *blas, BlasState *s, size_t *workspace_bytes)
{
    cublasLtMatmulPreference_t want;
    cublasLtMatmulHeuristicResult_t found = { 0 };
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulPreferenceCreate(&want));
    QnStatus st = ask(blas, s, want, &found);
    blas->cublasLtMatmulPreferenceDestroy(want);
    s->algo = found.algo;
    *workspace_bytes = found.workspaceSize;
    return st;
}

static void state_free(const QnCudaBlas *blas, BlasState *s)
{
    cublasLtMatrixLayout_t layouts[] = { s->a, s->b, s->y };
    for (int i = 0; i < QN_COUNT(layouts); i++) {
        if (layouts[i])
            blas->cublasLtMatrixLayoutDestroy(layouts[i]);
    }
    if (s->desc)
        blas->cublasLtMatmulDescDestroy(s->desc);
    qn_free(s);
}

static QnStatus make(const QnCudaBlas *blas, BlasState *s, const Product *p, QnDtype dtype,
                     size_t *workspace_bytes)
{
    cudaDataType_t type = dtype == QN_DTYPE_F16    ? CUDA_R_16F
                          : dtype == QN_DTYPE_BF16 ? CUDA_R_16BF
                                                   : CUDA_R_32F;
    QN_TRY(set_desc(blas, s, p, type));
    QN_TRY(set_layout(blas, &s->a, type, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k,
                      p->batch, p->stride_a));
    QN_TRY(set_layout(blas, &s->b, type, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n,
                      p->batch, p->stride_b));
    QN_TRY(set_layout(blas, &s->y, type, p->m, p->n, p->batch, p->m * p->n));
    return choose(blas, s, workspace_bytes);
}

static QnStatus blas_prepare(QnPrepared *p)
{
    QnCuda *c = p->env->impl;
    Product product;
    find_product(p->node, &product);
    QN_TRY(qn_cuda_enter(c));
    BlasState *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    QnStatus st = make(&c->blas, s, &product, p->node->out[0].type.dtype, &p->workspace_bytes);
    if (st != QN_OK)
        state_free(&c->blas, s);
    else
        p->state = s;
    return st;
}

static QnStatus blas_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    QnCuda *c = p->env->impl;
    const BlasState *s = p->state;
    const float one = 1, zero = 0;
    QN_TRY(qn_cuda_enter(c));
    if (s->has_bias)
        QN_CUDA_BLAS_TRY(&c->blas,
                         cublasLtMatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                        &in[2], sizeof in[2]));
    QN_CUDA_BLAS_TRY(&c->blas,
                     cublasLtMatmul(c->blas.handle, s->desc, &one, in[1], s->b, in[0], s->a, &zero,
                                    out[0], s->y, out[0], s->y, &s->algo, workspace,
                                    p->workspace_bytes, (cudaStream_t)c->stream));
    return QN_OK;
}

static void blas_fini(QnPrepared *p)
{
    QnCuda *c = p->env->impl;
    if (p->state)
        state_free(&c->blas, p->state);
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
