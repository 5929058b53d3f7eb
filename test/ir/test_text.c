/* The text form: print -> parse -> print gives the same text, and malformed text is refused with
 * its place. */
#include "test.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ops/ops.h"
#include "ops/registry.h"
#include "ops/util.h"

#include <math.h>

static void round_trip(QnGraph *g)
{
    QnStr a = { 0 }, b = { 0 };
    QnGraph *again = NULL;
    assert_ok(qn_graph_print(g, &a));
    if (qn_graph_parse(a.s, a.n, qn_op_find, &again) != QN_OK)
        fail_msg("%s in\n%s", qn_error_last()->text, a.s);
    assert_ok(qn_graph_verify(again));
    assert_ok(qn_graph_print(again, &b));
    assert_string_equal(qn_str_text(&a), qn_str_text(&b));
    const QnNode *x = g->first, *y = again->first;
    for (; x && y; x = x->next, y = y->next) {
        assert_ptr_equal(x->op, y->op);
        assert_true(qn_attr_is_equal(x->op, x->attr, y->attr));
        for (int i = 0; i < x->n_out; i++)
            assert_true(qn_type_is_equal(&x->out[i].type, &y->out[i].type));
    }
    assert_true(!x && !y && g->next_stream == again->next_stream);
    qn_str_fini(&a);
    qn_str_fini(&b);
    qn_graph_free(again);
}

/* The sample's operator on inputs a, b, ..., all results being outputs. */
static QnGraph *sample_graph(const QnOp *op, const QnSample *sample)
{
    QnGraph *g = qn_graph_new();
    QnValue *in[QN_SAMPLE_IN];
    for (int k = 0; k < sample->n_in; k++) {
        QnShape shape = qn_shape_make(sample->in[k].rank, sample->in[k].dim);
        char name[2] = { (char)('a' + k), 0 };
        in[k] = qn_input(g, name, sample->in[k].dtype, &shape);
    }
    qn_scope_push(g, "block.0");
    QnNode *n = qn_emit(g, op, sample->attr, in, sample->n_in);
    assert_non_null(n);
    for (int k = 0; k < n->n_out; k++) {
        char name[16];
        snprintf(name, sizeof name, "y%d", k);
        assert_ok(qn_graph_output(g, name, &n->out[k]));
    }
    return g;
}

/* Every dtype's constants, as numbers and as bytes: 64 bits whole, NaN, -0, stray high bits. */
static void test_constants_of_every_dtype(void **state)
{
    for (int d = 0; d < QN_DTYPE_COUNT; d++) {
        QnGraph *g = qn_graph_new();
        unsigned char x[256 * 8];
        for (int i = 0; i < QN_COUNT(x); i++)
            x[i] = (unsigned char)(i / (int)qn_dtype_bytes((QnDtype)d));
        for (int i = 0; i < 256; i++)
            qn_constant(g, (QnDtype)d, &QN_SHAPE(1), x + (size_t)i * qn_dtype_bytes((QnDtype)d));
        qn_constant(g, (QnDtype)d, &QN_SHAPE(256), x);
        round_trip(g);
        qn_graph_free(g);
    }
    QnGraph *g = qn_graph_new();
    const uint64_t big[] = { UINT64_MAX, 7 };
    QnStr text = { 0 };
    qn_constant(g, QN_DTYPE_U64, &QN_SHAPE(2), big);
    assert_ok(qn_graph_print(g, &text));
    assert_contains(qn_str_text(&text), "18446744073709551615, 7");
    qn_str_fini(&text);
    qn_graph_free(g);
}

static void test_every_sample(void **state)
{
    int n_ops, n_samples = 0;
    const QnOp *const *ops = qn_op_all(&n_ops);
    for (int i = 0; i < n_ops; i++) {
        for (int s = 0; s < ops[i]->n_samples; s++, n_samples++) {
            QnGraph *g = sample_graph(ops[i], &ops[i]->samples[s]);
            round_trip(g);
            qn_graph_free(g);
        }
    }
    assert_true(n_samples >= 2 * 50);
}

static uint64_t next(uint64_t *rng)
{
    *rng = *rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *rng >> 33;
}

/* Numbers become other numbers, characters others or none. */
static size_t mutate(char *to, const char *from, size_t n, uint64_t *rng)
{
    static const char *const numbers[] = {
        "0",     "-1",  "1",         "9223372036854775807", "65536", "8", "-9223372036854775808",
        "1e308", "nan", "4294967296"
    };
    static const char odd[] = "[]{}()%$,;:=\"\\_@#x0 \n";
    size_t out = 0, at = next(rng) % n;
    for (size_t i = 0; i < n; i++) {
        if (i < at || out + 64 > 2 * n) {
            to[out++] = from[i];
        } else if (from[i] >= '0' && from[i] <= '9' && next(rng) % 2) {
            const char *number = numbers[next(rng) % QN_COUNT(numbers)];
            memcpy(to + out, number, strlen(number));
            out += strlen(number);
            while (i + 1 < n && from[i + 1] >= '0' && from[i + 1] <= '9')
                i++;
            at = next(rng) % 3 ? n : i + next(rng) % 40;
        } else if (next(rng) % 40 == 0) {
            if (next(rng) % 3)
                to[out++] = odd[next(rng) % (sizeof odd - 1)];
            at = n;
        } else {
            to[out++] = from[i];
        }
    }
    return out;
}

