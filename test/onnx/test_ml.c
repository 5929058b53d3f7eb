/* ai.onnx.ml, regular expressions, and operators of the newest opsets. */
#include "one_node.h"

#define ML(c, op, attr, n_attr, x, n_out)                                                          \
    one_run_items(c, "ai.onnx.ml", op, 3, attr, n_attr, (QnItem *[]){ one_item(c, x) }, 1, n_out)

static void near(const One *c, int i, int64_t n, const double *want)
{
    const QnTensor *t = c->out[i]->known;
    assert_non_null(t);
    assert_int_equal(t->type.dtype, QN_DTYPE_F32);
    assert_int_equal(qn_shape_count(&t->type.shape), n);
    for (int64_t k = 0; k < n; k++)
        if (!(fabs((double)((const float *)t->data)[k] - want[k]) < 1e-6))
            fail_msg("[%lld] is %g, expected %g", (long long)k, (double)((const float *)t->data)[k],
                     want[k]);
}
#define NEAR(c, i, n, ...) near(c, i, n, (double[]){ __VA_ARGS__ })

static void test_features(void **state)
{
    One c;
    one_open(&c);
    const QnTensor x = TENSOR(F32, QN_SHAPE(2, 2), float, 3, -4, 0, 0);
    const QnOnnxAttr scaler[] = { FLOATS_ATTR("offset", 2, 1, 2), FLOATS_ATTR("scale", 1, 0.5F) };
    assert_ok(ML(&c, "Scaler", scaler, 2, &x, 1));
    NEAR(&c, 0, 4, 1, -3, -0.5, -1);
    assert_ok(ML(&c, "Normalizer", (QnOnnxAttr[]){ TEXT_ATTR("norm", "L2") }, 1, &x, 1));
    NEAR(&c, 0, 4, 0.6, -0.8, 0, 0);
    assert_ok(ML(&c, "Normalizer", (QnOnnxAttr[]){ TEXT_ATTR("norm", "L1") }, 1, &x, 1));
    NEAR(&c, 0, 4, 3.0 / 7, -4.0 / 7, 0, 0);
    assert_ok(ML(&c, "Normalizer", NULL, 0, &x, 1));
    NEAR(&c, 0, 4, 1, -4.0 / 3, 0, 0);
    assert_ok(ML(&c, "Binarizer", (QnOnnxAttr[]){ FLOAT_ATTR("threshold", 1) }, 1, &x, 1));
    NEAR(&c, 0, 4, 1, 0, 0, 0);
    const QnOnnxAttr imputer[] = { FLOATS_ATTR("imputed_value_floats", 2, 7, 8),
                                   FLOAT_ATTR("replaced_value_float", NAN) };
    const QnTensor gaps = TENSOR(F32, QN_SHAPE(2, 2), float, NAN, 1, 2, NAN);
    assert_ok(ML(&c, "Imputer", imputer, 2, &gaps, 1));
    NEAR(&c, 0, 4, 7, 1, 2, 8);
    const QnTensor ids = TENSOR(I64, QN_SHAPE(3), int64_t, 5, 4, 3);
    assert_ok(
        ML(&c, "OneHotEncoder", (QnOnnxAttr[]){ INTS_ATTR("cats_int64s", 2, 3, 5) }, 1, &ids, 1));
    NEAR(&c, 0, 6, 0, 1, 0, 0, 1, 0);
    const QnTensor column = TENSOR(I64, QN_SHAPE(2), int64_t, 6, 7);
    assert_ok(one_run_items(&c, "ai.onnx.ml", "FeatureVectorizer", 1, NULL, 0,
                            (QnItem *[]){ one_item(&c, &x), one_item(&c, &column) }, 2, 1));
    NEAR(&c, 0, 6, 3, -4, 6, 0, 0, 7);
    assert_fails(ML(&c, "Scaler", (QnOnnxAttr[]){ FLOATS_ATTR("scale", 3, 1, 2, 3) }, 1, &x, 1),
                 QN_ESHAPE, "one for each of 2");
    one_close(&c);
}

