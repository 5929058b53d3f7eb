/* Forms of nets' operators that ONNX's own cases leave out. Expected numbers are exact by hand, or
 * ONNX Runtime's on the inputs shown. */
#include "one_node.h"

#define F(shape, ...) TENSOR(F32, shape, float, __VA_ARGS__)

static void run(One *c, const char *op, int64_t opset, const QnOnnxAttr *attr, int n_attr,
                const QnTensor *in, int n_in, int n_out)
{
    if (one_run(c, op, opset, attr, n_attr, in, n_in, n_out) != QN_OK)
        fail_msg("%s-%d: %s", op, (int)opset, qn_error_last()->text);
}

/* Within 1e-5. */
static void want_near(const One *c, int i, QnTensor want)
{
    const QnTensor *got = c->out[i]->known;
    char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
    if (!qn_type_is_equal(&got->type, &want.type))
        fail_msg("output %d is %s, expected %s", i, qn_type_text(&got->type, a),
                 qn_type_text(&want.type, b));
    const float *p = got->data, *q = want.data;
    for (int64_t k = 0; k < qn_shape_count(&want.type.shape); k++)
        if (!(fabsf(p[k] - q[k]) <= 1e-5f * (1 + fabsf(q[k]))))
            fail_msg("output %d: number %d is %g, expected %g", i, (int)k, (double)p[k],
                     (double)q[k]);
}

/* ---- recurrent ------------------------------------------------------------------------------- */

#define STEPS F(QN_SHAPE(4, 2, 1), .5f, -.25f, .75f, 1, -.5f, .25f, .125f, -1)

static void test_rnn_with_an_activation_of_two_numbers(void **state)
{
    One c;
    one_open(&c);
    const QnTensor in[] = { STEPS, F(QN_SHAPE(1, 2, 1), .5f, -.5f),
                            F(QN_SHAPE(1, 2, 2), .25f, .5f, -.5f, .75f) };
    const QnOnnxAttr attr[] = { INT_ATTR("hidden_size", 2),
                                TEXT_ATTR("direction", "reverse"),
                                TEXTS_ATTR("activations", 1, TEXT("Affine")),
                                FLOATS_ATTR("activation_alpha", 1, .5f),
                                FLOATS_ATTR("activation_beta", 1, .125f),
                                FLOAT_ATTR("clip", .3f) };
    run(&c, "RNN", 7, attr, 6, in, 3, 2);
    want_near(&c, 0,
              F(QN_SHAPE(4, 1, 2, 2), .27500001f, -.025000006f, .090625003f, .109375f, .27500001f,
                .019042969f, .27500001f, -.025000006f, .04296875f, .24609375f, .25312501f, .171875f,
                .15625f, .09375f, -.025000006f, .27500001f));
    want_near(&c, 1, F(QN_SHAPE(1, 2, 2), .27500001f, -.025000006f, .090625003f, .109375f));
    one_close(&c);
}

#define LSTM_W F(QN_SHAPE(1, 4, 1), .5f, -.5f, .25f, .75f)
#define LSTM_R F(QN_SHAPE(1, 4, 1), .5f, .25f, -.5f, .75f)
#define LSTM_B F(QN_SHAPE(1, 8), .1f, .2f, .3f, .4f, 0, .1f, 0, -.1f)

static void test_lstm_with_lengths_peepholes_and_coupled_gates(void **state)
{
    One c;
    one_open(&c);
    const QnTensor in[] = { STEPS,
                            LSTM_W,
                            LSTM_R,
                            LSTM_B,
                            TENSOR(I32, QN_SHAPE(2), int32_t, 4, 2),
                            NO_INPUT,
                            NO_INPUT,
                            F(QN_SHAPE(1, 3), .5f, .25f, -.25f) };
    const QnOnnxAttr attr[] = { INT_ATTR("hidden_size", 1), INT_ATTR("input_forget", 1) };
    run(&c, "LSTM", 7, attr, 2, in, 8, 3);
    want_near(&c, 0,
              F(QN_SHAPE(4, 1, 2, 1), .17729722f, .033595387f, .29485777f, .23872891f, .22456698f,
                0, .25152463f, 0));
    want_near(&c, 1, F(QN_SHAPE(1, 2, 1), .25152463f, .23872891f));
    want_near(&c, 2, F(QN_SHAPE(1, 2, 1), .44675773f, .53801668f));
    one_close(&c);
}

