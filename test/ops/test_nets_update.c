/* Optimizers: two steps each, the second from the first one's moments. */
/* Expected values from PyTorch 2 in float64: torch.optim with gradients as shown. LAMB, which
 * PyTorch lacks, by its paper's formula written out in Python. */
#include "values.h"

static void test_sgd(void **state)
{
    Case c = case_new();
    QnValue *p = GIVE(&c, F32, QN_SHAPE(3), 0.58, 0.57, -0.5);
    QnValue *g1 = GIVE(&c, F32, QN_SHAPE(3), -0.14, 0.76, -0.63);
    QnValue *g2 = GIVE(&c, F32, QN_SHAPE(3), 0.28, 0.53, 0.12);
    QnValue *lr = GIVE(&c, F32, ((QnShape){ 0 }), 0.1);
    QnNode *a = qn_sgd(c.g, p, NULL, g1, lr, 0, 0.2, false);
    QnNode *b = qn_sgd(c.g, qn_node_out(c.g, a, 0), NULL, g2, lr, 0, 0.2, false);
    WANT(&c, qn_node_out(c.g, a, 0), QN_SHAPE(3), 0.5824, 0.4826, -0.427);
    WANT(&c, qn_node_out(c.g, b, 0), QN_SHAPE(3), 0.542752, 0.419948, -0.43046);
    case_free(&c);
}

static void test_sgd_with_momentum(void **state)
{
    Case c = case_new();
    QnValue *p = GIVE(&c, F32, QN_SHAPE(3), 0.28, -0.7, 0.68);
    QnValue *g1 = GIVE(&c, F32, QN_SHAPE(3), -0.56, -0.08, -0.49);
    QnValue *g2 = GIVE(&c, F32, QN_SHAPE(3), 0.8, 0.27, -0.31);
    QnValue *m0 = GIVE(&c, F32, QN_SHAPE(3), 0, 0, 0);
    QnValue *lr = GIVE(&c, F32, ((QnShape){ 0 }), 0.1);
    QnNode *a = qn_sgd(c.g, p, m0, g1, lr, 0.9, 0.2, false);
    QnNode *b =
        qn_sgd(c.g, qn_node_out(c.g, a, 0), qn_node_out(c.g, a, 1), g2, lr, 0.9, 0.2, false);
    WANT(&c, qn_node_out(c.g, a, 0), QN_SHAPE(3), 0.3304, -0.678, 0.7154);
    WANT(&c, qn_node_out(c.g, a, 1), QN_SHAPE(3), -0.504, -0.22, -0.354);
    WANT(&c, qn_node_out(c.g, b, 0), QN_SHAPE(3), 0.289152, -0.67164, 0.763952);
    WANT(&c, qn_node_out(c.g, b, 1), QN_SHAPE(3), 0.41248, -0.0636, -0.48552);
    case_free(&c);
}

static void test_nesterov(void **state)
{
    Case c = case_new();
    QnValue *p = GIVE(&c, F32, QN_SHAPE(3), -0.66, -0.44, -0.15);
    QnValue *g1 = GIVE(&c, F32, QN_SHAPE(3), 0.1, -0.6, -0.83);
    QnValue *g2 = GIVE(&c, F32, QN_SHAPE(3), -0.65, -0.9, 0.94);
    QnValue *m0 = GIVE(&c, F32, QN_SHAPE(3), 0, 0, 0);
    QnValue *lr = GIVE(&c, F32, ((QnShape){ 0 }), 0.1);
    QnNode *a = qn_sgd(c.g, p, m0, g1, lr, 0.9, 0, true);
    QnNode *b = qn_sgd(c.g, qn_node_out(c.g, a, 0), qn_node_out(c.g, a, 1), g2, lr, 0.9, 0, true);
    WANT(&c, qn_node_out(c.g, a, 0), QN_SHAPE(3), -0.679, -0.326, 0.0077);
    WANT(&c, qn_node_out(c.g, a, 1), QN_SHAPE(3), 0.1, -0.6, -0.83);
    WANT(&c, qn_node_out(c.g, b, 0), QN_SHAPE(3), -0.5636, -0.1064, -0.10367);
    WANT(&c, qn_node_out(c.g, b, 1), QN_SHAPE(3), -0.56, -1.44, 0.193);
    case_free(&c);
}

