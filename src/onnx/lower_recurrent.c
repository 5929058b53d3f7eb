/* RNN, GRU and LSTM. The usual form becomes one of our recurrent operators, gates in their order;
 * all others are unrolled over time. */
#include "onnx/mapping.h"
#include "onnx/recurrent.h"
#include "ops/ops.h"
#include "ops/recurrent.h"

enum { MAX_STEPS = 1 << 16 };

typedef struct Form {
    QnCell cell; /* its activations are the first direction's */
    QnCellAct act[2][3];
    int ways;
    QnDirection direction;
    bool batch_first;
    int64_t steps, batch;
    QnValue *x;             /* (T,B,I) */
    QnValue *h, *c;         /* (D,B,H) */
    QnValue *w, *r, *b, *p; /* as ONNX has them; b, p may be NULL */
    QnValue *lengths;       /* (B); NULL: all T */
} Form;

/* ---- reading --------------------------------------------------------------------------------- */

static QnStatus read_attrs(const QnOnnxNode *n, Form *f)
{
    static const char *const usual[3][3] = { { "tanh", "", "" },
                                             { "sigmoid", "tanh", "" },
                                             { "sigmoid", "tanh", "tanh" } };
    QnCell *c = &f->cell;
    c->kind = n->op[0] == 'L' ? QN_CELL_LSTM : n->op[0] == 'G' ? QN_CELL_GRU : QN_CELL_RNN;
    c->gates = c->kind == QN_CELL_LSTM ? 4 : c->kind == QN_CELL_GRU ? 3 : 1;
    c->clip = qn_onnx_float(n, "clip", 0);
    c->input_forget = qn_onnx_int(n, "input_forget", 0) != 0;
    c->linear_before_reset = qn_onnx_int(n, "linear_before_reset", 0) != 0;
    f->batch_first = qn_onnx_int(n, "layout", 0) == 1;
    f->direction = qn_onnx_is(n, "direction", "reverse", "forward")         ? QN_DIRECTION_REVERSE
                   : qn_onnx_is(n, "direction", "bidirectional", "forward") ? QN_DIRECTION_BOTH
                                                                            : QN_DIRECTION_FORWARD;
    f->ways = f->direction == QN_DIRECTION_BOTH ? 2 : 1;
    int per_way = (int)c->kind + 1, alpha = 0, beta = 0;
    for (int d = 0; d < f->ways; d++)
        for (int i = 0; i < per_way; i++)
            QN_TRY(qn_cell_activation(n, d * per_way + i, usual[c->kind][i], &alpha, &beta,
                                      &f->act[d][i]));
    return QN_OK;
}

/* Input i must have this shape where it is given. */
static QnStatus check_input(const QnOnnxNode *n, int i, const QnShape *want)
{
    const QnType *t = qn_onnx_type(n, i);
    char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
    if (!qn_onnx_has(n, i))
        return QN_OK;
    bool same = t && t->shape.rank == want->rank;
    for (int k = 0; same && k < want->rank; k++)
        same = t->shape.dim[k] == want->dim[k];
    if (same)
        return QN_OK;
    return qn_fail(QN_ESHAPE, "input %d is %s; it must be %s", i,
                   t ? qn_shape_text(&t->shape, a) : "no tensor of numbers",
                   qn_shape_text(want, b));
}

static QnStatus check_shapes(const QnOnnxNode *n, Form *f)
{
    const QnType *x = qn_onnx_type(n, 0), *r = qn_onnx_type(n, 2);
    if (!x || !r || x->shape.rank != 3 || r->shape.rank != 3)
        return qn_fail(QN_ESHAPE, "inputs 0 and 2 must be tensors of rank 3");
    int64_t h = f->cell.hidden = r->shape.dim[2], gh = f->cell.gates * h, d = f->ways;
    f->steps = x->shape.dim[f->batch_first];
    f->batch = x->shape.dim[!f->batch_first];
    QnShape state = QN_SHAPE(d, f->batch, h);
    if (f->batch_first)
        state = QN_SHAPE(f->batch, d, h);
    QN_TRY(check_input(n, 1, &QN_SHAPE(d, gh, x->shape.dim[2])));
    QN_TRY(check_input(n, 2, &QN_SHAPE(d, gh, h)));
    QN_TRY(check_input(n, 3, &QN_SHAPE(d, 2 * gh)));
    QN_TRY(check_input(n, 4, &QN_SHAPE(f->batch)));
    QN_TRY(check_input(n, 5, &state));
    if (f->cell.kind == QN_CELL_LSTM) {
        QN_TRY(check_input(n, 6, &state));
        QN_TRY(check_input(n, 7, &QN_SHAPE(d, 3 * h)));
    }
    if (f->steps < 1 || f->steps > MAX_STEPS)
        return qn_onnx_refuse(n, "%lld steps; 1 to %d are unrolled", (long long)f->steps,
                              MAX_STEPS);
    return QN_OK;
}

