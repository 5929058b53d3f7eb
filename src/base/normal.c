/* Standard normals from pairs of words by Box and Muller's transform, for loops: branch-free, so
 * that compilers vectorise it, and without the C library's functions, so that every machine draws
 * the same numbers. The polynomials are the functions' own series, as long as a double resolves. */
#include "base/rng.h"

#include <math.h>
#include <string.h>

QN_INLINE uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

QN_INLINE double of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The logarithm of u = m 2^k, m from sqrt(1/2) to sqrt(2): k ln 2 + 2 artanh((m - 1) / (m + 1)). */
QN_INLINE double log_of(double u)
{
    const uint64_t root = 0x3fe6a09e667f3bcd /* sqrt(1/2) */, one = UINT64_C(1023) << 52;
    uint64_t e = (bits_of(u) - root + one) >> 52;                           /* k + 1023 */
    double k = of_bits(e | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023); /* e, as 2^52 + e */
    double m = of_bits(bits_of(u) - ((e - 1023) << 52));
    double s = (m - 1) / (m + 1), z = s * s, z2 = z * z, z4 = z2 * z2;
    double low = (2.0 / 3 + z * (2.0 / 5)) + z2 * (2.0 / 7 + z * (2.0 / 9));
    double high = (2.0 / 11 + z * (2.0 / 13)) + z2 * (2.0 / 15 + z * (2.0 / 17));
    double p = low + z4 * (high + z4 * (2.0 / 19));
    return k * 0x1.62e42fefa39efp-1 + (2 * s + s * z * p);
}

/* For x from -pi/4 to pi/4. */
QN_INLINE double sin_of(double x)
{
    double z = x * x, z2 = z * z, z4 = z2 * z2;
    double low = (-1.0 / 6 + z * (1.0 / 120)) + z2 * (-1.0 / 5040 + z * (1.0 / 362880));
    double high = (-1.0 / 39916800 + z * (1.0 / 6227020800)) + z2 * (-1.0 / 1307674368000);
    return x + x * z * (low + z4 * high);
}

QN_INLINE double cos_of(double x)
{
    double z = x * x, z2 = z * z, z4 = z2 * z2;
    double low = (-1.0 / 2 + z * (1.0 / 24)) + z2 * (-1.0 / 720 + z * (1.0 / 40320));
    double high = (-1.0 / 3628800 + z * (1.0 / 479001600)) + z2 * (-1.0 / 87178291200);
    return 1 + z * (low + z4 * high);
}

/* The angle b / 2^32 of a turn is a quarter of it, exactly, and the rest, at most an eighth. */
QN_INLINE void normal_pair(uint32_t a, uint32_t b, float out[2])
{
    const double tau = 6.283185307179586;
    /* (a + 1/2) / 2^32, in (0, 1): its logarithm is finite */
    double u = ((double)(int32_t)(a ^ 0x80000000u) + (0x1p31 + 0.5)) * 0x1p-32;
    double radius = sqrt(-2 * log_of(u));
    uint32_t turned = b + 0x20000000u;
    double x = (double)(int32_t)(b - (turned & 0xc0000000u)) * (tau * 0x1p-32);
    uint64_t quarter = turned >> 30, c = bits_of(cos_of(x)), s = bits_of(sin_of(x));
    uint64_t change = (c ^ s) & (0 - (quarter & 1));
    uint64_t c_sign = ((quarter + 1) & 2) << 62, s_sign = (quarter & 2) << 62;
    out[0] = (float)(radius * of_bits(c ^ change ^ c_sign));
    out[1] = (float)(radius * of_bits(s ^ change ^ s_sign));
}

void qn_rng_to_normal(uint32_t a, uint32_t b, float out[2])
{
    normal_pair(a, b, out);
}

void qn_rng_to_normals(const uint32_t *word, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 2)
        normal_pair(word[i], word[i + 1], out + i);
}
