/* Quern's own matrix product, the base of its matmul and convolution kernels. */
#ifndef QN_BACKEND_CPU_GEMM_H
#define QN_BACKEND_CPU_GEMM_H

#include "base/isa_list.h"
#include "ir/dtype.h"

/* c (m,n) = a (m,k) * b (k,n) + bias, every operand by strides in elements. Sums run over k in one
 * fixed order whatever part of c is asked for, so any split of m and n gives the same bits. */
typedef struct QnGemm {
    int64_t m, n, k;
    QnDtype dtype; /* of all operands: f32, f16 or bf16; sums are in f32 */
    const void *a, *b, *bias;
    void *c;
    bool accumulate;                            /* c += a * b; f32 only, and no bias */
    int64_t am, ak, bk, bn, bias_m, bias_n, cm; /* c's columns are adjacent */
} QnGemm;

/* Largest part that one call takes, and the floats of scratch that a call needs. */
enum { QN_GEMM_M = 144, QN_GEMM_N = 384, QN_GEMM_K = 256 };
enum {
    QN_GEMM_OWN = (QN_GEMM_M + 8) * QN_GEMM_N,
    QN_GEMM_SCRATCH = (QN_GEMM_M + QN_GEMM_N + 64) * QN_GEMM_K + QN_GEMM_OWN,
};

/* Rows m0..m1 and columns n0..n1 of c, at most QN_GEMM_M x QN_GEMM_N. */
typedef void QnGemmFn(const QnGemm *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                      float *scratch);

/* Columns n0..n1 of b, packed once for all blocks of c that read them: K blocks of QN_GEMM_K packed
 * steps, one after the other, in each `n` columns in panels of the register tile's width. n and
 * where packing or a block of c begins, counted from n0, are multiples of QN_GEMM_GRAIN, which is
 * whole panels at any instruction set. */
typedef struct QnGemmPanels {
    int64_t n0, n1, n;
    float *b;
    bool past_caches; /* b is too large for them to be written into them */
} QnGemmPanels;

enum { QN_GEMM_GRAIN = 96 };

/* Packs all K blocks of columns n0..n1. */
typedef void QnGemmPackFn(const QnGemm *g, const QnGemmPanels *p, int64_t n0, int64_t n1);

/* Rows m0..m1 and columns n0..n1 of c from panels, at most QN_GEMM_TALL x QN_GEMM_WIDE. */
typedef void QnGemmPanelsFn(const QnGemm *g, const QnGemmPanels *p, int64_t m0, int64_t m1,
                            int64_t n0, int64_t n1, float *scratch);
enum { QN_GEMM_TALL = 72, QN_GEMM_WIDE = 22 * QN_GEMM_GRAIN };

/* Floats of scratch for so many packed steps and columns: rows of a, packed, and sums between K
 * blocks. */
QN_INLINE int64_t qn_gemm_panels_scratch(int64_t k, int64_t columns)
{
    enum { ROWS = QN_GEMM_TALL + 8, TILE = 512 };
    return k <= QN_GEMM_K ? ROWS * k + TILE : ROWS * (QN_GEMM_K + columns + QN_GEMM_GRAIN);
}

typedef struct QnGemmFns {
    QnGemmFn *block;
    QnGemmPackFn *pack;
    QnGemmPanelsFn *panels;
    int tile_rows; /* blocks are best cut at multiples */
    int step;      /* steps of k in a packed one, which is a float wide */
} QnGemmFns;

#define QN_X(name) extern const QnGemmFns qn_gemm_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
const QnGemmFns *qn_gemm_find(const char *isa);

/* Runs n rounds of multiply-adds on registers; returns how many flops that was. keep[0..1] are
 * read, keep[2] is written. */
typedef double QnPeakFn(int64_t n, float *keep);
#define QN_X(name) QnPeakFn qn_peak_##name, qn_peak_bf16_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
QnPeakFn *qn_gemm_peak_find(const char *isa, QnDtype dtype); /* f32 or bf16 */

#endif
