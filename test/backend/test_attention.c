/* Attention kernels: several blocks of queries, keys that fill no vector, shared heads, masks with
 * infinities. */
#include "backend/kernel_check.h"

typedef struct Sizes {
    int64_t b, h, g, t, s, d, e;
    bool causal, mask;
} Sizes;

static const Sizes sizes[] = {
    { 1, 2, 2, 150, 150, 40, 40, true, false }, { 2, 4, 2, 65, 200, 8, 5, false, false },
    { 1, 2, 1, 70, 33, 7, 64, true, false },    { 1, 6, 2, 1, 400, 16, 16, true, false },
    { 1, 2, 2, 130, 70, 9, 9, false, true },
};

static void run(const Sizes *z, bool grad)
{
    uint64_t seed = 3;
    QnGraph *g = qn_graph_new();
    QnShape q = QN_SHAPE(z->b, z->h, z->t, z->d), k = QN_SHAPE(z->b, z->g, z->s, z->d);
    QnShape v = QN_SHAPE(z->b, z->g, z->s, z->e), y = QN_SHAPE(z->b, z->h, z->t, z->e);
    QnShape row = QN_SHAPE(z->b, z->h, z->t), m = QN_SHAPE(z->h, 1, z->s);
    const QnShape *shapes[] = { &y, &q, &k, &v, &row, &row, &m };
    QnValue *in[7];
    for (int i = 0; i < 7; i++)
        in[i] = check_input(g, QN_DTYPE_F32, shapes[i], QN_LAYOUT_PLAIN);
    QnValue *mask = z->mask ? in[6] : NULL;
    QnNode *n =
        grad ? qn_attention_grad(g, in[0], in[1], in[2], in[3], in[4], in[5], mask, z->causal, 0)
             : qn_attention_node(g, in[1], in[2], in[3], mask, z->causal, 0);
    assert_ok(qn_graph_check(g));
    Check c = { .n = n, .tol = 2e-5 };
    for (int i = 0; i < n->n_in; i++) {
        bool is_lse = grad && i == 4;
        c.in[i] = check_fill(&n->in[i]->type, is_lse ? 4 : -2, is_lse ? 6 : 2, false, &seed);
        for (int64_t j = 0; n->in[i] == mask && j < qn_shape_count(&m); j++)
            c.in[i][j] = j % 3 == 1 || j >= z->s ? -INFINITY : c.in[i][j];
    }
    check_run(&c);
    assert_true(c.n_run > 0);
    qn_graph_free(g);
}

static void test_attention(void **state)
{
    for (int i = 0; i < QN_COUNT(sizes); i++)
        run(&sizes[i], false);
}

static void test_attention_grad(void **state)
{
    for (int i = 0; i < QN_COUNT(sizes); i++)
        run(&sizes[i], true);
}
