/* Operators with indices, sorting, and generated tensors, against values worked out by hand. */
#include "values.h"

#define TABLE GIVE(&c, F32, QN_SHAPE(3, 2), 1, 2, 3, 4, 5, 6)

static void test_gather(void **state)
{
    Case c = case_new();
    QnValue *x = TABLE, *i = GIVE(&c, I64, QN_SHAPE(2), 2, -3);
    WANT(&c, qn_gather(c.g, x, i, 0), QN_SHAPE(2, 2), 5, 6, 1, 2);
    QnValue *j = GIVE(&c, QN_DTYPE_I32, QN_SHAPE(1, 3), 1, 0, 1);
    WANT(&c, qn_gather(c.g, x, j, -1), QN_SHAPE(3, 1, 3), 2, 1, 2, 4, 3, 4, 6, 5, 6);
    case_want_refused(&c, qn_gather(c.g, x, x, 0), QN_EDTYPE, "i32 or i64");
    case_free(&c);
}

static void test_bad_indices_name_the_element(void **state)
{
    Case c = case_new();
    QnValue *x = TABLE, *i = GIVE(&c, I64, QN_SHAPE(3), 0, 1, 3);
    case_want_error(&c, qn_gather(c.g, x, i, 0), "index 3 at element 2");
    case_want_error(&c, qn_embedding(c.g, x, i), "index 3 at element 2");
    case_want_error(&c, qn_embedding(c.g, x, GIVE(&c, I64, QN_SHAPE(2), 0, -1)),
                    "index -1 at element 1");
    QnValue *u = GIVE(&c, F32, QN_SHAPE(3, 2), 0, 0, 0, 0, 0, 0);
    case_want_error(&c, qn_scatter_add(c.g, x, i, u, 0), "scatter_add: index 3");
    case_want_error(&c, qn_gather_nd(c.g, x, GIVE(&c, I64, QN_SHAPE(1, 2), 0, 2), 0),
                    "index 2 at element 1 is out of range for length 2");
    case_free(&c);
}

static void test_scatter_add_sums_equal_indices(void **state)
{
    Case c = case_new();
    QnValue *i = GIVE(&c, I64, QN_SHAPE(3), 1, 1, -1);
    QnValue *u = GIVE(&c, F32, QN_SHAPE(3, 2), 10, 20, 100, 200, 7, 8);
    WANT(&c, qn_scatter_add(c.g, TABLE, i, u, 0), QN_SHAPE(3, 2), 1, 2, 113, 224, 12, 14);
    case_free(&c);
}

static void test_embedding(void **state)
{
    Case c = case_new();
    QnValue *ids = GIVE(&c, I64, QN_SHAPE(2, 2), 0, 2, 2, 1);
    WANT(&c, qn_embedding(c.g, TABLE, ids), QN_SHAPE(2, 2, 2), 1, 2, 5, 6, 5, 6, 3, 4);
    case_free(&c);
}

static void test_elements(void **state)
{
    Case c = case_new();
    QnValue *x = TABLE, *i = GIVE(&c, I64, QN_SHAPE(2, 2), 2, 0, 0, -1);
    WANT(&c, qn_gather_elements(c.g, x, i, 0), QN_SHAPE(2, 2), 5, 2, 1, 6);
    QnValue *u = GIVE(&c, F32, QN_SHAPE(2, 2), 10, 20, 30, 40);
    WANT(&c, qn_scatter_elements(c.g, x, i, u, 0, QN_SCATTER_NONE), QN_SHAPE(3, 2), 30, 20, 3, 4,
         10, 40);
    WANT(&c, qn_scatter_elements(c.g, x, i, u, 0, QN_SCATTER_ADD), QN_SHAPE(3, 2), 31, 22, 3, 4, 15,
         46);
    WANT(&c, qn_scatter_elements(c.g, x, i, u, 0, QN_SCATTER_MUL), QN_SHAPE(3, 2), 30, 40, 3, 4, 50,
         240);
    WANT(&c, qn_scatter_elements(c.g, x, i, u, 0, QN_SCATTER_MIN), QN_SHAPE(3, 2), 1, 2, 3, 4, 5,
         6);
    case_free(&c);
}

static void test_tuples(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 2, 2), 0, 1, 2, 3, 4, 5, 6, 7);
    QnValue *i = GIVE(&c, I64, QN_SHAPE(2, 2), 0, 1, -1, 0);
    WANT(&c, qn_gather_nd(c.g, x, i, 0), QN_SHAPE(2, 2), 2, 3, 4, 5);
    QnValue *j = GIVE(&c, I64, QN_SHAPE(2, 1), 1, 0);
    WANT(&c, qn_gather_nd(c.g, x, j, 1), QN_SHAPE(2, 2), 2, 3, 4, 5);
    QnValue *u = GIVE(&c, F32, QN_SHAPE(2, 2), 10, 20, 30, 40);
    WANT(&c, qn_scatter_nd(c.g, x, i, u, 0, QN_SCATTER_ADD), QN_SHAPE(2, 2, 2), 0, 1, 12, 23, 34,
         45, 6, 7);
    WANT(&c, qn_scatter_nd(c.g, x, j, u, 1, QN_SCATTER_NONE), QN_SHAPE(2, 2, 2), 0, 1, 10, 20, 30,
         40, 6, 7);
    case_free(&c);
}

static void test_one_hot(void **state)
{
    Case c = case_new();
    QnValue *ids = GIVE(&c, I64, QN_SHAPE(3), 1, -1, 3);
    WANT(&c, qn_one_hot(c.g, ids, 3, F32), QN_SHAPE(3, 3), 0, 1, 0, 0, 0, 0, 0, 0, 0);
    case_free(&c);
}

static void test_generated(void **state)
{
    Case c = case_new();
    WANT(&c, qn_arange(c.g, 3, -0.5, 4, F32), QN_SHAPE(4), 3, 2.5, 2, 1.5);
    WANT(&c, qn_eye(c.g, 2, 3, 1, I64), QN_SHAPE(2, 3), 0, 1, 0, 0, 0, 1);
    case_free(&c);
}

static void test_topk_and_sort_are_stable(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 5), 3, 1, 3, 2, 1, 0, NAN, 5, 5, -1), *out[2];
    qn_topk(c.g, x, 3, -1, true, out);
    WANT(&c, out[0], QN_SHAPE(2, 3), 3, 3, 2, NAN, 5, 5);
    WANT(&c, out[1], QN_SHAPE(2, 3), 0, 2, 3, 1, 2, 3);
    qn_topk(c.g, x, 2, 1, false, out);
    WANT(&c, out[1], QN_SHAPE(2, 2), 1, 4, 4, 0);
    qn_sort(c.g, x, -1, false, out);
    WANT(&c, out[0], QN_SHAPE(2, 5), 1, 1, 2, 3, 3, -1, 0, 5, 5, NAN);
    WANT(&c, qn_argsort(c.g, x, -1, true), QN_SHAPE(2, 5), 0, 2, 3, 1, 4, 1, 2, 3, 0, 4);
    qn_topk(c.g, x, 6, -1, true, out);
    case_want_refused(&c, out[1], QN_ESHAPE, "k is 6");
    case_free(&c);
}
