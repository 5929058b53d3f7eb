/* Gradients by hand-worked values; the operator harness checks each operator's own. */
#include "ir/eval.h"
#include "pass/grad.h"
#include "ops/ops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static QnGraph *g;
static QnValue *x;

static void start(void)
{
    g = qn_graph_new();
    x = qn_input(g, "x", QN_DTYPE_F64, &QN_SHAPE(2, 3));
}

static void want(QnValue *v, const double *expected, int n)
{
    static const double data[] = { 1, -2, 3, 0.5, 0, -1 };
    const double *got;
    QnEval *e = qn_eval_new(g, false);
    assert_int_equal(qn_eval_set(e, x, data), QN_OK);
    assert_int_equal(qn_eval_get(e, v, &got), QN_OK);
    for (int i = 0; i < n; i++)
        assert_true(fabs(got[i] - expected[i]) < 1e-12);
    qn_eval_free(e);
}

static void test_square(void **state)
{
    (void)state;
    start();
    QnValue *dx, *d2;
    assert_int_equal(qn_grad(g, qn_mul(g, x, x), &x, 1, &dx), QN_OK);
    want(dx, (double[]){ 2, -4, 6, 1, 0, -2 }, 6);
    assert_int_equal(qn_grad(g, dx, &x, 1, &d2), QN_OK);
    want(d2, (double[]){ 2, 2, 2, 2, 2, 2 }, 6);
    assert_int_equal(qn_graph_verify(g), QN_OK);
    qn_graph_free(g);
}

/* d sum(softmax(x)) is 0, and x used twice adds up. */
static void test_fan_out_and_broadcast(void **state)
{
    (void)state;
    start();
    QnValue *row = qn_sum(g, x, (QnInts){ 1, { 0 } }, true), *dx;
    QnValue *y = qn_add(g, qn_mul(g, x, row), qn_softmax(g, x, 1));
    assert_int_equal(qn_grad(g, y, &x, 1, &dx), QN_OK);
    want(dx, (double[]){ 3, -4, 4, 3, -4, 4 }, 6); /* 2 * column sums */
    qn_graph_free(g);
}

static void test_independent_is_zero(void **state)
{
    (void)state;
    start();
    QnValue *z = qn_input(g, "z", QN_DTYPE_F64, &QN_SHAPE(2)), *dx;
    assert_int_equal(qn_grad(g, qn_mul(g, z, z), &x, 1, &dx), QN_OK);
    want(dx, (double[]){ 0, 0, 0, 0, 0, 0 }, 6);
    qn_graph_free(g);
}

static void test_integer_is_refused(void **state)
{
    (void)state;
    start();
    QnValue *i = qn_input(g, "i", QN_DTYPE_I64, &QN_SHAPE(2)), *dx;
    assert_int_equal(qn_grad(g, i, &i, 1, &dx), QN_EDTYPE);
    qn_graph_free(g);
}
