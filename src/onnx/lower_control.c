/* If, Loop, Scan, SequenceMap. Their bodies are imported once a turn: what the turns have in common
 * is left to the passes. */
#include "onnx/importer.h"
#include "onnx/mapping.h"
#include "ops/ops.h"

#include <string.h>

static QnStatus body_of(QnOnnxNode *n, const char *name, const QnOnnxGraph **out)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, name);
    if (!a || a->kind != QN_ONNX_GRAPH)
        return qn_fail(QN_EFORMAT, "attribute '%s' must be a graph", name);
    *out = a->graph;
    return QN_OK;
}

static QnStatus truth(QnImporter *m, QnItem *item, bool *out)
{
    double v;
    QN_TRY(qn_importer_force(m, item, "a condition"));
    if (!item->known || item->known->text || qn_shape_count(&item->known->type.shape) != 1)
        return qn_fail(QN_ESHAPE, "the condition '%s' must be one boolean", item->name);
    qn_dtype_to_f64(item->known->type.dtype, item->known->data, &v, 1);
    *out = v != 0;
    return QN_OK;
}

static QnStatus import_if(QnOnnxNode *n)
{
    const QnOnnxGraph *g = NULL;
    double v;
    QN_TRY(qn_onnx_in_double(n, 0, &v));
    QN_TRY(body_of(n, v != 0 ? "then_branch" : "else_branch", &g));
    if (g->n_outputs != n->n_out)
        return qn_fail(QN_EFORMAT, "graph '%s' has %lld outputs, the node %d", g->name,
                       (long long)g->n_outputs, n->n_out);
    return qn_importer_graph(n->importer, g, NULL, 0, n->out);
}

/* ---- what turns of a loop leave behind ------------------------------------------------------- */

typedef struct Pile { /* one item a turn */
    QnItem **item;
    int64_t n, cap;
} Pile;

static QnStatus push(Pile *p, QnItem *item)
{
    QN_TRY(QN_GROW(p->item, p->cap, p->n));
    p->item[p->n++] = item;
    return QN_OK;
}

/* Stacks the turns' results along a new axis. */
static QnStatus stack(QnOnnxNode *n, int out, const Pile *p, int64_t axis, bool backwards)
{
    QnImporter *m = n->importer;
    QnValue **v = qn_arena_array(n->arena, (size_t)p->n, sizeof(QnValue *));
    int at = 0;
    if (!v)
        return QN_ENOMEM;
    for (int64_t i = 0; i < p->n; i++) {
        QnItem *item = p->item[backwards ? p->n - 1 - i : i];
        if (!item || item->kind != QN_ITEM_TENSOR)
            return qn_fail(QN_EDTYPE, "output %d of the body is no tensor", out);
        if (qn_importer_is_unknown(item))
            return qn_onnx_refuse(n, "output %d of the body hangs on what is not supported", out);
        QnValue *x = qn_item_value(m->graph, m->epoch, item);
        if (i == 0)
            QN_TRY(qn_onnx_axis(axis, x->type.shape.rank + 1, &at));
        v[i] = qn_unsqueeze(m->graph, x, at);
    }
    n->g = m->graph;
    n->epoch = m->epoch;
    if (p->n > QN_MAX_IN) { /* joined in groups */
        int64_t k = 0;
        for (int64_t i = 0; i < p->n; i += QN_MAX_IN)
            v[k++] = qn_concat(m->graph, v + i, (int)QN_MIN(p->n - i, QN_MAX_IN), at);
        return k > QN_MAX_IN ? qn_onnx_refuse(n, "%lld turns", (long long)p->n)
                             : qn_onnx_out(n, out, qn_concat(m->graph, v, (int)k, at));
    }
    return qn_onnx_out(n, out, qn_concat(m->graph, v, (int)p->n, at));
}

