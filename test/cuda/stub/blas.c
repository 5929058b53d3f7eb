/* cuBLASLt on the host: the sums of the columns as the descriptors say, one after the other. */
#include <cublasLt.h>

#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "cuda/stub/stream.h"

typedef struct Desc {
    cublasOperation_t op_a, op_b;
    cublasLtEpilogue_t epilogue;
    int32_t bias_type;
    uint64_t bias;
} Desc;

typedef struct Layout {
    cudaDataType_t type;
    uint64_t rows, cols;
    int64_t ld, stride;
    int32_t batch;
} Layout;

typedef struct Call { /* a product that is enqueued */
    Desc desc;
    Layout a, b, y;
    uint64_t a_at, b_at, y_at;
} Call;

_Static_assert(sizeof(Call) <= sizeof(((StubWork *)0)->args), "a call fits where arguments do");

#define ENTER(call)                                                                                \
    do {                                                                                           \
        if (stub_fails(call))                                                                      \
            return CUBLAS_STATUS_EXECUTION_FAILED;                                                 \
    } while (0)

STUB_API size_t cublasLtGetVersion(void)
{
    return 120900;
}

STUB_API const char *cublasLtGetStatusString(cublasStatus_t st)
{
    return st == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_AS_ASKED";
}

static cublasStatus_t give(void **out, size_t bytes)
{
    *out = calloc(1, bytes);
    stub.counts.blas++;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t take(void *p)
{
    free(p);
    stub.counts.blas--;
    return CUBLAS_STATUS_SUCCESS;
}

STUB_API cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    ENTER("cublasLtCreate");
    return stub.current ? give((void **)out, 8) : CUBLAS_STATUS_NOT_INITIALIZED;
}

STUB_API cublasStatus_t cublasLtDestroy(cublasLtHandle_t h)
{
    return take(h);
}

/* ---- descriptors ---- */

STUB_API cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out,
                                                 cublasComputeType_t compute, cudaDataType_t scale)
{
    ENTER("cublasLtMatmulDescCreate");
    if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return give((void **)out, sizeof(Desc));
}

STUB_API cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    return take(d);
}

static cublasStatus_t put(void *to, size_t want, const void *from, size_t bytes)
{
    if (bytes != want)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

STUB_API cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                                       cublasLtMatmulDescAttributes_t what,
                                                       const void *from, size_t bytes)
{
    Desc *d = (Desc *)(void *)desc;
    ENTER("cublasLtMatmulDescSetAttribute");
    switch ((int)what) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return put(&d->op_a, sizeof d->op_a, from, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return put(&d->op_b, sizeof d->op_b, from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return put(&d->epilogue, sizeof d->epilogue, from, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        return put(&d->bias_type, sizeof d->bias_type, from, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return put(&d->bias, sizeof d->bias, from, bytes);
    default: return CUBLAS_STATUS_INVALID_VALUE;
    }
}

STUB_API cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType_t type,
                                                   uint64_t rows, uint64_t cols, int64_t ld)
{
    ENTER("cublasLtMatrixLayoutCreate");
    if (ld < (int64_t)rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    give((void **)out, sizeof(Layout));
    *(Layout *)(void *)*out = (Layout){ type, rows, cols, ld, 0, 1 };
    return CUBLAS_STATUS_SUCCESS;
}

STUB_API cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t m)
{
    return take(m);
}

STUB_API cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                         cublasLtMatrixLayoutAttribute_t what,
                                                         const void *from, size_t bytes)
{
    Layout *m = (Layout *)(void *)layout;
    ENTER("cublasLtMatrixLayoutSetAttribute");
    switch ((int)what) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return put(&m->batch, sizeof m->batch, from, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return put(&m->stride, sizeof m->stride, from, bytes);
    default: return CUBLAS_STATUS_INVALID_VALUE;
    }
}

STUB_API cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    ENTER("cublasLtMatmulPreferenceCreate");
    return give((void **)out, 8);
}

STUB_API cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    return take(p);
}

