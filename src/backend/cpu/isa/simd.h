/* Vectors of float at the width of the instruction set that the including file is compiled for, and
 * the shape of the register tiles that products are made of. */
#ifndef QN_BACKEND_CPU_ISA_SIMD_H
#define QN_BACKEND_CPU_ISA_SIMD_H

#include "base/compiler.h"

#if defined(__SSE__)
#include <immintrin.h>
#endif

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

/* Past the caches; p is a multiple of the vector's size. qn_store_fence ends a run of them. */
QN_INLINE void qn_vec_stream(float *p, QnVec v)
{
#if defined(__AVX512F__)
    _mm512_stream_ps(p, (__m512)v);
#elif defined(__AVX__)
    _mm256_stream_ps(p, (__m256)v);
#elif defined(__SSE__)
    _mm_stream_ps(p, (__m128)v);
#else
    qn_vec_store(p, v);
#endif
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

typedef float QnVec4 QN_VECTOR(16);

QN_INLINE void qn_turn_4x4(const float *from, int64_t from_step, float *to, int64_t to_step)
{
    QnVec4 a = *(const QnVec4 *)from, b = *(const QnVec4 *)(from + from_step);
    QnVec4 c = *(const QnVec4 *)(from + 2 * from_step), d = *(const QnVec4 *)(from + 3 * from_step);
    QnVec4 ab = QN_SHUFFLE(a, b, 0, 4, 1, 5), cd = QN_SHUFFLE(c, d, 0, 4, 1, 5);
    QnVec4 ef = QN_SHUFFLE(a, b, 2, 6, 3, 7), gh = QN_SHUFFLE(c, d, 2, 6, 3, 7);
    *(QnVec4 *)to = QN_SHUFFLE(ab, cd, 0, 1, 4, 5);
    *(QnVec4 *)(to + to_step) = QN_SHUFFLE(ab, cd, 2, 3, 6, 7);
    *(QnVec4 *)(to + 2 * to_step) = QN_SHUFFLE(ef, gh, 0, 1, 4, 5);
    *(QnVec4 *)(to + 3 * to_step) = QN_SHUFFLE(ef, gh, 2, 3, 6, 7);
}

/* to[j * to_step + i] = from[i * from_step + j], in blocks that stay in the first-level cache. */
QN_INLINE void qn_turn(const float *from, int64_t from_step, int64_t rows, int64_t columns,
                       float *to, int64_t to_step)
{
    int64_t whole = rows / 4 * 4;
    for (int64_t j0 = 0; j0 < columns; j0 += 16) {
        int64_t j1 = QN_MIN(columns, j0 + 16), j4 = j0 + (j1 - j0) / 4 * 4;
        for (int64_t i = 0; i < whole; i += 4) {
            const float *x = from + i * from_step;
            float *y = to + i;
            for (int64_t j = j0; j < j4; j += 4)
                qn_turn_4x4(x + j, from_step, y + j * to_step, to_step);
            for (int64_t j = j4; j < j1; j++) {
                for (int64_t k = 0; k < 4; k++)
                    y[j * to_step + k] = x[k * from_step + j];
            }
        }
        for (int64_t i = whole; i < rows; i++) {
            for (int64_t j = j0; j < j1; j++)
                to[j * to_step + i] = from[i * from_step + j];
        }
    }
}

#endif
