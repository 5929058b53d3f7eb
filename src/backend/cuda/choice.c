/* Which of its algorithms cuBLASLt takes for a product: its own choice, kept on disk, since asking
 * takes long. */
#include "backend/cuda/product.h"

#include <string.h>

#include "backend/cuda/host.h"

/* ALIGNMENT: of every buffer that a kernel gets (rt/kernel.h) */
enum { MOST_WORKSPACE = 32 << 20, ALIGNMENT = 64 };

/* What the library is told beside the product: raised with the numbers above and below. */
#define TERMS "32 MiB, 64, one order"

/* As it is on disk. */
typedef struct Entry {
    uint64_t is_known, workspace_bytes;
    cublasLtMatmulAlgo_t algo;
} Entry;

#define PREFER(want, name, value)                                                                  \
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_##name, \
                                                                &(value), sizeof(value)))

/* Among algorithms whose sums have one order. */
static QnStatus ask(const QnCudaBlas *blas, const QnCudaProductDesc *d,
                    cublasLtMatmulPreference_t want, QnCudaChoice *out)
{
    size_t workspace = MOST_WORKSPACE;
    uint32_t align = ALIGNMENT, schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                                          CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    int n = 0;
    cublasLtMatmulHeuristicResult_t found = { 0 };
    PREFER(want, MAX_WORKSPACE_BYTES, workspace);
    PREFER(want, REDUCTION_SCHEME_MASK, schemes);
    PREFER(want, MIN_ALIGNMENT_A_BYTES, align);
    PREFER(want, MIN_ALIGNMENT_B_BYTES, align);
    PREFER(want, MIN_ALIGNMENT_C_BYTES, align);
    PREFER(want, MIN_ALIGNMENT_D_BYTES, align);
    cublasStatus_t err = blas->cublasLtMatmulAlgoGetHeuristic(blas->handle, d->desc, d->b, d->a,
                                                              d->y, d->y, want, 1, &found, &n);
    if (err != CUBLAS_STATUS_SUCCESS && err != CUBLAS_STATUS_NOT_SUPPORTED)
        return qn_cuda_blas_fail(blas, err, "cublasLtMatmulAlgoGetHeuristic");
    out->is_known = err == CUBLAS_STATUS_SUCCESS && n > 0 && found.state == CUBLAS_STATUS_SUCCESS;
    out->algo = found.algo;
    out->workspace_bytes = found.workspaceSize;
    return QN_OK;
}

static QnStatus choose(const QnCudaBlas *blas, const QnCudaProductDesc *d, QnCudaChoice *out)
{
    cublasLtMatmulPreference_t want;
    QN_CUDA_BLAS_TRY(blas, cublasLtMatmulPreferenceCreate(&want));
    QnStatus st = ask(blas, d, want, out);
    blas->cublasLtMatmulPreferenceDestroy(want);
    return st;
}

/* ---- on disk ---- */

static QnStatus make_key(const QnCudaChoices *choices, const QnCudaProduct *p, QnCacheKey *key)
{
    QnStr text = { 0 };
    qn_str_printf(&text, "%lld %lld %lld x%lld at %lld %lld, %d%d, types %d %d %d, epilogue %d",
                  (long long)p->m, (long long)p->n, (long long)p->k, (long long)p->batch,
                  (long long)p->stride_a, (long long)p->stride_b, p->trans_a, p->trans_b,
                  (int)p->dtype_a, (int)p->dtype_b, (int)p->dtype, (int)p->epilogue);
    const char *parts[] = { "cublaslt", choices->maker, TERMS, qn_str_text(&text) };
    QnStatus st = text.st;
    if (st == QN_OK)
        *key = qn_cache_key(parts, QN_COUNT(parts));
    qn_str_fini(&text);
    return st;
}

/* Whether the library still takes what it once chose. */
static bool is_taken(const QnCudaBlas *blas, const QnCudaProductDesc *d, const QnCudaChoice *c)
{
    cublasLtMatmulHeuristicResult_t now = { 0 };
    return blas->cublasLtMatmulAlgoCheck(blas->handle, d->desc, d->b, d->a, d->y, d->y, &c->algo,
                                         &now) == CUBLAS_STATUS_SUCCESS &&
           now.workspaceSize <= c->workspace_bytes;
}

/* false: there is no entry, or it is of no use. */
static bool read_entry(const QnCudaBlas *blas, const QnCudaChoices *choices, const QnCacheKey *key,
                       const QnCudaProductDesc *d, QnCudaChoice *out)
{
    void *data;
    size_t bytes;
    Entry e;
    if (!choices->cache[0] || !qn_cache_read(choices->cache, key, &data, &bytes))
        return false;
    bool ok = bytes == sizeof e;
    if (ok)
        memcpy(&e, data, sizeof e);
    qn_free(data);
    if (!ok || e.is_known > 1 || e.workspace_bytes > MOST_WORKSPACE)
        return false;
    out->is_known = e.is_known;
    out->workspace_bytes = (size_t)e.workspace_bytes;
    out->algo = e.algo;
    return !out->is_known || is_taken(blas, d, out);
}

static QnStatus find(const QnCudaBlas *blas, const QnCudaChoices *choices, const QnCudaProduct *p,
                     QnCudaChoice *out)
{
    QnCacheKey key;
    QnCudaProductDesc d;
    QN_TRY(make_key(choices, p, &key));
    QN_TRY(qn_cuda_product_init(blas, p, &d));
    QnStatus st = QN_OK;
    if (!read_entry(blas, choices, &key, &d, out)) {
        st = choose(blas, &d, out);
        Entry e = { out->is_known, out->workspace_bytes, out->algo };
        if (st == QN_OK && choices->cache[0]) /* a full disk: it is asked again next time */
            qn_cache_write(choices->cache, &key, &e, sizeof e, QN_CACHE_PROGRAM_BYTES);
    }
    qn_cuda_product_fini(blas, &d);
    return st;
}

/* ---- of a device ---- */

static bool is_same(const QnCudaProduct *x, const QnCudaProduct *y)
{
    return x->m == y->m && x->n == y->n && x->k == y->k && x->batch == y->batch &&
           x->stride_a == y->stride_a && x->stride_b == y->stride_b && x->trans_a == y->trans_a &&
           x->trans_b == y->trans_b && x->epilogue == y->epilogue && x->dtype_a == y->dtype_a &&
           x->dtype_b == y->dtype_b && x->dtype == y->dtype;
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
    QN_TRY(find(blas, choices, p, c));
    choices->n++;
    *out = c;
    return QN_OK;
}
