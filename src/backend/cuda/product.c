#include "backend/cuda/product.h"

#include "backend/cuda/host.h"

/* Pointers come with each run. Until then they say how such addresses are aligned (rt/kernel.h),
 * which the library's choice depends on. */
static QnStatus set_aux(const QnCudaBlas *blas, QnCudaProductDesc *s, const QnCudaProduct *p)
{
    const void *aligned = (const void *)(uintptr_t)64;
    QN_CUDA_BLAS_TRY(blas,
                     cublasLtMatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                    &aligned, sizeof aligned));
    if (!(p->epilogue & QN_CUDA_EPILOGUE_AUX))
        return QN_OK;
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulDescSetAttribute(s->desc,
                                                          CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
                                                          &aligned, sizeof aligned));
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulDescSetAttribute(
                               s->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &p->n, sizeof p->n));
    return QN_OK;
}

static QnStatus set_desc(const QnCudaBlas *blas, QnCudaProductDesc *s, const QnCudaProduct *p,
                         cudaDataType_t type)
{
    cublasOperation_t op_a = p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N; /* of the first operand, b */
    cublasOperation_t op_b = p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    int32_t bias_type = (int32_t)type;
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulDescCreate(&s->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_TRANSA,
                                                          &op_a, sizeof op_a));
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_TRANSB,
                                                          &op_b, sizeof op_b));
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                          &p->epilogue, sizeof p->epilogue));
    QN_CUDA_BLAS_TRY(blas,
                     cublasLtMatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                                                    &bias_type, sizeof bias_type));
    return set_aux(blas, s, p);
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
