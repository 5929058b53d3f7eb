/* Random numbers, windows, optimizer steps and gradients beside what ONNX's own cases have. */
#include "one_node.h"

#define TRAINING "ai.onnx.preview.training"

static const QnTensor *out(const One *c, int i)
{
    assert_non_null(c->out[i]);
    return c->out[i]->known;
}

static const float *draw(One *c, const char *op, const QnOnnxAttr *attr, int n_attr)
{
    assert_ok(one_run(c, op, 15, attr, n_attr, NULL, 0, 1));
    return out(c, 0)->data;
}

/* Runs repeat; seeds differ. */
static void test_random(void **state)
{
    One c;
    one_open(&c);
    const QnOnnxAttr attr[] = {
        { .name = "shape", .kind = QN_ONNX_INTS, .n = 2, .ints = (int64_t[]){ 100, 10 } },
        FLOAT_ATTR("seed", 1.5F),
        FLOAT_ATTR("low", 2),
        FLOAT_ATTR("high", 3),
    };
    const QnOnnxAttr normal[] = { attr[0], FLOAT_ATTR("mean", 5), FLOAT_ATTR("scale", 2) };
    const QnOnnxAttr other[] = { attr[0], FLOAT_ATTR("seed", 2.5F) };
    size_t bytes = 1000 * sizeof(float);
    const float *a = draw(&c, "RandomUniform", attr, 4), *b = draw(&c, "RandomUniform", attr, 4);
    double sum = 0, square = 0;
    assert_memory_equal(a, b, bytes);
    for (int i = 0; i < 1000; i++)
        assert_true(a[i] >= 2 && a[i] < 3);
    a = draw(&c, "RandomNormal", attr, 2), b = draw(&c, "RandomNormal", other, 2);
    assert_memory_not_equal(a, b, bytes);
    a = draw(&c, "RandomNormal", normal, 3), b = draw(&c, "RandomNormal", normal, 3);
    assert_memory_equal(a, b, bytes);
    for (int i = 0; i < 1000; i++) {
        sum += (double)a[i];
        square += (double)a[i] * (double)a[i];
    }
    /* six deviations of the mean of 1000 draws of deviation 2 are 0.38, of their deviation 0.27 */
    assert_true(fabs(sum / 1000 - 5) < 0.38);
    assert_true(fabs(sqrt(square / 1000 - sum * sum / 1e6) - 2) < 0.27);
    const QnOnnxAttr ints[] = { attr[0], INT_ATTR("dtype", 7) };
    assert_fails(one_run(&c, "RandomNormal", 15, ints, 2, NULL, 0, 1), QN_EUNSUPPORTED,
                 "random i64");
    assert_fails(one_run(&c, "RandomNormal", 15, NULL, 0, NULL, 0, 1), QN_EFORMAT, "'shape'");
    one_close(&c);
}

static void test_draws_follow_probabilities(void **state)
{
    One c;
    one_open(&c);
    enum { N = 3000 };
    float p[N], logit[2] = { 0, 1 };
    for (int i = 0; i < N; i++)
        p[i] = i < 1000 ? 0 : i < 2000 ? 1 : 0.25F;
    const QnTensor in = { .type = { .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(N) }, .data = p };
    int64_t ones = 0;
    assert_ok(one_run(&c, "Bernoulli", 15, (QnOnnxAttr[]){ INT_ATTR("dtype", 9) }, 1, &in, 1, 1));
    const bool *hit = out(&c, 0)->data;
    for (int i = 0; i < 1000; i++) {
        assert_false(hit[i]);
        assert_true(hit[1000 + i]);
        ones += hit[2000 + i];
    }
    assert_true(llabs(ones - 250) < 83); /* six times sqrt(1000 0.25 0.75) */
    const QnTensor l = { .type = { .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(1, 2) },
                         .data = logit };
    assert_ok(one_run(&c, "Multinomial", 7, (QnOnnxAttr[]){ INT_ATTR("sample_size", 1000) }, 1, &l,
                      1, 1));
    assert_int_equal(out(&c, 0)->type.dtype, QN_DTYPE_I32);
    ones = 0;
    for (int i = 0; i < 1000; i++)
        ones += ((const int32_t *)out(&c, 0)->data)[i];
    assert_true(llabs(ones - 731) < 85); /* e / (1 + e) of them */
    one_close(&c);
}

static void test_windows(void **state)
{
    One c;
    one_open(&c);
    const QnOnnxAttr symmetric[] = { INT_ATTR("periodic", 0), INT_ATTR("output_datatype", 11) };
    const QnTensor one = SCALAR(I32, int32_t, 1), five = SCALAR(I64, int64_t, 5);
    assert_ok(one_run(&c, "HannWindow", 17, symmetric, 2, &five, 1, 1));
    assert_int_equal(out(&c, 0)->type.dtype, QN_DTYPE_F64);
    const double want[] = { 0, 0.5, 1, 0.5, 0 };
    for (int i = 0; i < 5; i++)
        assert_true(fabs(((const double *)out(&c, 0)->data)[i] - want[i]) < 1e-15);
    assert_ok(one_run(&c, "HammingWindow", 17, symmetric, 1, &one, 1, 1));
    assert_true(fabs((double)((const float *)out(&c, 0)->data)[0] - 4.0 / 46) < 1e-7);
    const QnTensor less = SCALAR(I64, int64_t, -1), huge = SCALAR(I64, int64_t, INT64_C(1) << 40);
    assert_fails(one_run(&c, "HannWindow", 17, NULL, 0, &less, 1, 1), QN_EARG, "-1");
    assert_fails(one_run(&c, "HannWindow", 17, NULL, 0, &huge, 1, 1), QN_EUNSUPPORTED, "at most");
    const QnTensor mel[] = { SCALAR(I32, int32_t, 4), SCALAR(I32, int32_t, 16),
                             SCALAR(I32, int32_t, 0), SCALAR(F32, float, 0),
                             SCALAR(F32, float, 4000) };
    assert_fails(one_run(&c, "MelWeightMatrix", 17, NULL, 0, mel, 5, 1), QN_EARG, "rates");
    one_close(&c);
}

