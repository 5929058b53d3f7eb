/* Small literal tests of operators: named inputs with given elements, expected elements. */
#ifndef QN_TEST_OPS_VALUES_H
#define QN_TEST_OPS_VALUES_H

#include "test.h"

#include "ir/eval.h"
#include "ops/ops.h"
#include "ops/util.h"

#include <math.h>

typedef struct Case {
    QnGraph *g;
    QnEval *e;
} Case;

static Case case_new(void)
{
    Case c = { qn_graph_new(), NULL };
    c.e = qn_eval_new(c.g, false);
    return c;
}

static void case_free(Case *c)
{
    qn_eval_free(c->e);
    qn_graph_free(c->g);
}

/* Shorthands: elements as they would be written in row-major order. */
#define ELEMENTS(...) ((const double[]){ __VA_ARGS__ })
#define GIVE(c, dtype, shape, ...)                                                                 \
    case_give(c, dtype, &shape, ELEMENTS(__VA_ARGS__), QN_COUNT(ELEMENTS(__VA_ARGS__)))
#define WANT(c, v, shape, ...)                                                                     \
    case_want(c, v, &shape, ELEMENTS(__VA_ARGS__), QN_COUNT(ELEMENTS(__VA_ARGS__)))

/* Gives a new input its elements, which must be as many as its shape holds. */
static QnValue *case_give(Case *c, QnDtype dtype, const QnShape *s, const double *x, int n)
{
    assert_int_equal(qn_shape_count(s), n);
    QnValue *v = qn_input(c->g, "x", dtype, s);
    assert_ok(qn_eval_set(c->e, v, x));
    return v;
}

static void case_want(Case *c, QnValue *v, const QnShape *s, const double *want, int n)
{
    const double *got;
    assert_ok(qn_graph_check(c->g));
    if (!qn_shape_is_equal(&v->type.shape, s)) {
        char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
        fail_msg("the shape is %s, not %s", qn_shape_text(&v->type.shape, a), qn_shape_text(s, b));
    }
    assert_int_equal(qn_shape_count(s), n);
    assert_ok(qn_eval_get(c->e, v, &got));
    for (int i = 0; i < n; i++) {
        if (!(fabs(got[i] - want[i]) < 1e-9 || (isnan(got[i]) && isnan(want[i])) ||
              (isinf(want[i]) && got[i] == want[i])))
            fail_msg("element %d is %.12g, not %.12g", i, got[i], want[i]);
    }
}

/* Running v must fail with these words. */
QN_UNUSED static void case_want_error(Case *c, QnValue *v, const char *words)
{
    const double *got;
    assert_ok(qn_graph_check(c->g));
    assert_fails(qn_eval_get(c->e, v, &got), QN_EARG, words);
}

/* The graph must have been refused when v was built. */
QN_UNUSED static void case_want_refused(Case *c, QnValue *v, QnStatus status, const char *words)
{
    assert_true(qn_value_is_poison(v));
    assert_fails(qn_graph_check(c->g), status, words);
}

#define F32 QN_DTYPE_F32
#define I64 QN_DTYPE_I64

#endif
