/* Whose memory a value is and who reads it: against a search through all nodes. */
#include "test.h"
#include "ir/reads.h"
#include "ops/ops.h"

/* A state that is read plainly, twice by one node and through a view, then assigned. */
static QnGraph *make(void)
{
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(6));
    QnValue *s = qn_state(g, &(QnStateAttr){ .name = "s", .dims = { 1, { 6 } } });
    QnValue *view = qn_reshape(g, s, &QN_SHAPE(2, 3));
    QnValue *again = qn_reshape(g, view, &QN_SHAPE(6));
    QnValue *sum = qn_add(g, qn_mul(g, s, s), qn_mul(g, again, x));
    qn_assign(g, s, sum);
    assert_ok(qn_graph_output(g, "y", qn_reshape(g, sum, &QN_SHAPE(3, 2))));
    assert_ok(qn_graph_check(g));
    qn_graph_number(g);
    return g;
}

static void test_reads_are_those_of_a_search(void **state)
{
    QnGraph *g = make();
    QnArena *arena = qn_arena_new();
    QnReads reads;
    int64_t all = 0, most = 0;
    assert_ok(qn_reads_init(g, arena, &reads));
    QN_GRAPH_EACH(g, of)
    {
        for (int o = 0; o < of->n_out; o++) {
            const QnValue *v = &of->out[o];
            int64_t k = reads.start[v->id];
            assert_ptr_equal(reads.root[v->id], qn_reads_root(v));
            QN_GRAPH_EACH(g, n)
            {
                for (int i = 0; i < n->n_in; i++) {
                    if (!n->in[i] || qn_reads_is_view(n) || qn_reads_root(n->in[i]) != v)
                        continue;
                    assert_true(k < reads.start[v->id + 1]);
                    assert_ptr_equal(reads.list[k].node, n);
                    assert_int_equal(reads.list[k++].in, i);
                }
            }
            assert_int_equal(k, reads.start[v->id + 1]);
            all += k - reads.start[v->id];
            most = QN_MAX(most, k - reads.start[v->id]);
        }
    }
    assert_int_equal(all, 8);  /* mul 2, mul 2, add 2, assign 2 */
    assert_int_equal(most, 4); /* of the state: twice, through its views, by the assign */
    qn_arena_free(arena);
    qn_graph_free(g);
}
