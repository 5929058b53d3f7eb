#include "backend/cuda/product.h"

#include "backend/cuda/host.h"

enum { MOST_WORKSPACE = 32 << 20 };

/* ---- descriptors ---- */

static QnStatus set_desc(const QnCudaBlas *blas, QnCudaProductDesc *s, const QnCudaProduct *p,
                         cudaDataType_t type)
{
    cublasOperation_t op_a = p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N; /* of the first operand, b */
    cublasOperation_t op_b = p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t with = p->has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    int32_t bias_type = (int32_t)type;
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

static QnStatus fill(const QnCudaBlas *blas, const QnCudaProduct *p, QnCudaProductDesc *d)
{
    cudaDataType_t type = p->dtype == QN_DTYPE_F16    ? CUDA_R_16F
                          : p->dtype == QN_DTYPE_BF16 ? CUDA_R_16BF
                                                      : CUDA_R_32F;
    QN_TRY(set_desc(blas, d, p, type));
    QN_TRY(set_layout(blas, &d->a, type, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k,
                      p->batch, p->stride_a));
    QN_TRY(set_layout(blas, &d->b, type, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n,
                      p->batch, p->stride_b));
    return set_layout(blas, &d->y, type, p->m, p->n, p->batch, p->m * p->n);
}

void qn_cuda_product_fini(const QnCudaBlas *blas, QnCudaProductDesc *d)
{
    cublasLtMatrixLayout_t layouts[] = { d->a, d->b, d->y };
    for (int i = 0; i < QN_COUNT(layouts); i++) {
        if (layouts[i])
            blas->cublasLtMatrixLayoutDestroy(layouts[i]);
    }
    if (d->desc)
        blas->cublasLtMatmulDescDestroy(d->desc);
    *d = (QnCudaProductDesc){ 0 };
}

QnStatus qn_cuda_product_init(const QnCudaBlas *blas, const QnCudaProduct *p,
                              QnCudaProductDesc *out)
{
    QnCudaProductDesc d = { 0 };
    QnStatus st = fill(blas, p, &d);
    if (st != QN_OK)
        qn_cuda_product_fini(blas, &d);
    else
        *out = d;
    return st;
}

/* ---- choices ---- */

/* Among algorithms whose sums have one order. */
static QnStatus ask(const QnCudaBlas *blas, const QnCudaProductDesc *d,
                    cublasLtMatmulPreference_t want, QnCudaChoice *out)
{
    size_t workspace = MOST_WORKSPACE;
    uint32_t schemes =
        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    int n = 0;
    cublasLtMatmulHeuristicResult_t found = { 0 };
    QN_CUDA_BLAS_TRY(
        blas, cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                   &workspace, sizeof workspace));
    QN_CUDA_BLAS_TRY(
        blas, cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                   &schemes, sizeof schemes));
    cublasStatus_t err = blas->cublasLtMatmulAlgoGetHeuristic(blas->handle, d->desc, d->b, d->a,
                                                              d->y, d->y, want, 1, &found, &n);
    if (err != CUBLAS_STATUS_SUCCESS && err != CUBLAS_STATUS_NOT_SUPPORTED)
        return qn_cuda_blas_fail(blas, err, "cublasLtMatmulAlgoGetHeuristic");
    out->is_known = err == CUBLAS_STATUS_SUCCESS && n > 0 && found.state == CUBLAS_STATUS_SUCCESS;
    out->algo = found.algo;
    out->workspace_bytes = found.workspaceSize;
    return QN_OK;
}

static QnStatus choose(const QnCudaBlas *blas, const QnCudaProduct *p, QnCudaChoice *out)
{
    QnCudaProductDesc d;
    cublasLtMatmulPreference_t want;
    QN_TRY(qn_cuda_product_init(blas, p, &d));
    cublasStatus_t err = blas->cublasLtMatmulPreferenceCreate(&want);
    QnStatus st = QN_OK;
    if (err != CUBLAS_STATUS_SUCCESS) {
        st = qn_cuda_blas_fail(blas, err, "cublasLtMatmulPreferenceCreate");
    } else {
        st = ask(blas, &d, want, out);
        blas->cublasLtMatmulPreferenceDestroy(want);
    }
    qn_cuda_product_fini(blas, &d);
    return st;
}

static bool is_same(const QnCudaProduct *x, const QnCudaProduct *y)
{
    return x->m == y->m && x->n == y->n && x->k == y->k && x->batch == y->batch &&
           x->stride_a == y->stride_a && x->stride_b == y->stride_b && x->trans_a == y->trans_a &&
           x->trans_b == y->trans_b && x->has_bias == y->has_bias && x->dtype == y->dtype;
}

QnStatus qn_cuda_product_choose(const QnCudaBlas *blas, QnCudaChoices *choices,
                                const QnCudaProduct *p, const QnCudaChoice **out)
{
    for (int64_t i = 0; i < choices->n; i++) {
        *out = &choices->items[i];
        if (is_same(&choices->items[i].product, p))
            return QN_OK;
    }
    QN_TRY(QN_GROW(choices->items, choices->cap, choices->n));
    QnCudaChoice *c = &choices->items[choices->n];
    *c = (QnCudaChoice){ .product = *p };
    QN_TRY(choose(blas, p, c));
    choices->n++;
    *out = c;
    return QN_OK;
}
