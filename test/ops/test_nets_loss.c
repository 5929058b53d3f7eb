/* Losses and the softmax family. */
/* Expected values from PyTorch 2 in float64: torch.nn.functional on the inputs shown. */
#include "values.h"
#include "pass/grad.h"

static void test_cross_entropy(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(4, 3), 1.77, 2.54, 2.64, 2.39, -0.73, -2.05, 2.1, -1.85,
                      -1.29, 0.33, -0.07, 1.87);
    QnValue *labels = GIVE(&c, I64, QN_SHAPE(4), 2, 0, 1, 0);
    QnValue *loss = qn_cross_entropy(c.g, x, labels, 0.1, 1, QN_REDUCTION_MEAN), *d;
    QnValue *rows = qn_cross_entropy(c.g, x, labels, 0, -100, QN_REDUCTION_NONE);
    QnValue *sum = qn_cross_entropy(c.g, x, labels, 0.3, -100, QN_REDUCTION_SUM);
    assert_ok(qn_grad(c.g, loss, &x, 1, &d));
    WANT(&c, loss, ((QnShape){ 0 }), 0.9966839324344);
    WANT(&c, d, QN_SHAPE(4, 3), 0.04898492961462, 0.1186822896344, -0.167667219249,
         0.004559472310402, 0.002828008006175, -0.007387480316577, 0, 0, 0, -0.258492634029,
         0.02416010886887, 0.2343325251602);
    WANT(&c, rows, QN_SHAPE(4), 0.8431990290506, 0.05444377799074, 4.001608454461, 1.846075656928);
    WANT(&c, sum, ((QnShape){ 0 }), 7.03332691843);
    case_free(&c);
}

static void test_nll_and_log_softmax(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(4, 3), 1.77, 2.54, 2.64, 2.39, -0.73, -2.05, 2.1, -1.85,
                      -1.29, 0.33, -0.07, 1.87);
    QnValue *labels = GIVE(&c, I64, QN_SHAPE(4), 2, 0, 1, 0);
    QnValue *p = qn_log_softmax(c.g, x, 1);
    WANT(&c, p, QN_SHAPE(4, 3), -1.713199029051, -0.9431990290506, -0.8431990290506,
         -0.05444377799074, -3.174443777991, -4.494443777991, -0.05160845446061, -4.001608454461,
         -3.441608454461, -1.846075656928, -2.246075656928, -0.3060756569284);
    WANT(&c, qn_nll(c.g, p, labels, 1, QN_REDUCTION_MEAN), ((QnShape){ 0 }), 0.9145728213232);
    case_free(&c);
}

static void test_cross_entropy_of_images(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 3, 2), 0.44, -0.23, 0.09, -0.03, -0.08, -0.4, 0.02,
                      -0.55, 0.93, 0.92, 0.72, 0.78);
    QnValue *labels = GIVE(&c, I64, QN_SHAPE(2, 2), 0, 2, 1, 1);
    WANT(&c, qn_cross_entropy(c.g, x, labels, 0, -100, QN_REDUCTION_NONE), QN_SHAPE(2, 2),
         0.8325649931592, 1.290069616374, 0.7943980747813, 0.741596201111);
    case_free(&c);
}

static void test_labels_out_of_range_are_named(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    QnValue *labels = GIVE(&c, I64, QN_SHAPE(2), 1, 3);
    QnValue *y = qn_cross_entropy(c.g, x, labels, 0, -100, QN_REDUCTION_MEAN);
    case_want_error(&c, y, "label 3 at row 1");
    case_free(&c);
}

static void test_losses_by_element(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 3), 2.59, -0.92, 1.42, 2.91, -1.01, 2.09);
    QnValue *y = GIVE(&c, F32, QN_SHAPE(2, 3), 0.9, 0.35, 0.44, -0.99, -0.11, 0.45);
    WANT(&c, qn_mse(c.g, x, y, QN_REDUCTION_MEAN), ((QnShape){ 0 }), 4.023166666667);
    WANT(&c, qn_l1(c.g, x, y, QN_REDUCTION_SUM), ((QnShape){ 0 }), 10.38);
    WANT(&c, qn_huber(c.g, x, y, 0.7, QN_REDUCTION_NONE), QN_SHAPE(2, 3), 0.938, 0.644, 0.441,
         2.485, 0.385, 0.903);
    case_free(&c);
}

static void test_bce_with_logits(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2, 3), 2.59, -0.92, 1.42, 2.91, -1.01, 2.09);
    QnValue *y = GIVE(&c, F32, QN_SHAPE(2, 3), 0.24, 0.41, 0.22, 0.32, 0.27, 0.29);
    WANT(&c, qn_bce_with_logits(c.g, x, y, QN_REDUCTION_MEAN), ((QnShape){ 0 }), 1.382181167763);
    case_free(&c);
}
