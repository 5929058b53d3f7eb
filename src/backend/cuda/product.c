#include "backend/cuda/product.h"

#include "backend/cuda/host.h"

bool qn_cuda_product_is_f8(const QnCudaProduct *p)
{
    return p->dtype_a == QN_DTYPE_F8E4M3FN || p->dtype_a == QN_DTYPE_F8E5M2;
}

static cudaDataType_t type_of(QnDtype dtype)
{
    switch (dtype) {
    case QN_DTYPE_F16: return CUDA_R_16F;
    case QN_DTYPE_BF16: return CUDA_R_16BF;
    case QN_DTYPE_F8E4M3FN: return CUDA_R_8F_E4M3;
    case QN_DTYPE_F8E5M2: return CUDA_R_8F_E5M2;
    default: return CUDA_R_32F;
    }
}

static QnStatus set(const QnCudaBlas *blas, const QnCudaProductDesc *s,
                    cublasLtMatmulDescAttributes_t what, const void *value, size_t bytes)
{
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulDescSetAttribute(s->desc, what, value, bytes));
    return QN_OK;
}
#define SET(name, value) QN_TRY(set(blas, s, CUBLASLT_MATMUL_DESC_##name, &(value), sizeof(value)))

/* Pointers come with each run. Until then they say how such addresses are aligned (rt/kernel.h),
 * which the library's choice depends on. */
static const void *const aligned = (const void *)(uintptr_t)64;

static QnStatus set_scales(const QnCudaBlas *blas, QnCudaProductDesc *s)
{
    const int8_t fast_sums = 0; /* that is, less exact ones */
    SET(A_SCALE_POINTER, aligned);
    SET(B_SCALE_POINTER, aligned);
    SET(FAST_ACCUM, fast_sums);
    return QN_OK;
}

static QnStatus set_aux(const QnCudaBlas *blas, QnCudaProductDesc *s, const QnCudaProduct *p)
{
    const int32_t bias_type = (int32_t)type_of(p->dtype);
    SET(BIAS_DATA_TYPE, bias_type);
    SET(BIAS_POINTER, aligned);
    if (!(p->epilogue & QN_CUDA_EPILOGUE_AUX))
        return QN_OK;
    SET(EPILOGUE_AUX_POINTER, aligned);
    SET(EPILOGUE_AUX_LD, p->n);
    return QN_OK;
}

static QnStatus set_desc(const QnCudaBlas *blas, QnCudaProductDesc *s, const QnCudaProduct *p)
{
    cublasOperation_t op_a = p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N; /* of the first operand, b */
    cublasOperation_t op_b = p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulDescCreate(&s->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    SET(TRANSA, op_a);
    SET(TRANSB, op_b);
    SET(EPILOGUE, p->epilogue);
    if (qn_cuda_product_is_f8(p))
        QN_TRY(set_scales(blas, s));
    return p->epilogue == CUBLASLT_EPILOGUE_DEFAULT ? QN_OK : set_aux(blas, s, p);
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
    QN_TRY(set_desc(blas, d, p));
    QN_TRY(set_layout(blas, &d->a, type_of(p->dtype_a), p->trans_a ? p->k : p->m,
                      p->trans_a ? p->m : p->k, p->batch, p->stride_a));
    QN_TRY(set_layout(blas, &d->b, type_of(p->dtype_b), p->trans_b ? p->n : p->k,
                      p->trans_b ? p->k : p->n, p->batch, p->stride_b));
    return set_layout(blas, &d->y, type_of(p->dtype), p->m, p->n, p->batch, p->m * p->n);
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
