/* Integers: exact to 64 bits, unsigned where the type is, wrapping on overflow, never trapping.
 * Every kernel that takes the node must give these bytes. */
#include "ops/dtypes.h"
#include "pass/pipeline.h"

typedef QnValue *Binary(QnGraph *, QnValue *, QnValue *);
typedef QnValue *Unary(QnGraph *, QnValue *);

#define U64(x) UINT64_C(x)
#define TOP    (UINT64_C(1) << 63)

/* Four elements: f(a, b) = y, of the type's width. */
static void binary(Binary *f, QnDtype dtype, const void *a, const void *b, const void *y)
{
    QnGraph *g = qn_graph_new();
    QnValue *p = give(g, dtype, QN_SHAPE(4)), *q = give(g, dtype, QN_SHAPE(4));
    want_bytes(g, f(g, p, q)->node, (const void *[]){ a, b }, (const void *[]){ y });
    qn_graph_free(g);
}

static void unary(Unary *f, QnDtype dtype, const void *x, const void *y)
{
    QnGraph *g = qn_graph_new();
    want_bytes(g, f(g, give(g, dtype, QN_SHAPE(4)))->node, (const void *[]){ x },
               (const void *[]){ y });
    qn_graph_free(g);
}

static void test_arithmetic_of_64_bits(void **state)
{
    const int64_t a[] = { INT64_MAX, INT64_MIN, (1LL << 53) + 1, -7 }, b[] = { 1, -1, 3, 0 };
    const uint64_t u[] = { UINT64_MAX, TOP, TOP + 1, 7 }, v[] = { 2, 1, TOP, 0 };
    binary(qn_add, QN_DTYPE_I64, a, b,
           (const int64_t[]){ INT64_MIN, INT64_MAX, (1LL << 53) + 4, -7 });
    binary(qn_sub, QN_DTYPE_U64, v, u, (const uint64_t[]){ 3, TOP + 1, UINT64_MAX, U64(0) - 7 });
    binary(qn_mul, QN_DTYPE_I64, a, b,
           (const int64_t[]){ INT64_MAX, INT64_MIN, 3 * ((1LL << 53) + 1), 0 });
    binary(qn_div, QN_DTYPE_I64, a, b, /* no trap on INT64_MIN / -1 or by 0 */
           (const int64_t[]){ INT64_MAX, INT64_MIN, ((1LL << 53) + 1) / 3, 0 });
    binary(qn_div, QN_DTYPE_U64, u, v, (const uint64_t[]){ TOP - 1, TOP, 1, 0 });
    binary(qn_mod, QN_DTYPE_I64, a, b, (const int64_t[]){ 0, 0, ((1LL << 53) + 1) % 3, 0 });
    binary(qn_mod, QN_DTYPE_U64, u, v, (const uint64_t[]){ 1, 0, 1, 0 });
    binary(qn_fmod, QN_DTYPE_U64, u, v, (const uint64_t[]){ 1, 0, 1, 0 });
    binary(qn_maximum, QN_DTYPE_U64, u, v, (const uint64_t[]){ UINT64_MAX, TOP, TOP + 1, 7 });
    binary(qn_minimum, QN_DTYPE_U64, u, v, (const uint64_t[]){ 2, 1, TOP, 0 });
    binary(qn_minimum, QN_DTYPE_I64, a, b, (const int64_t[]){ 1, INT64_MIN, 3, -7 });
    binary(qn_pow, QN_DTYPE_U64, v, (const uint64_t[]){ 63, TOP, 2, 0 },
           (const uint64_t[]){ TOP, 1, 0, 1 });
    unary(qn_neg, QN_DTYPE_I64, a, (const int64_t[]){ -INT64_MAX, INT64_MIN, -(1LL << 53) - 1, 7 });
    unary(qn_abs, QN_DTYPE_I64, a, (const int64_t[]){ INT64_MAX, INT64_MIN, (1LL << 53) + 1, 7 });
    unary(qn_abs, QN_DTYPE_U64, u, u);
    unary(qn_relu, QN_DTYPE_U64, u, u);
    unary(qn_sign, QN_DTYPE_U64, u, (const uint64_t[]){ 1, 1, 1, 1 });
}