static void test_lstm_with_activations_and_clip(void **state)
{
    One c;
    one_open(&c);
    const QnTensor in[] = { STEPS, LSTM_W, LSTM_R, LSTM_B };
    const QnOnnxAttr attr[] = {
        INT_ATTR("hidden_size", 1),
        TEXTS_ATTR("activations", 3, TEXT("HardSigmoid"), TEXT("ScaledTanh"), TEXT("Softsign")),
        FLOATS_ATTR("activation_alpha", 2, .25f, .75f), FLOATS_ATTR("activation_beta", 2, .5f, .5f),
        FLOAT_ATTR("clip", 1)
    };
    run(&c, "LSTM", 7, attr, 5, in, 4, 3);
    want_near(&c, 0,
              F(QN_SHAPE(4, 1, 2, 1), .064240299f, .012357786f, .10861105f, .086967707f,
                .085995302f, .11097118f, .086651459f, .046233445f));
    want_near(&c, 2, F(QN_SHAPE(1, 2, 1), .18124196f, .069976218f));
    one_close(&c);
}

static void test_gru_backwards_with_lengths(void **state)
{
    One c;
    one_open(&c);
    const QnTensor in[] = { STEPS,
                            F(QN_SHAPE(1, 3, 1), .5f, -.5f, .25f),
                            F(QN_SHAPE(1, 3, 1), .5f, .25f, -.5f),
                            F(QN_SHAPE(1, 6), .1f, .2f, .3f, .4f, 0, .1f),
                            TENSOR(I32, QN_SHAPE(2), int32_t, 4, 2),
                            F(QN_SHAPE(1, 2, 1), .5f, -.5f) };
    const QnOnnxAttr attr[] = { INT_ATTR("hidden_size", 1), TEXT_ATTR("direction", "reverse") };
    run(&c, "GRU", 7, attr, 2, in, 6, 2);
    want_near(&c, 0,
              F(QN_SHAPE(4, 1, 2, 1), .37273103f, .074035339f, .35869518f, -.1360441f, .31870255f,
                0, .43301964f, 0));
    want_near(&c, 1, F(QN_SHAPE(1, 2, 1), .37273103f, .074035339f));
    one_close(&c);
}

