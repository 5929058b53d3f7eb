/* The text printed for maps; test/ops/test_device.c runs it. */
#include "test.h"

#include "ops/ops.h"
#include "rt/devtext_impl.h"

#include <math.h>

static QnGraph *g;
static QnStr text;
static QnDeviceCall call;

static int setup(void **state)
{
    g = qn_graph_new();
    return g ? 0 : -1;
}

static int teardown(void **state)
{
    qn_graph_free(g);
    qn_str_fini(&text);
    return 0;
}

static QnValue *input(QnDtype dtype, QnShape s)
{
    char name[24];
    snprintf(name, sizeof name, "x%lld", (long long)g->n_nodes);
    return qn_input(g, name, dtype, &s);
}

static const char *print(QnValue *y)
{
    assert_ok(qn_graph_check(g));
    qn_str_fini(&text);
    assert_ok(qn_devtext_map(y->node, &text, &call));
    return qn_str_text(&text);
}

static void test_equal_shapes_are_one_axis(void **state)
{
    QnValue *x = input(QN_DTYPE_F32, QN_SHAPE(2, 3, 5)),
            *z = input(QN_DTYPE_F32, QN_SHAPE(2, 3, 5));
    const char *s = print(qn_add(g, x, z));
    assert_contains(s, "QN_SCALAR float add_f");
    assert_contains(s, "QN_GET4(f32, x0, i, n, q0);");
    assert_contains(s, "QN_PUT4(f32, y0, i, n, z0);");
    assert_null(strstr(s, "d1"));
    assert_string_equal(call.kernel, "qn_map");
    assert_int_equal(call.n_groups, 8); /* of four elements */
    assert_int_equal(call.n_arg, 1);
    assert_int_equal(call.arg[0].i, 30);
}

/* A program serves every size; only the pattern of broadcasting is in it. */
static void test_text_depends_on_the_pattern_alone(void **state)
{
    QnValue *row = input(QN_DTYPE_F32, QN_SHAPE(3)), *big_row = input(QN_DTYPE_F32, QN_SHAPE(700));
    QnValue *column = input(QN_DTYPE_F32, QN_SHAPE(4, 1));
    char *one = strdup(print(qn_mul(g, input(QN_DTYPE_F32, QN_SHAPE(4, 3)), row)));
    assert_int_equal(call.n_arg, 3);
    assert_int_equal(call.arg[1].i, 4);
    assert_int_equal(call.arg[2].i, 3);
    assert_string_equal(one, print(qn_mul(g, input(QN_DTYPE_F32, QN_SHAPE(5, 2, 700)), big_row)));
    assert_int_equal(call.arg[1].i, 10); /* two axes that both read alike */
    assert_string_not_equal(one, print(qn_mul(g, input(QN_DTYPE_F32, QN_SHAPE(4, 3)), column)));
    free(one);
}

/* Rows are read by four where they are whole fours, else each element has its own index; layouts
 * that differ leave no neighbours. */
static void test_four_neighbours_an_item(void **state)
{
    QnValue *x = input(QN_DTYPE_F32, QN_SHAPE(2, 3, 5, 8)), *b = input(QN_DTYPE_F32, QN_SHAPE(8));
    QnValue *c = input(QN_DTYPE_F32, QN_SHAPE(3, 1, 1));
    const char *s = print(qn_add(g, x, b));
    assert_contains(s, "if (d1 % 4 == 0) {");
    assert_contains(s, "qn_load4_f32(x1, o1, q1);");
    s = print(qn_add(g, x, c));
    assert_contains(s, "qn_load4_f32(x0, o0, q0);");
    assert_contains(s, "QN_EACH4(q1[u] = qn_load_f32(x1, o1));");
    assert_int_equal(call.n_groups, 60);
    QnValue *turned = qn_add(g, x, x);
    x->type.layout = QN_LAYOUT_CHANNELS_LAST;
    s = print(turned);
    assert_contains(s, "qn_long i = item;");
    assert_int_equal(call.n_groups, 240);
}