static void test_comparisons_of_64_bits(void **state)
{
    const uint64_t u[] = { UINT64_MAX, TOP, TOP + 1, 7 }, v[] = { 2, TOP, TOP, 8 };
    const int64_t a[] = { (1LL << 53) + 1, -1, 0, 5 }, b[] = { 1LL << 53, 1, 0, 4 };
    binary(qn_less, QN_DTYPE_U64, u, v, (const uint8_t[]){ 0, 0, 0, 1 });
    binary(qn_less_equal, QN_DTYPE_U64, u, v, (const uint8_t[]){ 0, 1, 0, 1 });
    binary(qn_greater, QN_DTYPE_U64, u, v, (const uint8_t[]){ 1, 0, 1, 0 });
    binary(qn_greater_equal, QN_DTYPE_U64, u, v, (const uint8_t[]){ 1, 1, 1, 0 });
    binary(qn_equal, QN_DTYPE_I64, a, b, (const uint8_t[]){ 0, 0, 1, 0 });
    binary(qn_less, QN_DTYPE_I64, a, b, (const uint8_t[]){ 0, 1, 0, 0 });
    binary(qn_not_equal, QN_DTYPE_U64, u, v, (const uint8_t[]){ 1, 0, 1, 1 });
}

static void test_narrow_integers_wrap(void **state)
{
    binary(qn_add, QN_DTYPE_I16, (const int16_t[]){ 32767, -32768, 5, 0 },
           (const int16_t[]){ 1, -1, 6, 0 }, (const int16_t[]){ -32768, 32767, 11, 0 });
    binary(qn_sub, QN_DTYPE_U8, (const uint8_t[]){ 0, 1, 255, 9 },
           (const uint8_t[]){ 1, 2, 255, 3 }, (const uint8_t[]){ 255, 255, 0, 6 });
    binary(qn_mul, QN_DTYPE_U16, (const uint16_t[]){ 65535, 256, 7, 0 },
           (const uint16_t[]){ 65535, 256, 9, 1 }, (const uint16_t[]){ 1, 0, 63, 0 });
    binary(qn_div, QN_DTYPE_I32, (const int32_t[]){ INT32_MIN, -7, 7, 3 },
           (const int32_t[]){ -1, 2, -2, 0 }, (const int32_t[]){ INT32_MIN, -3, -3, 0 });
    binary(qn_mul, QN_DTYPE_I32, (const int32_t[]){ INT32_MAX, 1 << 20, -1, 3 },
           (const int32_t[]){ 2, 1 << 12, INT32_MIN, 3 }, (const int32_t[]){ -2, 0, INT32_MIN, 9 });
    binary(qn_add, QN_DTYPE_U32, (const uint32_t[]){ UINT32_MAX, 1, 2, 3 },
           (const uint32_t[]){ 2, 1, 1, 1 }, (const uint32_t[]){ 1, 2, 3, 4 });
}

static void test_bits(void **state)
{
    const uint64_t u[] = { UINT64_MAX, TOP, TOP + 1, 1 }, n[] = { 1, 63, 64, 63 };
    const int16_t a[] = { -1, 0x0ff0, 5, -32768 }, b[] = { 7, 0x00ff, 3, -1 };
    binary(qn_bit_shift_left, QN_DTYPE_U64, u, n, (const uint64_t[]){ UINT64_MAX - 1, 0, 0, TOP });
    binary(qn_bit_shift_right, QN_DTYPE_U64, u, n, (const uint64_t[]){ TOP - 1, 1, 0, 0 });
    binary(qn_bit_shift_left, QN_DTYPE_U8, (const uint8_t[]){ 255, 3, 1, 1 },
           (const uint8_t[]){ 4, 7, 8, 255 }, (const uint8_t[]){ 0xf0, 0x80, 0, 0 });
    binary(qn_bit_shift_right, QN_DTYPE_U16, (const uint16_t[]){ 65535, 65535, 4, 1 },
           (const uint16_t[]){ 15, 16, 1, 100 }, (const uint16_t[]){ 1, 0, 2, 0 });
    binary(qn_bit_shift_left, QN_DTYPE_I8, (const int8_t[]){ -1, 100, 1, 1 },
           (const int8_t[]){ 4, 1, 8, -1 }, (const int8_t[]){ -16, -56, 0, 0 });
    binary(qn_bit_shift_right, QN_DTYPE_I64, (const int64_t[]){ INT64_MIN, -1, 5, -5 },
           (const int64_t[]){ 62, 64, -1, -1 }, (const int64_t[]){ -2, -1, 0, -1 });
    binary(qn_bitwise_and, QN_DTYPE_I16, a, b, (const int16_t[]){ 7, 0x00f0, 1, -32768 });
    binary(qn_bitwise_or, QN_DTYPE_I16, a, b, (const int16_t[]){ -1, 0x0fff, 7, -1 });
    binary(qn_bitwise_xor, QN_DTYPE_I16, a, b, (const int16_t[]){ -8, 0x0f0f, 6, 32767 });
    binary(qn_bitwise_xor, QN_DTYPE_BOOL, (const uint8_t[]){ 0, 0, 1, 1 },
           (const uint8_t[]){ 0, 1, 0, 1 }, (const uint8_t[]){ 0, 1, 1, 0 });
    unary(qn_bitwise_not, QN_DTYPE_U64, u, (const uint64_t[]){ 0, TOP - 1, TOP - 2, U64(0) - 2 });
    unary(qn_bitwise_not, QN_DTYPE_BOOL, (const uint8_t[]){ 0, 1, 0, 1 },
          (const uint8_t[]){ 1, 0, 1, 0 });
}