static QnValue *state_in(QnOnnxNode *n, const Form *f, int i)
{
    QnShape s = QN_SHAPE(f->ways, f->batch, f->cell.hidden);
    if (!qn_onnx_has(n, i))
        return qn_full(n->g, 0, qn_onnx_type(n, 0)->dtype, &s);
    QnValue *v = qn_onnx_in(n, i);
    return f->batch_first ? qn_swap_axes(n->g, v, 0, 1) : v;
}

/* Lengths that the file itself gives as all steps say nothing. */
static bool has_lengths(QnOnnxNode *n, const Form *f)
{
    QnInts len;
    bool all = qn_onnx_has(n, 4) && n->in[4]->known && !n->in[4]->is_fed &&
               qn_onnx_in_ints(n, 4, &len) == QN_OK;
    for (int i = 0; all && i < len.n; i++)
        all = len.v[i] == f->steps;
    return qn_onnx_has(n, 4) && !all;
}

static void read_inputs(QnOnnxNode *n, Form *f)
{
    bool is_lstm = f->cell.kind == QN_CELL_LSTM;
    f->x = qn_onnx_in(n, 0);
    if (f->batch_first)
        f->x = qn_swap_axes(n->g, f->x, 0, 1);
    f->w = qn_onnx_in(n, 1);
    f->r = qn_onnx_in(n, 2);
    f->b = qn_onnx_in_or(n, 3, NULL);
    f->lengths = has_lengths(n, f) ? qn_onnx_in(n, 4) : NULL;
    f->h = state_in(n, f, 5);
    f->c = is_lstm ? state_in(n, f, 6) : NULL;
    f->p = is_lstm ? qn_onnx_in_or(n, 7, NULL) : NULL;
}

/* ---- our operators --------------------------------------------------------------------------- */

static bool is_usual(const Form *f)
{
    const QnCell *c = &f->cell;
    bool usual = !f->lengths && !f->p && !c->input_forget && c->clip <= 0 &&
                 (c->kind != QN_CELL_GRU || c->linear_before_reset);
    for (int d = 0; d < f->ways; d++) {
        const QnCellAct *a = f->act[d];
        if (c->kind == QN_CELL_RNN)
            usual &= qn_cell_acts(a, "tanh") || qn_cell_acts(a, "relu");
        else
            usual &= qn_cell_acts(a, "sigmoid") && qn_cell_acts(&a[1], "tanh");
        if (c->kind == QN_CELL_LSTM)
            usual &= qn_cell_acts(&a[2], "tanh");
    }
    return usual && qn_cell_acts(&f->act[0][0], f->act[f->ways - 1][0].name);
}

/* Gates along axis 1 (of `first` and what follows) in our order: LSTM i f c o, GRU r z h. */
static QnValue *reorder(QnGraph *g, const QnCell *c, QnValue *v, int first)
{
    static const int order[3][4] = { { 0 }, { 1, 0, 2 }, { 0, 2, 3, 1 } };
    QnValue *part[4];
    for (int i = 0; i < c->gates; i++) {
        int64_t at = (first + order[c->kind][i]) * c->hidden;
        part[i] = qn_slice_axis(g, v, 1, at, at + c->hidden);
    }
    return c->gates == 1 ? part[0] : qn_concat(g, part, c->gates, 1);
}

static void run_usual(QnGraph *g, const Form *f, QnValue *out[3])
{
    const QnCell *c = &f->cell;
    QnValue *w = reorder(g, c, f->w, 0), *r = reorder(g, c, f->r, 0);
    QnValue *b = f->b ? reorder(g, c, f->b, 0) : NULL;
    QnValue *rb = f->b ? reorder(g, c, f->b, c->gates) : NULL;
    QnNode *n;
    if (c->kind == QN_CELL_LSTM)
        n = qn_lstm(g, f->x, f->h, f->c, w, r, b, rb, (int)f->direction);
    else if (c->kind == QN_CELL_GRU)
        n = qn_gru(g, f->x, f->h, w, r, b, rb, (int)f->direction);
    else
        n = qn_rnn(g, f->x, f->h, w, r, b, rb, (int)f->direction,
                   qn_cell_acts(&f->act[0][0], "relu"));
    QnShape s = QN_SHAPE(f->steps, f->batch, f->ways, c->hidden);
    out[0] = qn_swap_axes(g, qn_reshape(g, qn_node_out(g, n, 0), &s), 1, 2);
    out[1] = qn_node_out(g, n, 1);
    out[2] = f->c ? qn_node_out(g, n, 2) : NULL;
}

