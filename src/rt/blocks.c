#include "rt/blocks.h"

#include "ir/reads.h"

#include <string.h>

static QnStatus new_block(QnBlocks *b, QnBlock block, int64_t *out)
{
    QN_TRY(QN_GROW(b->blocks, b->cap, b->n));
    *out = b->n;
    b->blocks[b->n++] = block;
    return QN_OK;
}

static bool is_state_root(const QnValue *v)
{
    return (v->node->op->traits & QN_STATE) != 0;
}

/* Whether kernel and operator allow output `out` over input `in` of n. */
static bool may_overlap(const QnBlocks *b, const QnNode *n, int in, int out)
{
    const QnKernel *k = b->kernels[n->id];
    const QnType *x = &n->in[in]->type, *y = &n->out[out].type;
    if (!k || (k->flags & QN_KERNEL_NO_INPLACE) || qn_type_bytes(x) != qn_type_bytes(y))
        return false;
    if (n->op->map || (n->op->traits & QN_MAP))
        return qn_shape_is_equal(&x->shape, &y->shape) && x->layout == y->layout &&
               qn_dtype_bytes(x->dtype) == qn_dtype_bytes(y->dtype);
    if (!(n->op->inplace >> in & 1))
        return false;
    return n->op->inplace_pairs ? in == out : out == 0;
}

/* ---- assigns ---- */

/* Whether node n may overwrite state s with its output r: nothing may read s's old content later,
 * and n itself only through an input that its output may lie over. */
static bool can_place(const QnBlocks *b, const QnReads *reads, const QnNode *assign,
                      const QnValue *s, const QnValue *r)
{
    const QnNode *p = r->node;
    if (!b->kernels[p->id] || b->of[r->id] >= 0 ||
        qn_type_bytes(&r->type) != qn_type_bytes(&s->type))
        return false;
    for (int64_t i = 0; i < b->graph->n_outputs; i++) {
        if (reads->root[b->graph->outputs[i].value->id] == s)
            return false;
    }
    for (int64_t k = reads->start[s->id]; k < reads->start[s->id + 1]; k++) {
        const QnNode *n = reads->list[k].node;
        if (n == assign)
            continue;
        bool early = n->id < p->id && !(n->op->traits & QN_EFFECT);
        bool same = n == p && may_overlap(b, p, reads->list[k].in, r->index);
        if (!early && !same)
            return false;
    }
    return true;
}

static QnStatus place_assigns(QnBlocks *b, const QnReads *reads)
{
    QN_GRAPH_EACH(b->graph, n)
    {
        if (!(n->op->traits & QN_EFFECT))
            continue;
        const QnValue *s = n->in[0], *r = reads->root[n->in[1]->id];
        if (!is_state_root(s))
            return qn_fail(QN_EGRAPH, "%s: its first input is no state", n->op->name);
        b->role[n->id] = QN_ROLE_COPY;
        if (can_place(b, reads, n, s, r)) {
            b->of[r->id] = b->of[s->id];
            b->inplace[r->node->id] |= r->index == 0;
            b->role[n->id] = QN_ROLE_PLACED;
        }
    }
    return QN_OK;
}

/* ---- lifetimes ---- */

static QnStatus leaf_block(QnBlocks *b, const QnNode *n)
{
    QnBlock block = { .first = n->id, .last = n->id };
    const QnValue *v = &n->out[0];
    block.bytes = qn_type_bytes(&v->type);
    if (block.bytes < 0)
        return qn_fail(QN_ESHAPE, "%s '%s': its shape is symbolic; bind it first", n->op->name,
                       qn_node_label(n) ? qn_node_label(n) : "");
    if (n->op->traits & QN_STATE) {
        block.place = QN_PLACE_STATE;
        block.slot = b->store ? qn_store_find(b->store, qn_node_label(n)) : NULL;
        if (!block.slot)
            return qn_fail(QN_ENOTFOUND, "state '%s' is not in the store", qn_node_label(n));
        for (int64_t i = 0; i < b->n; i++) {
            if (b->blocks[i].slot == block.slot)
                return qn_fail(QN_EGRAPH, "state '%s' stands in the graph twice", qn_node_label(n));
        }
    } else if (n->op->traits & QN_INPUT) {
        block.first = 0;
    } else {
        block.place = QN_PLACE_CONSTANT;
    }
    return new_block(b, block, &b->of[v->id]);
}

/* Last reading of each value, views' readings counted as their root's. */
static int64_t *last_reads(const QnBlocks *b, const QnReads *reads)
{
    const QnGraph *g = b->graph;
    int64_t *last = qn_arena_array(b->arena, (size_t)g->n_values + 1, sizeof *last);
    if (!last)
        return NULL;
    for (int64_t i = 0; i < g->n_values; i++) {
        last[i] = -1;
        for (int64_t k = reads->start[i]; k < reads->start[i + 1]; k++) {
            const QnNode *n = reads->list[k].node;
            last[i] = QN_MAX(last[i], b->role[n->id] == QN_ROLE_COPY ? g->n_nodes : n->id);
        }
    }
    for (int64_t i = 0; i < g->n_outputs; i++)
        last[reads->root[g->outputs[i].value->id]->id] = g->n_nodes;
    return last;
}

/* How many inputs of n lie in the block. */
static int reads_of_block(const QnBlocks *b, const QnNode *n, int64_t block)
{
    int k = 0;
    for (int i = 0; i < n->n_in; i++)
        k += n->in[i] && b->of[n->in[i]->id] == block;
    return k;
}