/* No turn at all: the body's declared type says what the empty result is. */
static QnStatus empty_stack(QnOnnxNode *n, int out, const QnOnnxType *t)
{
    QnDtype dtype;
    if (t->kind != QN_ONNX_TYPE_TENSOR || t->rank < 0 || t->rank >= QN_MAX_RANK ||
        !qn_onnx_dtype(t->elem, &dtype))
        return qn_onnx_refuse(n, "a scan output of no turns and no declared type");
    QnShape s = { .rank = t->rank + 1 };
    for (int i = 0; i < t->rank; i++)
        s.dim[i + 1] = QN_MAX(t->dim[i], 0);
    return qn_onnx_out_known(n, out, qn_onnx_tensor(n, dtype, &s));
}

/* ---- Loop ------------------------------------------------------------------------------------ */

typedef struct Loop {
    const QnOnnxGraph *body;
    int64_t most; /* turns; -1: no limit */
    int n_state, n_scan;
    QnItem **in, **out; /* of the body: number, condition, states | condition, states, scans */
    Pile *pile;
} Loop;

static QnStatus loop_turn(QnOnnxNode *n, Loop *l, int64_t turn, bool *go_on)
{
    QnImporter *m = n->importer;
    QN_TRY(qn_importer_step(m));
    QnTensor *number = qn_onnx_tensor(n, QN_DTYPE_I64, &(QnShape){ 0 });
    if (!number)
        return QN_ENOMEM;
    *(int64_t *)number->data = turn;
    l->in[0] = qn_importer_item(m, "iteration", number);
    QN_TRY(l->in[0] ? QN_OK : QN_ENOMEM);
    QN_TRY(qn_importer_graph(m, l->body, l->in, 2 + l->n_state, l->out));
    for (int i = 0; i < l->n_state; i++)
        l->in[2 + i] = l->out[1 + i];
    for (int i = 0; i < l->n_scan; i++)
        QN_TRY(push(&l->pile[i], l->out[1 + l->n_state + i]));
    l->in[1] = l->out[0];
    return truth(m, l->out[0], go_on);
}

static QnStatus loop_turns(QnOnnxNode *n, Loop *l, bool go_on)
{
    QnImporter *m = n->importer;
    QnHeld state = { l->in, 2 + l->n_state, m->held };
    QnHeld out = { l->out, 1 + l->n_state + l->n_scan, &state };
    QnHeld *piles = qn_arena_array(n->arena, (size_t)l->n_scan + 1, sizeof *piles);
    QnHeld *outer = m->held;
    QnStatus st = piles ? QN_OK : QN_ENOMEM;
    for (int64_t turn = 0; st == QN_OK && go_on && (l->most < 0 || turn < l->most); turn++) {
        m->held = &out;
        for (int i = 0; i < l->n_scan; i++) {
            piles[i] = (QnHeld){ l->pile[i].item, l->pile[i].n, m->held };
            m->held = &piles[i];
        }
        st = loop_turn(n, l, turn, &go_on);
    }
    m->held = outer;
    return st;
}

static QnStatus loop_results(QnOnnxNode *n, const Loop *l)
{
    for (int i = 0; i < l->n_state && i < n->n_out; i++)
        n->out[i] = l->in[2 + i];
    for (int i = 0; i < l->n_scan; i++) {
        int to = l->n_state + i;
        if (to >= n->n_out)
            break;
        QN_TRY(l->pile[i].n ? stack(n, to, &l->pile[i], 0, false)
                            : empty_stack(n, to, l->body->output[1 + to].type));
    }
    return QN_OK;
}

static QnItem *bool_item(QnOnnxNode *n, bool v)
{
    QnTensor *t = qn_onnx_tensor(n, QN_DTYPE_BOOL, &(QnShape){ 0 });
    if (!t)
        return NULL;
    *(bool *)t->data = v;
    return qn_importer_item(n->importer, "condition", t);
}