/* Text that is nearly right: an error with a place, or a graph that survives the round trip. */
static void test_mutated_samples(void **state)
{
    int n_ops, accepted = 0, refused = 0;
    const QnOp *const *ops = qn_op_all(&n_ops);
    const char *times = getenv("QN_MUTATIONS"); /* of each sample */
    int most = times ? atoi(times) : 100;
    uint64_t rng = (uint64_t)most;
    for (int i = 0; i < n_ops; i++) {
        for (int s = 0; s < ops[i]->n_samples; s++) {
            QnGraph *g = sample_graph(ops[i], &ops[i]->samples[s]), *again;
            QnStr text = { 0 };
            assert_ok(qn_graph_print(g, &text));
            char *bad = malloc(2 * text.n + 128);
            for (int k = 0; k < most; k++) {
                size_t n = mutate(bad, text.s, text.n, &rng);
                if (qn_graph_parse(bad, n, qn_op_find, &again) != QN_OK) {
                    assert_contains(qn_error_last()->text, "line ");
                    refused++;
                    continue;
                }
                round_trip(again);
                qn_graph_free(again);
                accepted++;
            }
            free(bad);
            qn_str_fini(&text);
            qn_graph_free(g);
        }
    }
    print_message("%d accepted, %d refused\n", accepted, refused);
    assert_true(accepted > 1000 && refused > 10000);
}

static void test_symbolic_dims_keep_their_numbers(void **state)
{
    QnGraph *g = qn_graph_new();
    QnDim t = qn_dim_symbol(g, "T"), b = qn_dim_symbol(g, "B");
    QnDim sum = qn_dim_add(g, b, t), far = qn_dim_add(g, qn_dim_mul(g, b, sum), 7);
    for (int i = 0; i < 12; i++)
        far = qn_dim_div(g, far, 3); /* longer than qn_dim_text's buffer */
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(b, t, 4));
    qn_input(g, "z", QN_DTYPE_F32, &QN_SHAPE(far, sum));
    qn_reshape(g, x, &QN_SHAPE(qn_dim_mul(g, b, t), 4));
    round_trip(g);
    QnGraph *copy = qn_graph_clone(g, NULL);
    QnStr p = { 0 }, q = { 0 };
    assert_ok(qn_graph_print(g, &p));
    assert_ok(qn_graph_print(copy, &q));
    assert_string_equal(p.s, q.s);
    qn_str_fini(&p);
    qn_str_fini(&q);
    qn_graph_free(copy);
    qn_graph_free(g);
}

static void test_numbers_and_strings(void **state)
{
    QnGraph *g = qn_graph_new();
    static const double values[] = { 0.1, -0.0, 1e300, 5e-324, INFINITY, -INFINITY, NAN, 1.0 / 3 };
    for (int i = 0; i < QN_COUNT(values); i++)
        qn_full(g, values[i], QN_DTYPE_F64, &(QnShape){ 0 });
    uint64_t odd = UINT64_C(0xfff8000000000123);
    double nan;
    memcpy(&nan, &odd, sizeof nan);
    qn_full(g, nan, QN_DTYPE_F64, &(QnShape){ 0 });
    qn_input(g, "a \"b\" \\ \n\x01 \xc3\xa9", QN_DTYPE_F32, &QN_SHAPE(2));
    static const int64_t whole[] = { INT64_MIN, INT64_MAX, -1, (1LL << 53) + 1 };
    static const float some[] = { 1.5f, -0.0f, 3e-40f }, bad[] = { 1, NAN };
    static const uint16_t half[] = { 0x3c00, 0x0001, 0x7bff };
    float many[100];
    for (int i = 0; i < 100; i++)
        many[i] = (float)i;
    qn_constant(g, QN_DTYPE_I64, &QN_SHAPE(4), whole);
    qn_constant(g, QN_DTYPE_F32, &QN_SHAPE(3), some);
    qn_constant(g, QN_DTYPE_F32, &QN_SHAPE(2), bad);
    qn_constant(g, QN_DTYPE_BF16, &QN_SHAPE(3), half);
    qn_constant(g, QN_DTYPE_F16, &QN_SHAPE(3), half);
    qn_constant(g, QN_DTYPE_F32, &QN_SHAPE(10, 10), many);
    qn_constant(g, QN_DTYPE_F32, &QN_SHAPE(0, 10), many);
    g->next_stream = 5;
    QnStr text = { 0 };
    assert_ok(qn_graph_print(g, &text));
    assert_contains(text.s,
                    "data=[-9223372036854775808, 9223372036854775807, -1, 9007199254740993]");
    assert_contains(text.s, "data=[1.5, -0, 3e-40]");
    assert_contains(text.s, "value=0xfff8000000000123");
    assert_contains(text.s, "value=0.3333333333333333,");
    qn_str_fini(&text);
    round_trip(g);
    qn_graph_free(g);
}

