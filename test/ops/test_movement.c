/* Operators that move elements, against values worked out by hand. */
#include "values.h"

#define MATRIX GIVE(&c, F32, QN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6)

static void test_transpose(void **state)
{
    Case c = case_new();
    WANT(&c, qn_transpose(c.g, MATRIX, QN_AXES(1, 0)), QN_SHAPE(3, 2), 1, 4, 2, 5, 3, 6);
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 1, 3), 1, 2, 3, 4, 5, 6);
    WANT(&c, qn_transpose(c.g, x, QN_AXES(-1, 0, 1)), QN_SHAPE(3, 2, 1), 1, 4, 2, 5, 3, 6);
    WANT(&c, qn_swap_axes(c.g, x, 0, 2), QN_SHAPE(3, 1, 2), 1, 4, 2, 5, 3, 6);
    case_want_refused(&c, qn_transpose(c.g, x, QN_AXES(0, 1, 1)), QN_EARG, "twice");
    case_free(&c);
}

static void test_concat_split_stack(void **state)
{
    Case c = case_new();
    QnValue *x = MATRIX, *y = GIVE(&c, F32, QN_SHAPE(2, 1), 7, 8), *parts[3];
    WANT(&c, qn_concat(c.g, (QnValue *[]){ x, y }, 2, 1), QN_SHAPE(2, 4), 1, 2, 3, 7, 4, 5, 6, 8);
    qn_split(c.g, x, 1, 3, parts);
    WANT(&c, parts[2], QN_SHAPE(2, 1), 3, 6);
    QnNode *n = qn_split_sizes(c.g, x, -1, &(QnDims){ 2, { 1, 2 } });
    WANT(&c, qn_node_out(c.g, n, 1), QN_SHAPE(2, 2), 2, 3, 5, 6);
    WANT(&c, qn_stack(c.g, (QnValue *[]){ y, y }, 2, 0), QN_SHAPE(2, 2, 1), 7, 8, 7, 8);
    case_want_refused(&c, qn_concat(c.g, (QnValue *[]){ x, y }, 2, 0), QN_ESHAPE, "must agree");
    case_free(&c);
}

static void test_concat_of_many_has_a_gradient_for_each(void **state)
{
    Case c = case_new();
    QnValue *x[70], *dx[70];
    double row[70 * 2];
    for (int i = 0; i < 70; i++) {
        x[i] = GIVE(&c, F32, QN_SHAPE(2, 1), 0, 0);
        row[2 * i] = i;
        row[2 * i + 1] = -i;
    }
    QnValue *y = qn_concat(c.g, x, 70, 1), *dy = qn_input(c.g, "dy", F32, &QN_SHAPE(2, 70));
    double w[140];
    for (int i = 0; i < 70; i++) {
        w[i] = row[2 * i];
        w[70 + i] = row[2 * i + 1];
    }
    assert_ok(qn_eval_set(c.e, dy, w));
    qn_op_concat.grad(c.g, y->node, &dy, dx);
    for (int i = 0; i < 70; i += 23)
        WANT(&c, dx[i], QN_SHAPE(2, 1), i, -i);
    case_free(&c);
}

static void test_slice(void **state)
{
    Case c = case_new();
    QnValue *x = MATRIX;
    WANT(&c, qn_slice_axis(c.g, x, 1, 1, 100), QN_SHAPE(2, 2), 2, 3, 5, 6);
    WANT(&c, qn_slice_axis(c.g, x, -1, -2, -1), QN_SHAPE(2, 1), 2, 5);
    QnSliceAttr back = { QN_AXES(0, 1), QN_AXES(-1, 2), QN_AXES(INT64_MIN, 0), QN_AXES(-1, -2) };
    WANT(&c, qn_slice(c.g, x, &back), QN_SHAPE(2, 1), 6, 3);
    back.steps = QN_AXES(-1, 0);
    case_want_refused(&c, qn_slice(c.g, x, &back), QN_EARG, "zero");
    case_free(&c);
}

static void test_slice_of_a_symbolic_axis(void **state)
{
    Case c = case_new();
    QnDim n = qn_dim_symbol(c.g, "N");
    QnValue *x = qn_input(c.g, "x", F32, &QN_SHAPE(n, 3));
    QnValue *y = qn_slice_axis(c.g, x, 0, 1, INT64_MAX);
    assert_true(y->type.shape.dim[0] == qn_dim_sub(c.g, n, 1));
    assert_true(qn_slice_axis(c.g, x, 0, -2, INT64_MAX)->type.shape.dim[0] == 2);
    assert_true(qn_flip(c.g, x, QN_AXES(0))->type.shape.dim[0] == n);
    QnPadAttr pad = { QN_AXES(1, 0), QN_AXES(-1, 0), QN_PAD_CONSTANT, 0 };
    assert_true(qn_pad(c.g, x, &pad)->type.shape.dim[0] == n);
    assert_ok(qn_graph_check(c.g));
    case_free(&c);
}

