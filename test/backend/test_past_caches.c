/* Results so large that they are written past the caches: the same numbers, and nothing beside
 * them. timeout: 300 */
#include "backend/cpu/stream.h"
#include "backend/kernel_check.h"

static void test_copies(void **state)
{
    enum { BYTES = 700, EDGE = 64 };
    unsigned char from[BYTES], to[EDGE + BYTES + EDGE];
    for (int i = 0; i < BYTES; i++)
        from[i] = (unsigned char)(i * 7 + 1);
#define QN_X(name)                                                                                 \
    for (size_t at = 0; at < EDGE && qn_cpu_isa_is_usable(#name); at++) {                          \
        for (size_t n = 0; n < BYTES; n += n < 200 ? 1 : 61) {                                     \
            memset(to, 0xa5, sizeof to);                                                           \
            qn_stream_##name(from, to + at, n);                                                    \
            qn_stream_end();                                                                       \
            assert_memory_equal(to + at, from, n);                                                 \
            for (size_t i = 0; i < sizeof to; i++)                                                 \
                assert_true((i >= at && i < at + n) || to[i] == 0xa5);                             \
        }                                                                                          \
    }
    QN_ISA_LIST(QN_X)
#undef QN_X
}

static void check_large(QnGraph *g, QnValue *y, double tol)
{
    assert_non_null(qn_stream_for(qn_cpu_isa_best(), (size_t)qn_type_bytes(&y->type)));
    assert_true(check_node(g, y, -1, 1, tol) > 0);
    qn_graph_free(g);
}

static QnValue *rows(QnGraph *g, QnDtype d, int64_t m, int64_t n, const char *name)
{
    return qn_input(g, name, d, &QN_SHAPE(m, n));
}

/* A convolution and its gradient by the input, in channels-last order. */
static void test_convolutions(void **state)
{
    for (int backward = 0; backward < 2; backward++) {
        QnGraph *g = qn_graph_new();
        QnShape x = QN_SHAPE(1, 16, 512, 523), w = QN_SHAPE(16, 16, 1, 1);
        QnValue *a = qn_input(g, "x", QN_DTYPE_F32, &x), *b = qn_input(g, "w", QN_DTYPE_F32, &w);
        QnConvAttr attr = { .strides = { 2, { 1, 1 } } };
        QnValue *y = backward ? qn_conv_dx(g, a, b, &attr, &x) : qn_conv(g, a, b, NULL, &attr);
        a->type.layout = y->type.layout = QN_LAYOUT_CHANNELS_LAST;
        check_large(g, y, 3e-6);
    }
}

static void test_maps(void **state)
{
    QnGraph *g = qn_graph_new();
    check_large(
        g,
        qn_add(g, rows(g, QN_DTYPE_F32, 4099, 1031, "a"), rows(g, QN_DTYPE_F32, 4099, 1031, "b")),
        1e-6);
    g = qn_graph_new();
    check_large(g, qn_relu(g, rows(g, QN_DTYPE_BF16, 8203, 1031, "a")), 1e-2);
}

static QnValue *row_of(QnGraph *g, int64_t n, const char *name)
{
    return qn_input(g, name, QN_DTYPE_F32, &QN_SHAPE(n));
}

static void test_rows(void **state)
{
    enum { M = 4099, N = 1031 };
    QnGraph *g = qn_graph_new();
    check_large(g, qn_softmax(g, rows(g, QN_DTYPE_F32, M, N, "x"), 1), 3e-6);
    g = qn_graph_new();
    QnValue *x = rows(g, QN_DTYPE_F32, M, N, "x"), *scale = row_of(g, N, "scale");
    check_large(g, qn_layer_norm(g, x, scale, row_of(g, N, "bias"), 1, 1e-5), 1e-5);
    g = qn_graph_new();
    QnValue *in[] = { rows(g, QN_DTYPE_F32, M, N, "dy"), rows(g, QN_DTYPE_F32, M, N, "x"),
                      row_of(g, M, "mean"), row_of(g, M, "rstd"), row_of(g, N, "scale") };
    check_large(g, qn_emitn(g, &qn_op_layer_norm_grad, NULL, in, 5), 1e-4);
}

static void test_channels(void **state)
{
    static const int64_t channels[] = { 24, 600 };
    for (int i = 0; i < QN_COUNT(channels); i++) {
        QnGraph *g = qn_graph_new();
        int64_t c = channels[i];
        QnShape s = QN_SHAPE(1, c, 4300000 / c / 50, 50);
        QnValue *x = check_input(g, QN_DTYPE_F32, &s, QN_LAYOUT_CHANNELS_LAST);
        QnValue *scale = row_of(g, c, "scale"), *bias = row_of(g, c, "bias");
        QnNode *n = qn_batch_norm(g, x, scale, bias, 1e-5);
        n->out[0].type.layout = QN_LAYOUT_CHANNELS_LAST;
        check_large(g, &n->out[0], 2e-5);
        g = qn_graph_new();
        QnValue *in[] = { check_input(g, QN_DTYPE_F32, &s, QN_LAYOUT_CHANNELS_LAST),
                          check_input(g, QN_DTYPE_F32, &s, QN_LAYOUT_CHANNELS_LAST),
                          row_of(g, c, "mean"), row_of(g, c, "rstd"), row_of(g, c, "scale") };
        QnValue *dx = qn_emitn(g, &qn_op_batch_norm_grad, NULL, in, 5);
        dx->type.layout = QN_LAYOUT_CHANNELS_LAST;
        check_large(g, dx, 1e-4);
    }
}