static QnStatus import_loop(QnOnnxNode *n)
{
    Loop l = { .most = -1, .n_state = QN_MAX(n->n_in - 2, 0) };
    double go_on = 1;
    if (qn_onnx_has(n, 0))
        QN_TRY(qn_onnx_in_int(n, 0, &l.most));
    if (qn_onnx_has(n, 0) && l.most < 0)
        l.most = 0;
    if (qn_onnx_has(n, 1))
        QN_TRY(qn_onnx_in_double(n, 1, &go_on));
    QN_TRY(body_of(n, "body", &l.body));
    l.n_scan = (int)l.body->n_outputs - 1 - l.n_state;
    if (l.body->n_inputs != 2 + l.n_state || l.n_scan < 0)
        return qn_fail(QN_EFORMAT, "the body has %lld inputs and %lld outputs, the loop %d values",
                       (long long)l.body->n_inputs, (long long)l.body->n_outputs, l.n_state);
    l.in = qn_arena_array(n->arena, (size_t)l.body->n_inputs, sizeof(QnItem *));
    l.out = qn_arena_array(n->arena, (size_t)l.body->n_outputs, sizeof(QnItem *));
    l.pile = qn_arena_array(n->arena, (size_t)l.n_scan + 1, sizeof *l.pile);
    if (!l.in || !l.out || !l.pile || !(l.in[1] = bool_item(n, go_on != 0)))
        return QN_ENOMEM;
    for (int i = 0; i < l.n_state; i++)
        l.in[2 + i] = n->in[2 + i];
    QnStatus st = loop_turns(n, &l, go_on != 0);
    if (st == QN_OK)
        st = loop_results(n, &l);
    for (int i = 0; i < l.n_scan; i++)
        qn_free(l.pile[i].item);
    return st;
}

/* ---- Scan ------------------------------------------------------------------------------------ */

typedef struct Scan {
    const QnOnnxGraph *body;
    int n_state, n_scan_in, n_scan_out;
    QnInts in_axes, out_axes, in_back, out_back;
    QnItem **in, **out;
    Pile *pile;
} Scan;

static QnStatus slice_turn(QnOnnxNode *n, Scan *s, int k, int64_t turn, int64_t turns)
{
    QnImporter *m = n->importer;
    int axis;
    QnValue *x = qn_item_value(m->graph, m->epoch, n->in[s->n_state + k]);
    if (qn_value_is_poison(x))
        return qn_graph_check(m->graph);
    QN_TRY(qn_onnx_axis(k < s->in_axes.n ? s->in_axes.v[k] : 0, x->type.shape.rank, &axis));
    int64_t at = k < s->in_back.n && s->in_back.v[k] ? turns - 1 - turn : turn;
    QnItem *item = qn_importer_item(m, "slice", NULL);
    if (!item)
        return QN_ENOMEM;
    item->value = qn_squeeze(m->graph, qn_slice_axis(m->graph, x, axis, at, at + 1), axis);
    item->epoch = m->epoch;
    s->in[s->n_state + k] = item;
    return qn_graph_check(m->graph);
}

static QnStatus scan_turns(QnOnnxNode *n, Scan *s, int64_t turns)
{
    QnImporter *m = n->importer;
    QnHeld in = { s->in, s->n_state + s->n_scan_in, m->held };
    QnHeld out = { s->out, s->n_state + s->n_scan_out, &in };
    QnHeld *piles = qn_arena_array(n->arena, (size_t)s->n_scan_out + 1, sizeof *piles);
    QnHeld *outer = m->held;
    QnStatus st = piles ? QN_OK : QN_ENOMEM;
    for (int64_t turn = 0; st == QN_OK && turn < turns; turn++) {
        m->held = &out;
        for (int i = 0; i < s->n_scan_out; i++) {
            piles[i] = (QnHeld){ s->pile[i].item, s->pile[i].n, m->held };
            m->held = &piles[i];
        }
        st = qn_importer_step(m);
        for (int k = 0; st == QN_OK && k < s->n_scan_in; k++)
            st = slice_turn(n, s, k, turn, turns);
        if (st == QN_OK)
            st = qn_importer_graph(m, s->body, s->in, s->n_state + s->n_scan_in, s->out);
        for (int i = 0; st == QN_OK && i < s->n_state; i++)
            s->in[i] = s->out[i];
        for (int i = 0; st == QN_OK && i < s->n_scan_out; i++)
            st = push(&s->pile[i], s->out[s->n_state + i]);
    }
    m->held = outer;
    return st;
}