/* A clip that never bites is unrolled; without it the built-in operator runs. */
static void test_unrolled_is_as_built_in(void **state)
{
    One c;
    one_open(&c);
    const QnTensor w = F(QN_SHAPE(2, 4, 1), .5f, -.5f, .25f, .75f, .3f, .1f, -.2f, .6f);
    const QnTensor r = F(QN_SHAPE(2, 4, 1), .5f, .25f, -.5f, .75f, -.1f, .4f, .2f, -.3f);
    const QnTensor in[] = { STEPS, w, r };
    const QnOnnxAttr attr[] = { INT_ATTR("hidden_size", 1), TEXT_ATTR("direction", "bidirectional"),
                                FLOAT_ATTR("clip", 100) };
    run(&c, "LSTM", 14, attr, 2, in, 3, 3);
    QnItem *whole[3] = { c.out[0], c.out[1], c.out[2] };
    run(&c, "LSTM", 14, attr, 3, in, 3, 3);
    for (int i = 0; i < 3; i++)
        want_near(&c, i, *whole[i]->known);
    one_close(&c);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Opset 10 rounds up where an axis shrinks, down where it grows. */
static void test_resize_of_opset_10(void **state)
{
    One c;
    one_open(&c);
    const QnTensor x = F(QN_SHAPE(1, 1, 1, 4), 1, 2, 3, 4);
    run(&c, "Resize", 10, NULL, 0, (QnTensor[]){ x, F(QN_SHAPE(4), 1, 1, 1, .6f) }, 2, 1);
    one_want(&c, 0, F(QN_SHAPE(1, 1, 1, 2), 1, 3));
    run(&c, "Resize", 10, NULL, 0, (QnTensor[]){ x, F(QN_SHAPE(4), 1, 1, 1, 1.5f) }, 2, 1);
    one_want(&c, 0, F(QN_SHAPE(1, 1, 1, 6), 1, 1, 2, 3, 3, 4));
    const QnOnnxAttr up[] = { FLOATS_ATTR("scales", 4, 1, 1, 2, 1), TEXT_ATTR("mode", "linear") };
    run(&c, "Upsample", 7, up, 2, (QnTensor[]){ F(QN_SHAPE(1, 1, 2, 1), 1, 2) }, 1, 1);
    one_want(&c, 0, F(QN_SHAPE(1, 1, 4, 1), 1, 1.5f, 2, 2));
    assert_fails(
        one_run(&c, "Resize", 10, NULL, 0, (QnTensor[]){ x, F(QN_SHAPE(4), 1, 1, 1, .1f) }, 2, 1),
        QN_EUNSUPPORTED, "scale 0.1 of an axis of 4");
    one_close(&c);
}

/* What an axis of one element becomes, and integers between others. */
static void test_resize_of_integers(void **state)
{
    One c;
    one_open(&c);
    const QnTensor x = TENSOR(U8, QN_SHAPE(1, 1, 1, 2), uint8_t, 0, 100), none = NO_INPUT;
    const QnTensor to = TENSOR(I64, QN_SHAPE(4), int64_t, 1, 1, 1, 4);
    const QnOnnxAttr mode = TEXT_ATTR("mode", "linear");
    run(&c, "Resize", 13, &mode, 1, (QnTensor[]){ x, none, none, to }, 4, 1);
    one_want(&c, 0, TENSOR(U8, QN_SHAPE(1, 1, 1, 4), uint8_t, 0, 25, 75, 100));
    one_close(&c);
}

/* VALID says how many windows there are; ceil_mode adds none. Indices count columns first. */
static void test_max_pool_of_integers(void **state)
{
    One c;
    one_open(&c);
    const QnTensor x = TENSOR(U8, QN_SHAPE(1, 1, 2, 4), uint8_t, 1, 2, 9, 4, 250, 6, 7, 8);
    const QnOnnxAttr attr[] = { INTS_ATTR("kernel_shape", 2, 2, 2), INTS_ATTR("strides", 2, 1, 3),
                                TEXT_ATTR("auto_pad", "VALID"), INT_ATTR("ceil_mode", 1),
                                INT_ATTR("storage_order", 1) };
    run(&c, "MaxPool", 12, attr, 5, &x, 1, 2);
    one_want(&c, 0, TENSOR(U8, QN_SHAPE(1, 1, 1, 1), uint8_t, 250));
    one_want(&c, 1, TENSOR(I64, QN_SHAPE(1, 1, 1, 1), int64_t, 1));
    run(&c, "MaxPool", 12, attr, 2, &x, 1, 1);
    one_want(&c, 0, TENSOR(U8, QN_SHAPE(1, 1, 1, 1), uint8_t, 250));
    one_close(&c);
}

/* An output larger than the windows reach has the bias there. */
static void test_conv_transpose_beyond_its_windows(void **state)
{
    One c;
    one_open(&c);
    const QnTensor in[] = { F(QN_SHAPE(1, 1, 2), 1, 2), F(QN_SHAPE(1, 1, 1), 3),
                            F(QN_SHAPE(1), 10) };
    const QnOnnxAttr attr[] = { INTS_ATTR("output_shape", 1, 5), INTS_ATTR("strides", 1, 2) };
    run(&c, "ConvTranspose", 11, attr, 2, in, 3, 1);
    one_want(&c, 0, F(QN_SHAPE(1, 1, 5), 13, 10, 16, 10, 10));
    one_close(&c);
}

/* ---- norms ----------------------------------------------------------------------------------- */

static void test_batch_norm_of_old_opsets(void **state)
{
    One c;
    one_open(&c);
    const QnTensor one = F(QN_SHAPE(1), 1), two = F(QN_SHAPE(1), 2), none = F(QN_SHAPE(1), 0);
    const QnTensor in[] = { F(QN_SHAPE(2, 1, 1), 1, 5), two, one, none, F(QN_SHAPE(1), 4) };
    const QnOnnxAttr attr[] = { FLOAT_ATTR("epsilon", 0), INT_ATTR("is_test", 1),
                                FLOAT_ATTR("momentum", .5f) };
    run(&c, "BatchNormalization", 6, attr, 2, in, 5, 1);
    want_near(&c, 0, F(QN_SHAPE(2, 1, 1), 2, 6));
    run(&c, "BatchNormalization", 9, attr, 1, in, 5, 1);
    want_near(&c, 0, F(QN_SHAPE(2, 1, 1), 2, 6));
    const QnOnnxAttr train[] = { attr[0], attr[2] }; /* by its outputs: mean 3, variance 4 */
    run(&c, "BatchNormalization", 9, train, 2, in, 5, 3);
    want_near(&c, 0, F(QN_SHAPE(2, 1, 1), -1, 3));
    want_near(&c, 1, F(QN_SHAPE(1), 1.5f));
    want_near(&c, 2, F(QN_SHAPE(1), 4));
    one_close(&c);
}

/* Since opset 14 parameters may be of another type than x; statistics of a layer norm are f32. */
static void test_norms_of_mixed_types(void **state)
{
    One c;
    one_open(&c);
    const QnTensor half = TENSOR(F16, QN_SHAPE(2, 1, 1), uint16_t, 0x3c00, 0x4500); /* 1, 5 */
    const QnTensor in[] = { half, F(QN_SHAPE(1), 2), F(QN_SHAPE(1), 1), F(QN_SHAPE(1), 0),
                            F(QN_SHAPE(1), 4) };
    const QnOnnxAttr attr[] = { FLOAT_ATTR("epsilon", 0), INT_ATTR("training_mode", 1) };
    run(&c, "BatchNormalization", 15, attr, 1, in, 5, 1);
    one_want(&c, 0, TENSOR(F16, QN_SHAPE(2, 1, 1), uint16_t, 0x4000, 0x4600)); /* 2, 6 */
    run(&c, "BatchNormalization", 15, attr, 2, in, 5, 3);
    one_want(&c, 0, TENSOR(F16, QN_SHAPE(2, 1, 1), uint16_t, 0xbc00, 0x4200)); /* -1, 3 */
    want_near(&c, 1, F(QN_SHAPE(1), .3f));
    const QnTensor x = TENSOR(F64, QN_SHAPE(1, 2), double, 1, 5);
    run(&c, "LayerNormalization", 17, attr, 1,
        (QnTensor[]){ x, TENSOR(F64, QN_SHAPE(2), double, 1, 1) }, 2, 3);
    want_near(&c, 1, F(QN_SHAPE(1, 1), 3));
    want_near(&c, 2, F(QN_SHAPE(1, 1), .5f));
    one_close(&c);
}

static void test_batch_norm_of_elements(void **state)
{
    One c;
    one_open(&c);
    const QnTensor in[] = { F(QN_SHAPE(1, 1, 2), 1, 5), F(QN_SHAPE(2), 1, 2), F(QN_SHAPE(2), 0, 1),
                            F(QN_SHAPE(2), 1, 1), F(QN_SHAPE(2), 1, 4) };
    const QnOnnxAttr attr[] = { FLOAT_ATTR("epsilon", 0), INT_ATTR("spatial", 0) };
    run(&c, "BatchNormalization", 7, attr, 2, in, 5, 1);
    want_near(&c, 0, F(QN_SHAPE(1, 1, 2), 0, 5));
    assert_fails(one_run(&c, "BatchNormalization", 7, attr, 2, in, 5, 3), QN_EUNSUPPORTED,
                 "training with spatial=0");
    one_close(&c);
}

/* Opset 18 has a scale for each group, 21 for each channel. */
static void test_group_norm_of_groups_and_channels(void **state)
{
    One c;
    one_open(&c);
    const QnTensor x = F(QN_SHAPE(1, 4, 1), -1, 1, -2, 2);
    const QnOnnxAttr attr[] = { FLOAT_ATTR("epsilon", 0), INT_ATTR("num_groups", 2) };
    run(&c, "GroupNormalization", 18, attr, 2,
        (QnTensor[]){ x, F(QN_SHAPE(2), 1, 3), F(QN_SHAPE(2), 0, 10) }, 3, 1);
    want_near(&c, 0, F(QN_SHAPE(1, 4, 1), -1, 1, 7, 13));
    run(&c, "GroupNormalization", 21, attr, 2,
        (QnTensor[]){ x, F(QN_SHAPE(4), 1, 2, 3, 4), F(QN_SHAPE(4), 0, 0, 10, 10) }, 3, 1);
    want_near(&c, 0, F(QN_SHAPE(1, 4, 1), -1, 2, 7, 14));
    one_close(&c);
}

/* Of two neighbours the second lies after the channel. */
static void test_lrn_of_an_even_size(void **state)
{
    One c;
    one_open(&c);
    const QnTensor x = F(QN_SHAPE(1, 3, 1, 1), 1, 2, 3);
    const QnOnnxAttr attr[] = { INT_ATTR("size", 2), FLOAT_ATTR("alpha", 2), FLOAT_ATTR("beta", 1),
                                FLOAT_ATTR("bias", 1) };
    run(&c, "LRN", 13, attr, 4, &x, 1, 1);
    want_near(&c, 0, F(QN_SHAPE(1, 3, 1, 1), 1 / 6.f, 2 / 14.f, 3 / 10.f));
    one_close(&c);
}

/* ---- others ---------------------------------------------------------------------------------- */

/* Of the mask of opset 7 to 9 each element is one of x's type. */
static void test_dropout_as_it_is_run(void **state)
{
    One c;
    one_open(&c);
    const QnTensor x = F(QN_SHAPE(3), 1, 2, 3), yes = TENSOR(BOOL, (QnShape){ 0 }, uint8_t, 1);
    run(&c, "Dropout", 7, NULL, 0, &x, 1, 2);
    one_want(&c, 0, x);
    one_want(&c, 1, F(QN_SHAPE(3), 1, 1, 1));
    run(&c, "Dropout", 13, NULL, 0, (QnTensor[]){ x, SCALAR(F32, float, 1), yes }, 3, 2);
    one_want(&c, 0, F(QN_SHAPE(3), 0, 0, 0));
    one_want(&c, 1, TENSOR(BOOL, QN_SHAPE(3), uint8_t, 0, 0, 0));
    assert_fails(
        one_run(&c, "Dropout", 13, NULL, 0, (QnTensor[]){ x, SCALAR(F32, float, 2), yes }, 3, 1),
        QN_EFORMAT, "the ratio is 2");
    one_close(&c);
}

static void test_products_of_integers(void **state)
{
    One c;
    one_open(&c);
    const int64_t big = INT64_C(1) << 60;
    const QnTensor a = TENSOR(I64, QN_SHAPE(2), int64_t, big, 1);
    const QnTensor b = TENSOR(I64, QN_SHAPE(2), int64_t, 1, 3);
    const QnOnnxAttr dot = TEXT_ATTR("equation", "i,i->");
    run(&c, "MatMul", 13, NULL, 0, (QnTensor[]){ a, b }, 2, 1);
    one_want(&c, 0, SCALAR(I64, int64_t, big + 3));
    run(&c, "Einsum", 12, &dot, 1, (QnTensor[]){ a, b }, 2, 1);
    one_want(&c, 0, SCALAR(I64, int64_t, big + 3));
    one_close(&c);
}

static void test_refusals(void **state)
{
    One c;
    one_open(&c);
    const QnTensor x = F(QN_SHAPE(1, 1, 2), 1, 2), w = F(QN_SHAPE(1, 1, 1, 1), 1);
    const QnOnnxAttr kernel = INTS_ATTR("kernel_shape", 1, 2), size = INT_ATTR("size", 0);
    const QnOnnxAttr bad[] = { kernel, INTS_ATTR("strides", 2, 1, 1) };
    const QnOnnxAttr mode = TEXT_ATTR("mode", "sinc");
    assert_fails(one_run(&c, "Conv", 11, NULL, 0, (QnTensor[]){ x, w }, 2, 1), QN_ESHAPE,
                 "the weights are of rank 4");
    const QnOnnxAttr wide = INTS_ATTR("kernel_shape", 1, 3);
    assert_fails(one_run(&c, "Conv", 11, &wide, 1, (QnTensor[]){ x, x }, 2, 1), QN_ESHAPE,
                 "'kernel_shape' is not that");
    assert_fails(one_run(&c, "MaxPool", 11, NULL, 0, &x, 1, 1), QN_EFORMAT, "'kernel_shape'");
    assert_fails(one_run(&c, "MaxPool", 11, bad, 2, &x, 1, 1), QN_EFORMAT, "'strides' has 2");
    assert_fails(one_run(&c, "LRN", 11, &size, 1, &x, 1, 1), QN_EFORMAT, "'size' is 0");
    assert_fails(one_run(&c, "Resize", 10, &mode, 1, &x, 1, 1), QN_EUNSUPPORTED, "mode");
    one_close(&c);
}

/* Every row with attributes that most operators of nets know, sensible and not: an error or a
 * result, but never a crash. */
static void test_odd_attributes_of_all_rows(void **state)
{
    One c;
    QnMapping m;
    const QnTensor kinds[] = { F(QN_SHAPE(1, 2, 3), 1, 2, 3, 4, 5, 6),
                               F(QN_SHAPE(1, 1, 2, 2), 1, 2, 3, 4),
                               { .type = { QN_DTYPE_F32, 0, QN_SHAPE(1, 0, 2) }, .data = "" },
                               TENSOR(I64, QN_SHAPE(1, 2, 1), int64_t, -1, 1),
                               TENSOR(I64, QN_SHAPE(4), int64_t, 1, 1, 2, INT64_MAX) };
    const QnOnnxAttr sets[][4] = {
        { INTS_ATTR("kernel_shape", 1, 2), INT_ATTR("hidden_size", 1), INT_ATTR("axis", -1),
          INT_ATTR("num_groups", 1) },
        { INTS_ATTR("kernel_shape", 2, 2, 2), INTS_ATTR("strides", 2, 1, INT64_MAX),
          INT_ATTR("q_num_heads", 1), INT_ATTR("kv_num_heads", 1) },
        { INTS_ATTR("kernel_shape", 2, 1, INT64_MIN), INTS_ATTR("pads", 4, 0, 0, -1, 9),
          INT_ATTR("group", 0), INT_ATTR("size", INT64_MAX) },
        { INTS_ATTR("kernel_shape", 0, 0), TEXT_ATTR("direction", "bidirectional"),
          INT_ATTR("num_groups", -1), INTS_ATTR("pooled_shape", 2, 1, 1) },
        { INTS_ATTR("kernel_shape", 2, 1, 1), INTS_ATTR("output_shape", 2, 4, INT64_MAX),
          TEXT_ATTR("auto_pad", "SAME_UPPER"), INTS_ATTR("dilations", 2, INT64_MAX, 1) },
    };
    one_open(&c);
    for (int64_t i = 0; qn_mapping_next(&i, &m);)
        for (int k = 0; k < (int)QN_COUNT(kinds) * (int)QN_COUNT(sets); k++)
            for (int n_in = 1; n_in < 7; n_in++) {
                QnTensor in[NODE_IO];
                for (int j = 0; j < n_in; j++)
                    in[j] = kinds[k % (int)QN_COUNT(kinds)];
                if (m.map->domain ||
                    one_run(&c, m.map->name, m.map->since, sets[k / QN_COUNT(kinds)], 4, in, n_in,
                            2) != QN_EINTERNAL)
                    continue;
                fail_msg("%s-%d: %s", m.map->name, m.map->since, qn_error_last()->text);
            }
    one_close(&c);
}