/* Two tensors of other shapes, before the first step and after. */
static void test_adam(void **state)
{
    One c;
    one_open(&c);
    for (int64_t t = 0; t < 3; t += 2) {
        const QnTensor in[] = {
            SCALAR(F32, float, 0.5F),           SCALAR(I64, int64_t, t),
            TENSOR(F32, QN_SHAPE(1), float, 2), TENSOR(F32, QN_SHAPE(1), float, 4),
            TENSOR(F32, QN_SHAPE(1), float, 1), TENSOR(F32, QN_SHAPE(1), float, 9),
        };
        QnItem *items[6];
        for (int i = 0; i < 6; i++)
            items[i] = one_item(&c, &in[i]);
        const QnOnnxAttr attr[] = { FLOAT_ATTR("alpha", 0.5F), FLOAT_ATTR("beta", 0.75F),
                                    FLOAT_ATTR("epsilon", 0) };
        assert_ok(one_run_items(&c, TRAINING, "Adam", 1, attr, 3, items, 6, 3));
        double v = 0.5 * 1 + 0.5 * 4, h = 0.75 * 9 + 0.25 * 16;
        double rate = t ? 0.5 * sqrt(1 - 0.75 * 0.75) / (1 - 0.5 * 0.5) : 0.5;
        assert_true(fabs((double)((const float *)out(&c, 1)->data)[0] - v) < 1e-5);
        assert_true(fabs((double)((const float *)out(&c, 2)->data)[0] - h) < 1e-5);
        assert_true(fabs((double)((const float *)out(&c, 0)->data)[0] - (2 - rate * v / sqrt(h))) <
                    1e-5);
        assert_fails(one_run_items(&c, TRAINING, "Adam", 1, NULL, 0, items, 5, 1), QN_EFORMAT,
                     "5 inputs");
    }
    one_close(&c);
}

/* ---- Gradient: of y, that nobody reads, by x and by what lies between -------------------------
 */

static QnStatus run_gradient(One *c, const char *last_input, const float *x)
{
    static const QnOnnxType any = { .kind = QN_ONNX_TYPE_TENSOR, .rank = -1 };
    const char *const in[] = { "x" }, *const mid[] = { "m" }, *const top[] = { "y" };
    const char *const by[] = { "x", last_input }, *const made[] = { "dx", "dm" };
    const QnText names[] = { TEXT("x"), TEXT("m") };
    const QnOnnxAttr attr[] = { { .name = "xs", .kind = QN_ONNX_STRINGS, .n = 2, .strings = names },
                                TEXT_ATTR("y", "y") };
    QnOnnxDef node[] = {
        { .name = "gelu", .op = "Gelu", .n_in = 1, .n_out = 1, .in = in, .out = mid },
        { .name = "sinh", .op = "Sinh", .n_in = 1, .n_out = 1, .in = mid, .out = top },
        { .name = "grad",
          .op = "Gradient",
          .domain = TRAINING,
          .n_in = 2,
          .n_out = 2,
          .in = by,
          .out = made,
          .n_attr = 2,
          .attr = attr },
    };
    for (int i = 0; i < 3; i++) {
        node[i].domain = node[i].domain ? node[i].domain : "";
    }
    QnOnnxInfo input[] = { { "x", &any } };
    QnOnnxInfo output[] = { { "dx", &any }, { "dm", &any }, { "m", &any } };
    QnOnnxGraph g = { .name = "g",
                      .n_nodes = 3,
                      .n_inputs = 1,
                      .n_outputs = 3,
                      .node = node,
                      .input = input,
                      .output = output };
    char path[] = "gradient.onnx";
    QnOnnxOpset sets[] = { { "", 20 }, { TRAINING, 1 } };
    QnOnnxModel m = { .path = path, .n_opset = 2, .opset = sets, .graph = &g };
    QnTensor *t = qn_arena_alloc(c->arena, sizeof *t);
    assert_non_null(t);
    *t = (QnTensor){ .type = { .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(3) }, .data = x };
    QnItem *given[] = { one_item(c, t) };
    return qn_onnx_run(&m, c->device, given, c->arena, c->out, NULL);
}

static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x / sqrt(2)));
}

static void test_gradient(void **state)
{
    One c;
    const float x[] = { -1, 0.5F, 2 };
    one_open(&c);
    if (run_gradient(&c, "m", x) != QN_OK)
        fail_msg("%s", qn_error_last()->text);
    for (int i = 0; i < 3; i++) {
        double v = (double)x[i], e = 1e-5, m = gelu(v);
        double slope = (sinh(gelu(v + e)) - sinh(gelu(v - e))) / (2 * e);
        assert_true(fabs((double)((const float *)out(&c, 0)->data)[i] - slope) < 1e-4);
        assert_true(fabs((double)((const float *)out(&c, 1)->data)[i] - cosh(m)) < 1e-4);
        assert_true(fabs((double)((const float *)out(&c, 2)->data)[i] - m) < 1e-5);
    }
    assert_fails(run_gradient(&c, "x", x), QN_EUNSUPPORTED, "at other values than those of 'm'");
    one_close(&c);
}