static void test_slice_put(void **state)
{
    Case c = case_new();
    QnValue *u = GIVE(&c, F32, QN_SHAPE(1, 2), 10, 20);
    QnSliceAttr at = { QN_AXES(0, 1), QN_AXES(1, 0), QN_AXES(2, 3), QN_AXES(1, 2) };
    WANT(&c, qn_slice_put(c.g, MATRIX, u, &at), QN_SHAPE(2, 3), 1, 2, 3, 10, 5, 20);
    case_free(&c);
}

static void test_pad(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(3), 1, 2, 3);
    QnPadAttr a = { QN_AXES(2), QN_AXES(1), QN_PAD_CONSTANT, 9 };
    WANT(&c, qn_pad(c.g, x, &a), QN_SHAPE(6), 9, 9, 1, 2, 3, 9);
    a.mode = QN_PAD_REFLECT;
    WANT(&c, qn_pad(c.g, x, &a), QN_SHAPE(6), 3, 2, 1, 2, 3, 2);
    a.mode = QN_PAD_EDGE;
    WANT(&c, qn_pad(c.g, x, &a), QN_SHAPE(6), 1, 1, 1, 2, 3, 3);
    a.mode = QN_PAD_WRAP;
    WANT(&c, qn_pad(c.g, x, &a), QN_SHAPE(6), 2, 3, 1, 2, 3, 1);
    QnValue *y = GIVE(&c, F32, QN_SHAPE(6), 1, 2, 3, 4, 5, 6);
    WANT(&c, qn_pad_back(c.g, y, &a), QN_SHAPE(3), 3 + 6, 1 + 4, 2 + 5);
    a = (QnPadAttr){ QN_AXES(-1), QN_AXES(1), QN_PAD_CONSTANT, 0 };
    WANT(&c, qn_pad(c.g, x, &a), QN_SHAPE(3), 2, 3, 0);
    WANT(&c, qn_shift(c.g, x, 0, 2), QN_SHAPE(3), 0, 0, 1);
    a = (QnPadAttr){ QN_AXES(3), QN_AXES(0), QN_PAD_REFLECT, 0 };
    case_want_refused(&c, qn_pad(c.g, x, &a), QN_ESHAPE, "exceed");
    case_free(&c);
}

static void test_tile_flip_roll(void **state)
{
    Case c = case_new();
    QnValue *x = MATRIX;
    WANT(&c, qn_tile(c.g, x, QN_AXES(1, 2)), QN_SHAPE(2, 6), 1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6);
    WANT(&c, qn_flip(c.g, x, QN_AXES(1)), QN_SHAPE(2, 3), 3, 2, 1, 6, 5, 4);
    WANT(&c, qn_flip(c.g, x, QN_ALL_AXES), QN_SHAPE(2, 3), 6, 5, 4, 3, 2, 1);
    WANT(&c, qn_roll(c.g, x, QN_AXES(1), QN_AXES(1)), QN_SHAPE(2, 3), 3, 1, 2, 6, 4, 5);
    WANT(&c, qn_roll(c.g, x, QN_AXES(1), QN_AXES(-4)), QN_SHAPE(2, 3), 2, 3, 1, 5, 6, 4);
    case_free(&c);
}

static void test_squeeze_and_unsqueeze(void **state)
{
    Case c = case_new();
    QnValue *x = MATRIX;
    WANT(&c, qn_unsqueeze(c.g, x, -1), QN_SHAPE(2, 3, 1), 1, 2, 3, 4, 5, 6);
    WANT(&c, qn_squeeze(c.g, qn_unsqueeze(c.g, x, 1), -2), QN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    case_want_refused(&c, qn_squeeze(c.g, x, 0), QN_ESHAPE, "no axis 0");
    case_free(&c);
}

static void test_triangles(void **state)
{
    Case c = case_new();
    QnValue *x = MATRIX;
    WANT(&c, qn_triu(c.g, x, 0), QN_SHAPE(2, 3), 1, 2, 3, 0, 5, 6);
    WANT(&c, qn_tril(c.g, x, 0), QN_SHAPE(2, 3), 1, 0, 0, 4, 5, 0);
    WANT(&c, qn_tril(c.g, x, -1), QN_SHAPE(2, 3), 0, 0, 0, 4, 0, 0);
    case_free(&c);
}

/* The example of ONNX's page on DepthToSpace, cut to one row. */
static void test_depth_and_space(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(1, 4, 1, 2), 0, 1, 10, 11, 20, 21, 30, 31);
    QnValue *y = qn_depth_to_space(c.g, x, 2, false);
    WANT(&c, y, QN_SHAPE(1, 1, 2, 4), 0, 10, 1, 11, 20, 30, 21, 31);
    WANT(&c, qn_space_to_depth(c.g, y, 2, false), QN_SHAPE(1, 4, 1, 2), 0, 1, 10, 11, 20, 21, 30,
         31);
    QnValue *two = GIVE(&c, F32, QN_SHAPE(1, 8, 1, 1), 0, 1, 2, 3, 4, 5, 6, 7);
    WANT(&c, qn_depth_to_space(c.g, two, 2, false), QN_SHAPE(1, 2, 2, 2), 0, 2, 4, 6, 1, 3, 5, 7);
    WANT(&c, qn_depth_to_space(c.g, two, 2, true), QN_SHAPE(1, 2, 2, 2), 0, 1, 2, 3, 4, 5, 6, 7);
    case_free(&c);
}
