/* Mamba (Gu and Dao 2023): layers whose memory is a state of fixed size, by a linear recurrence
 * whose factors follow from the input. */
#include "plan/models/text.h"

/* size: layers, width, inner width, numbers of a channel's state, rank of the step widths, words,
 * whether scores are by the embedding's table, whether what drives the state is normed */
enum { LAYERS, WIDTH, INNER, STATE, RANK, WORDS, TIED, NORMED };
enum { KERNEL = 4 };

static const QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 };

/* Each channel's last four inputs. x (B,T,inner) */
static QnValue *near(QnNet *net, QnValue *x, const QnStepInput *in)
{
    QnGraph *g = net->g;
    if (qn_value_is_poison(x))
        return x;
    int64_t batch = x->type.shape.dim[0], tokens = x->type.shape.dim[1], width = qn_text_width(x);
    QnConvSpec spec = {
        .out = width, .kernel = KERNEL, .pad = KERNEL - 1, .groups = width, .bias = true
    };
    x = qn_swap_axes(g, x, 1, 2);
    bool go_on = in && in->context;
    if (in)
        qn_cache_put(net, "inputs", x);
    if (go_on) {
        QnValue *before = qn_cache_keep(net, "inputs", &QN_SHAPE(batch, width, KERNEL - 1));
        x = qn_concat(g, (QnValue *[]){ before, x }, 2, 2);
        spec.pad = 0;
    }
    x = qn_slice_axis(g, qn_nn_conv(net, "conv1d", x, &spec), 2, 0, tokens);
    return qn_silu(g, qn_swap_axes(g, x, 1, 2));
}

/* What the state is told (B,T,1,N) and asked (B,T,1,N) at each step, and how fast it forgets. */
typedef struct Drive {
    QnValue *rate, *told, *asked; /* rate (B,T,inner) */
} Drive;

static Drive drive(QnNet *net, const QnModel *m, QnValue *x)
{
    QnGraph *g = net->g;
    int64_t rank = m->size[RANK], n = m->size[STATE];
    Drive d;
    QnValue *y = qn_nn_linear(net, "x_proj", x, rank + 2 * n, false);
    QnNode *parts = qn_split_sizes(g, y, -1, &(QnDims){ 3, { rank, n, n } });
    QnValue *part[3];
    for (int i = 0; i < 3; i++) {
        part[i] = qn_node_out(g, parts, i);
        if (m->size[NORMED]) { /* without weights */
            QnShape ones = QN_SHAPE(i ? n : rank);
            part[i] = qn_rms_norm(g, part[i], qn_full(g, 1, net->dtype, &ones), -1, 1e-6);
        }
    }
    d.rate = qn_softplus(g, qn_nn_linear(net, "dt_proj", part[0], m->size[INNER], true));
    d.told = qn_unsqueeze(g, part[1], 2);
    d.asked = qn_unsqueeze(g, part[2], 3);
    return d;
}

/* The recurrence over steps of x (B,T,inner). Libraries have it in one kernel that keeps the states
 * on the chip; here they are written, as they would be without. */
static QnValue *scan(QnNet *net, const QnModel *m, QnValue *x, const QnStepInput *in)
{
    QnGraph *g = net->g;
    int64_t inner = m->size[INNER], n = m->size[STATE];
    QnShape states = QN_SHAPE(inner, n);
    Drive d = drive(net, m, x);
    QnValue *a = qn_neg(g, qn_exp(g, qn_net_param(net, "A_log", &states, &init, false)));
    QnValue *rate = qn_unsqueeze(g, d.rate, 3);
    QnValue *keep = qn_exp(g, qn_mul(g, rate, a));
    QnValue *add = qn_mul(g, qn_mul(g, rate, qn_unsqueeze(g, x, 3)), d.told), *h;
    if (in && in->context && !qn_value_is_poison(x)) {
        QnShape kept = QN_SHAPE(x->type.shape.dim[0], 1, inner, n);
        h = qn_add(g, qn_mul(g, keep, qn_cache_keep(net, "state", &kept)), add);
    } else {
        h = qn_linear_scan(g, keep, add, 1, false);
    }
    if (in)
        qn_cache_put(net, "state", h);
    QnValue *y = qn_squeeze(g, qn_matmul(g, h, d.asked, NULL, false, false), 3);
    QnValue *skip = qn_net_param(net, "D", &QN_SHAPE(inner), &init, false);
    return qn_add(g, y, qn_mul(g, x, skip));
}

static QnValue *layer(QnNet *net, int64_t i, const QnModel *m, QnValue *x, const QnStepInput *in)
{
    QnGraph *g = net->g;
    QnValue *two[2];
    qn_text_push(net, "", i);
    QnValue *y =
        qn_nn_linear(net, "in_proj", qn_nn_rms_norm(net, "norm", x), 2 * m->size[INNER], false);
    qn_split(g, y, -1, 2, two);
    y = scan(net, m, near(net, two[0], in), in);
    y = qn_nn_linear(net, "out_proj", qn_mul(g, y, qn_silu(g, two[1])), m->size[WIDTH], false);
    qn_net_pop(net);
    return qn_add(g, x, y);
}

static QnValue *mamba(QnNet *net, const QnModel *m, QnValue *x, const QnStepInput *in,
                      int64_t layers)
{
    QnGraph *g = net->g;
    QnValue *table;
    x = qn_nn_embedding(net, "words", x, m->size[WORDS], m->size[WIDTH], &table);
    layers = layers ? layers : m->size[LAYERS];
    for (int64_t i = 0; i < layers; i++)
        x = layer(net, i, m, x, in);
    x = qn_nn_rms_norm(net, "norm", in ? qn_text_last(g, x) : x);
    if (m->size[TIED])
        return qn_matmul(g, x, table, NULL, false, true);
    return qn_nn_linear(net, "lm_head", x, m->size[WORDS], false);
}

static QnValue *build(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    return mamba(net, m, x, NULL, layers);
}

static const QnFamily family = {
    .name = "mamba", .sequence = 1024, .build = build, .generate = mamba, .layers = 1, .adam = true
};

static const QnModel models[] = {
    { "mamba-130m-hf",
      &family,
      { 24, 768, 1536, 16, 48, 50280, 1 },
      129.1,
      "Gu and Dao 2023; released weights" },
    { "falcon-mamba-7b",
      &family,
      { 64, 4096, 8192, 16, 256, 65024, 0, 1 },
      7273,
      "Zuo et al. 2024; released weights" },
};

const QnModelList qn_models_mamba = { models, QN_COUNT(models) };
