/* Vectors of float at the width of the instruction set that the including file is compiled for, and
 * the shape of the register tiles that products are made of. */
#ifndef QN_BACKEND_CPU_ISA_SIMD_H
#define QN_BACKEND_CPU_ISA_SIMD_H

#include "base/compiler.h"

#define QN_SIMD_JOIN2(a, b) a##b
#define QN_SIMD_JOIN(a, b)  QN_SIMD_JOIN2(a, b)
#define QN_ISA_NAME(name)   QN_SIMD_JOIN(name##_, QN_ISA)

/* A tile of MR x (NV vectors) must leave registers for a row of NV vectors and a broadcast. */
#if defined(__AVX512F__)
enum { VW = 16, MR = 12, NV = 2 };
#elif defined(__AVX__)
enum { VW = 8, MR = 6, NV = 2 };
#elif defined(__aarch64__)
enum { VW = 4, MR = 8, NV = 3 };
#else
enum { VW = 4, MR = 4, NV = 2 };
#endif
enum { NR = NV * VW };

typedef float QnVec QN_VECTOR(VW * 4);
typedef int32_t QnVecInt QN_VECTOR(VW * 4); /* comparisons give 0 or -1 in each lane */

QN_INLINE QnVec qn_vec_load(const float *p)
{
    return *(const QnVec *)p;
}

QN_INLINE void qn_vec_store(float *p, QnVec v)
{
    *(QnVec *)p = v;
}

QN_INLINE QnVec qn_vec_set(float x)
{
    return (QnVec){ 0 } + x;
}

/* a where the mask is set, else b. */
QN_INLINE QnVec qn_vec_pick(QnVecInt mask, QnVec a, QnVec b)
{
    return (QnVec)((mask & (QnVecInt)a) | (~mask & (QnVecInt)b));
}

/* Adds the lanes up, halves first. */
QN_INLINE float qn_vec_sum(QnVec v)
{
    float t[VW];
    qn_vec_store(t, v);
    QN_UNROLL for (int n = VW / 2; n > 0; n /= 2)
    {
        for (int i = 0; i < n; i++)
            t[i] += t[i + n];
    }
    return t[0];
}

/* to[j * to_step + i] = from[i * from_step + j], in blocks that stay in the first-level cache. */
QN_INLINE void qn_turn(const float *from, int64_t from_step, int64_t rows, int64_t columns,
                       float *to, int64_t to_step)
{
    for (int64_t i0 = 0; i0 < rows; i0 += 16) {
        int64_t i1 = QN_MIN(rows, i0 + 16);
        for (int64_t j0 = 0; j0 < columns; j0 += 16) {
            int64_t j1 = QN_MIN(columns, j0 + 16);
            for (int64_t j = j0; j < j1; j++) {
                for (int64_t i = i0; i < i1; i++)
                    to[j * to_step + i] = from[i * from_step + j];
            }
        }
    }
}

#endif
