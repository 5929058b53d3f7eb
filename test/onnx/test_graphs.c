/* Nets as one fixed graph: statistics that runs keep, elements that are dropped, lengths. */
#include "model.h"
#include "one_node.h"

#include "ir/print.h"

static QnGraph *import(const Made *m, QnDevice *d, bool training)
{
    QnGraph *g = NULL;
    QnOnnxImportOptions o = { .training = training, .states = true };
    assert_ok(qn_onnx_import(&m->model, d, &o, &g, NULL));
    assert_ok(qn_graph_verify(g));
    return g;
}

static int count(QnGraph *g, const char *what)
{
    QnStr text = { 0 };
    int n = 0;
    assert_ok(qn_graph_print(g, &text));
    for (const char *p = qn_str_text(&text); (p = strstr(p, what)); p++)
        n++;
    qn_str_fini(&text);
    return n;
}

static void test_batch_norm_and_dropout(void **state)
{
    static const char *const norm_in[] = { "x", "scale", "bias", "mean", "var" };
    static const char *const y[] = { "y" }, *const z[] = { "z" }, *const end[] = { "end" };
    Made m;
    One c;
    one_open(&c);
    const QnTensor t = TENSOR(F32, QN_SHAPE(2), float, 1, 2);
    made_begin(&m, 15);
    m.model.path = "made.onnx";
    for (int i = 1; i < 5; i++)
        made_init(&m, norm_in[i], &t);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(4, 2, 3));
    made_node(&m, "BatchNormalization", norm_in, 5, y, 1);
    made_node(&m, "Dropout", y, 1, z, 1);
    made_node(&m, "Dropout", z, 1, end, 1);
    made_output(&m, "end", QN_DTYPE_F32, QN_SHAPE(4, 2, 3));

    QnGraph *g = import(&m, c.device, false);
    assert_int_equal(count(g, "assign("), 0);
    assert_int_equal(count(g, "dropout("), 0);
    assert_int_equal(count(g, "trainable=true"), 2); /* scale and bias, no statistics */
    qn_graph_free(g);

    g = import(&m, c.device, true);
    assert_int_equal(count(g, "assign("), 2);
    assert_int_equal(count(g, "dropout("), 2);
    assert_int_equal(count(g, "\"key\""), 1);
    assert_int_equal(count(g, "trainable=true"), 2);
    qn_graph_free(g);
    one_close(&c);
}

/* Lengths of the file that are all steps leave the operator whole; others are unrolled. */
static void test_lengths_that_say_nothing(void **state)
{
    static const char *const in[] = { "x", "w", "r", "", "lengths" };
    static const char *const out[] = { "y" };
    for (int last = 2; last <= 3; last++) {
        Made m;
        One c;
        one_open(&c);
        const QnTensor w = TENSOR(F32, QN_SHAPE(1, 1, 1), float, .5f);
        const QnTensor lengths = TENSOR(I32, QN_SHAPE(2), int32_t, 3, last);
        const QnOnnxAttr hidden = INT_ATTR("hidden_size", 1);
        made_begin(&m, 14);
        m.model.path = "made.onnx";
        made_init(&m, "w", &w);
        made_init(&m, "r", &w);
        made_init(&m, "lengths", &lengths);
        made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(3, 2, 1));
        QnOnnxDef *d = made_node(&m, "RNN", in, 5, out, 1);
        d->attr = &hidden;
        d->n_attr = 1;
        made_output(&m, "y", QN_DTYPE_F32, QN_SHAPE(3, 1, 2, 1));
        QnGraph *g = import(&m, c.device, false);
        assert_int_equal(count(g, "rnn("), last == 3);
        qn_graph_free(g);
        one_close(&c);
    }
}
