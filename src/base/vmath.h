/* Elementary functions for loops: branch-free, so that compilers vectorise them; polynomials by
 * Estrin's scheme, as a core spends most of Horner's waiting. Stated errors are the largest over
 * all floats, measured by test/base/test_vmath.c. Infinities and NaNs behave as in C's libm. */
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
    float r2 = r * r, p23 = 1.0f / 6.0f * r + 0.5f;
    float p45 = 1.0f / 120.0f * r + 1.0f / 24.0f, p67 = 1.0f / 5040.0f * r + 1.0f / 720.0f;
    float p = (p67 * r2 + p45) * r2 + p23;
    p = p * r2 + r + 1.0f;
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
    float p01 = 2.0f / 5.0f * z + 2.0f / 3.0f, p23 = 2.0f / 9.0f * z + 2.0f / 7.0f;
    float p = p23 * (z * z) + p01;
    /* log m = f - s*(f - z*p), exact to first order in f */
    float y = k * 0.693145752f + (f - (s * (f - z * p) - k * 1.42860677e-6f));
    y = x == INFINITY ? x : y;
    y = x == 0.0f ? -INFINITY : y;
    return x < 0.0f || x != x ? NAN : y;
}

/* e^x - 1: the series near 0, where exp(x) - 1 cancels. 2.1 ulp. */
QN_INLINE float qn_expm1f(float x)
{
    float z = x * x, p01 = 1.0f / 6.0f * x + 0.5f, p23 = 1.0f / 120.0f * x + 1.0f / 24.0f;
    float p45 = 1.0f / 5040.0f * x + 1.0f / 720.0f, p46 = 1.0f / 40320.0f * z + p45;
    float p = (p46 * z + p23) * z + p01;
    float near = x + z * p, far = qn_expf(x) - 1.0f;
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

/* e^x for |x| < 80, where one factor holds 2^k and nothing needs care; e^r as 1 + r + r^2 times a
 * minimax polynomial. 1.1 ulp. */
QN_INLINE float qn_exp_insidef(float x)
{
    float k = rintf(x * 1.44269504f);
    float r = x - k * 0.693145752f;
    r = r - k * 1.42860677e-6f;
    float r2 = r * r, p01 = 1.66665205e-1f * r + 0.49999993f;
    float p23 = 8.36873577e-3f * r + 4.16683899e-2f, p24 = 1.38145576e-3f * r2 + p23;
    float p = (p24 * r2 + p01) * r2 + r;
    float s = qn_f32_from_bits((uint32_t)((int32_t)k + 127) << 23);
    return p * s + s;
}

/* e^x for x <= 0 or little above, as rows whose largest element is taken off have it; 0 below
 * 2^-126. 1.1 ulp. */
QN_INLINE float qn_exp_belowf(float x)
{
    float y = qn_exp_insidef(x < -87.3365f ? -87.3365f : x); /* NaN stays */
    return x < -87.3365f ? 0.0f : y;
}

/* Below 0.65 x times a minimax polynomial of x^2 (6e-9), above 1 - 2 / (e^2x + 1).
 * 1.3 ulp. */
QN_INLINE float qn_tanhf(float x)
{
    float a = fabsf(x), z = x * x;
    float z2 = z * z, p01 = 1.33304164e-1f * z - 3.33332300e-1f;
    float p23 = 2.04153880e-2f * z - 5.36653623e-2f, p24 = -5.46843512e-3f * z2 + p23;
    float p = p24 * z2 + p01;
    float near = x + x * z * p;
    float c = a > 10.0f ? 10.0f : a; /* NaN stays */
    float far = copysignf(1.0f - 2.0f / (qn_exp_insidef(2.0f * c) + 1.0f), x);
    return a < 0.65f ? near : far;
}

/* Below 0.92 x times a minimax polynomial of x^2 (2e-8), above 1 - e^-q(x), q one of
 * -log erfc x on [0.92, 4], beyond which the result is 1 in float: no division. 2 ulp. */
QN_INLINE float qn_erff(float x)
{
    float a = fabsf(x), z = x * x;
    float z2 = z * z, p01 = -3.76124978e-1f * z + 1.28379109e-1f;
    float p23 = -2.67677475e-2f * z + 1.12818472e-1f, p45 = -5.99954510e-4f * z + 4.99486271e-3f;
    float p = (p45 * z2 + p23) * z2 + p01;
    float near = x + x * p;
    float c = a > 4.0f ? 4.0f : a; /* NaN stays */
    float c2 = c * c, q01 = 1.12767565f * c + 1.95666536e-4f;
    float q23 = 1.03931665e-1f * c + 6.37182176e-1f, q45 = 3.04322666e-3f * c - 2.22269557e-2f;
    float q = ((-1.95938264e-4f * c2 + q45) * c2 + q23) * c2 + q01;
    float far = copysignf(1.0f - qn_exp_insidef(-q), x);
    return a < 0.92f ? near : far;
}

/* Phi(x), the normal distribution's share below x: on the side where it is small 2^q(|x|), q a
 * minimax polynomial of log2 Phi(-a) on [0, 5.6]; 0 and 1 beyond. Within 1.8e-7, and below 0 within
 * 4e-6 of the value. */
QN_INLINE float qn_normal_cdff(float x)
{
    float a = fabsf(x);
    float c = a > 5.6f ? 5.6f : a; /* NaN stays */
    float c2 = c * c, c4 = c2 * c2;
    float q01 = -1.15110815f * c - 0.99999994f, q23 = -5.25303259e-2f * c - 4.59190011e-1f;
    float q45 = -9.93507492e-5f * c + 7.07314722e-3f, q67 = 6.35684119e-5f * c - 2.33551633e-4f;
    float q89 = 6.68167218e-7f * c - 8.83993198e-6f;
    float q03 = q23 * c2 + q01, q47 = q67 * c2 + q45, q8a = -2.16900649e-8f * c2 + q89;
    float q = (q8a * c4 + q47) * c4 + q03;
    float k = rintf(q), r = q - k, r2 = r * r;
    float p01 = 6.93146944e-1f * r + 1.0f, p23 = 5.55071309e-2f * r + 2.40221202e-1f;
    float p45 = 1.32764701e-3f * r + 9.67554096e-3f; /* 2^r, minimax too (7e-8) */
    float p = (p45 * r2 + p23) * r2 + p01;
    float h = p * qn_f32_from_bits((uint32_t)((int32_t)k + 127) << 23);
    h = a > 5.6f ? 0.0f : h;
    return x < 0.0f ? h : 1.0f - h;
}

#endif
