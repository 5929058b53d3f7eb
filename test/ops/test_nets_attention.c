/* Attention. */
/* Expected values from PyTorch 2 in float64: torch.nn.functional on the inputs shown. */
#include "values.h"
#include "pass/grad.h"

static void test_causal_attention_and_gradients(void **state)
{
    Case c = case_new();
    QnValue *q = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.66, 0.35, -0.4, 0.49, 0.78, -0.98, -0.98,
                      -0.11, 0.96, -0.82, -0.42, 0.48);
    QnValue *k = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.38, -0.46, 0.38, -0.4, 0.72, 0.64, -0.79,
                      0.94, 0.58, -0.03, -0.19, 0.57);
    QnValue *v = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.31, 0.74, -0.33, 0.17, -0.74, 0.43, 0.51,
                      -0.17, -0.84, 0.05, 0.87, -0.46);
    QnValue *y = qn_attention(c.g, q, k, v, NULL, true, 0), *d[3];
    QnValue *loss = qn_sum(c.g, qn_square(c.g, y), QN_ALL_AXES, false);
    assert_ok(qn_grad(c.g, loss, (QnValue *[]){ q, k, v }, 3, d));
    WANT(&c, y, QN_SHAPE(1, 2, 3, 2), -0.31, 0.74, -0.3190321812524, 0.4825828343073,
         -0.4298376752261, 0.4090989732339, 0.51, -0.17, -0.5921955652498, 0.009617055077749,
         0.3381775373358, -0.2190087634109);
    WANT(&c, d[0], QN_SHAPE(1, 2, 3, 2), 0, 0, -0.07152132503799, -0.005646420397736,
         -0.009577141441301, 0.05173403460892, 0, 0, 0.2327461507013, -0.1647910702046,
         -0.125728956191, 0.09502328159495);
    WANT(&c, d[1], QN_SHAPE(1, 2, 3, 2), -0.009735214189929, 0.01104905287329, -0.03067536494724,
         0.03972321322212, 0.04041057913717, -0.05077226609542, -0.1757841731166, 0.1538130349319,
         0.2217817693553, -0.2063817163475, -0.04599759623867, 0.05256868141562);
    WANT(&c, d[2], QN_SHAPE(1, 2, 3, 2), -1.229260724685, 2.256126964798, -0.6664911135046,
         0.7959591916715, -0.2219878747677, 0.2112774586129, 1.107670219074, -0.5340409223168,
         -0.8208607695655, -0.07892912116931, 0.2251544946638, -0.1458133731802);
    case_free(&c);
}

static void test_grouped_queries_and_a_mask(void **state)
{
    Case c = case_new();
    QnValue *q = GIVE(&c, F32, QN_SHAPE(1, 4, 2, 2), 0.73, -0.25, 0.25, 0.05, 0.67, -0.59, 0.42,
                      -0.41, -0.25, 0.62, -0.38, 0.62, 0.76, -0.29, 0.47, -0.03);
    QnValue *k = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 2), -0.03, -0.67, -0.29, 0.28, 0.45, 0.71, -0.44,
                      0.41, -0.37, 0.67, 0.08, -0.48);
    QnValue *v = GIVE(&c, F32, QN_SHAPE(1, 2, 3, 1), 0.07, -0.76, -0.25, 0.31, 0.17, -0.05);
    QnValue *mask = GIVE(&c, F32, QN_SHAPE(2, 3), -0.32, 0.07, -INFINITY, 0.98, 0.42, -0.13);
    WANT(&c, qn_attention(c.g, q, k, v, mask, false, 0.6), QN_SHAPE(1, 4, 2, 1), -0.3726849709273,
         -0.2335987347572, -0.3344571189697, -0.1883905913681, 0.2236403159013, 0.2212463418833,
         0.2269699045436, 0.1977947890519);
    case_free(&c);
}

static void test_the_last_query_sees_all_keys(void **state)
{
    Case c = case_new();
    QnValue *q = GIVE(&c, F32, QN_SHAPE(1, 1, 2, 1), 0.43, -0.49);
    QnValue *k = GIVE(&c, F32, QN_SHAPE(1, 1, 4, 1), 0.97, 0.49, 0.07, 0.77);
    QnValue *v = GIVE(&c, F32, QN_SHAPE(1, 1, 4, 1), -0.04, 0.1, -0.16, 0.05);
    WANT(&c, qn_attention(c.g, q, k, v, NULL, true, 0), QN_SHAPE(1, 1, 2, 1), -0.02700146409053,
         -0.02174096293111);
    case_free(&c);
}

static void test_a_query_that_sees_nothing_gives_zero(void **state)
{
    Case c = case_new();
    QnValue *q = GIVE(&c, F32, QN_SHAPE(1, 1, 2, 1), 1, 2);
    QnValue *k = GIVE(&c, F32, QN_SHAPE(1, 1, 1, 1), 3),
            *v = GIVE(&c, F32, QN_SHAPE(1, 1, 1, 1), 4);
    QnNode *n = qn_attention_node(c.g, q, k, v, NULL, true, 1);
    WANT(&c, qn_node_out(c.g, n, 0), QN_SHAPE(1, 1, 2, 1), 0, 4);
    WANT(&c, qn_node_out(c.g, n, 1), QN_SHAPE(1, 1, 2), -INFINITY, 6);
    case_free(&c);
}

static void test_heads_must_share_evenly(void **state)
{
    Case c = case_new();
    QnValue *q = GIVE(&c, F32, QN_SHAPE(1, 3, 1, 1), 1, 2, 3);
    QnValue *k = GIVE(&c, F32, QN_SHAPE(1, 2, 1, 1), 3, 4);
    case_want_refused(&c, qn_attention(c.g, q, k, k, NULL, false, 0), QN_ESHAPE, "[1,3,1,1]");
    case_free(&c);
}
