/* Elementary functions for loops: branch-free, so that compilers vectorise them. Stated errors are
 * the largest over all floats, measured by test/base/test_vmath.c. Infinities and NaNs behave as in
 * C's libm. */
#ifndef QN_BASE_VMATH_H
#define QN_BASE_VMATH_H

#include "base/half.h"
#include <math.h>

#define QN_INF        INFINITY
#define qn_minf(a, b) ((a) < (b) ? (a) : (b))
#define qn_maxf(a, b) ((a) > (b) ? (a) : (b))

QN_INLINE float qn_sqrtf(float x)
{
    return sqrtf(x);
}

QN_INLINE float qn_absf(float x)
{
    return fabsf(x);
}

QN_INLINE float qn_floorf(float x)
{
    return floorf(x);
}

QN_INLINE float qn_ceilf(float x)
{
    return ceilf(x);
}

QN_INLINE float qn_truncf(float x)
{
    return truncf(x);
}

QN_INLINE float qn_rintf(float x)
{
    return rintf(x);
}

QN_INLINE float qn_fmodf(float x, float y)
{
    return fmodf(x, y);
}

QN_INLINE float qn_sinf(float x)
{
    return sinf(x);
}

QN_INLINE float qn_cosf(float x)
{
    return cosf(x);
}

QN_INLINE float qn_tanf(float x)
{
    return tanf(x);
}

QN_INLINE float qn_asinf(float x)
{
    return asinf(x);
}

QN_INLINE float qn_acosf(float x)
{
    return acosf(x);
}

QN_INLINE float qn_atanf(float x)
{
    return atanf(x);
}

QN_INLINE float qn_sinhf(float x)
{
    return sinhf(x);
}

QN_INLINE float qn_coshf(float x)
{
    return coshf(x);
}

QN_INLINE float qn_asinhf(float x)
{
    return asinhf(x);
}

QN_INLINE float qn_acoshf(float x)
{
    return acoshf(x);
}

QN_INLINE float qn_atanhf(float x)
{
    return atanhf(x);
}

QN_INLINE float qn_atan2f(float y, float x)
{
    return atan2f(y, x);
}

QN_INLINE float qn_powf(float x, float y)
{
    return powf(x, y);
}

/* exp by 2^k * e^r, |r| <= ln(2)/2, e^r by its Taylor series to r^7 (remainder 2e-9).
 * 1.1 ulp. */
QN_INLINE float qn_expf(float x)
{
    float c = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x; /* keeps k in range; NaN stays x */
    float k = rintf(c * 1.44269504f);
    float r = c - k * 0.693145752f; /* ln 2 in two parts, the first exact in k * it */
    r = r - k * 1.42860677e-6f;
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    int32_t e = (int32_t)k, half = e >> 1; /* two factors reach subnormals and 2^128 */
    float s0 = qn_f32_from_bits((uint32_t)(half + 127) << 23);
    float s1 = qn_f32_from_bits((uint32_t)(e - half + 127) << 23);
    float y = p * s0 * s1;
    return x != x ? x : y;
}

/* log by x = m * 2^e, m in [sqrt(1/2), sqrt(2)), log m = 2 atanh(s), s = (m-1)/(m+1).
 * 0.8 ulp. */
QN_INLINE float qn_logf(float x)
{
    float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;
    float bias = x < 1.17549435e-38f ? -23.0f : 0.0f;
    uint32_t u = qn_f32_bits(scaled);
    int32_t e = (int32_t)(u - 0x3f3504f3u) >> 23;
    float m = qn_f32_from_bits(u - ((uint32_t)e << 23)), k = (float)e + bias;
    float f = m - 1.0f, s = f / (f + 2.0f), z = s * s;
    float p = 2.0f / 9.0f;
    p = p * z + 2.0f / 7.0f;
    p = p * z + 2.0f / 5.0f;
    p = p * z + 2.0f / 3.0f;
    /* log m = f - s*(f - z*p), exact to first order in f */
    float y = k * 0.693145752f + (f - (s * (f - z * p) - k * 1.42860677e-6f));
    y = x == INFINITY ? x : y;
    y = x == 0.0f ? -INFINITY : y;
    return x < 0.0f || x != x ? NAN : y;
}

/* e^x - 1: the series near 0, where exp(x) - 1 cancels. 2.1 ulp. */
QN_INLINE float qn_expm1f(float x)
{
    float p = 1.0f / 40320.0f;
    p = p * x + 1.0f / 5040.0f;
    p = p * x + 1.0f / 720.0f;
    p = p * x + 1.0f / 120.0f;
    p = p * x + 1.0f / 24.0f;
    p = p * x + 1.0f / 6.0f;
    p = p * x + 0.5f;
    float near = x + x * x * p, far = qn_expf(x) - 1.0f;
    return fabsf(x) < 0.5f ? near : far;
}

/* 2.3 ulp. */
QN_INLINE float qn_log1pf(float x)
{
    float u = 1.0f + x, d = u - 1.0f; /* Kahan: the rounding error of 1+x cancels */
    float y = qn_logf(u) * (x / (d == 0.0f ? 1.0f : d));
    y = d == 0.0f ? x : y;
    return x == INFINITY ? x : y;
}

/* 2.3 ulp. */
QN_INLINE float qn_tanhf(float x)
{
    float a = fabsf(x), e = qn_expm1f(2.0f * a);
    float y = a > 9.01f ? 1.0f : e / (e + 2.0f);
    y = x != x ? x : y;
    return copysignf(y, x);
}

/* erf: Maclaurin series below 1 (to x^21, remainder 2e-10), above by erfc's continued form:
 * Abramowitz and Stegun 7.1.26 is too coarse, so 1 - t*exp(-x^2 + P(t)) with t = 1/(1 + x/2),
 * P the Chebyshev fit of W. J. Cody's function as in Press et al., error 1.2e-7 relative.
 * 2 ulp. */
QN_INLINE float qn_erff(float x)
{
    float a = fabsf(x), z = x * x;
    float p = 1.0f / 76204800.0f;
    p = 1.0f / 6894720.0f - z * p;
    p = 1.0f / 685440.0f - z * p;
    p = 1.0f / 75600.0f - z * p;
    p = 1.0f / 9360.0f - z * p;
    p = 1.0f / 1320.0f - z * p;
    p = 1.0f / 216.0f - z * p;
    p = 1.0f / 42.0f - z * p;
    p = 1.0f / 10.0f - z * p;
    p = 1.0f / 3.0f - z * p;
    float near = 1.12837917f * (x - x * z * p);
    float t = 1.0f / (1.0f + 0.5f * a);
    float q = 0.17087277f;
    q = q * t - 0.82215223f;
    q = q * t + 1.48851587f;
    q = q * t - 1.13520398f;
    q = q * t + 0.27886807f;
    q = q * t - 0.18628806f;
    q = q * t + 0.09678418f;
    q = q * t + 0.37409196f;
    q = q * t + 1.00002368f;
    q = q * t - 1.26551223f;
    float far = copysignf(1.0f - t * qn_expf(q - z), x);
    return a < 1.0f ? near : far;
}

#endif