static void test_linear(void **state)
{
    One c;
    one_open(&c);
    const QnTensor x = TENSOR(F32, QN_SHAPE(2, 2), float, 1, 2, -3, 1);
    QnOnnxAttr attr[] = {
        FLOATS_ATTR("coefficients", 4, 1, 0, 0, 1),
        FLOATS_ATTR("intercepts", 2, 0.5F, 0),
        TEXTS_ATTR("classlabels_strings", 2, TEXT("no"), TEXT("yes")),
        TEXT_ATTR("post_transform", "LOGISTIC"),
        INT_ATTR("targets", 2),
    };
    assert_ok(ML(&c, "LinearClassifier", attr, 4, &x, 2));
    const QnText *label = c.out[0]->known->text;
    assert_memory_equal(label[0].s, "yes", 3);
    assert_memory_equal(label[1].s, "yes", 3);
    NEAR(&c, 1, 4, 1 / (1 + exp(-1.5)), 1 / (1 + exp(-2)), 1 / (1 + exp(2.5)), 1 / (1 + exp(-1)));
    attr[2] = INTS_ATTR("classlabels_ints", 2, 10, 20);
    attr[3] = TEXT_ATTR("post_transform", "SOFTMAX_ZERO");
    assert_ok(ML(&c, "LinearClassifier", attr, 4, &x, 2));
    one_want(&c, 0, TENSOR(I64, QN_SHAPE(2), int64_t, 20, 20));
    attr[3] = TEXT_ATTR("post_transform", "PROBIT");
    assert_fails(ML(&c, "LinearClassifier", attr, 4, &x, 2), QN_EUNSUPPORTED, "post_transform");
    attr[3] = attr[4];
    assert_ok(ML(&c, "LinearRegressor", attr, 4, &x, 1));
    NEAR(&c, 0, 4, 1.5, 2, -2.5, 1);
    attr[3] = INT_ATTR("targets", 3);
    assert_fails(ML(&c, "LinearRegressor", attr, 4, &x, 1), QN_ESHAPE, "4 coefficients");
    one_close(&c);
}

static void test_labels(void **state)
{
    One c;
    one_open(&c);
    const QnTensor x = TEXTS(3, TEXT("b"), TEXT("a"), TEXT("?"));
    const QnOnnxAttr attr[] = { TEXTS_ATTR("keys_strings", 2, TEXT("a"), TEXT("b")),
                                FLOATS_ATTR("values_floats", 2, 1, 2),
                                FLOAT_ATTR("default_float", 9) };
    assert_ok(ML(&c, "LabelEncoder", attr, 3, &x, 1));
    one_want(&c, 0, TENSOR(F32, QN_SHAPE(3), float, 2, 1, 9));
    const QnTensor f = TENSOR(F32, QN_SHAPE(2), float, NAN, 1);
    const QnOnnxAttr back[] = { FLOATS_ATTR("keys_floats", 1, NAN),
                                TEXTS_ATTR("values_strings", 1, TEXT("none")) };
    assert_ok(ML(&c, "LabelEncoder", back, 2, &f, 1));
    assert_memory_equal(c.out[0]->known->text[0].s, "none", 4);
    assert_memory_equal(c.out[0]->known->text[1].s, "_Unused", 7);
    const QnOnnxAttr both[] = { TEXTS_ATTR("cats_strings", 2, TEXT("a"), TEXT("b")),
                                INTS_ATTR("cats_int64s", 2, 7, 8),
                                TEXT_ATTR("default_string", "-") };
    const QnTensor ids = TENSOR(I64, QN_SHAPE(2), int64_t, 8, 9);
    assert_ok(ML(&c, "CategoryMapper", both, 3, &x, 1));
    one_want(&c, 0, TENSOR(I64, QN_SHAPE(3), int64_t, 8, 7, -1));
    assert_ok(ML(&c, "CategoryMapper", both, 3, &ids, 1));
    assert_memory_equal(c.out[0]->known->text[0].s, "b", 1);
    assert_memory_equal(c.out[0]->known->text[1].s, "-", 1);
    assert_fails(ML(&c, "CategoryMapper", both, 1, &x, 1), QN_EFORMAT, "'cats_int64s'");
    assert_fails(ML(&c, "LabelEncoder", back, 2, &x, 1), QN_EDTYPE, "keys' type");
    assert_fails(ML(&c, "LabelEncoder", attr, 1, &x, 1), QN_EFORMAT, "values");
    one_close(&c);
}

static QnStatus match(One *c, const char *pattern, const char *text, bool *hit)
{
    const QnOnnxAttr attr = { .name = "pattern",
                              .kind = QN_ONNX_STRING,
                              .s = { pattern, strlen(pattern) } };
    const QnTensor x = TEXTS(1, { text, strlen(text) });
    QnStatus st = one_run(c, "RegexFullMatch", 20, &attr, 1, &x, 1, 1);
    *hit = st == QN_OK && *(const bool *)c->out[0]->known->data;
    return st;
}

