/* Common subexpressions: of nodes with the same operator, attributes and inputs the first stays.
 * Random operators are pure given their inputs and stream, so equal ones are one. */
#include "base/hash.h"
#include "pass/pipeline.h"

typedef struct Table {
    QnNode **slot;
    size_t mask;
} Table;

static bool is_candidate(const QnNode *n)
{
    return !(n->op->traits & (QN_EFFECT | QN_INPUT | QN_STATE)) && n->n_out > 0;
}

/* Inputs of a commutative node in one order. */
static void operands(const QnNode *n, const QnValue *in[2])
{
    in[0] = n->in[0];
    in[1] = n->in[1];
    if ((n->op->traits & QN_COMMUTATIVE) && in[0]->id > in[1]->id) {
        in[0] = n->in[1];
        in[1] = n->in[0];
    }
}

static bool is_pair(const QnNode *n)
{
    return n->n_in == 2 && n->in[0] && n->in[1];
}

static uint64_t hash_node(const QnNode *n)
{
    uint64_t h = qn_hash_mix((uint64_t)(uintptr_t)n->op, (uint64_t)n->n_in);
    if (n->op->attr_bytes)
        h = qn_hash_mix(h, qn_attr_hash(n->op, n->attr));
    const QnValue *pair[2];
    if (is_pair(n)) {
        operands(n, pair);
        return qn_hash_mix(qn_hash_mix(h, (uint64_t)pair[0]->id), (uint64_t)pair[1]->id);
    }
    for (int i = 0; i < n->n_in; i++)
        h = qn_hash_mix(h, n->in[i] ? (uint64_t)n->in[i]->id : UINT64_MAX);
    return h;
}

static bool is_same(const QnNode *a, const QnNode *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out)
        return false;
    if (is_pair(a) && is_pair(b)) {
        const QnValue *x[2], *y[2];
        operands(a, x);
        operands(b, y);
        if (x[0] != y[0] || x[1] != y[1])
            return false;
    } else {
        for (int i = 0; i < a->n_in; i++) {
            if (a->in[i] != b->in[i])
                return false;
        }
    }
    for (int i = 0; i < a->n_out; i++) {
        if (!qn_type_is_equal(&a->out[i].type, &b->out[i].type))
            return false;
    }
    return !a->op->attr_bytes || qn_attr_is_equal(a->op, a->attr, b->attr);
}

/* The node equal to n that came before, or n itself, which is then kept. */
static QnNode *find_or_add(Table *t, QnNode *n)
{
    size_t i = hash_node(n) & t->mask;
    for (; t->slot[i]; i = (i + 1) & t->mask) {
        if (is_same(t->slot[i], n))
            return t->slot[i];
    }
    return t->slot[i] = n;
}

QnStatus qn_pass_cse(QnGraph *g, const QnPipelineOptions *o)
{
    Table t = { .mask = 15 };
    qn_graph_number(g);
    while (t.mask < (size_t)g->n_nodes * 2)
        t.mask = t.mask * 2 + 1;
    t.slot = qn_alloc_array(t.mask + 1, sizeof(QnNode *));
    if (!t.slot)
        return QN_ENOMEM;
    QN_GRAPH_EACH(g, n)
    {
        for (int i = 0; i < n->n_in; i++)
            n->in[i] = qn_value_resolve(n->in[i]);
        QnNode *first = is_candidate(n) ? find_or_add(&t, n) : n;
        for (int i = 0; first != n && i < n->n_out; i++)
            qn_value_replace(&n->out[i], &first->out[i]);
    }
    qn_free(t.slot);
    qn_graph_sweep(g);
    return qn_pass_dce(g, o);
}
