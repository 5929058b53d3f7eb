/* Philox 4x32, 10 rounds, on many counters side by side; the same words as base/rng.c. */
#include "backend/cpu/draw.h"
#include "backend/cpu/isa/simd.h"

QnDrawFn QN_ISA_NAME(qn_draw_words);

void QN_ISA_NAME(qn_draw_words)(uint64_t seed, uint64_t stream, uint64_t first, uint32_t *word)
{
    uint32_t x0[QN_DRAW_BLOCKS], x1[QN_DRAW_BLOCKS], x2[QN_DRAW_BLOCKS], x3[QN_DRAW_BLOCKS];
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int i = 0; i < QN_DRAW_BLOCKS; i++) {
        x0[i] = (uint32_t)(first + (uint64_t)i);
        x1[i] = (uint32_t)((first + (uint64_t)i) >> 32);
        x2[i] = (uint32_t)stream;
        x3[i] = (uint32_t)(stream >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < QN_DRAW_BLOCKS; i++) {
            uint64_t p0 = (uint64_t)x0[i] * 0xd2511f53u, p1 = (uint64_t)x2[i] * 0xcd9e8d57u;
            x0[i] = (uint32_t)(p1 >> 32) ^ x1[i] ^ k0;
            x2[i] = (uint32_t)(p0 >> 32) ^ x3[i] ^ k1;
            x1[i] = (uint32_t)p1;
            x3[i] = (uint32_t)p0;
        }
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    for (int i = 0; i < QN_DRAW_BLOCKS; i++) {
        word[4 * i] = x0[i];
        word[4 * i + 1] = x1[i];
        word[4 * i + 2] = x2[i];
        word[4 * i + 3] = x3[i];
    }
}
