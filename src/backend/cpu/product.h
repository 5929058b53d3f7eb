/* A batch of matrix products by Quern's own, on all threads. Of large ones b is packed once, in
 * chunks, for all blocks of c; of small ones each block packs what it needs. */
#ifndef QN_BACKEND_CPU_PRODUCT_H
#define QN_BACKEND_CPU_PRODUCT_H

#include "backend/cpu/matmul.h"

typedef struct QnProduct {
    QnMatmul product;
    int n_threads;
    const QnGemmFns *fns;
    int64_t steps; /* packed ones of k */
    bool shared;
    int64_t block_m, block_n, n_m, n_n;
    int64_t chunk_n; /* shared: columns that are packed at once */
    int64_t scratch; /* shared: floats a thread */
} QnProduct;

void qn_product_init(QnProduct *m, const QnMatmul *of, const QnGemmFns *fns, int n_threads);
size_t qn_product_workspace(const QnProduct *m); /* bytes */
/* operand: a, b, bias (may be NULL) and c. n_threads: at most those that it was made for. */
void qn_product_run(const QnProduct *m, int n_threads, const char *const operand[4],
                    void *workspace);

/* The parts of a kernel that is one such batch: the node's inputs are a, b and the bias. */
QnStatus qn_product_prepare(QnPrepared *p, const QnMatmul *of, const QnGemmFns *fns);
QnStatus qn_product_run_node(const QnPrepared *p, const void *const *in, void *const *out,
                             void *workspace);
void qn_product_fini(QnPrepared *p);

#endif