static void test_regex(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool hit;
    } cases[] = {
        { "a|bc", "bc", true },
        { "a|bc", "abc", false },
        { "[^\\]\\-^x]+", "ab", true },
        { "[^\\]\\-^x]+", "a-", false },
        { "[]a-c^-]*", "]^-b", true },
        { "\\d{2,3}?\\.\\w+", "12.a_9", true },
        { "\\d{2,3}?\\.\\w+", "1.a", false },
        { "(?:x\\S)*", "xyx", false },
        { "(?:x\\S)*", "xyx.", true },
        { "a.b", "a\nb", false },
        { "[\\^]", "^", true },
        { "", "", true },
        { "[[\\].]+", "[.]", true },
        { "\\bcom\\b", "com", true },
    };
    One c;
    bool hit;
    one_open(&c);
    for (int i = 0; i < (int)QN_COUNT(cases); i++) {
        if (match(&c, cases[i].pattern, cases[i].text, &hit) != QN_OK)
            fail_msg("%s: %s", cases[i].pattern, qn_error_last()->text);
        if (hit != cases[i].hit)
            fail_msg("'%s' %s '%s'", cases[i].pattern, hit ? "matches" : "does not match",
                     cases[i].text);
    }
    static const char *const refused[] = {
        "(?i)a", "\\pN", "a{2", "[[:alpha:]]", "(", "[b-a]", "((a{100}){100}){100}",
        "a**",   "\\1",  "[a",  "a\\"
    };
    for (int i = 0; i < (int)QN_COUNT(refused); i++)
        if (match(&c, refused[i], "a", &hit) != QN_EUNSUPPORTED)
            fail_msg("'%s' is not refused", refused[i]);
    one_close(&c);
}

static void test_recent(void **state)
{
    One c;
    one_open(&c);
    const QnTensor cache = TENSOR(F32, QN_SHAPE(2, 3, 1), float, 0, 0, 0, 0, 0, 0);
    const QnTensor update = TENSOR(F32, QN_SHAPE(2, 2, 1), float, 1, 2, 3, 4);
    const QnTensor in[] = { cache, update, TENSOR(I64, QN_SHAPE(2), int64_t, 1, 2) };
    const QnOnnxAttr circular = TEXT_ATTR("mode", "circular");
    assert_ok(one_run(&c, "TensorScatter", 24, &circular, 1, in, 3, 1));
    one_want(&c, 0, TENSOR(F32, QN_SHAPE(2, 3, 1), float, 0, 1, 2, 4, 0, 3));
    assert_fails(one_run(&c, "TensorScatter", 24, NULL, 0, in, 3, 1), QN_EARG, "of 3");
    const QnTensor one = TENSOR(F32, QN_SHAPE(1), float, 1);
    assert_ok(one_run(&c, "BitCast", 26, (QnOnnxAttr[]){ INT_ATTR("to", 6) }, 1, &one, 1, 1));
    one_want(&c, 0, TENSOR(I32, QN_SHAPE(1), int32_t, 0x3f800000));
    assert_fails(one_run(&c, "BitCast", 26, (QnOnnxAttr[]){ INT_ATTR("to", 7) }, 1, &one, 1, 1),
                 QN_EDTYPE, "as many bits");
    const QnTensor conv[] = { TENSOR(F32, QN_SHAPE(1, 1, 1), float, 1),
                              TENSOR(F32, QN_SHAPE(1, 1, 3), float, 1, 10, 100), NO_INPUT,
                              TENSOR(F32, QN_SHAPE(1, 1, 2), float, 2, 3) };
    assert_ok(one_run(&c, "CausalConvWithState", 27, NULL, 0, conv, 4, 2));
    one_want(&c, 0, TENSOR(F32, QN_SHAPE(1, 1, 1), float, 132));
    one_want(&c, 1, TENSOR(F32, QN_SHAPE(1, 1, 2), float, 3, 1));
    one_close(&c);
}

/* One head of one number: the state halves, then learns what it said wrong of the key. */
static void test_linear_attention(void **state)
{
    One c;
    one_open(&c);
    const float half = -0.69314718F;
    const QnTensor in[] = {
        TENSOR(F32, QN_SHAPE(1, 2, 1), float, 2, 1),
        TENSOR(F32, QN_SHAPE(1, 2, 1), float, 3, 1),
        TENSOR(F32, QN_SHAPE(1, 2, 1), float, 5, 1),
        TENSOR(F32, QN_SHAPE(1, 1, 1, 1), float, 2),
        TENSOR(F32, QN_SHAPE(1, 2, 1), float, half, half),
        TENSOR(F32, QN_SHAPE(1, 2, 1), float, 0.5F, 1),
    };
    const QnOnnxAttr attr[] = { INT_ATTR("q_num_heads", 1), INT_ATTR("kv_num_heads", 1),
                                TEXT_ATTR("update_rule", "other") };
    assert_ok(one_run(&c, "LinearAttention", 27, attr, 2, in, 6, 2));
    NEAR(&c, 0, 2, 8, 1);
    NEAR(&c, 1, 1, 1);
    assert_fails(one_run(&c, "LinearAttention", 27, attr, 1, in, 6, 2), QN_ESHAPE, "do not divide");
    assert_fails(one_run(&c, "LinearAttention", 27, attr, 3, in, 6, 2), QN_EUNSUPPORTED,
                 "update_rule");
    assert_fails(one_run(&c, "LinearAttention", 27, attr, 2, in, 5, 2), QN_ESHAPE, "input 5");
    one_close(&c);
}
