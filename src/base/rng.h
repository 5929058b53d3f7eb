/* Random numbers from a counter: Philox 4x32 with 10 rounds (Salmon and others, 2011). A block of
 * four words is a pure function of (seed, stream, counter), so any thread or device can produce any
 * part of a sequence, in any order, with the same result. */
#ifndef QN_BASE_RNG_H
#define QN_BASE_RNG_H

#include "base/compiler.h"

void qn_rng_u32x4(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4]);

/* Uniform in [0, 1): the word's upper 24 bits, so that every value is a float exactly. */
QN_INLINE float qn_rng_to_uniform(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

/* Two standard normals from two words (Box and Muller's transform), the same on every machine. */
void qn_rng_to_normal(uint32_t a, uint32_t b, float out[2]);
/* n of them, an even number, from as many words. */
void qn_rng_to_normals(const uint32_t *word, int64_t n, float *out);

/* One sequence read from its start. The struct is all of its state; saving seed, stream and
 * position saves it. */
typedef struct QnRng {
    uint64_t seed, stream;
    uint64_t position; /* words taken so far */
    uint32_t block[4]; /* the block that position lies in, unless position is a multiple of 4 */
} QnRng;

void qn_rng_init(QnRng *rng, uint64_t seed, uint64_t stream);
void qn_rng_seek(QnRng *rng, uint64_t position);
uint32_t qn_rng_u32(QnRng *rng);
uint64_t qn_rng_u64(QnRng *rng);
void qn_rng_words(QnRng *rng, uint32_t *word, int64_t n);   /* the next n */
float qn_rng_uniform(QnRng *rng);                           /* [0, 1); takes one word */
float qn_rng_normal(QnRng *rng);                            /* takes two words */
uint64_t qn_rng_below(QnRng *rng, uint64_t n);              /* [0, n) without bias; n > 0 */
void qn_rng_shuffle(QnRng *rng, int64_t *items, int64_t n); /* every order equally likely */

#endif
