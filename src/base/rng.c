#include "base/rng.h"

void qn_rng_u32x4(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4])
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    uint32_t x0 = (uint32_t)counter, x1 = (uint32_t)(counter >> 32);
    uint32_t x2 = (uint32_t)stream, x3 = (uint32_t)(stream >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xd2511f53u * x0, p1 = (uint64_t)0xcd9e8d57u * x2;
        uint32_t y0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0, y2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
        x1 = (uint32_t)p1;
        x3 = (uint32_t)p0;
        x0 = y0;
        x2 = y2;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
}

void qn_rng_init(QnRng *rng, uint64_t seed, uint64_t stream)
{
    *rng = (QnRng){ .seed = seed, .stream = stream };
}

void qn_rng_seek(QnRng *rng, uint64_t position)
{
    rng->position = position;
    if (position % 4)
        qn_rng_u32x4(rng->seed, rng->stream, position / 4, rng->block);
}

uint32_t qn_rng_u32(QnRng *rng)
{
    if (rng->position % 4 == 0)
        qn_rng_u32x4(rng->seed, rng->stream, rng->position / 4, rng->block);
    return rng->block[rng->position++ % 4];
}

void qn_rng_words(QnRng *rng, uint32_t *word, int64_t n)
{
    int64_t i = 0;
    while (i < n && rng->position % 4)
        word[i++] = qn_rng_u32(rng);
    for (; i + 4 <= n; i += 4, rng->position += 4)
        qn_rng_u32x4(rng->seed, rng->stream, rng->position / 4, word + i);
    while (i < n)
        word[i++] = qn_rng_u32(rng);
}

uint64_t qn_rng_u64(QnRng *rng)
{
    uint64_t low = qn_rng_u32(rng);
    return low | (uint64_t)qn_rng_u32(rng) << 32;
}

float qn_rng_uniform(QnRng *rng)
{
    return qn_rng_to_uniform(qn_rng_u32(rng));
}

float qn_rng_normal(QnRng *rng)
{
    float pair[2];
    uint32_t a = qn_rng_u32(rng), b = qn_rng_u32(rng);
    qn_rng_to_normal(a, b, pair);
    return pair[0];
}

uint64_t qn_rng_below(QnRng *rng, uint64_t n)
{
    if (n <= UINT32_MAX) {
        /* Scale a word to n; reject the few words that would make some results more likely. */
        uint32_t bound = (uint32_t)n, reject = (0u - bound) % bound;
        uint64_t product;
        do
            product = (uint64_t)qn_rng_u32(rng) * bound;
        while ((uint32_t)product < reject);
        return product >> 32;
    }
    uint64_t reject = (0u - n) % n, word;
    do
        word = qn_rng_u64(rng);
    while (word < reject);
    return word % n;
}

void qn_rng_shuffle(QnRng *rng, int64_t *items, int64_t n)
{
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)qn_rng_below(rng, (uint64_t)i + 1), t = items[i];
        items[i] = items[j];
        items[j] = t;
    }
}
