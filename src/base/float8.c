#include "base/float8.h"

#include <limits.h>
#include <math.h>

typedef struct Format {
    int bits, fraction_bits, bias;
    unsigned max_code; /* of the largest number */
    int inf_code;      /* -1: none */
    int nan_code;      /* -1: none */
    bool negative_zero;
} Format;

static const Format formats[] = {
    [QN_FLOAT8_E4M3FN] = { 8, 3, 7, 0x7e, -1, 0x7f, true },
    [QN_FLOAT8_E4M3FNUZ] = { 8, 3, 8, 0x7f, -1, 0x80, false },
    [QN_FLOAT8_E5M2] = { 8, 2, 15, 0x7b, 0x7c, 0x7f, true },
    [QN_FLOAT8_E5M2FNUZ] = { 8, 2, 16, 0x7f, -1, 0x80, false },
    [QN_FLOAT8_E2M1] = { 4, 1, 1, 0x7, -1, -1, true },
};

static unsigned sign_bit(const Format *f)
{
    return 1u << (f->bits - 1);
}

/* The number of a code without sign that is neither infinite nor NaN. */
static double number(const Format *f, unsigned code)
{
    int exponent = (int)(code >> f->fraction_bits);
    unsigned one = 1u << f->fraction_bits, fraction = code & (one - 1);
    if (exponent == 0)
        return ldexp(fraction, 1 - f->bias - f->fraction_bits);
    return ldexp(one + fraction, exponent - f->bias - f->fraction_bits);
}

double qn_float8_decode(QnFloat8 format, uint8_t code)
{
    const Format *f = &formats[format];
    unsigned sign = code & sign_bit(f), size = code & (sign_bit(f) - 1);
    if (!f->negative_zero && code == f->nan_code)
        return NAN;
    double x = size <= f->max_code ? number(f, size) : (int)size == f->inf_code ? INFINITY : NAN;
    return sign ? -x : x;
}

/* The code of |x|, as if exponents went on beyond the largest number. Codes are in the order of
 * their numbers, so that a fraction that rounds up to the next power of two carries into the
 * exponent. */
static unsigned nearest(const Format *f, double x)
{
    int least = 1 - f->bias, e = x > 0 ? ilogb(x) : least;
    if (e > 64)
        return UINT_MAX;
    e = e < least ? least : e;
    unsigned q = (unsigned)rint(ldexp(x, f->fraction_bits - e));
    return ((unsigned)(e - least) << f->fraction_bits) + q;
}

uint8_t qn_float8_encode(QnFloat8 format, double x)
{
    const Format *f = &formats[format];
    unsigned sign = signbit(x) ? sign_bit(f) : 0, code;
    if (isnan(x)) {
        if (f->nan_code < 0)
            return (uint8_t)sign_bit(f);
        return (uint8_t)(f->negative_zero ? (unsigned)f->nan_code | sign : (unsigned)f->nan_code);
    }
    if (isinf(x) && f->inf_code >= 0)
        return (uint8_t)((unsigned)f->inf_code | sign);
    code = isinf(x) ? f->max_code : nearest(f, fabs(x));
    code = code > f->max_code ? f->max_code : code;
    return (uint8_t)(code || f->negative_zero ? code | sign : 0);
}

double qn_float8_bound(QnFloat8 format, double x, bool saturate)
{
    const Format *f = &formats[format];
    if (isnan(x) || (isfinite(x) && nearest(f, fabs(x)) <= f->max_code))
        return x;
    if (saturate || f->nan_code < 0)
        return copysign(qn_float8_max(format), x);
    return f->inf_code >= 0 ? copysign(INFINITY, x) : NAN;
}

double qn_float8_max(QnFloat8 format)
{
    return number(&formats[format], formats[format].max_code);
}
