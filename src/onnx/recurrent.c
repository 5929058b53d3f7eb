#include "onnx/recurrent.h"

#include "ops/ops.h"

#include <ctype.h>
#include <string.h>

/* ---- activations ----------------------------------------------------------------------------- */

typedef struct Act {
    const char *name;
    bool alpha, beta; /* takes them */
    double a, b;      /* where the file says nothing */
} Act;

static const Act acts[] = {
    { "relu", false, false, 0, 0 },        { "tanh", false, false, 0, 0 },
    { "sigmoid", false, false, 0, 0 },     { "softsign", false, false, 0, 0 },
    { "softplus", false, false, 0, 0 },    { "affine", true, true, 1, 0 },
    { "leakyrelu", true, false, 0.01, 0 }, { "thresholdedrelu", true, false, 1, 0 },
    { "scaledtanh", true, true, 1, 1 },    { "hardsigmoid", true, true, 0.2, 0.5 },
    { "elu", true, false, 1, 0 },
};

static const Act *find_act(const char *name, size_t n)
{
    for (int i = 0; i < (int)QN_COUNT(acts); i++) {
        size_t k = 0;
        while (k < n && acts[i].name[k] && tolower((unsigned char)name[k]) == acts[i].name[k])
            k++;
        if (k == n && !acts[i].name[k])
            return &acts[i];
    }
    return NULL;
}

static double take(const QnOnnxNode *n, const char *name, int *at, double otherwise)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, name);
    if (!a || a->kind != QN_ONNX_FLOATS || *at >= a->n)
        return otherwise;
    return (double)a->floats[(*at)++];
}

QnStatus qn_cell_activation(const QnOnnxNode *n, int at, const char *usual, int *alpha, int *beta,
                            QnCellAct *out)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, "activations");
    QnText name = { usual, strlen(usual) };
    if (a && a->kind == QN_ONNX_STRINGS && a->n) {
        if (at >= a->n)
            return qn_fail(QN_EFORMAT, "attribute 'activations' has %lld entries, too few",
                           (long long)a->n);
        name = a->strings[at];
    }
    const Act *f = find_act(name.s, name.n);
    if (!f)
        return qn_onnx_refuse(n, "activation '%.*s'", (int)QN_MIN(name.n, (size_t)40), name.s);
    *out = (QnCellAct){ f->name, f->a, f->b };
    if (f->alpha)
        out->alpha = take(n, "activation_alpha", alpha, f->a);
    if (f->beta)
        out->beta = take(n, "activation_beta", beta, f->b);
    return QN_OK;
}

bool qn_cell_acts(const QnCellAct *a, const char *name)
{
    return !strcmp(a->name, name);
}

static QnValue *affine(QnGraph *g, QnValue *x, double a, double b)
{
    return qn_add_scalar(g, qn_mul_scalar(g, x, a), b);
}

static QnValue *activate(QnGraph *g, const QnCellAct *f, QnValue *x)
{
    if (qn_cell_acts(f, "relu"))
        return qn_relu(g, x);
    if (qn_cell_acts(f, "tanh"))
        return qn_tanh(g, x);
    if (qn_cell_acts(f, "sigmoid"))
        return qn_sigmoid(g, x);
    if (qn_cell_acts(f, "softsign"))
        return qn_softsign(g, x);
    if (qn_cell_acts(f, "softplus"))
        return qn_softplus(g, x);
    if (qn_cell_acts(f, "affine"))
        return affine(g, x, f->alpha, f->beta);
    if (qn_cell_acts(f, "leakyrelu"))
        return qn_leaky_relu(g, x, f->alpha);
    if (qn_cell_acts(f, "thresholdedrelu"))
        return qn_thresholded_relu(g, x, f->alpha);
    if (qn_cell_acts(f, "scaledtanh"))
        return qn_mul_scalar(g, qn_tanh(g, qn_mul_scalar(g, x, f->beta)), f->alpha);
    if (qn_cell_acts(f, "hardsigmoid"))
        return qn_clip(g, affine(g, x, f->alpha, f->beta), 0, 1);
    return qn_elu(g, x, f->alpha);
}