static void test_bits_of_other_types_are_refused(void **state)
{
    QnGraph *g = qn_graph_new();
    QnValue *f = give(g, QN_DTYPE_F32, QN_SHAPE(4));
    assert_true(qn_value_is_poison(qn_bitwise_and(g, f, f)));
    assert_fails(qn_graph_check(g), QN_EDTYPE, "integer or bool");
    qn_graph_free(g);
    g = qn_graph_new();
    QnValue *b = give(g, QN_DTYPE_BOOL, QN_SHAPE(4));
    assert_true(qn_value_is_poison(qn_bit_shift_left(g, b, b)));
    assert_fails(qn_graph_check(g), QN_EDTYPE, "integer");
    qn_graph_free(g);
}

static void test_clip(void **state)
{
    const int64_t x[] = { INT64_MAX, -5, (1LL << 53) + 1, 5 };
    const uint64_t u[] = { UINT64_MAX, 0, TOP + 1, 5 };
    QnGraph *g = qn_graph_new();
    QnValue *a = give(g, QN_DTYPE_I64, QN_SHAPE(4)), *b = give(g, QN_DTYPE_U64, QN_SHAPE(4));
    want_bytes(g, qn_clip(g, a, -2.5, INFINITY)->node, (const void *[]){ x },
               (const void *[]){ (const int64_t[]){ INT64_MAX, -2, (1LL << 53) + 1, 5 } });
    want_bytes(g, qn_clip(g, b, -1, INFINITY)->node, (const void *[]){ u }, (const void *[]){ u });
    want_bytes(g, qn_clip(g, b, 2, 9)->node, (const void *[]){ u },
               (const void *[]){ (const uint64_t[]){ 9, 2, 9, 5 } });
    qn_graph_free(g);
}

static void test_reductions(void **state)
{
    const uint64_t u[] = { TOP + 1, 3, TOP + 5, 3 };
    const int32_t i[] = { INT32_MAX, 1, 5, -9 };
    const uint64_t sum[] = { 12 }, most[] = { TOP + 5 }, least[] = { 3 };
    const int64_t where_most[] = { 2 }, where_least[] = { 1 };
    QnGraph *g = qn_graph_new();
    QnValue *x = give(g, QN_DTYPE_U64, QN_SHAPE(4)), *y = give(g, QN_DTYPE_I32, QN_SHAPE(4));
    const void *in[] = { u }, *narrow[] = { i };
    want_bytes(g, qn_sum(g, x, QN_ALL_AXES, false)->node, in, (const void *[]){ sum });
    want_bytes(g, qn_reduce_max(g, x, QN_ALL_AXES, false)->node, in, (const void *[]){ most });
    want_bytes(g, qn_reduce_min(g, x, QN_ALL_AXES, false)->node, in, (const void *[]){ least });
    want_bytes(g, qn_argmax(g, x, 0, false)->node, in, (const void *[]){ where_most });
    want_bytes(g, qn_argmin(g, x, 0, false)->node, in, (const void *[]){ where_least });
    want_bytes(g, qn_prod(g, x, QN_ALL_AXES, false)->node, in,
               (const void *[]){ (const uint64_t[]){ 45 + 9 * (TOP + TOP) + (TOP + TOP) } });
    want_bytes(g, qn_cumsum(g, x, 0, false, false)->node, in,
               (const void *[]){ (const uint64_t[]){ TOP + 1, TOP + 4, 9, 12 } });
    want_bytes(g, qn_cumprod(g, x, 0, true, false)->node, in,
               (const void *[]){ (const uint64_t[]){ 1, TOP + 1, TOP + 3, TOP + 15 + TOP } });
    want_bytes(g, qn_sum(g, y, QN_ALL_AXES, false)->node, narrow,
               (const void *[]){ (const int32_t[]){ INT32_MAX - 3 } });
    want_bytes(g, qn_prod(g, y, QN_ALL_AXES, false)->node, narrow,
               (const void *[]){ (const int32_t[]){ INT32_MIN + 45 } });
    qn_graph_free(g);
}