static void test_adagrad(void **state)
{
    Case c = case_new();
    QnValue *p = GIVE(&c, F32, QN_SHAPE(3), 0.76, -0.8, -0.31);
    QnValue *g1 = GIVE(&c, F32, QN_SHAPE(3), 0.89, 0.16, -0.83);
    QnValue *g2 = GIVE(&c, F32, QN_SHAPE(3), -0.49, -0.93, -0.17);
    QnValue *m0 = GIVE(&c, F32, QN_SHAPE(3), 0, 0, 0);
    QnValue *lr = GIVE(&c, F32, ((QnShape){ 0 }), 0.1);
    QnValue *one = GIVE(&c, I64, ((QnShape){ 0 }), 1), *two = GIVE(&c, I64, ((QnShape){ 0 }), 2);
    QnNode *a = qn_adagrad(c.g, p, m0, g1, lr, one, 0.3, 0.1, 1e-6);
    QnNode *b = qn_adagrad(c.g, qn_node_out(c.g, a, 0), qn_node_out(c.g, a, 1), g2, lr, two, 0.3,
                           0.1, 1e-6);
    WANT(&c, qn_node_out(c.g, a, 0), QN_SHAPE(3), 0.6600001035196, -0.8999987500156,
         -0.2100001161439);
    WANT(&c, qn_node_out(c.g, a, 1), QN_SHAPE(3), 0.933156, 0.0064, 0.741321);
    WANT(&c, qn_node_out(c.g, b, 0), QN_SHAPE(3), 0.6909164217397, -0.8233112575027,
         -0.1933408824716);
    WANT(&c, qn_node_out(c.g, b, 1), QN_SHAPE(3), 1.112931991222, 1.046799745003, 0.7778020044367);
    case_free(&c);
}

static void test_rmsprop(void **state)
{
    Case c = case_new();
    QnValue *p = GIVE(&c, F32, QN_SHAPE(3), -0.17, -0.62, 0.85);
    QnValue *g1 = GIVE(&c, F32, QN_SHAPE(3), -0.06, 0.68, -0.8);
    QnValue *g2 = GIVE(&c, F32, QN_SHAPE(3), -0.31, 0.69, -0.01);
    QnValue *m0 = GIVE(&c, F32, QN_SHAPE(3), 0, 0, 0);
    QnValue *lr = GIVE(&c, F32, ((QnShape){ 0 }), 0.1);
    QnNode *a = qn_rmsprop(c.g, p, m0, NULL, g1, lr, 0.9, 0, 0.1, 1e-6);
    QnNode *b = qn_rmsprop(c.g, qn_node_out(c.g, a, 0), qn_node_out(c.g, a, 1), NULL, g2, lr, 0.9,
                           0, 0.1, 1e-6);
    WANT(&c, qn_node_out(c.g, a, 0), QN_SHAPE(3), 0.1462147795372, -0.9362261479021,
         1.166226367422);
    WANT(&c, qn_node_out(c.g, a, 1), QN_SHAPE(3), 0.0005929, 0.0381924, 0.0511225);
    WANT(&c, qn_node_out(c.g, b, 0), QN_SHAPE(3), 0.4531912509239, -1.16173181476, 1.117122016128);
    WANT(&c, qn_node_out(c.g, b, 1), QN_SHAPE(3), 0.009258457128625, 0.06993975855897,
         0.04714708866659);
    case_free(&c);
}

static void test_rmsprop_with_momentum(void **state)
{
    Case c = case_new();
    QnValue *p = GIVE(&c, F32, QN_SHAPE(3), -0.55, 0.72, -0.66);
    QnValue *g1 = GIVE(&c, F32, QN_SHAPE(3), 0.41, -0.45, -0.89);
    QnValue *g2 = GIVE(&c, F32, QN_SHAPE(3), -0.44, 0.49, 0.63);
    QnValue *m0 = GIVE(&c, F32, QN_SHAPE(3), 0, 0, 0);
    QnValue *m1 = GIVE(&c, F32, QN_SHAPE(3), 0, 0, 0);
    QnValue *lr = GIVE(&c, F32, ((QnShape){ 0 }), 0.1);
    QnNode *a = qn_rmsprop(c.g, p, m0, m1, g1, lr, 0.9, 0.7, 0, 1e-6);
    QnNode *b = qn_rmsprop(c.g, qn_node_out(c.g, a, 0), qn_node_out(c.g, a, 1),
                           qn_node_out(c.g, a, 2), g2, lr, 0.9, 0.7, 0, 1e-6);
    WANT(&c, qn_node_out(c.g, a, 0), QN_SHAPE(3), -0.8662253270113, 1.03622554381,
         -0.3437733575747);
    WANT(&c, qn_node_out(c.g, a, 1), QN_SHAPE(3), 0.01681, 0.02025, 0.07921);
    WANT(&c, qn_node_out(c.g, a, 2), QN_SHAPE(3), 3.162253270113, -3.162255438102, -3.162266424253);
    WANT(&c, qn_node_out(c.g, b, 0), QN_SHAPE(3), -0.8506585209832, 1.019155170991,
         -0.3115266010005);
    WANT(&c, qn_node_out(c.g, b, 1), QN_SHAPE(3), 0.034489, 0.042235, 0.110979);
    WANT(&c, qn_node_out(c.g, b, 2), QN_SHAPE(3), -0.1556680602811, 0.1707037281972,
         -0.3224675657413);
    case_free(&c);
}