static QnStatus scan_length(QnOnnxNode *n, const Scan *s, int64_t *turns)
{
    for (int k = 0; k < s->n_scan_in; k++) {
        const QnType *t = qn_onnx_type(n, s->n_state + k);
        int axis;
        if (!t)
            return qn_fail(QN_EDTYPE, "scan input %d is no tensor", k);
        QN_TRY(qn_onnx_axis(k < s->in_axes.n ? s->in_axes.v[k] : 0, t->shape.rank, &axis));
        if (k && t->shape.dim[axis] != *turns)
            return qn_fail(QN_ESHAPE, "scan inputs have %lld and %lld turns", (long long)*turns,
                           (long long)t->shape.dim[axis]);
        *turns = t->shape.dim[axis];
    }
    return QN_OK;
}

static QnStatus import_scan(QnOnnxNode *n)
{
    int64_t turns = 0, scanned = qn_onnx_int(n, "num_scan_inputs", 1);
    if (scanned < 1 || scanned > n->n_in)
        return qn_fail(QN_EFORMAT, "%lld of its %d inputs are scanned", (long long)scanned,
                       n->n_in);
    Scan s = { .n_scan_in = (int)scanned };
    QN_TRY(body_of(n, "body", &s.body));
    qn_onnx_ints(n, "scan_input_axes", &s.in_axes);
    qn_onnx_ints(n, "scan_output_axes", &s.out_axes);
    qn_onnx_ints(n, "scan_input_directions", &s.in_back);
    qn_onnx_ints(n, "scan_output_directions", &s.out_back);
    s.n_state = n->n_in - s.n_scan_in;
    s.n_scan_out = (int)s.body->n_outputs - s.n_state;
    if (s.n_scan_out < 0 || s.body->n_inputs != n->n_in)
        return qn_fail(QN_EFORMAT, "the body's inputs and outputs do not fit the node's");
    QN_TRY(scan_length(n, &s, &turns));
    s.in = qn_arena_array(n->arena, (size_t)n->n_in, sizeof(QnItem *));
    s.out = qn_arena_array(n->arena, (size_t)s.body->n_outputs + 1, sizeof(QnItem *));
    s.pile = qn_arena_array(n->arena, (size_t)s.n_scan_out + 1, sizeof *s.pile);
    if (!s.in || !s.out || !s.pile)
        return QN_ENOMEM;
    for (int i = 0; i < s.n_state; i++)
        s.in[i] = n->in[i];
    QnStatus st = scan_turns(n, &s, turns);
    for (int i = 0; st == QN_OK && i < s.n_state && i < n->n_out; i++)
        n->out[i] = s.in[i];
    for (int i = 0; st == QN_OK && i < s.n_scan_out && s.n_state + i < n->n_out; i++)
        st = s.pile[i].n
                 ? stack(n, s.n_state + i, &s.pile[i], i < s.out_axes.n ? s.out_axes.v[i] : 0,
                         i < s.out_back.n && s.out_back.v[i])
                 : empty_stack(n, s.n_state + i, s.body->output[s.n_state + i].type);
    for (int i = 0; i < s.n_scan_out; i++)
        qn_free(s.pile[i].item);
    return st;
}

/* Opset 8: a batch in front of everything, and lengths, which come first. */
static QnItem *row_of(QnOnnxNode *n, QnItem *item, int64_t row)
{
    QnImporter *m = n->importer;
    QnItem *out = qn_importer_item(m, item->name, NULL);
    QnValue *x = qn_item_value(m->graph, m->epoch, item);
    if (!out || qn_value_is_poison(x) || x->type.shape.rank < 1)
        return NULL;
    out->value = qn_squeeze(m->graph, qn_slice_axis(m->graph, x, 0, row, row + 1), 0);
    out->epoch = m->epoch;
    return out;
}

