#include "base/hash_cpu.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

/* Four rounds with the words and constants of `m`. */
#define ROUNDS(m, i)                                                                               \
    do {                                                                                           \
        __m128i kw = _mm_add_epi32((m), _mm_loadu_si128((const __m128i *)(qn_sha256_k + (i))));    \
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, kw);                                              \
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(kw, 0x0e));                     \
    } while (0)

/* The message's next four words, in place of the oldest four. */
#define SCHEDULE(m0, m1, m2, m3)                                                                   \
    ((m0) = _mm_sha256msg2_epu32(                                                                  \
         _mm_add_epi32(_mm_sha256msg1_epu32((m0), (m1)), _mm_alignr_epi8((m3), (m2), 4)), (m3)))

QN_TARGET("sha,sse4.1,ssse3")
static void sha_ni_blocks(uint32_t h[8], const unsigned char *p, size_t n)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    /* The instructions want the state as (A,B,E,F) and (C,D,G,H). */
    __m128i dcba = _mm_loadu_si128((const __m128i *)h);
    __m128i hgfe = _mm_loadu_si128((const __m128i *)(h + 4));
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
    for (; n; n--, p += 64) {
        __m128i abef0 = abef, cdgh0 = cdgh, m[4];
        for (int i = 0; i < 4; i++)
            m[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), swap);
        for (int i = 0; i < 4; i++)
            ROUNDS(m[i], 4 * i);
        for (int i = 16; i < 64; i += 16) {
            ROUNDS(SCHEDULE(m[0], m[1], m[2], m[3]), i);
            ROUNDS(SCHEDULE(m[1], m[2], m[3], m[0]), i + 4);
            ROUNDS(SCHEDULE(m[2], m[3], m[0], m[1]), i + 8);
            ROUNDS(SCHEDULE(m[3], m[0], m[1], m[2]), i + 12);
        }
        abef = _mm_add_epi32(abef, abef0);
        cdgh = _mm_add_epi32(cdgh, cdgh0);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)h, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}

QnSha256Blocks *qn_sha256_blocks_of_cpu(void)
{
    unsigned a, b, c, d;
    bool sse41 = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_1);
    bool sha = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
    return sse41 && sha ? sha_ni_blocks : NULL;
}

#else

QnSha256Blocks *qn_sha256_blocks_of_cpu(void)
{
    return NULL;
}

#endif