/* An input of n that dies here and may lie under output `out`; -1: none. */
static int find_inplace(const QnBlocks *b, const QnNode *n, int out, const bool *taken)
{
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i] || taken[i] || !may_overlap(b, n, i, out))
            continue;
        const QnBlock *block = &b->blocks[b->of[n->in[i]->id]];
        if (block->place == QN_PLACE_ARENA && block->last == n->id &&
            block->bytes == qn_type_bytes(&n->out[out].type) &&
            reads_of_block(b, n, b->of[n->in[i]->id]) == 1)
            return i;
    }
    return -1;
}

static QnStatus step_blocks(QnBlocks *b, const QnNode *n, const int64_t *last)
{
    bool small[32] = { 0 }, *taken = small;
    if (n->n_in > QN_COUNT(small) &&
        !(taken = qn_arena_array(b->arena, (size_t)n->n_in, sizeof *taken)))
        return QN_ENOMEM;
    for (int i = 0; i < n->n_out; i++) {
        const QnValue *v = &n->out[i];
        int64_t end = QN_MAX(last[v->id], n->id), bytes = qn_type_bytes(&v->type);
        if (bytes < 0)
            return qn_fail(QN_ESHAPE, "%s: output %d has a symbolic shape; bind it first",
                           n->op->name, i);
        if (b->of[v->id] >= 0)
            continue; /* placed in a state */
        int in = find_inplace(b, n, i, taken);
        if (in >= 0) {
            taken[in] = true;
            b->of[v->id] = b->of[n->in[in]->id];
            b->blocks[b->of[v->id]].last = end;
            b->inplace[n->id] |= i == 0;
            continue;
        }
        QnBlock block = { .place = QN_PLACE_ARENA, .bytes = bytes, .first = n->id, .last = end };
        QN_TRY(new_block(b, block, &b->of[v->id]));
    }
    return QN_OK;
}

static bool is_assigned(const QnReads *reads, const QnValue *state)
{
    for (int64_t k = reads->start[state->id]; k < reads->start[state->id + 1]; k++) {
        const QnNode *n = reads->list[k].node;
        if ((n->op->traits & QN_EFFECT) && n->in[0] == state)
            return true;
    }
    return false;
}

/* A block for the old content of a state; it lives between the last step and the assigns. */
static QnStatus copy_block(QnBlocks *b, const QnValue *state, int64_t *out)
{
    int64_t end = b->graph->n_nodes;
    QnBlock block = { .place = QN_PLACE_ARENA, .first = end, .last = end };
    block.bytes = qn_type_bytes(&state->type);
    return new_block(b, block, out);
}

/* Outputs and assigned values that are the old content of a state are copied before the assigns
 * overwrite it. */
static QnStatus copy_blocks(QnBlocks *b, const QnReads *reads)
{
    QnGraph *g = b->graph;
    b->copy = qn_arena_array(b->arena, (size_t)g->n_outputs + 1, sizeof *b->copy);
    b->via = qn_arena_array(b->arena, (size_t)g->n_nodes + 1, sizeof *b->via);
    if (!b->copy || !b->via)
        return QN_ENOMEM;
    for (int64_t i = 0; i < g->n_outputs; i++) {
        const QnValue *root = reads->root[g->outputs[i].value->id];
        b->copy[i] = -1;
        if (is_state_root(root) && is_assigned(reads, root))
            QN_TRY(copy_block(b, root, &b->copy[i]));
    }
    QN_GRAPH_EACH(g, n)
    {
        const QnValue *root = (n->op->traits & QN_EFFECT) ? reads->root[n->in[1]->id] : NULL;
        b->via[n->id] = -1;
        if (root && root != n->in[0] && is_state_root(root) && is_assigned(reads, root))
            QN_TRY(copy_block(b, root, &b->via[n->id]));
    }
    return QN_OK;
}

QnStatus qn_blocks_init(QnBlocks *b)
{
    QnGraph *g = b->graph;
    QnReads reads;
    b->of = qn_arena_array(b->arena, (size_t)g->n_values + 1, sizeof *b->of);
    b->role = qn_arena_array(b->arena, (size_t)g->n_nodes + 1, sizeof *b->role);
    b->inplace = qn_arena_array(b->arena, (size_t)g->n_nodes + 1, sizeof *b->inplace);
    if (!b->of || !b->role || !b->inplace)
        return QN_ENOMEM;
    for (int64_t i = 0; i < g->n_values; i++)
        b->of[i] = -1;
    QN_GRAPH_EACH(g, n)
    {
        if (n->op->traits & QN_LEAF)
            QN_TRY(leaf_block(b, n));
    }
    QN_TRY(qn_reads_init(g, b->arena, &reads));
    QN_TRY(place_assigns(b, &reads));
    int64_t *last = last_reads(b, &reads);
    if (!last)
        return QN_ENOMEM;
    QN_GRAPH_EACH(g, n)
    {
        if (n->op->traits & QN_LEAF) {
            QnBlock *block = &b->blocks[b->of[n->out[0].id]];
            block->last = QN_MAX(block->last, last[n->out[0].id]);
        } else if (n->op->traits & QN_EFFECT) {
            b->of[n->out[0].id] = b->of[n->in[1]->id];
        } else if (qn_reads_is_view(n)) {
            b->role[n->id] = QN_ROLE_VIEW;
            b->of[n->out[0].id] = b->of[n->in[0]->id];
        } else {
            b->role[n->id] = QN_ROLE_STEP;
            QN_TRY(step_blocks(b, n, last));
        }
    }
    return copy_blocks(b, &reads);
}
