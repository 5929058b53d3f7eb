/* Initialisers: ranges and deviations as their papers give them. */
#include "test.h"

#include "nn/init.h"

#include <math.h>

static QnStateAttr apply(QnInitKind kind, double fan_in, double fan_out, double scale)
{
    QnStateAttr a = { .a = 9, .b = 9 };
    qn_init_apply(&(QnInitSpec){ kind, fan_in, fan_out, scale }, &a);
    return a;
}

static void is(QnStateAttr a, QnInit init, double x, double y)
{
    assert_int_equal(a.init, init);
    assert_true(fabs(a.a - x) < 1e-12 && fabs(a.b - y) < 1e-12);
}

static void test_rules(void **state)
{
    is(apply(QN_INIT_KIND_ZEROS, 8, 2, 1), QN_INIT_ZEROS, 0, 0);
    is(apply(QN_INIT_KIND_ONES, 8, 2, 1), QN_INIT_CONSTANT, 1, 0);
    is(apply(QN_INIT_KIND_KAIMING_UNIFORM, 16, 2, 1), QN_INIT_UNIFORM, -0.25, 0.25);
    is(apply(QN_INIT_KIND_KAIMING_NORMAL, 16, 8, 1), QN_INIT_NORMAL, 0, 0.5);
    is(apply(QN_INIT_KIND_HE_UNIFORM, 24, 8, 1), QN_INIT_UNIFORM, -0.5, 0.5);
    is(apply(QN_INIT_KIND_XAVIER_UNIFORM, 4, 2, 1), QN_INIT_UNIFORM, -1, 1);
    is(apply(QN_INIT_KIND_XAVIER_NORMAL, 6, 2, 1), QN_INIT_NORMAL, 0, 0.5);
    is(apply(QN_INIT_KIND_LECUN_UNIFORM, 12, 2, 1), QN_INIT_UNIFORM, -0.5, 0.5);
    is(apply(QN_INIT_KIND_LECUN_NORMAL, 4, 2, 1), QN_INIT_NORMAL, 0, 0.5);
    is(apply(QN_INIT_KIND_NORMAL, 4, 2, 0.02), QN_INIT_NORMAL, 0, 0.02);
    is(apply(QN_INIT_KIND_TRUNC_NORMAL, 4, 2, 0.02), QN_INIT_TRUNC_NORMAL, 0, 0.02);
    is(apply(QN_INIT_KIND_UNIFORM, 4, 2, 0.1), QN_INIT_UNIFORM, -0.1, 0.1);
}

static void test_no_inputs_give_zeros_not_infinities(void **state)
{
    is(apply(QN_INIT_KIND_KAIMING_UNIFORM, 0, 2, 1), QN_INIT_UNIFORM, 0, 0);
    is(apply(QN_INIT_KIND_XAVIER_NORMAL, 0, 0, 1), QN_INIT_NORMAL, 0, 0);
}

static void test_fans_of_a_convolution(void **state)
{
    double in, out;
    qn_init_fans(&(QnShape){ 4, { 8, 3, 5, 5 } }, &in, &out);
    assert_true(in == 75 && out == 200);
    qn_init_fans(&(QnShape){ 2, { 8, 3 } }, &in, &out);
    assert_true(in == 3 && out == 8);
}
