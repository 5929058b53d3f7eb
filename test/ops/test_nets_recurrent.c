/* Recurrent networks. */
/* Expected values from PyTorch 2 in float64: torch.nn.RNN, LSTM, GRU with the weights shown. */
#include "values.h"

static void test_rnn(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(3, 1, 2), 0.23, -0.42, 0.25, 0.21, 0.92, 0.58);
    QnValue *h = GIVE(&c, F32, QN_SHAPE(1, 1, 2), -0.79, -0.65);
    QnValue *w = GIVE(&c, F32, QN_SHAPE(1, 2, 2), -0.18, 0.92, -0, 0.78);
    QnValue *r = GIVE(&c, F32, QN_SHAPE(1, 2, 2), -0.12, 0.64, 0.45, 1);
    QnValue *b = GIVE(&c, F32, QN_SHAPE(1, 2), 0.61, -0.67);
    QnValue *rb = GIVE(&c, F32, QN_SHAPE(1, 2), -0.78, -0.63);
    QnNode *n = qn_rnn(c.g, x, h, w, r, b, rb, 0, false);
    WANT(&c, qn_node_out(c.g, n, 0), QN_SHAPE(3, 1, 2), -0.725423998412, -0.9897266563068,
         -0.5140171257645, -0.985286234703, -0.3547796746654, -0.9682931064267);
    WANT(&c, qn_node_out(c.g, n, 1), QN_SHAPE(1, 1, 2), -0.3547796746654, -0.9682931064267);
    case_free(&c);
}

static void test_rnn_with_relu(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(3, 1, 2), -0.35, 0.89, -0.32, 0.37, 0.57, 0.31);
    QnValue *h = GIVE(&c, F32, QN_SHAPE(1, 1, 2), 0.56, -0.95);
    QnValue *w = GIVE(&c, F32, QN_SHAPE(1, 2, 2), -0.89, 0.61, 0.32, 0.5);
    QnValue *r = GIVE(&c, F32, QN_SHAPE(1, 2, 2), -0.44, -0.4, 0.87, -0.92);
    QnValue *b = GIVE(&c, F32, QN_SHAPE(1, 2), -0.55, -0.35);
    QnValue *rb = GIVE(&c, F32, QN_SHAPE(1, 2), 0.68, -0.45);
    QnNode *n = qn_rnn(c.g, x, h, w, r, b, rb, 0, true);
    WANT(&c, qn_node_out(c.g, n, 0), QN_SHAPE(3, 1, 2), 1.118, 0.8942, 0, 0, 0, 0);
    WANT(&c, qn_node_out(c.g, n, 1), QN_SHAPE(1, 1, 2), 0, 0);
    case_free(&c);
}