/* ---- unrolled -------------------------------------------------------------------------------- */

/* Entry i along axis 0, without it. */
static QnValue *entry(QnGraph *g, QnValue *x, int64_t i)
{
    return x ? qn_squeeze(g, qn_slice_axis(g, x, 0, i, i + 1), 0) : NULL;
}

/* (T,B,1): whether step t lies within sequence b. */
static QnValue *inside(QnGraph *g, const Form *f)
{
    if (!f->lengths)
        return NULL;
    QnValue *t = qn_arange(g, 0, 1, f->steps, QN_DTYPE_F32);
    t = qn_reshape(g, t, &QN_SHAPE(f->steps, 1, 1));
    QnValue *len = qn_cast(g, f->lengths, QN_DTYPE_F32);
    return qn_less(g, t, qn_reshape(g, len, &QN_SHAPE(f->batch, 1)));
}

/* A state stays as it is outside its sequence; what a step gives there is 0. */
static void run_way(QnGraph *g, const Form *f, int d, QnValue *mask, QnValue **y, QnValue *last[2])
{
    QnCell c = f->cell;
    bool reverse = f->direction == QN_DIRECTION_REVERSE || d == 1;
    int64_t gh = c.gates * c.hidden;
    QnValue *b = entry(g, f->b, d);
    for (int i = 0; i < 3; i++)
        c.act[i] = f->act[d][i];
    c.w = entry(g, f->w, d);
    c.r = entry(g, f->r, d);
    c.p = entry(g, f->p, d);
    c.wb = b ? qn_slice_axis(g, b, 0, 0, gh) : NULL;
    c.rb = b ? qn_slice_axis(g, b, 0, gh, 2 * gh) : NULL;
    QnValue *x = qn_matmul(g, f->x, c.w, c.wb, false, true);
    QnValue *h = entry(g, f->h, d), *state = entry(g, f->c, d);
    QnValue *zero = qn_scalar_like(g, f->x, 0);
    for (int64_t k = 0; k < f->steps && qn_graph_check(g) == QN_OK; k++) {
        int64_t t = reverse ? f->steps - 1 - k : k;
        QnValue *h0 = h, *c0 = state, *m = entry(g, mask, t);
        qn_cell_step(g, &c, entry(g, x, t), &h, &state);
        y[t] = m ? qn_where(g, m, h, zero) : h;
        h = m ? qn_where(g, m, h, h0) : h;
        state = m && state ? qn_where(g, m, state, c0) : state;
    }
    last[0] = h;
    last[1] = state;
}

static QnStatus run_general(QnOnnxNode *n, const Form *f, QnValue *out[3])
{
    QnGraph *g = n->g;
    QnValue *last[2][2], **y[2], *all[2], *mask = inside(g, f);
    for (int d = 0; d < f->ways; d++) {
        y[d] = qn_arena_array(n->arena, (size_t)f->steps, sizeof *y[d]);
        if (!y[d])
            return QN_ENOMEM;
        run_way(g, f, d, mask, y[d], last[d]);
        QN_TRY(qn_graph_check(g));
        all[d] = qn_stack(g, y[d], (int)f->steps, 0);
    }
    out[0] = qn_stack(g, all, f->ways, 1);
    for (int i = 0; i < (f->c ? 2 : 1); i++)
        out[1 + i] =
            qn_stack(g, (QnValue *[]){ last[0][i], f->ways == 2 ? last[1][i] : NULL }, f->ways, 0);
    return QN_OK;
}

static QnStatus import_recurrent(QnOnnxNode *n)
{
    Form f = { 0 };
    QnValue *out[3] = { NULL };
    QN_TRY(read_attrs(n, &f));
    QN_TRY(check_shapes(n, &f));
    read_inputs(n, &f);
    QN_TRY(qn_graph_check(n->g));
    if (is_usual(&f))
        run_usual(n->g, &f, out);
    else
        QN_TRY(run_general(n, &f, out));
    if (f.batch_first) {
        out[0] = qn_transpose(n->g, out[0], (QnInts){ 4, { 2, 0, 1, 3 } });
        for (int i = 1; i < 3; i++)
            out[i] = out[i] ? qn_swap_axes(n->g, out[i], 0, 1) : NULL;
    }
    for (int i = 0; i < n->n_out && i < 3; i++)
        if (n->out_used[i] && out[i])
            QN_TRY(qn_onnx_out(n, i, out[i]));
    return qn_graph_check(n->g);
}

const QnOnnxMap qn_onnx_recurrent[] = {
    { "RNN", NULL, 1, 0, import_recurrent, NULL },
    { "GRU", NULL, 3, 0, import_recurrent, NULL },
    { "LSTM", NULL, 1, 0, import_recurrent, NULL },
    { 0 },
};
