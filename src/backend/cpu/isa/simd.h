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

#endif