static void test_lstm_both_ways(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(3, 1, 2), -0.77, -0.09, -0.19, -0.62, -0.67, -0.12);
    QnValue *h = GIVE(&c, F32, QN_SHAPE(2, 1, 2), -0.75, 0.69, 0.89, 0.99);
    QnValue *cell = GIVE(&c, F32, QN_SHAPE(2, 1, 2), 0.77, -0.89, -0.76, 0.43);
    QnValue *w =
        GIVE(&c, F32, QN_SHAPE(2, 8, 2), -0.99, 0.41, -0.44, -0.48, -0.18, -0.48, -0.82, 0.3, 0.82,
             -1, 0.56, -0.76, 0.09, 0.86, -0.72, 0.56, -0.47, -0.09, -0.31, -0.18, 0.81, 0.05,
             -0.58, 0.29, 0.51, -0.95, 0.88, -0.71, -0.1, 0.78, -0.34, 0.83);
    QnValue *r = GIVE(&c, F32, QN_SHAPE(2, 8, 2), 0.95, 0.38, -0.51, -0.03, 0.68, -0.8, 0.66, 0.88,
                      0.2, -0.65, 0.1, -0.19, -0.18, -0.51, -0.94, 0.8, -0.38, -0.09, 0.18, 0.65,
                      0.72, -0.79, -0.54, -0.42, 0.48, 0.2, -0.44, 0.65, 0.39, 0.74, -0.08, 0.17);
    QnValue *b = GIVE(&c, F32, QN_SHAPE(2, 8), -0.77, 0.09, 0.19, 0.06, -0.24, -0.43, -0.23, 0.93,
                      0.19, 0.79, -0.42, 0.71, -0.95, 0.42, -0.94, -0.27);
    QnValue *rb = GIVE(&c, F32, QN_SHAPE(2, 8), 0.49, 0.02, 0.62, 0.03, 0.97, -0.11, -0.42, 0.68,
                       0.13, 0.54, 0.96, -0.52, -0.42, -0.57, 0.11, 0.85);
    QnNode *n = qn_lstm(c.g, x, h, cell, w, r, b, rb, 2);
    WANT(&c, qn_node_out(c.g, n, 0), QN_SHAPE(3, 1, 4), 0.04684447033119, -0.7996631995252,
         -0.2343403478092, -0.2921066968569, 0.1392860055129, -0.2698886203977, -0.1311839521183,
         0.03154653137926, 0.1906370108688, -0.4783795141693, -0.3585021638682, -0.1175298473572);
    WANT(&c, qn_node_out(c.g, n, 1), QN_SHAPE(2, 1, 2), 0.1906370108688, -0.4783795141693,
         -0.2343403478092, -0.2921066968569);
    WANT(&c, qn_node_out(c.g, n, 2), QN_SHAPE(2, 1, 2), 0.6547953849861, -0.6440979226264,
         -1.053522467843, -0.4545289850963);
    case_free(&c);
}

static void test_gru(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(3, 1, 2), 0.86, 0.21, 0.04, 0.38, 0.93, -0.54);
    QnValue *h = GIVE(&c, F32, QN_SHAPE(1, 1, 2), 0.85, 0.97);
    QnValue *w = GIVE(&c, F32, QN_SHAPE(1, 6, 2), -0.34, 0.8, 0.18, -0.58, 0.82, 0.31, -0.22, -0.55,
                      -0.02, -0.96, 0.31, 0.88);
    QnValue *r = GIVE(&c, F32, QN_SHAPE(1, 6, 2), 0.72, 0.93, -0.55, -0.37, 0.31, -0.31, 0.58,
                      -0.11, -0.57, -0.35, 0.89, -0.07);
    QnValue *b = GIVE(&c, F32, QN_SHAPE(1, 6), -0.47, 0.65, -0.54, -1, 0.08, -0.25);
    QnValue *rb = GIVE(&c, F32, QN_SHAPE(1, 6), -0.89, -0.68, -0.82, -0.46, 0.48, 0.17);
    QnNode *n = qn_gru(c.g, x, h, w, r, b, rb, 0);
    WANT(&c, qn_node_out(c.g, n, 0), QN_SHAPE(3, 1, 2), 0.09817419230822, 0.5409022771957,
         -0.1338911374636, 0.2349081780351, 0.3584612279709, -0.2761747298348);
    WANT(&c, qn_node_out(c.g, n, 1), QN_SHAPE(1, 1, 2), 0.3584612279709, -0.2761747298348);
    case_free(&c);
}

static void test_a_symbolic_length_says_what_to_do(void **state)
{
    Case c = case_new();
    QnShape s = { 3, { qn_dim_symbol(c.g, "T"), 1, 1 } };
    QnValue *x = qn_input(c.g, "x", F32, &s), *one = GIVE(&c, F32, QN_SHAPE(1, 1, 1), 1);
    QnNode *n = qn_rnn(c.g, x, one, one, one, NULL, NULL, 0, false);
    assert_non_null(n);
    assert_true(qn_shape_is_equal(&n->out[0].type.shape, &s));
    QnValue *out[2] = { 0 };
    n->op->lower(c.g, n, out);
    assert_fails(qn_graph_check(c.g), QN_EUNSUPPORTED, "bind");
    case_free(&c);
}