static void test_adam(void **state)
{
    Case c = case_new();
    QnValue *p = GIVE(&c, F32, QN_SHAPE(3), 0.28, -0.43, 0.21);
    QnValue *g1 = GIVE(&c, F32, QN_SHAPE(3), -0.14, -0.04, -0.33);
    QnValue *g2 = GIVE(&c, F32, QN_SHAPE(3), -0.47, -0.73, -0.68);
    QnValue *m0 = GIVE(&c, F32, QN_SHAPE(3), 0, 0, 0);
    QnValue *m1 = GIVE(&c, F32, QN_SHAPE(3), 0, 0, 0);
    QnValue *lr = GIVE(&c, F32, ((QnShape){ 0 }), 0.1);
    QnValue *one = GIVE(&c, I64, ((QnShape){ 0 }), 1), *two = GIVE(&c, I64, ((QnShape){ 0 }), 2);
    QnNode *a = qn_adam(c.g, p, m0, m1, g1, lr, one, 0.8, 0.95, 1e-6, 0.1);
    QnNode *b = qn_adam(c.g, qn_node_out(c.g, a, 0), qn_node_out(c.g, a, 1), qn_node_out(c.g, a, 2),
                        g2, lr, two, 0.8, 0.95, 1e-6, 0.1);
    WANT(&c, qn_node_out(c.g, a, 0), QN_SHAPE(3), 0.3799991071508, -0.3300012048048,
         0.3099996763765);
    WANT(&c, qn_node_out(c.g, a, 1), QN_SHAPE(3), -0.0224, -0.0166, -0.0618);
    WANT(&c, qn_node_out(c.g, a, 2), QN_SHAPE(3), 0.0006272, 0.00034445, 0.00477405);
    WANT(&c, qn_node_out(c.g, b, 0), QN_SHAPE(3), 0.4708138021006, -0.2461409803279,
         0.4071743192573);
    WANT(&c, qn_node_out(c.g, b, 1), QN_SHAPE(3), -0.104320017857, -0.1658800240961,
         -0.1792400064725);
    WANT(&c, qn_node_out(c.g, b, 2), QN_SHAPE(3), 0.009927043857109, 0.02943568669266,
         0.02559539960032);
    case_free(&c);
}

static void test_adamw(void **state)
{
    Case c = case_new();
    QnValue *p = GIVE(&c, F32, QN_SHAPE(3), -0.7, 0.67, 0.28);
    QnValue *g1 = GIVE(&c, F32, QN_SHAPE(3), 0.96, -0.73, 0.86);
    QnValue *g2 = GIVE(&c, F32, QN_SHAPE(3), -0.19, -0.68, 0.86);
    QnValue *m0 = GIVE(&c, F32, QN_SHAPE(3), 0, 0, 0);
    QnValue *m1 = GIVE(&c, F32, QN_SHAPE(3), 0, 0, 0);
    QnValue *lr = GIVE(&c, F32, ((QnShape){ 0 }), 0.1);
    QnValue *one = GIVE(&c, I64, ((QnShape){ 0 }), 1), *two = GIVE(&c, I64, ((QnShape){ 0 }), 2);
    QnNode *a = qn_adamw(c.g, p, m0, m1, g1, lr, one, 0.8, 0.95, 1e-6, 0.1);
    QnNode *b = qn_adamw(c.g, qn_node_out(c.g, a, 0), qn_node_out(c.g, a, 1),
                         qn_node_out(c.g, a, 2), g2, lr, two, 0.8, 0.95, 1e-6, 0.1);
    WANT(&c, qn_node_out(c.g, a, 0), QN_SHAPE(3), -0.7929998958334, 0.7632998630139,
         0.1772001162789);
    WANT(&c, qn_node_out(c.g, a, 1), QN_SHAPE(3), 0.192, -0.146, 0.172);
    WANT(&c, qn_node_out(c.g, a, 2), QN_SHAPE(3), 0.04608, 0.026645, 0.03698);
    WANT(&c, qn_node_out(c.g, b, 0), QN_SHAPE(3), -0.8320338971076, 0.8553006647454,
         0.07542823139508);
    WANT(&c, qn_node_out(c.g, b, 1), QN_SHAPE(3), 0.1156, -0.2528, 0.3096);
    WANT(&c, qn_node_out(c.g, b, 2), QN_SHAPE(3), 0.045581, 0.04843275, 0.072111);
    case_free(&c);
}

