/* Rounding f32 to 16 bits by chance, as cast_random does: shared by its reference and kernels. */
#ifndef QN_OPS_ROUND_RANDOM_H
#define QN_OPS_ROUND_RANDOM_H

#include "base/half.h"

#include <math.h>

/* A neighbour of x in bf16 or f16, the upper one with the probability that x lies that far up; word
 * is uniform. Above 65,504 f16's next neighbour is 65,536, which storing makes infinite. */
QN_INLINE float qn_round_random(float x, uint32_t word, bool is_f16)
{
    uint32_t u = qn_f32_bits(x), a = u & 0x7fffffffu;
    if (a >= 0x7f800000u)
        return x;
    if (!is_f16)
        return qn_f32_from_bits((u + (word & 0xffffu)) & 0xffff0000u);
    if (a < 0x38800000u) { /* f16 has multiples of 2^-24 here */
        float q = qn_f32_from_bits(a) * 0x1p24f, whole = floorf(q);
        bool up = (float)(word >> 8) < (q - whole) * 0x1p24f;
        float y = (whole + (float)up) * 0x1p-24f;
        return u >> 31 ? -y : y;
    }
    return qn_f32_from_bits((u + (word & 0x1fffu)) & 0xffffe000u);
}

#endif