static void test_parameters_are_literals(void **state)
{
    QnValue *x = input(QN_DTYPE_F32, QN_SHAPE(4));
    assert_contains(print(qn_leaky_relu(g, x, 2)), "leaky_relu_f(v0, 2.0f)");
    assert_contains(print(qn_leaky_relu(g, x, 0.25)), "leaky_relu_f(v0, 0.25f)");
    assert_contains(print(qn_clip(g, x, -INFINITY, 1e30)), "clip_f(v0, -QN_INF, 1e+30f)");
}

static void test_dtypes(void **state)
{
    QnValue *h = input(QN_DTYPE_BF16, QN_SHAPE(4)), *i = input(QN_DTYPE_I64, QN_SHAPE(4));
    assert_contains(print(qn_exp(g, h)), "qn_round_bf16(exp_f(v0))");
    assert_contains(print(qn_add(g, i, i)), "qn_long v2 = qn_keep_i64(add_i(v0, v1))");
    assert_contains(print(qn_cast(g, i, QN_DTYPE_F32)),
                    "float v1 = qn_round_f32(cast_f((float)v0))");
    assert_contains(print(qn_cast(g, h, QN_DTYPE_U8)), "qn_long v1 = qn_u8_of(cast_f(v0))");
    assert_contains(print(qn_equal(g, i, i)), "qn_keep_bool(equal_i(v0, v1))");
}

/* Results inside a group are rounded as if they had been stored. */
static void test_groups_round_between(void **state)
{
    QnValue *x = input(QN_DTYPE_F16, QN_SHAPE(6, 4)), *b = input(QN_DTYPE_F16, QN_SHAPE(4));
    const QnBodyInstr instr[] = {
        { .op = &qn_op_mul, .arg = { 0, 1 }, .dtype = QN_DTYPE_F16 },
        { .op = &qn_op_add, .arg = { 2, 0 }, .dtype = QN_DTYPE_F16 },
        { .op = &qn_op_greater, .arg = { 3, 1 }, .dtype = QN_DTYPE_BOOL },
    };
    const QnBody body = {
        .n_in = 2, .n_instr = 3, .n_out = 2, .instr = instr, .out = (const int[]){ 2, 1 }
    };
    QnNode *n = qn_fused(g, &body, (QnValue *[]){ x, b });
    assert_non_null(n);
    const char *s = print(&n->out[0]);
    assert_contains(s, "float v2 = qn_round_f16(mul_f(v0, v1));");
    assert_contains(s, "float v3 = qn_round_f16(add_f(v2, v0));");
    assert_contains(s, "z0[u] = v4;");
    assert_contains(s, "QN_PUT4(bool, y0, i, n, z0);");
    assert_contains(s, "z1[u] = v3;");
    assert_contains(s, "QN_PUT4(f16, y1, i, n, z1);");
}

static void test_what_text_cannot_do_is_refused(void **state)
{
    QnValue *d = input(QN_DTYPE_F64, QN_SHAPE(4)), *i = input(QN_DTYPE_I32, QN_SHAPE(4));
    QnValue *b = input(QN_DTYPE_F32, (QnShape){ 1, { qn_dim_symbol(g, "B") } });
    assert_fails(qn_devtext_map(qn_exp(g, d)->node, &text, &call), QN_EUNSUPPORTED, "no f64");
    assert_fails(qn_devtext_map(qn_clip(g, i, 0, 1)->node, &text, &call), QN_EUNSUPPORTED, "i32");
    assert_fails(qn_devtext_map(qn_exp(g, b)->node, &text, &call), QN_ESHAPE, "symbolic");
    assert_fails(qn_devtext_map(qn_softmax(g, b, 0)->node, &text, &call), QN_ESHAPE, "symbolic");
    QnValue *x = input(QN_DTYPE_F32, QN_SHAPE(4));
    assert_fails(qn_devtext_map(qn_softmax(g, x, 0)->node, &text, &call), QN_EUNSUPPORTED,
                 "no scalar function");
}