static void test_lamb(void **state)
{
    Case c = case_new();
    QnValue *p = GIVE(&c, F32, QN_SHAPE(3), -0.11, 0.79, 0.23);
    QnValue *g1 = GIVE(&c, F32, QN_SHAPE(3), -0.79, 0.55, -0.31);
    QnValue *g2 = GIVE(&c, F32, QN_SHAPE(3), 0.91, -0.19, 0.8);
    QnValue *m0 = GIVE(&c, F32, QN_SHAPE(3), 0, 0, 0);
    QnValue *m1 = GIVE(&c, F32, QN_SHAPE(3), 0, 0, 0);
    QnValue *lr = GIVE(&c, F32, ((QnShape){ 0 }), 0.1);
    QnValue *one = GIVE(&c, I64, ((QnShape){ 0 }), 1), *two = GIVE(&c, I64, ((QnShape){ 0 }), 2);
    QnNode *a = qn_lamb(c.g, p, m0, m1, g1, lr, one, 0.8, 0.95, 1e-6, 0.1);
    QnNode *b = qn_lamb(c.g, qn_node_out(c.g, a, 0), qn_node_out(c.g, a, 1), qn_node_out(c.g, a, 2),
                        g2, lr, two, 0.8, 0.95, 1e-6, 0.1);
    WANT(&c, qn_node_out(c.g, a, 0), QN_SHAPE(3), -0.06264496213315, 0.7394598776131,
         0.2757623908657);
    WANT(&c, qn_node_out(c.g, a, 1), QN_SHAPE(3), -0.158, 0.11, -0.062);
    WANT(&c, qn_node_out(c.g, a, 2), QN_SHAPE(3), 0.031205, 0.015125, 0.004805);
    WANT(&c, qn_node_out(c.g, b, 0), QN_SHAPE(3), -0.08256507097603, 0.6921336440935,
         0.2155036249847);
    WANT(&c, qn_node_out(c.g, b, 1), QN_SHAPE(3), 0.0556, 0.05, 0.1104);
    WANT(&c, qn_node_out(c.g, b, 2), QN_SHAPE(3), 0.07104975, 0.01617375, 0.03656475);
    case_free(&c);
}

static void test_clipping(void **state)
{
    Case c = case_new();
    QnValue *x[2] = { GIVE(&c, F32, QN_SHAPE(2), 3, 0), GIVE(&c, F32, QN_SHAPE(1), -4) }, *y[2];
    WANT(&c, qn_clip_global_norm(c.g, x, 2, 2, y), ((QnShape){ 0 }), 5);
    WANT(&c, y[0], QN_SHAPE(2), 3 * 2 / 5.000001, 0);
    WANT(&c, y[1], QN_SHAPE(1), -4 * 2 / 5.000001);
    qn_clip_global_norm(c.g, x, 2, 6, y);
    WANT(&c, y[1], QN_SHAPE(1), -4);
    qn_clip_values(c.g, x, 2, 3.5, y);
    WANT(&c, y[0], QN_SHAPE(2), 3, 0);
    WANT(&c, y[1], QN_SHAPE(1), -3.5);
    case_free(&c);
}

static void test_moments_must_fit(void **state)
{
    Case c = case_new();
    QnValue *p = GIVE(&c, F32, QN_SHAPE(2), 1, 2), *m = GIVE(&c, F32, QN_SHAPE(1), 1);
    QnValue *lr = GIVE(&c, F32, ((QnShape){ 0 }), 1);
    QnNode *n = qn_sgd(c.g, p, m, p, lr, 0.9, 0, false);
    assert_null(n);
    assert_fails(qn_graph_check(c.g), QN_ESHAPE, "moment");
    case_free(&c);
}
