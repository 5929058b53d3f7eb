/* 16-bit floats: IEEE 754 binary16 (f16) and bfloat16 (bf16). Conversions to f32 are exact;
 * conversions from f32 round to nearest, ties to even, keep NaNs quiet and overflow to infinity. */
#ifndef QN_BASE_HALF_H
#define QN_BASE_HALF_H

#include "base/compiler.h"
#include <string.h>

QN_INLINE uint32_t qn_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

QN_INLINE float qn_f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

QN_INLINE float qn_bf16_to_f32(uint16_t h)
{
    return qn_f32_from_bits((uint32_t)h << 16);
}

QN_INLINE uint16_t qn_f32_to_bf16(float f)
{
    uint32_t u = qn_f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

QN_INLINE float qn_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 0x1fu, m = h & 0x3ffu;
    if (exponent == 31)
        return qn_f32_from_bits(sign | 0x7f800000u | (m << 13) | (m ? 0x400000u : 0));
    if (exponent)
        return qn_f32_from_bits(sign | ((exponent + 112) << 23) | (m << 13));
    float subnormal = (float)m * 0x1p-24f;
    return sign ? -subnormal : subnormal;
}

QN_INLINE uint16_t qn_f32_to_f16(float f)
{
    uint32_t u = qn_f32_bits(f), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((a >> 13) & 0x3ffu));
    if (a >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (a < 0x38800000u) { /* below 2^-14: adding 0.5 makes the FPU round to a multiple of 2^-24 */
        uint32_t r = qn_f32_bits(qn_f32_from_bits(a) + 0.5f) - 0x3f000000u;
        return (uint16_t)(sign | r);
    }
    return (uint16_t)(sign | ((a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13));
}

#endif
