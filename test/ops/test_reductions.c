/* Reductions and running sums against values worked out by hand. */
#include "values.h"

#define MATRIX GIVE(&c, F32, QN_SHAPE(2, 3), 1, -2, 3, 4, 0, -6)

static void test_mean(void **state)
{
    Case c = case_new();
    QnValue *x = MATRIX;
    WANT(&c, qn_mean(c.g, x, QN_AXES(1), false), QN_SHAPE(2), 2.0 / 3, -2.0 / 3);
    WANT(&c, qn_mean(c.g, x, QN_AXES(-2), true), QN_SHAPE(1, 3), 2.5, -1, -1.5);
    WANT(&c, qn_mean(c.g, x, QN_ALL_AXES, false), ((QnShape){ 0 }), 0);
    case_free(&c);
}

static void test_mean_of_symbolic_axis_has_a_gradient_scale(void **state)
{
    Case c = case_new();
    QnDims dims = { 2, { qn_dim_symbol(c.g, "B"), 4 } };
    QnValue *scale = qn_count(c.g, F32, &dims, 1, -1);
    QnGraph *bound;
    assert_ok(qn_graph_output(c.g, "scale", scale));
    assert_ok(qn_graph_bind(c.g, (const char *[]){ "B" }, (int64_t[]){ 3 }, 1, &bound));
    QnEval *e = qn_eval_new(bound, false);
    const double *got;
    assert_ok(qn_eval_get(e, qn_graph_output_find(bound, "scale"), &got));
    assert_true(fabs(got[0] - 1.0 / 11) < 1e-12);
    qn_eval_free(e);
    qn_graph_free(bound);
    case_free(&c);
}

static void test_max_and_min(void **state)
{
    Case c = case_new();
    QnValue *x = MATRIX;
    WANT(&c, qn_reduce_max(c.g, x, QN_AXES(1), false), QN_SHAPE(2), 3, 4);
    WANT(&c, qn_reduce_min(c.g, x, QN_AXES(0), true), QN_SHAPE(1, 3), 1, -2, -6);
    QnValue *nan = GIVE(&c, F32, QN_SHAPE(3), 1, NAN, 2);
    WANT(&c, qn_reduce_max(c.g, nan, QN_AXES(0), true), QN_SHAPE(1), NAN);
    QnValue *none = qn_input(c.g, "none", F32, &QN_SHAPE(0, 3));
    case_want_refused(&c, qn_reduce_max(c.g, none, QN_AXES(0), false), QN_ESHAPE, "length 0");
    case_free(&c);
}

static void test_argmax_takes_the_first_of_equals(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 4), 1, 5, 5, 2, -1, -3, -3, 0);
    QnValue *most = qn_argmax(c.g, x, -1, false);
    assert_int_equal(most->type.dtype, QN_DTYPE_I64);
    WANT(&c, most, QN_SHAPE(2), 1, 3);
    WANT(&c, qn_argmin(c.g, x, 1, true), QN_SHAPE(2, 1), 0, 1);
    WANT(&c, qn_argmax(c.g, x, 0, false), QN_SHAPE(4), 0, 0, 0, 0);
    case_free(&c);
}

static void test_prod(void **state)
{
    Case c = case_new();
    QnValue *x = MATRIX;
    WANT(&c, qn_prod(c.g, x, QN_AXES(1), false), QN_SHAPE(2), -6, 0);
    WANT(&c, qn_prod(c.g, x, QN_AXES(0), false), QN_SHAPE(3), 4, 0, -18);
    case_free(&c);
}

static void test_norms_and_logsumexp(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 2), 3, -4, 0, 0);
    WANT(&c, qn_norm_l1(c.g, x, QN_AXES(1), false), QN_SHAPE(2), 7, 0);
    WANT(&c, qn_norm_l2(c.g, x, QN_AXES(1), false), QN_SHAPE(2), 5, 0);
    QnValue *big = GIVE(&c, F32, QN_SHAPE(2, 2), 1000, 1000, -INFINITY, -INFINITY);
    WANT(&c, qn_logsumexp(c.g, big, QN_AXES(1), true), QN_SHAPE(2, 1), 1000 + log(2), -INFINITY);
    case_free(&c);
}

static void test_any_and_all(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, QN_DTYPE_BOOL, QN_SHAPE(3, 2), 0, 0, 1, 0, 1, 1);
    WANT(&c, qn_reduce_any(c.g, x, QN_AXES(1), false), QN_SHAPE(3), 0, 1, 1);
    WANT(&c, qn_reduce_all(c.g, x, QN_AXES(1), false), QN_SHAPE(3), 0, 0, 1);
    case_want_refused(&c, qn_reduce_any(c.g, MATRIX, QN_ALL_AXES, false), QN_EDTYPE, "bool");
    case_free(&c);
}

static void test_variance(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 4), 1, 2, 3, 4, 5, 5, 5, 5);
    WANT(&c, qn_variance(c.g, x, QN_AXES(1), false, 0), QN_SHAPE(2), 1.25, 0);
    WANT(&c, qn_variance(c.g, x, QN_AXES(1), false, 1), QN_SHAPE(2), 5.0 / 3, 0);
    case_free(&c);
}

static void test_running_sums_and_products(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(4), 1, 2, 3, 4);
    WANT(&c, qn_cumsum(c.g, x, 0, false, false), QN_SHAPE(4), 1, 3, 6, 10);
    WANT(&c, qn_cumsum(c.g, x, 0, true, false), QN_SHAPE(4), 0, 1, 3, 6);
    WANT(&c, qn_cumsum(c.g, x, 0, true, true), QN_SHAPE(4), 9, 7, 4, 0);
    WANT(&c, qn_cumprod(c.g, x, 0, false, true), QN_SHAPE(4), 24, 24, 12, 4);
    WANT(&c, qn_cumprod(c.g, x, 0, true, false), QN_SHAPE(4), 1, 1, 2, 6);
    QnValue *b = GIVE(&c, F32, QN_SHAPE(4), 1, 1, 1, 1);
    WANT(&c, qn_linear_scan(c.g, x, b, 0, false), QN_SHAPE(4), 1, 3, 10, 41);
    case_free(&c);
}

static void test_axes_are_checked(void **state)
{
    Case c = case_new();
    case_want_refused(&c, qn_mean(c.g, MATRIX, QN_AXES(2), false), QN_EARG, "out of range");
    case_free(&c);
    c = case_new();
    case_want_refused(&c, qn_prod(c.g, MATRIX, QN_AXES(1, -1), false), QN_EARG, "twice");
    case_free(&c);
}
