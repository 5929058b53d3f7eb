/* A matrix product as cuBLASLt takes it. Its matrices are column-major: what lies row-major in
 * memory is to it the transpose, so y' (N,M) = b' a' computes y (M,N) = a b, and a bias along N is
 * a column's. */
#ifndef QN_BACKEND_CUDA_PRODUCT_H
#define QN_BACKEND_CUDA_PRODUCT_H

#include "backend/cuda/blas.h"

/* The bit of epilogues that read or write an auxiliary matrix, (m,n) as y is. */
#define QN_CUDA_EPILOGUE_AUX 128

/* y (m,n) of each of `batch`, one after the other; a and b at a stride (0: the same for all). Of
 * 8-bit operands the library multiplies b transposed with a as it lies, and takes what each is to
 * be multiplied by at an address of the device; their sums are promoted to f32 as often as it can.
 */
typedef struct QnCudaProduct {
    int64_t m, n, k, batch, stride_a, stride_b;
    bool trans_a, trans_b;
    cublasLtEpilogue_t epilogue;
    QnDtype dtype_a, dtype_b, dtype; /* dtype: of y */
} QnCudaProduct;

/* Of f8e4m3fn or f8e5m2. */
bool qn_cuda_product_is_f8(const QnCudaProduct *p);

/* The library's own choice for a product. */
typedef struct QnCudaChoice {
    QnCudaProduct product;
    bool is_known; /* false: it has no algorithm */
    cublasLtMatmulAlgo_t algo;
    size_t workspace_bytes;
} QnCudaChoice;

/* Asked again only where neither the device nor the cache on disk knows the answer. */
typedef struct QnCudaChoices {
    QnCudaChoice *items;
    int64_t n, cap;
    const char *cache; /* folder; "" where none is kept */
    const char *maker; /* library and device by version: what the answers hold for */
} QnCudaChoices;

typedef struct QnCudaProductDesc {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, y;
} QnCudaProductDesc;

/* On failure nothing is left to be freed. */
QnStatus qn_cuda_product_init(const QnCudaBlas *blas, const QnCudaProduct *p,
                              QnCudaProductDesc *out);
void qn_cuda_product_fini(const QnCudaBlas *blas, QnCudaProductDesc *d);

/* Borrowed until the next call. */
QnStatus qn_cuda_product_choose(const QnCudaBlas *blas, QnCudaChoices *choices,
                                const QnCudaProduct *p, const QnCudaChoice **out);

#endif