STUB_API cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t what, const void *from,
    size_t bytes)
{
    (void)p, (void)what, (void)from, (void)bytes;
    ENTER("cublasLtMatmulPreferenceSetAttribute");
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- products ---- */

/* Rows and columns after the operation; false: they do not make a product. */
static bool fits(const Desc *d, const Layout *a, const Layout *b, const Layout *y)
{
    uint64_t m = d->op_a ? a->cols : a->rows, k = d->op_a ? a->rows : a->cols;
    uint64_t n = d->op_b ? b->rows : b->cols, kb = d->op_b ? b->cols : b->rows;
    return m == y->rows && n == y->cols && k == kb && a->batch == y->batch &&
           b->batch == y->batch && a->type == y->type && b->type == y->type;
}

STUB_API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t h, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t y,
    cublasLtMatmulPreference_t want, int asked, cublasLtMatmulHeuristicResult_t *results, int *n)
{
    ENTER("cublasLtMatmulAlgoGetHeuristic");
    if (!h || !want || asked < 1 || c != y ||
        !fits((Desc *)(void *)desc, (Layout *)(void *)a, (Layout *)(void *)b, (Layout *)(void *)y))
        return CUBLAS_STATUS_INVALID_VALUE;
    stub.counts.asked++;
    *n = 0;
    if (stub.options.knows_no_product)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    results[0] = (cublasLtMatmulHeuristicResult_t){ .workspaceSize = 4096 };
    *n = 1;
    return CUBLAS_STATUS_SUCCESS;
}

static float load(const Layout *t, uint64_t at, int64_t i)
{
    if (t->type == CUDA_R_32F)
        return ((const float *)(uintptr_t)at)[i];
    uint16_t h = ((const uint16_t *)(uintptr_t)at)[i];
    return t->type == CUDA_R_16F ? qn_f16_to_f32(h) : qn_bf16_to_f32(h);
}

static void store(const Layout *t, uint64_t at, int64_t i, float f)
{
    if (t->type == CUDA_R_32F)
        ((float *)(uintptr_t)at)[i] = f;
    else
        ((uint16_t *)(uintptr_t)at)[i] =
            t->type == CUDA_R_16F ? qn_f32_to_f16(f) : qn_f32_to_bf16(f);
}

static void multiply(const uint64_t *args)
{
    Call c;
    memcpy(&c, args, sizeof c);
    const Layout *a = &c.a, *b = &c.b, *y = &c.y;
    int64_t m = (int64_t)y->rows, n = (int64_t)y->cols;
    int64_t k = (int64_t)(c.desc.op_a ? a->rows : a->cols);
    for (int64_t at = 0; at < y->batch * m * n; at++) {
        int64_t i = at % m, j = at / m % n, batch = at / m / n;
        float sum = 0;
        for (int64_t l = 0; l < k; l++)
            sum +=
                load(a, c.a_at, batch * a->stride + (c.desc.op_a ? l + i * a->ld : i + l * a->ld)) *
                load(b, c.b_at, batch * b->stride + (c.desc.op_b ? j + l * b->ld : l + j * b->ld));
        if (c.desc.epilogue == CUBLASLT_EPILOGUE_BIAS)
            sum += load(y, c.desc.bias, i);
        store(y, c.y_at, batch * y->stride + i + j * y->ld, sum);
    }
}

/* All that the layout reaches is memory of the device. */
static bool is_reached(const Layout *t, const void *at)
{
    size_t item = t->type == CUDA_R_32F ? 4 : 2;
    int64_t last = (t->batch - 1) * t->stride + ((int64_t)t->cols - 1) * t->ld + (int64_t)t->rows;
    return stub_is_live((CUdeviceptr)(uintptr_t)at, (size_t)last * item);
}

STUB_API cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t desc,
                                       const void *alpha, const void *a, cublasLtMatrixLayout_t a_l,
                                       const void *b, cublasLtMatrixLayout_t b_l, const void *beta,
                                       const void *c, cublasLtMatrixLayout_t c_l, void *y,
                                       cublasLtMatrixLayout_t y_l, const cublasLtMatmulAlgo_t *algo,
                                       void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    Call call = { .desc = *(Desc *)(void *)desc,
                  .a = *(Layout *)(void *)a_l,
                  .b = *(Layout *)(void *)b_l,
                  .y = *(Layout *)(void *)y_l,
                  .a_at = (uint64_t)(uintptr_t)a,
                  .b_at = (uint64_t)(uintptr_t)b,
                  .y_at = (uint64_t)(uintptr_t)y };
    StubWork w = { .call = multiply };
    ENTER("cublasLtMatmul");
    if (!h || !algo || c != y || c_l != y_l || *(const float *)alpha != 1 ||
        *(const float *)beta != 0 || !fits(&call.desc, &call.a, &call.b, &call.y))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_reached(&call.a, a) || !is_reached(&call.b, b) || !is_reached(&call.y, y) ||
        !stub_is_live((CUdeviceptr)(uintptr_t)workspace, workspace_bytes) || workspace_bytes < 4096)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(w.args, &call, sizeof call);
    stub.counts.products++;
    stub_enqueue((CUstream)stream, &w);
    return CUBLAS_STATUS_SUCCESS;
}