/* A node of a convolution of a (2,3,5,5) to (2,4,5,5) with a bias, its maps a sum with `more`. */
static const QnNode *conv_and_sum(QnShape more)
{
    const QnBodyInstr instr[] = { { .op = &qn_op_add, .arg = { 0, 1 }, .dtype = QN_DTYPE_F32 } };
    const QnBody body = {
        .n_in = 2, .n_instr = 1, .n_out = 1, .instr = instr, .out = (const int[]){ 0 }
    };
    QnValue *x = input(QN_DTYPE_F32, QN_SHAPE(2, 3, 5, 5));
    QnValue *w = input(QN_DTYPE_F32, QN_SHAPE(4, 3, 1, 1)), *b = input(QN_DTYPE_F32, QN_SHAPE(4));
    QnValue *z = input(QN_DTYPE_F32, more);
    QnValue *y = qn_conv(g, x, w, b, &(QnConvAttr){ .groups = 1 });
    y = qn_conv_map(g, y->node, &body, &z, 1);
    assert_ok(qn_graph_check(g));
    return y->node;
}

/* Beside a convolution, an input may have any of images, channels and places, places as a whole. */
static void test_maps_behind_a_convolution(void **state)
{
    static const struct {
        QnShape more;
        const char *at;
    } cases[] = {
        { QN_SHAPE(2, 4, 5, 5), "at" },
        { QN_SHAPE(4, 1, 1), "(j)" },
        { QN_SHAPE(2, 4, 1, 1), "(i) * (nj) + (j)" },
        { QN_SHAPE(2, 1, 1, 1), "(i)" },
        { QN_SHAPE(5, 5), "(k)" },
        { QN_SHAPE(4, 5, 5), "(j) * (nk) + (k)" },
        { QN_SHAPE(2, 1, 5, 5), "(i) * (nk) + (k)" },
        { QN_SHAPE(1), "0" },
    };
    QnDtype storage;
    for (int i = 0; i < QN_COUNT(cases); i++) {
        char want[64];
        snprintf(want, sizeof want, "float v1 = qn_load_f32(x3, %s);", cases[i].at);
        qn_str_fini(&text);
        assert_ok(qn_devtext_node(conv_and_sum(cases[i].more), &text, &call, &storage));
        assert_contains(qn_str_text(&text), "float v0 = s + qn_load_f32(x2, (j));");
        assert_contains(qn_str_text(&text), want);
    }
    const char *why = qn_devtext_refuses(conv_and_sum(QN_SHAPE(5, 1)));
    assert_non_null(why);
    assert_contains(why, "no device text for these types or shapes");
}

static const char *print_product(QnDtype dtype, bool keep)
{
    const QnBodyInstr instr[] = { { .op = &qn_op_gelu, .arg = { 0 }, .dtype = dtype } };
    const QnBody body = {
        .n_in = 1, .n_instr = 1, .n_out = 1, .instr = instr, .out = (const int[]){ 0 }
    };
    QnValue *a = input(dtype, QN_SHAPE(6, 4)), *b = input(dtype, QN_SHAPE(4, 5));
    QnValue *bias = input(dtype, QN_SHAPE(5));
    QnNode *product = qn_matmul(g, a, b, bias, false, false)->node;
    QnNode *n = qn_matmul_map(g, product, &body, NULL, 0, keep);
    assert_ok(qn_graph_check(g));
    qn_str_fini(&text);
    assert_ok(qn_devtext_product(n, &text));
    return qn_str_text(&text);
}

/* Maps of a product that is stored as well take what is stored; of one that is not, the sum. */
static void test_maps_take_the_product_as_it_is_stored(void **state)
{
    assert_contains(print_product(QN_DTYPE_BF16, true),
                    "float v0 = qn_round_bf16(s + qn_load_bf16(x2, (k)));");
    assert_contains(print_product(QN_DTYPE_F16, true),
                    "float v0 = qn_round_f16(s + qn_load_f16(x2, (k)));");
    assert_contains(print_product(QN_DTYPE_BF16, false), "float v0 = s + qn_load_bf16(x2, (k));");
}
