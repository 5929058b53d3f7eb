#include "plan/models/recurrent.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "weight_hh_26": of 26 steps */
static const char between[] = "weight_hh_";

int64_t qn_recurrent_steps(const char *name)
{
    const char *dot = strrchr(name, '.');
    name = dot ? dot + 1 : name;
    return strncmp(name, between, sizeof between - 1) ? 0 : atoll(name + sizeof between - 1);
}

enum { GATES = 4 };

/* Parts of the gates (T,B,4H): from the inputs, and from the states before. */
typedef struct Gates {
    QnValue *in, *state;
    QnValue *before; /* (T,B,H), in place of the states */
} Gates;

static Gates gates_of(QnNet *net, QnValue *x, int64_t hidden)
{
    QnGraph *g = net->g;
    QnInitSpec init = { QN_INIT_KIND_UNIFORM, 0, 0, 1 / sqrt((double)QN_MAX(hidden, 1)) };
    QnShape bias = QN_SHAPE(GATES * hidden);
    char weight[40];
    Gates p;
    snprintf(weight, sizeof weight, "%s%lld", between,
             (long long)(x->type.shape.rank ? x->type.shape.dim[0] : 1));
    p.in = qn_nn_linear_init(net, "ih", x, GATES * hidden, true, &init);
    p.before = qn_tanh(g, qn_slice_axis(g, p.in, -1, 0, hidden));
    QnValue *w = qn_net_param(net, weight, &QN_SHAPE(GATES * hidden, hidden), &init, true);
    QnValue *b = qn_net_param(net, "bias_hh", &bias, &init, false);
    p.state = qn_matmul(g, p.before, w, b, false, true);
    return p;
}

QnValue *qn_recurrent_lstm(QnNet *net, const char *name, QnValue *x, int64_t hidden)
{
    QnGraph *g = net->g;
    QnValue *part[4];
    qn_net_push(net, name);
    Gates p = gates_of(net, x, hidden);
    qn_split(g, qn_add(g, p.in, p.state), -1, 4, part);
    QnValue *cell = qn_add(g, qn_mul(g, qn_sigmoid(g, part[1]), p.before),
                           qn_mul(g, qn_sigmoid(g, part[0]), qn_tanh(g, part[2])));
    QnValue *y = qn_mul(g, qn_sigmoid(g, part[3]), qn_tanh(g, cell));
    qn_net_pop(net);
    return y;
}

QnValue *qn_recurrent_both(QnNet *net, const char *name, QnValue *x, int64_t hidden)
{
    qn_net_push(net, name);
    QnValue *y[] = { qn_recurrent_lstm(net, "forward", x, hidden),
                     qn_recurrent_lstm(net, "backward", x, hidden) };
    qn_net_pop(net);
    return qn_concat(net->g, y, 2, -1);
}