static void test_reads_as_documented(void **state)
{
    static const char text[] = "# a comment\n"
                               "dims B\n"
                               "%0 = input() {name=\"x\", dims=[B,10]} : f32[B,10]\n"
                               "%1 = softmax(%0) {axis=1} \"head.softmax\" : f32[B,10]\n"
                               "\n"
                               "output \"loss\" = %1\n";
    QnGraph *g;
    assert_ok(qn_graph_parse(text, strlen(text), qn_op_find, &g));
    assert_string_equal(g->last->name, "head.softmax");
    assert_ptr_equal(qn_graph_output_find(g, "loss"), &g->last->out[0]);
    assert_true(g->last->out[0].type.shape.dim[0] == qn_dim_symbol(g, "B"));
    round_trip(g);
    qn_graph_free(g);
}

static void refused(const char *text, const char *words)
{
    QnGraph *g = NULL;
    assert_fails(qn_graph_parse(text, strlen(text), qn_op_find, &g), qn_error_last()->code, words);
    assert_null(g);
}

#define X "%0 = input() {name=\"x\", dims=[2,3]} : f32[2,3]\n"

static void test_malformed_text_is_refused(void **state)
{
    QnGraph *g;
    refused("%1 = input() {name=\"x\"} : f32[]\n", "line 1, column 1: expected %0");
    refused(X "%1 = softmx(%0) : f32[2,3]\n", "line 2, column 6: no operator is named 'softmx'");
    refused(X "%1 = softmax(%1) : f32[2,3]\n", "line 2, column 14: value %1");
    refused(X "%1 = softmax(%0) {ax=1} : f32[2,3]\n", "has no attribute 'ax'");
    refused(X "%1 = softmax(%0) {axis=1, axis=1} : f32[2,3]\n", "stands twice");
    refused(X "%1 = softmax(%0) {axis=9} : f32[2,3]\n", "line 2, column 6: node softmax(f32[2,3])");
    refused(X "%1 = softmax(%0) {axis=1} : f32[3,3]\n", "output 0 of softmax is f32[2,3]");
    refused(X "%1 = softmax(%0) {axis=99999999999999999999} : f32[2,3]\n", "does not fit 64 bits");
    refused(X "%1 = softmax(%0 : f32[2,3]\n", "line 2, column 17: expected ')'");
    refused(X "%1 = softmax(%0) : f33[2,3]\n", "no data type");
    refused(X "%1 = softmax(%0) : f32[2,3] x\n", "expected the end of the line");
    refused(X "%1 = softmax@7(%0) : f32[2,3]\n", "version 1 here, not 7");
    refused(X "%1 = add(%0, _) : f32[2,3]\n", "input 1 is missing");
    refused(X "%1, %2 = softmax(%0) : f32[2,3], f32[2,3]\n", "has 1 outputs, not 2");
    refused(X "output \"y\" = %4\n", "line 2, column 14");
    refused(X "output \"y\" = %0\noutput \"y\" = %0\n", "stands twice");
    refused("%0 = input() {name=\"x} : f32[]\n", "does not end on its line");
    refused("%0 = input() {name=\"\\q\"} : f32[]\n", "no such escape");
    refused("%0 = input() {name=\"x\", dims=[1,2,3,4,5,6,7,8,9]} : f32[]\n", "more than 8 dims");
    refused("%0 = full() {value=1x} : f32[]\n", "no number");
    refused("%0 = constant() {dims=[3], data=[1,2]} : f32[3]\n", "8 bytes of data");
    refused("%0 = constant() {dims=[1], data=x\"00f\"} : f32[1]\n", "pairs of hexadecimal");
    refused(X "%1 = fused(%0) {body={in 1; $1 = neg($1) : f32; out $1}} : f32[2,3]\n",
            "operand $1 does not stand above");
    refused(X "%1 = fused(%0) {body={in 1; $1 = softmax($0) : f32; out $1}} : f32[2,3]\n",
            "softmax is no map");
    refused("nonsense\n", "line 1, column 1: expected a node");
    assert_fails(qn_graph_parse("dims B\0", 7, qn_op_find, &g), QN_EFORMAT, "a NUL byte");
}

static void test_deep_nesting_is_refused(void **state)
{
    char text[300] = "dims ";
    memset(text + 5, '(', 200);
    refused(text, "nests over 64 deep");
}