static void test_order(void **state)
{
    const uint64_t u[] = { TOP + 2, 3, TOP + 1, UINT64_MAX };
    const int64_t i[] = { (1LL << 53) + 1, 1LL << 53, -1, 7 };
    QnGraph *g = qn_graph_new();
    QnValue *x = give(g, QN_DTYPE_U64, QN_SHAPE(4)), *y = give(g, QN_DTYPE_I64, QN_SHAPE(4)),
            *out[2];
    qn_sort(g, x, 0, false, out);
    want_bytes(g, out[0]->node, (const void *[]){ u },
               (const void *[]){ (const uint64_t[]){ 3, TOP + 1, TOP + 2, UINT64_MAX },
                                 (const int64_t[]){ 1, 2, 0, 3 } });
    qn_topk(g, y, 2, 0, true, out);
    want_bytes(g, out[0]->node, (const void *[]){ i },
               (const void *[]){ (const int64_t[]){ (1LL << 53) + 1, 1LL << 53 },
                                 (const int64_t[]){ 0, 1 } });
    qn_graph_free(g);
}

static void test_products_and_scatters(void **state)
{
    const int64_t a[] = { 1LL << 53, 1, 3, -1 }, b[] = { 1, 2, 1, INT64_MAX };
    const int64_t ab[] = { (1LL << 53) + 1, (int64_t)((UINT64_C(1) << 54) + INT64_MAX), 2,
                           (int64_t)(6 - (uint64_t)INT64_MAX) };
    const uint16_t c[] = { 60000, 1, 2, 3 };
    const int64_t at[] = { 1, 1, -1, 0 };
    const uint64_t u[] = { TOP, TOP, 5, 6 }, y[] = { TOP, 1, 2, 3 };
    QnGraph *g = qn_graph_new();
    QnValue *m = give(g, QN_DTYPE_I64, QN_SHAPE(2, 2)), *n = give(g, QN_DTYPE_I64, QN_SHAPE(2, 2));
    QnValue *s = give(g, QN_DTYPE_U16, QN_SHAPE(2, 2));
    QnValue *x = give(g, QN_DTYPE_U64, QN_SHAPE(4)), *i = give(g, QN_DTYPE_I64, QN_SHAPE(4));
    QnValue *d = give(g, QN_DTYPE_U64, QN_SHAPE(4));
    want_bytes(g, qn_matmul(g, m, n, NULL, false, false)->node, (const void *[]){ a, b },
               (const void *[]){ ab });
    const uint64_t want[] = { TOP + 6, 1, 2, 8 }, top[] = { TOP, TOP, 2, 5 };
    want_bytes(g, qn_scatter_add(g, x, i, d, 0)->node, (const void *[]){ y, at, u },
               (const void *[]){ want });
    want_bytes(g, qn_scatter_elements(g, x, i, d, 0, QN_SCATTER_MAX)->node,
               (const void *[]){ y, at, u }, (const void *[]){ top });
    uint16_t square[4];
    for (int k = 0; k < 4; k++)
        square[k] = (uint16_t)((uint64_t)c[k / 2 * 2] * c[k % 2] +
                               (uint64_t)c[k / 2 * 2 + 1] * c[2 + k % 2]);
    want_bytes(g, qn_matmul(g, s, s, NULL, false, false)->node, (const void *[]){ c, c },
               (const void *[]){ square });
    qn_graph_free(g);
}

static void test_moves_of_every_dtype(void **state)
{
    unsigned char x[8 * 6], y[8 * 6];
    for (int d = 0; d < QN_DTYPE_COUNT; d++) {
        size_t size = qn_dtype_bytes((QnDtype)d);
        for (int i = 0; i < 6; i++)
            memset(x + (size_t)i * size, d == QN_DTYPE_BOOL ? i & 1 : i + 1, size);
        for (int i = 0; i < 6; i++)
            memcpy(y + (size_t)i * size, x + (size_t)(i % 2 * 3 + i / 2) * size, size);
        QnGraph *g = qn_graph_new();
        QnValue *a = give(g, (QnDtype)d, QN_SHAPE(2, 3)), *i = give(g, QN_DTYPE_I64, QN_SHAPE(2));
        const int64_t rows[] = { 1, 0 };
        const void *in[] = { x, rows };
        want_bytes(g, qn_transpose(g, a, QN_INTS(1, 0))->node, in, (const void *[]){ y });
        want_bytes(g, qn_reshape(g, a, &QN_SHAPE(6))->node, in, (const void *[]){ x });
        memcpy(y, x + 3 * size, 3 * size);
        memcpy(y + 3 * size, x, 3 * size);
        want_bytes(g, qn_gather(g, a, i, 0)->node, in, (const void *[]){ y });
        memcpy(y, x, 3 * size);
        QnValue *c = give(g, QN_DTYPE_BOOL, QN_SHAPE(2, 1));
        const uint8_t yes[] = { 1, 1 };
        want_bytes(g, qn_where(g, c, a, a)->node, (const void *[]){ yes, x, x },
                   (const void *[]){ x });
        qn_graph_free(g);
    }
}