static QnStatus import_scan8(QnOnnxNode *n)
{
    QnImporter *m = n->importer;
    QnOnnxNode row = *n;
    const QnType *t = qn_onnx_type(n, 1);
    if (qn_onnx_has(n, 0))
        return qn_onnx_refuse(n, "sequence_lens");
    if (!t || t->shape.rank < 1)
        return qn_fail(QN_ESHAPE, "input 1 must have a batch in front");
    int64_t rows = t->shape.dim[0];
    Pile *pile = qn_arena_array(n->arena, (size_t)n->n_out + 1, sizeof *pile);
    row.n_in = n->n_in - 1;
    row.in = qn_arena_array(n->arena, (size_t)n->n_in, sizeof(QnItem *));
    QnHeld *piles = qn_arena_array(n->arena, (size_t)n->n_out + 1, sizeof *piles);
    QnStatus st = pile && row.in && piles ? QN_OK : QN_ENOMEM;
    QnHeld in = { row.in, row.n_in, m->held };
    QnHeld *outer = m->held;
    for (int64_t b = 0; st == QN_OK && b < rows; b++) {
        m->held = &in;
        for (int i = 0; i < n->n_out; i++) {
            piles[i] = (QnHeld){ pile[i].item, pile[i].n, m->held };
            m->held = &piles[i];
        }
        for (int i = 0; st == QN_OK && i < row.n_in; i++)
            if (!(row.in[i] = row_of(n, n->in[i + 1], b)))
                st = qn_fail(QN_ESHAPE, "input %d must have a batch in front", i + 1);
        row.out = qn_arena_array(n->arena, (size_t)n->n_out + 1, sizeof(QnItem *));
        if (st == QN_OK)
            st = row.out ? import_scan(&row) : QN_ENOMEM;
        for (int i = 0; st == QN_OK && i < n->n_out; i++)
            st = push(&pile[i], row.out[i]);
    }
    m->held = outer;
    for (int i = 0; st == QN_OK && i < n->n_out; i++)
        st = stack(n, i, &pile[i], 0, false);
    for (int i = 0; pile && i < n->n_out; i++)
        qn_free(pile[i].item);
    return st;
}

/* ---- SequenceMap ----------------------------------------------------------------------------- */

static QnStatus import_sequence_map(QnOnnxNode *n)
{
    QnImporter *m = n->importer;
    const QnOnnxGraph *body = NULL;
    QN_TRY(body_of(n, "body", &body));
    if (!qn_onnx_has(n, 0) || n->in[0]->kind != QN_ITEM_SEQUENCE)
        return qn_fail(QN_EDTYPE, "input 0 must be a sequence");
    int64_t turns = n->in[0]->n;
    QnItem **in = qn_arena_array(n->arena, (size_t)n->n_in, sizeof *in);
    QnItem **out = qn_arena_array(n->arena, (size_t)body->n_outputs + 1, sizeof *out);
    if (!in || !out)
        return QN_ENOMEM;
    if (body->n_outputs < n->n_out)
        return qn_fail(QN_EFORMAT, "the body has fewer outputs than the node");
    for (int i = 0; i < n->n_out; i++) {
        QnItem *s = qn_importer_item(m, n->name, NULL);
        QN_TRY(s ? QN_OK : QN_ENOMEM);
        s->kind = QN_ITEM_SEQUENCE;
        s->item = qn_onnx_room(n, ((size_t)turns + 1) * sizeof *s->item);
        QN_TRY(s->item ? QN_OK : QN_ENOMEM);
        n->out[i] = s;
    }
    QnHeld held = { n->out, n->n_out, m->held };
    m->held = &held;
    QnStatus st = QN_OK;
    for (int64_t t = 0; st == QN_OK && t < turns; t++) {
        for (int i = 0; i < n->n_in; i++) {
            bool one_each = n->in[i] && n->in[i]->kind == QN_ITEM_SEQUENCE && t < n->in[i]->n;
            in[i] = one_each ? n->in[i]->item[t] : n->in[i];
        }
        st = qn_importer_step(m);
        if (st == QN_OK)
            st = qn_importer_graph(m, body, in, n->n_in, out);
        for (int i = 0; st == QN_OK && i < n->n_out; i++)
            n->out[i]->item[n->out[i]->n++] = out[i];
    }
    m->held = held.outer;
    return st;
}

const QnOnnxMap qn_onnx_control[] = {
    { "If", NULL, 1, 0, import_if, NULL },
    { "Loop", NULL, 1, 0, import_loop, NULL },
    { "Scan", NULL, 8, 8, import_scan8, NULL },
    { "Scan", NULL, 9, 0, import_scan, NULL },
    { "SequenceMap", NULL, 17, 0, import_sequence_map, NULL },
    { 0 },
};
