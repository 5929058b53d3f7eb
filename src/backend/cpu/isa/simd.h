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

#if defined(__AVX2__) && !defined(__AVX512F__)
QN_INLINE __m256i qn_first_lanes(int64_t lanes)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)lanes),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#endif

/* The first lanes from p, zeros behind them. */
QN_INLINE QnVec qn_vec_load_lanes(const float *p, int64_t lanes)
{
#if defined(__AVX512F__)
    return (QnVec)_mm512_maskz_loadu_ps((__mmask16)((1u << lanes) - 1), p);
#elif defined(__AVX2__)
    return (QnVec)_mm256_maskload_ps(p, qn_first_lanes(lanes));
#else
    QnVec v = { 0 };
    for (int64_t i = 0; i < lanes; i++)
        v[i] = p[i];
    return v;
#endif
}

/* The first lanes of v. */
QN_INLINE void qn_vec_store_lanes(float *p, QnVec v, int64_t lanes)
{
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << lanes) - 1), (__m512)v);
#elif defined(__AVX2__)
    _mm256_maskstore_ps(p, qn_first_lanes(lanes), (__m256)v);
#else
    for (int64_t i = 0; i < lanes; i++)
        p[i] = v[i];
#endif
}

/* Lanes from -128 to 127 as bytes. By instructions of their own: gcc takes vectors of bytes apart.
 */
QN_INLINE void qn_vec_store_bytes(int8_t *p, QnVecInt v)
{
#if defined(__AVX512F__)
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8((__m512i)v));
#else
    QN_UNROLL for (int i = 0; i < VW; i++) p[i] = (int8_t)v[i];
#endif
}

QN_INLINE QnVecInt qn_vec_load_bytes(const int8_t *p)
{
#if defined(__AVX512F__)
    return (QnVecInt)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
#elif defined(__AVX2__)
    return (QnVecInt)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p));
#else
    QnVecInt v;
    QN_UNROLL for (int i = 0; i < VW; i++) v[i] = p[i];
    return v;
#endif
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

/* What was loaded stays in a register: gcc may else load it again for each use. */
QN_INLINE QnVec qn_vec_keep(QnVec v)
{
#if defined(__AVX512F__)
    __asm__("" : "+v"(v));
#elif defined(__SSE__)
    __asm__("" : "+x"(v));
#elif defined(__aarch64__)
    __asm__("" : "+w"(v));
#endif
    return v;
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

#if defined(__AVX512F__)
QN_INLINE void qn_keep_lanes(float *p, int lanes, __m512d v, bool past)
{
    if (past && lanes == 16)
        _mm512_stream_ps(p, _mm512_castpd_ps(v));
    else
        _mm512_mask_storeu_ps(p, (__mmask16)((1 << lanes) - 1), _mm512_castpd_ps(v));
}

/* Four columns of 12 or 16 rows: a vector takes rows r, r + 4, ... into its quarters, so that
 * turning within quarters leaves whole columns. */
QN_INLINE void qn_turn_wide(const float *from, int64_t from_step, int rows, float *to,
                            int64_t to_step, bool past)
{
    __m512 v[4];
    QN_UNROLL for (int r = 0; r < 4; r++)
    {
        const float *x = from + r * from_step;
        v[r] = _mm512_castps128_ps512(_mm_loadu_ps(x));
        v[r] = _mm512_insertf32x4(v[r], _mm_loadu_ps(x + 4 * from_step), 1);
        v[r] = _mm512_insertf32x4(v[r], _mm_loadu_ps(x + 8 * from_step), 2);
        if (rows > 12)
            v[r] = _mm512_insertf32x4(v[r], _mm_loadu_ps(x + 12 * from_step), 3);
    }
    __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(v[0], v[1]));
    __m512d b = _mm512_castps_pd(_mm512_unpackhi_ps(v[0], v[1]));
    __m512d c = _mm512_castps_pd(_mm512_unpacklo_ps(v[2], v[3]));
    __m512d d = _mm512_castps_pd(_mm512_unpackhi_ps(v[2], v[3]));
    qn_keep_lanes(to, rows, _mm512_unpacklo_pd(a, c), past);
    qn_keep_lanes(to + to_step, rows, _mm512_unpackhi_pd(a, c), past);
    qn_keep_lanes(to + 2 * to_step, rows, _mm512_unpacklo_pd(b, d), past);
    qn_keep_lanes(to + 3 * to_step, rows, _mm512_unpackhi_pd(b, d), past);
}

enum { QN_TURN_WIDE = 12 }; /* rows from which on it is used */
#else
enum { QN_TURN_WIDE = INT32_MAX };
#define qn_turn_wide(from, from_step, rows, to, to_step, past) ((void)0)
#endif

/* Of 4, 12 or 16 rows. */
QN_INLINE void qn_turn_rows(const float *from, int64_t from_step, int rows, int64_t columns,
                            float *to, int64_t to_step, bool past)
{
    int64_t whole = columns / 4 * 4;
    (void)past;
    for (int64_t j = 0; j < whole; j += 4) {
        if (rows >= QN_TURN_WIDE)
            qn_turn_wide(from + j, from_step, rows, to + j * to_step, to_step, past);
        else
            qn_turn_4x4(from + j, from_step, to + j * to_step, to_step);
    }
    for (int64_t j = whole; j < columns; j++) {
        for (int i = 0; i < rows; i++)
            to[j * to_step + i] = from[i * from_step + j];
    }
}

/* As qn_turn. past: sixteen rows at a time go past the caches, `to` and its step being multiples of
 * 16 floats; a fence is the caller's. */
QN_INLINE void qn_turn_to(const float *from, int64_t from_step, int64_t rows, int64_t columns,
                          float *to, int64_t to_step, bool past)
{
    enum { BLOCK = 16, AHEAD = 8 * BLOCK };
    for (int64_t j0 = 0; j0 < columns; j0 += BLOCK) {
        int64_t n = QN_MIN(columns - j0, (int64_t)BLOCK), i = 0;
        const float *x = from + j0;
        float *y = to + j0 * to_step;
        for (int64_t r = 0; r < rows; r++)
            qn_prefetch(x + r * from_step + AHEAD);
        for (; i + 16 <= rows && QN_TURN_WIDE <= 16; i += 16)
            qn_turn_rows(x + i * from_step, from_step, 16, n, y + i, to_step, past);
        for (; i + 12 <= rows && QN_TURN_WIDE <= 12; i += 12)
            qn_turn_rows(x + i * from_step, from_step, 12, n, y + i, to_step, false);
        for (; i + 4 <= rows; i += 4)
            qn_turn_rows(x + i * from_step, from_step, 4, n, y + i, to_step, false);
        for (; i < rows; i++) {
            for (int64_t j = 0; j < n; j++)
                y[j * to_step + i] = x[i * from_step + j];
        }
    }
}

/* to[j * to_step + i] = from[i * from_step + j], in blocks that stay in the first-level cache; each
 * row is called for well ahead, as rows far apart are more streams than processors follow. */
QN_INLINE void qn_turn(const float *from, int64_t from_step, int64_t rows, int64_t columns,
                       float *to, int64_t to_step)
{
    qn_turn_to(from, from_step, rows, columns, to, to_step, false);
}

#endif
