#include "ops/recurrent.h"

#include "ops/norm.h"
#include "ops/ops.h"
#include "ops/util.h"

enum { MAX_STEPS = 1 << 16 };

const char *const qn_recurrent_directions[] = { "forward", "reverse", "both", NULL };

QnStatus qn_recurrent_infer(QnInfer *c, const char *op, int n_states, int gates,
                            QnDirection direction)
{
    const QnShape *x = &c->in[0]->shape, *r = &c->in[n_states + 2]->shape;
    QnDim d = direction == QN_DIRECTION_BOTH ? 2 : 1;
    QN_TRY(qn_norm_dtypes(c, op, ~0u));
    if (x->rank != 3 || r->rank != 3)
        return qn_fail(QN_ESHAPE, "%s: x must be (T,B,I) and r (D,%d*H,H), not of rank %d and %d",
                       op, gates, x->rank, r->rank);
    QnDim h = r->dim[2], gh = qn_dim_mul(c->graph, h, gates);
    QnShape state = QN_SHAPE(d, x->dim[1], h), w = QN_SHAPE(d, gh, x->dim[2]);
    QnShape rs = QN_SHAPE(d, gh, h), b = QN_SHAPE(d, gh);
    for (int i = 1; i <= n_states; i++)
        QN_TRY(qn_norm_shape(c, op, i, &state));
    QN_TRY(qn_norm_shape(c, op, n_states + 1, &w));
    QN_TRY(qn_norm_shape(c, op, n_states + 2, &rs));
    for (int i = n_states + 3; i < c->n_in; i++) {
        if (qn_norm_has(c, i))
            QN_TRY(qn_norm_shape(c, op, i, &b));
    }
    for (int i = 0; i <= n_states; i++)
        c->out[i] = (QnType){ .dtype = c->in[0]->dtype, .shape = state };
    c->out[0].shape = QN_SHAPE(x->dim[0], x->dim[1], qn_dim_mul(c->graph, h, d));
    return QN_OK;
}

QnValue *qn_recurrent_gate(QnGraph *g, QnValue *x, int i, QnDim size)
{
    return qn_slice_axis(g, x, 1, i * size, (i + 1) * size);
}

/* Entry i along axis 0, without that axis. */
static QnValue *entry(QnGraph *g, QnValue *x, int64_t i)
{
    if (!x || qn_value_is_poison(x))
        return x;
    QnShape s = qn_shape_make(x->type.shape.rank - 1, x->type.shape.dim + 1);
    return qn_reshape(g, qn_slice_axis(g, x, 0, i, i + 1), &s);
}

typedef struct Way {
    QnValue **y; /* a step each, (B,H) */
    QnValue *state[2];
} Way;

static QnValue *input_of(QnNode *n, int i)
{
    return i < n->n_in ? n->in[i] : NULL;
}

/* One direction over all steps. */
static void run(QnGraph *g, QnNode *n, int n_states, int d, bool reverse, QnRecurrentCell cell,
                Way *way)
{
    int64_t steps = n->in[0]->type.shape.dim[0];
    QnValue *w = entry(g, n->in[n_states + 1], d), *r = entry(g, n->in[n_states + 2], d);
    QnValue *b = entry(g, input_of(n, n_states + 3), d),
            *rb = entry(g, input_of(n, n_states + 4), d);
    QnValue *gates = qn_matmul(g, n->in[0], w, b, false, true);
    for (int i = 0; i < n_states; i++)
        way->state[i] = entry(g, n->in[1 + i], d);
    for (int64_t k = 0; k < steps && !g->error.code; k++) {
        int64_t t = reverse ? steps - 1 - k : k;
        cell(g, n->attr, entry(g, gates, t), r, rb, &way->state[0], &way->state[1]);
        way->y[t] = way->state[0];
    }
}

void qn_recurrent_lower(QnGraph *g, QnNode *n, int n_states, QnDirection direction,
                        QnRecurrentCell cell, QnValue **out)
{
    int64_t steps = n->in[0]->type.shape.dim[0];
    int ways = direction == QN_DIRECTION_BOTH ? 2 : 1;
    Way way[2] = { 0 };
    if (n->in[n_states + 2]->type.shape.dim[2] < 0) {
        qn_fail(QN_EUNSUPPORTED, "%s: the number of hidden units is symbolic; bind it first",
                n->op->name);
        qn_graph_poison(g);
        return;
    }
    if (steps < 1 || steps > MAX_STEPS) {
        qn_fail(QN_EUNSUPPORTED,
                "%s: unrolls 1 to %d steps, not %lld; bind a symbolic length first", n->op->name,
                MAX_STEPS, (long long)steps);
        qn_graph_poison(g);
        return;
    }
    for (int d = 0; d < ways; d++) {
        if (!(way[d].y = qn_arena_array(g->arena, (size_t)steps, sizeof(QnValue *)))) {
            qn_graph_poison(g);
            return;
        }
        run(g, n, n_states, d, direction == QN_DIRECTION_REVERSE || d == 1, cell, &way[d]);
    }
    if (g->error.code)
        return;
    for (int64_t t = 0; ways == 2 && t < steps; t++)
        way[0].y[t] = qn_concat(g, (QnValue *[]){ way[0].y[t], way[1].y[t] }, 2, 1);
    out[0] = qn_stack(g, way[0].y, (int)steps, 0);
    for (int i = 0; i < n_states; i++) {
        QnValue *last[2] = { way[0].state[i], way[1].state[i] };
        out[1 + i] = qn_stack(g, last, ways, 0);
    }
}
