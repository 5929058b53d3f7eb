/* The elementary functions of base/vmath.h against the C library's in double precision, over a
 * strided sweep of all 2^32 floats: errors in units of the last place of the wanted float. */
#include "test.h"

#include "base/vmath.h"

enum { STRIDE = 1009 }; /* a prime: every exponent gets some 8,300 significands of both signs */

static float got_exp_below(float x)
{
    return qn_exp_belowf(-fabsf(x));
}

static double want_exp_below(double x)
{
    return fabs(x) > 87.3365 ? 0 : exp(-fabs(x));
}

static float got_cdf_above(float x)
{
    return qn_normal_cdff(fabsf(x));
}

static double want_cdf_above(double x)
{
    return erfc(-fabs(x) * M_SQRT1_2) / 2;
}

static float got_cdf_below(float x)
{
    return qn_normal_cdff(-fabsf(x));
}

static double want_cdf_below(double x)
{
    return fabs(x) > 5.6f ? 0 : erfc(fabs(x) * M_SQRT1_2) / 2;
}

typedef struct Function {
    const char *name;
    float (*got)(float);
    double (*want)(double);
    double ulps; /* the bound that the tables of operators rely on */
} Function;

#define QN_X(name)                                                                                 \
    static float got_##name(float x)                                                               \
    {                                                                                              \
        return qn_##name##f(x);                                                                    \
    }
QN_X(exp)
QN_X(log)
QN_X(expm1)
QN_X(log1p)
QN_X(tanh)
QN_X(erf)
QN_X(sqrt)
QN_X(sin)
QN_X(cos)
QN_X(tan)
QN_X(asin)
QN_X(acos)
QN_X(atan)
QN_X(sinh)
QN_X(cosh)
QN_X(asinh)
QN_X(acosh)
QN_X(atanh)
QN_X(floor)
QN_X(ceil)
QN_X(trunc)
QN_X(rint)
#undef QN_X

static const Function functions[] = {
    { "cdf_above", got_cdf_above, want_cdf_above, 3 },
    { "cdf_below", got_cdf_below, want_cdf_below, 64 },
    { "exp_below", got_exp_below, want_exp_below, 1.5 },
    { "exp", got_exp, exp, 1.5 },
    { "log", got_log, log, 1 },
    { "expm1", got_expm1, expm1, 2.5 },
    { "log1p", got_log1p, log1p, 2.5 },
    { "tanh", got_tanh, tanh, 1.5 },
    { "erf", got_erf, erf, 2 },
    { "sqrt", got_sqrt, sqrt, 0.5 },
    { "sin", got_sin, sin, 1 },
    { "cos", got_cos, cos, 1 },
    { "tan", got_tan, tan, 2 },
    { "asin", got_asin, asin, 1 },
    { "acos", got_acos, acos, 1 },
    { "atan", got_atan, atan, 1 },
    { "sinh", got_sinh, sinh, 2 },
    { "cosh", got_cosh, cosh, 2 },
    { "asinh", got_asinh, asinh, 2 },
    { "acosh", got_acosh, acosh, 2 },
    { "atanh", got_atanh, atanh, 2 },
    { "floor", got_floor, floor, 0 },
    { "ceil", got_ceil, ceil, 0 },
    { "trunc", got_trunc, trunc, 0 },
    { "rint", got_rint, rint, 0 },
};

/* Infinite where one is NaN or infinite and the other is not. */
static double error_ulps(float got, double want)
{
    float rounded = (float)want;
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (isinf(got) || isinf(rounded))
        return got == rounded ? 0 : INFINITY;
    int e = ilogb(QN_MAX(fabs(want), 0x1p-126));
    return fabs((double)got - want) / ldexp(1, e - 23);
}

static double sweep(const Function *f, float *at)
{
    double worst = -1;
    for (uint64_t u = 0; u < UINT64_C(1) << 32; u += STRIDE) {
        float x = qn_f32_from_bits((uint32_t)u);
        double e = error_ulps(f->got(x), f->want(x));
        if (e > worst) {
            worst = e;
            *at = x;
        }
    }
    return worst;
}

static void test_errors_are_as_stated(void **state)
{
    int bad = 0;
    for (int i = 0; i < QN_COUNT(functions); i++) {
        const Function *f = &functions[i];
        float at = 0;
        double worst = sweep(f, &at);
        print_message("%-6s %.2f ulp at %a, allowed %g\n", f->name, worst, (double)at, f->ulps);
        bad += !(worst <= f->ulps);
    }
    assert_int_equal(bad, 0);
}