/* ---- one step -------------------------------------------------------------------------------- */

/* Columns of gates from..to of x (B,gates*H), or of a vector (gates*H). */
static QnValue *gates(QnGraph *g, const QnCell *c, QnValue *x, int from, int to)
{
    return x ? qn_slice_axis(g, x, -1, from * c->hidden, to * c->hidden) : NULL;
}

static QnValue *gate(QnGraph *g, const QnCell *c, QnValue *x, int i)
{
    return gates(g, c, x, i, i + 1);
}

static QnValue *rows(QnGraph *g, const QnCell *c, QnValue *x, int from, int to)
{
    return qn_slice_axis(g, x, 0, from * c->hidden, to * c->hidden);
}

static QnValue *clipped(QnGraph *g, const QnCell *c, const QnCellAct *f, QnValue *x)
{
    return activate(g, f, c->clip > 0 ? qn_clip(g, x, -c->clip, c->clip) : x);
}

/* x + peephole k times the state, where there is one. */
static QnValue *peep(QnGraph *g, const QnCell *c, QnValue *x, int k, QnValue *state)
{
    return c->p ? qn_add(g, x, qn_mul(g, gate(g, c, c->p, k), state)) : x;
}

static void step_lstm(QnGraph *g, const QnCell *c, QnValue *x, QnValue **h, QnValue **state)
{
    QnValue *a = qn_add(g, x, qn_matmul(g, *h, c->r, c->rb, false, true));
    QnValue *i = clipped(g, c, &c->act[0], peep(g, c, gate(g, c, a, 0), 0, *state));
    QnValue *f = c->input_forget
                     ? affine(g, i, -1, 1)
                     : clipped(g, c, &c->act[0], peep(g, c, gate(g, c, a, 2), 2, *state));
    QnValue *u = clipped(g, c, &c->act[1], gate(g, c, a, 3));
    *state = qn_add(g, qn_mul(g, f, *state), qn_mul(g, i, u));
    QnValue *o = clipped(g, c, &c->act[0], peep(g, c, gate(g, c, a, 1), 1, *state));
    *h = qn_mul(g, o, activate(g, &c->act[2], *state));
}

/* z and r, then the candidate: the reset works on h, or on what r makes of h. */
static void step_gru(QnGraph *g, const QnCell *c, QnValue *x, QnValue **h)
{
    QnValue *a = qn_matmul(g, *h, rows(g, c, c->r, 0, 2), gates(g, c, c->rb, 0, 2), false, true);
    a = clipped(g, c, &c->act[0], qn_add(g, gates(g, c, x, 0, 2), a));
    QnValue *z = gate(g, c, a, 0), *reset = gate(g, c, a, 1), *now;
    QnValue *r = rows(g, c, c->r, 2, 3), *rb = gate(g, c, c->rb, 2);
    if (c->linear_before_reset)
        now = qn_mul(g, reset, qn_matmul(g, *h, r, rb, false, true));
    else
        now = qn_matmul(g, qn_mul(g, reset, *h), r, rb, false, true);
    now = clipped(g, c, &c->act[1], qn_add(g, gate(g, c, x, 2), now));
    *h = qn_add(g, qn_mul(g, affine(g, z, -1, 1), now), qn_mul(g, z, *h));
}

void qn_cell_step(QnGraph *g, const QnCell *c, QnValue *x, QnValue **h, QnValue **state)
{
    if (c->kind == QN_CELL_LSTM)
        step_lstm(g, c, x, h, state);
    else if (c->kind == QN_CELL_GRU)
        step_gru(g, c, x, h);
    else
        *h = clipped(g, c, &c->act[0], qn_add(g, x, qn_matmul(g, *h, c->r, c->rb, false, true)));
}
