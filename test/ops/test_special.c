/* The scalar functions of maps, as compiled for each instruction set: infinities, NaNs, zeros and
 * the ends of the range give what the reference gives, and elementary functions keep their stated
 * errors over all floats (base/vmath.h was measured without contraction to FMA). */
#include "ops/harness.h"

#include "backend/cpu/cpu.h"
#include "base/isa_list.h"
#include "base/vmath.h"

#include <float.h>

enum { CHUNK = 4096, STRIDE = 4999 };

static const char *const isas[] = {
#define QN_X(name) #name,
    QN_ISA_LIST(QN_X)
#undef QN_X
};

static bool is_same(double got, double want)
{
    return first_difference(&got, &want, 1, 1e-5) < 0;
}

static int check_tile(const QnOp *op, const char *isa)
{
    enum { N = N_SPECIAL * N_SPECIAL * N_SPECIAL };
    static float in[QN_MAP_MAX_IN][N], out[N];
    double param[QN_MAP_MAX_PARAM] = { 0 };
    float p[QN_MAP_MAX_PARAM] = { 0 };
    char attr[sizeof(double) * QN_MAP_MAX_PARAM + 64] = { 0 };
    const float *x[QN_MAP_MAX_IN] = { in[0], in[1], in[2] };
    int bad = 0, n = 1;
    if (op->n_fields && op->attr_bytes <= sizeof attr) {
        qn_attr_defaults(op, attr);
        for (int i = qn_attr_floats(op, attr, param) - 1; i >= 0; i--)
            p[i] = (float)param[i];
    }
    for (int k = 0; k < op->n_in; k++)
        n *= N_SPECIAL;
    for (int i = 0; i < n; i++) {
        in[0][i] = (float)special_values[i % N_SPECIAL];
        in[1][i] = (float)special_values[i / N_SPECIAL % N_SPECIAL];
        in[2][i] = (float)special_values[i / N_SPECIAL / N_SPECIAL];
    }
    qn_cpu_tile(isa, op)(out, x, p, n);
    for (int i = 0; i < n && bad < 3; i++) {
        double xs[] = { (double)in[0][i], (double)in[1][i], (double)in[2][i] };
        double want = (double)(float)op->map->ref(xs, param);
        if (!is_same((double)out[i], want)) {
            print_message("%s (%s) of %g, %g, %g is %g, should be %g\n", op->name, isa, xs[0],
                          xs[1], xs[2], (double)out[i], want);
            bad++;
        }
    }
    return bad;
}

/* lerp's difference of the largest floats is infinite, as it is in any float arithmetic. */
static void test_special_values(void **state)
{
    int bad = 0, n = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        for (int i = 0; i < QN_COUNT(isas); i++) {
            if (!all_ops[o]->map || all_ops[o] == &qn_op_lerp || !qn_cpu_isa_is_usable(isas[i]) ||
                !qn_cpu_tile(isas[i], all_ops[o]))
                continue;
            bad += check_tile(all_ops[o], isas[i]);
            n++;
        }
    }
    print_message("%d tile functions\n", n);
    assert_true(n > 50);
    assert_int_equal(bad, 0);
}

/* Largest error in units of the last place, over a strided sweep of all floats. */
static double sweep(const QnOp *op, const char *isa)
{
    static float x[CHUNK], y[CHUNK];
    const float *in[QN_MAP_MAX_IN] = { x, x, x }, p[QN_MAP_MAX_PARAM] = { 0 };
    double worst = 0;
    uint64_t u = 0;
    while (u < UINT64_C(1) << 32) {
        int n = 0;
        for (; n < CHUNK && u < UINT64_C(1) << 32; u += STRIDE)
            x[n++] = qn_f32_from_bits((uint32_t)u);
        qn_cpu_tile(isa, op)(y, in, p, n);
        for (int i = 0; i < n; i++) {
            double xi = (double)x[i], want = op->map->ref(&xi, NULL);
            float rounded = (float)want;
            bool tiny = fabs(want) < 0x1p-126 && fabsf(y[i]) < 0x1p-126f; /* may be flushed */
            if (y[i] == rounded || tiny || (isnan(y[i]) && isnan(rounded)))
                continue;
            int e = isfinite(want) ? ilogb(QN_MAX(fabs(want), 0x1p-126)) : 0;
            double ulps = fabs((double)y[i] - want) / ldexp(1, e - 23);
            worst = isfinite(y[i]) && isfinite(rounded) ? QN_MAX(worst, ulps) : INFINITY;
            if (isinf(worst))
                return worst;
        }
    }
    return worst;
}

static void test_errors_in_every_instruction_set(void **state)
{
    static const struct {
        const QnOp *op;
        double ulps;
    } bound[] = {
        { &qn_op_exp, 1.5 },  { &qn_op_log, 1.5 },    { &qn_op_expm1, 3 },
        { &qn_op_log1p, 3 },  { &qn_op_tanh, 3 },     { &qn_op_erf, 3 },
        { &qn_op_sqrt, 0.5 }, { &qn_op_sigmoid, 4 },  { &qn_op_reciprocal, 0.5 },
        { &qn_op_sin, 1 },    { &qn_op_softplus, 4 }, { &qn_op_rsqrt, 1.5 },
    };
    int bad = 0;
    for (int b = 0; b < QN_COUNT(bound); b++) {
        for (int i = 0; i < QN_COUNT(isas); i++) {
            if (!qn_cpu_isa_is_usable(isas[i]))
                continue;
            double worst = sweep(bound[b].op, isas[i]);
            print_message("%-10s %s %.2f ulp, allowed %g\n", bound[b].op->name, isas[i], worst,
                          bound[b].ulps);
            bad += !(worst <= bound[b].ulps);
        }
    }
    assert_int_equal(bad, 0);
}