/* Composites that move data are lowered to what was tested above; here they must be taken. */
static void test_everything_that_moves_takes_every_dtype(void **state)
{
    for (int i = 0; i < QN_DTYPE_COUNT; i++) {
        QnDtype d = (QnDtype)i;
        QnGraph *g = qn_graph_new();
        QnValue *x = give(g, d, QN_SHAPE(1, 4, 2, 2)), *at = give(g, QN_DTYPE_I64, QN_SHAPE(2));
        QnValue *m = give(g, d, QN_SHAPE(4, 3)), *u = give(g, d, QN_SHAPE(2, 3));
        QnValue *to = qn_expand(g, qn_reshape(g, at, &QN_SHAPE(2, 1)), &QN_SHAPE(2, 3));
        QnPadAttr pad = { .before = QN_INTS(1, 0), .after = QN_INTS(0, 2), .value = 1 };
        QnSliceAttr cut = {
            .axes = QN_INTS(1), .starts = QN_INTS(0), .ends = QN_INTS(3), .steps = QN_INTS(2)
        };
        qn_depth_to_space(g, x, 2, false);
        qn_space_to_depth(g, x, 2, false);
        qn_tile(g, x, QN_INTS(1, 2, 1, 1));
        qn_flip(g, x, QN_INTS(1));
        qn_roll(g, x, QN_INTS(1), QN_INTS(1));
        qn_expand(g, x, &QN_SHAPE(3, 4, 2, 2));
        qn_concat(g, (QnValue *[]){ x, x }, 2, 1);
        qn_pad(g, m, &pad);
        qn_slice(g, m, &cut);
        qn_gather_elements(g, m, to, 0);
        qn_scatter_elements(g, m, to, u, 0, QN_SCATTER_NONE);
        qn_embedding(g, m, at);
        qn_one_hot(g, at, 3, d);
        if (qn_dtype_is_storage(d)) {
            QnValue *scale = qn_full(g, 2, QN_DTYPE_F32, &(QnShape){ 0 });
            QnValue *real = qn_dequantize_linear(g, m, scale, NULL, 0, 0);
            qn_quantize_linear(g, real, scale, NULL, d, 0, 0);
        }
        qn_eye(g, 3, 3, 0, d);
        qn_full(g, 1, d, &QN_SHAPE(2));
        if (d != QN_DTYPE_BOOL)
            qn_arange(g, 0, 1, 4, d);
        if (qn_graph_check(g) != QN_OK)
            fail_msg("%s: %s", qn_dtype_name(d), qn_error_last()->text);
        qn_graph_free(g);
    }
}

/* What is folded at compile time is as exact. */
static void test_folding(void **state)
{
    const uint64_t a[] = { UINT64_MAX, TOP, 5, 6 }, b[] = { 2, TOP, 5, 7 }, c[] = { 1, 0, 10, 13 };
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_constant(g, QN_DTYPE_U64, &QN_SHAPE(4), a);
    QnValue *y = qn_constant(g, QN_DTYPE_U64, &QN_SHAPE(4), b);
    QnPipelineOptions o = { .level = QN_O1 };
    assert_ok(qn_graph_output(g, "sum", qn_add(g, x, y)));
    assert_ok(qn_graph_output(g, "most", qn_reduce_max(g, x, QN_ALL_AXES, false)));
    assert_ok(qn_pipeline_run(g, &o));
    const void *sum = qn_constant_data(g->outputs[0].value);
    const void *most = qn_constant_data(g->outputs[1].value);
    assert_non_null(sum);
    assert_memory_equal(sum, c, sizeof c);
    assert_non_null(most);
    assert_memory_equal(most, a, sizeof a[0]);
    qn_graph_free(g);
}
