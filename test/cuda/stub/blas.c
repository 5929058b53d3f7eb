/* cuBLASLt on the host: the sums of the columns as the descriptors say, one after the other. */
#include <cublasLt.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/float8.h"
#include "base/half.h"
#include "cuda/stub/stream.h"

typedef struct Desc {
    cublasOperation_t op_a, op_b;
    cublasLtEpilogue_t epilogue;
    int32_t bias_type;
    int8_t fast;
    uint64_t bias, aux, scale_a, scale_b;
    int64_t aux_ld;
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
    uint64_t a_at, b_at, c_at, y_at;
    float beta;
} Call;

_Static_assert(sizeof(Call) <= sizeof(((StubWork *)0)->args), "a call fits where arguments do");

enum { ALGO = 77 }; /* what its one algorithm holds */

#define ENTER(call)                                                                                \
    do {                                                                                           \
        if (stub_fails(call))                                                                      \
            return CUBLAS_STATUS_EXECUTION_FAILED;                                                 \
    } while (0)

STUB_API size_t cublasLtGetVersion(void)
{
    return stub.options.blas_version ? stub.options.blas_version : 120900;
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
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return put(&d->aux, sizeof d->aux, from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return put(&d->aux_ld, sizeof d->aux_ld, from, bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
        return put(&d->scale_a, sizeof d->scale_a, from, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
        return put(&d->scale_b, sizeof d->scale_b, from, bytes);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM: return put(&d->fast, sizeof d->fast, from, bytes);
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

enum { AUX = 128 }; /* of epilogues with an auxiliary matrix */

/* Of what the documentation has, what the plugin may ask for, under its conditions. */
static bool epilogue_fits(const Desc *d, const Layout *y)
{
    switch ((int)d->epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS: return true;
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
        return d->aux && d->aux_ld % 8 == 0 && d->aux_ld >= (int64_t)y->rows && y->batch == 1;
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB: return d->bias && y->batch == 1;
    default: return false;
    }
}

static size_t bytes_of(cudaDataType_t t)
{
    return t == CUDA_R_32F ? 4 : t == CUDA_R_8F_E4M3 || t == CUDA_R_8F_E5M2 ? 1 : 2;
}

static bool is_f8(const Layout *t)
{
    return bytes_of(t->type) == 1;
}

/* The documentation's conditions for operands of 8 bits: the first transposed, the second not, rows
 * of 16 bytes, not both e5m2, results and bias in one of three types, from Ada on. */
static bool f8_fits(const Desc *d, const Layout *a, const Layout *b, const Layout *y)
{
    bool bias = d->epilogue == CUBLASLT_EPILOGUE_BIAS;
    int sm = stub.options.sm ? stub.options.sm : 90;
    return is_f8(a) && is_f8(b) && !is_f8(y) && sm >= 89 && d->op_a == CUBLAS_OP_T &&
           d->op_b == CUBLAS_OP_N && !(a->type == CUDA_R_8F_E5M2 && b->type == CUDA_R_8F_E5M2) &&
           a->rows % 16 == 0 && y->rows * bytes_of(y->type) % 16 == 0 && d->scale_a && d->scale_b &&
           !d->fast &&
           (bias ? d->bias_type == (int32_t)y->type && y->type != CUDA_R_32F
                 : d->epilogue == CUBLASLT_EPILOGUE_DEFAULT);
}

static bool types_fit(const Desc *d, const Layout *a, const Layout *b, const Layout *y)
{
    if (is_f8(a) || is_f8(b))
        return f8_fits(d, a, b, y);
    return a->type == y->type && b->type == y->type && !d->scale_a && !d->scale_b;
}

/* Rows and columns after the operation; false: they do not make a product. */
static bool fits(const Desc *d, const Layout *a, const Layout *b, const Layout *y)
{
    uint64_t m = d->op_a ? a->cols : a->rows, k = d->op_a ? a->rows : a->cols;
    uint64_t n = d->op_b ? b->rows : b->cols, kb = d->op_b ? b->cols : b->rows;
    return m == y->rows && n == y->cols && k == kb && a->batch == y->batch &&
           b->batch == y->batch && types_fit(d, a, b, y) && epilogue_fits(d, y);
}

static bool knows(const Layout *a)
{
    return !stub.options.knows_no_product && !(is_f8(a) && stub.options.knows_no_f8);
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
    if (!knows((Layout *)(void *)a))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    results[0] = (cublasLtMatmulHeuristicResult_t){ .algo = { { ALGO } }, .workspaceSize = 4096 };
    *n = 1;
    return CUBLAS_STATUS_SUCCESS;
}

STUB_API cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t h, cublasLtMatmulDesc_t desc,
                                                cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t y,
                                                const cublasLtMatmulAlgo_t *algo,
                                                cublasLtMatmulHeuristicResult_t *result)
{
    ENTER("cublasLtMatmulAlgoCheck");
    if (!h || c != y || algo->data[0] != ALGO || !knows((Layout *)(void *)a) ||
        !fits((Desc *)(void *)desc, (Layout *)(void *)a, (Layout *)(void *)b, (Layout *)(void *)y))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    result->workspaceSize = 4096;
    return CUBLAS_STATUS_SUCCESS;
}

static float load(const Layout *t, uint64_t at, int64_t i)
{
    if (t->type == CUDA_R_32F)
        return ((const float *)(uintptr_t)at)[i];
    if (is_f8(t))
        return (float)qn_float8_decode(t->type == CUDA_R_8F_E4M3 ? QN_FLOAT8_E4M3FN
                                                                 : QN_FLOAT8_E5M2,
                                       ((const uint8_t *)(uintptr_t)at)[i]);
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

static float tanh_of_gelu(float x)
{
    return tanhf(0.7978845608f * (x + 0.044715f * x * x * x));
}

static float gelu(float x)
{
    return 0.5f * x * (1 + tanh_of_gelu(x));
}

static float gelu_slope(float x)
{
    float t = tanh_of_gelu(x), du = 0.7978845608f * (1 + 3 * 0.044715f * x * x);
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * du;
}

/* What the epilogue makes of element i, j of the product. */
static float finish(const Call *c, int64_t i, int64_t j, float x)
{
    const Desc *d = &c->desc;
    int64_t aux = i + j * d->aux_ld;
    if (d->epilogue & CUBLASLT_EPILOGUE_BIAS)
        x += load(&c->y, d->bias, i);
    if (d->epilogue == CUBLASLT_EPILOGUE_DGELU || d->epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD)
        return x * gelu_slope(load(&c->y, d->aux, aux));
    if (d->epilogue & AUX)
        store(&c->y, d->aux, aux, x);
    if (d->epilogue & CUBLASLT_EPILOGUE_RELU)
        return x > 0 ? x : 0;
    return d->epilogue & CUBLASLT_EPILOGUE_GELU ? gelu(x) : x;
}

static float sum_of(const Call *c, int64_t i, int64_t j, int64_t batch)
{
    const Layout *a = &c->a, *b = &c->b;
    int64_t k = (int64_t)(c->desc.op_a ? a->rows : a->cols);
    float sum = 0;
    for (int64_t l = 0; l < k; l++)
        sum +=
            load(a, c->a_at, batch * a->stride + (c->desc.op_a ? l + i * a->ld : i + l * a->ld)) *
            load(b, c->b_at, batch * b->stride + (c->desc.op_b ? j + l * b->ld : l + j * b->ld));
    if (c->desc.scale_a)
        sum *=
            *(const float *)(uintptr_t)c->desc.scale_a * *(const float *)(uintptr_t)c->desc.scale_b;
    return sum;
}

/* Of the first operand along its rows, or of the second along its columns. */
static void sum_operand(const Call *c)
{
    bool first = c->desc.epilogue == CUBLASLT_EPILOGUE_BGRADA;
    const Layout *t = first ? &c->a : &c->b;
    uint64_t at = first ? c->a_at : c->b_at;
    bool turned = first ? c->desc.op_a == CUBLAS_OP_T : c->desc.op_b != CUBLAS_OP_T;
    int64_t n = (int64_t)(first ? c->y.rows : c->y.cols);
    int64_t k = (int64_t)(turned ? t->rows : t->cols);
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int64_t l = 0; l < k; l++)
            sum += load(t, at, turned ? l + i * t->ld : i + l * t->ld);
        store(&c->y, c->desc.bias, i, sum);
    }
}

static void multiply(const uint64_t *args)
{
    Call c;
    memcpy(&c, args, sizeof c);
    const Layout *y = &c.y;
    int64_t m = (int64_t)y->rows, n = (int64_t)y->cols;
    bool grad = c.desc.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD;
    if (c.desc.epilogue == CUBLASLT_EPILOGUE_BGRADA || c.desc.epilogue == CUBLASLT_EPILOGUE_BGRADB)
        sum_operand(&c);
    for (int64_t row = 0; row < y->batch * m; row++) {
        int64_t i = row % m, batch = row / m;
        float all = 0;
        for (int64_t j = 0; j < n; j++) {
            int64_t at = batch * y->stride + i + j * y->ld;
            float x = sum_of(&c, i, j, batch);
            if (c.beta != 0)
                x += c.beta * load(y, c.c_at, at);
            x = finish(&c, i, j, x);
            all += x;
            store(y, c.y_at, at, x);
        }
        if (grad)
            store(y, c.desc.bias, i, all);
    }
}

/* All that the layout reaches is memory of the device. */
static bool is_reached(const Layout *t, const void *at)
{
    int64_t last = (t->batch - 1) * t->stride + ((int64_t)t->cols - 1) * t->ld + (int64_t)t->rows;
    return stub_is_live((CUdeviceptr)(uintptr_t)at, (size_t)last * bytes_of(t->type));
}

/* So is what the epilogue reads or writes beside it. */
static bool is_beside_reached(const Call *c)
{
    const Desc *d = &c->desc;
    bool columns = d->epilogue == CUBLASLT_EPILOGUE_BGRADB;
    Layout row = { .type = c->y.type,
                   .rows = columns ? c->y.cols : c->y.rows,
                   .cols = 1,
                   .ld = c->y.ld,
                   .batch = 1 };
    Layout scale = { .type = CUDA_R_32F, .rows = 1, .cols = 1, .ld = 1, .batch = 1 };
    Layout aux = {
        .type = c->y.type, .rows = c->y.rows, .cols = c->y.cols, .ld = d->aux_ld, .batch = 1
    };
    bool bias = d->epilogue & (CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_BGRADA |
                               CUBLASLT_EPILOGUE_BGRADB) ||
                d->epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD;
    if (d->scale_a && (!is_reached(&scale, (const void *)(uintptr_t)d->scale_a) ||
                       !is_reached(&scale, (const void *)(uintptr_t)d->scale_b)))
        return false;
    return (!bias || is_reached(&row, (const void *)(uintptr_t)d->bias)) &&
           (!(d->epilogue & AUX) || is_reached(&aux, (const void *)(uintptr_t)d->aux));
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
                  .c_at = (uint64_t)(uintptr_t)c,
                  .y_at = (uint64_t)(uintptr_t)y,
                  .beta = *(const float *)beta };
    StubWork w = { .call = multiply };
    ENTER("cublasLtMatmul");
    if (!h || !algo || algo->data[0] != ALGO || c_l != y_l || *(const float *)alpha != 1 ||
        (call.beta == 0 && c != y) || !fits(&call.desc, &call.a, &call.b, &call.y))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_reached(&call.a, a) || !is_reached(&call.b, b) || !is_reached(&call.y, y) ||
        !is_reached(&call.y, c) || !is_beside_reached(&call) ||
        !stub_is_live((CUdeviceptr)(uintptr_t)workspace, workspace_bytes) || workspace_bytes < 4096)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(w.args, &call, sizeof call);
    stub.counts.products++;
    stub.counts.products_f8 += is_f8(&call.a);
    stub.counts.epilogues |= (unsigned)call.desc.epilogue;
    stub_enqueue((CUstream)stream, &w);
    return CUBLAS_STATUS_SUCCESS;
}
