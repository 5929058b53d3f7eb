/* What matmul kernels read off their node: one product of a batch, and where the others lie. */
#ifndef QN_BACKEND_CPU_MATMUL_H
#define QN_BACKEND_CPU_MATMUL_H

#include "backend/cpu/gemm.h"
#include "rt/kernel.h"

typedef struct QnMatmul {
    QnGemm gemm; /* without pointers */
    int rank;    /* of the batch */
    int64_t n_batch, dim[QN_MAX_RANK];
    int64_t stride[4][QN_MAX_RANK]; /* of a, b, bias, c in elements, 0 where broadcast */
} QnMatmul;

QnMatmul qn_matmul_of(const QnNode *n);
/* That product of the batch. operand: a, b, bias (may be NULL) and c, as the node has them. */
QnGemm qn_matmul_at(const QnMatmul *m, int64_t batch, const char *const operand[4]);

/* Columns that are worth asking for at once: rows of b by length, or rows of c that stay near. */
enum { QN_MATMUL_ROWS_DOTS = 64, QN_MATMUL_ROWS_STREAM = 512 };

/* c (m,n) of few rows, columns n0..n1, from f32 whose rows of a lie with ak 1. Each element's sum
 * has one order, whatever the columns asked for. */
typedef void QnMatmulRowsFn(const QnGemm *g, int64_t n0, int64_t n1);
#define QN_X(name) QnMatmulRowsFn qn_matmul_rows_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
QnMatmulRowsFn *qn_matmul_rows_find(const char *isa);

/* Rows m0..m1 of c (m,n) of few columns, from f32 with ak and bk 1. Each element's sum has one
 * order. */
typedef void QnMatmulColumnsFn(const QnGemm *g, int64_t m0, int64_t m1);
#define QN_X(name) QnMatmulColumnsFn qn_matmul_columns_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
QnMatmulColumnsFn *qn_matmul_columns_find(const char *isa);

/* c (m,n) of some tens of rows, from f32 with bk 1. First rows m0..m1 of a, at most `width`, are
 * packed, as a panel of width * k floats; then columns n0..n1 of c are made of all panels, which
 * lie one after the other. Each element's sum has one order. */
typedef void QnMatmulThinPackFn(const QnGemm *g, int64_t m0, int64_t m1, float *to);
typedef void QnMatmulThinFn(const QnGemm *g, const float *packed, int64_t n0, int64_t n1);
typedef struct QnMatmulThinFns {
    QnMatmulThinPackFn *pack;
    QnMatmulThinFn *run;
    int width;
} QnMatmulThinFns;
#define QN_X(name)                                                                                 \
    QnMatmulThinPackFn qn_matmul_thin_pack_##name;                                                 \
    QnMatmulThinFn qn_matmul_thin_##name;                                                          \
    extern const int qn_matmul_thin_width_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
QnMatmulThinFns qn_matmul_thin_find(const char *isa);

/* The product of bf16 two steps of k at a time (isa/matmul_bf16.c), of operands of which one step
 * is 1; NULL: the instruction set has no such multiply-add. */
#define QN_X(name) extern const QnGemmFns qn_matmul_bf16_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
const QnGemmFns *qn_matmul_bf16_find(const char *isa);

#endif
