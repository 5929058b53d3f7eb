/* Training and inference of published nets in mixed precision. Where the device has no memory or
 * time for a size, the next smaller one is taken, which the row's name states. */
#include "gpu.h"

#include "ops/ops.h"
#include "pass/precision.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const QnOptim sgd = { .name = "sgd", .momentum = 0.9, .weight_decay = 1e-4 };
static const QnOptim adamw = {
    .name = "adamw", .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1
};

enum { WORDS_OF_CUT = 1000 };

/* One size of a net: length is of an image's side, or tokens. layers 0: all, and the whole
 * vocabulary; else so many, and WORDS_OF_CUT words. */
typedef struct Size {
    int64_t batch, length, layers;
} Size;

typedef struct Net {
    const char *name, *of_cut; /* of_cut: where layers are left out */
    bool trains, images;
    /* The model's scores (rows, classes). */
    QnValue *(*build)(Made *m, QnNet *net, const Size *s, int64_t *classes);
    const QnOptim *optim;
    Size sizes[10]; /* the largest first */
    const char *goal;
} Net;

/* ---- models ---- */

static QnValue *tokens(Made *m, const Size *s, int64_t vocab)
{
    return made_data(m, "x", QN_DTYPE_I64, &QN_SHAPE(s->batch, s->length), 0, (double)vocab - 1);
}

static QnValue *resnet50(Made *m, QnNet *net, const Size *s, int64_t *classes)
{
    QnResnetSpec spec = { .depth = 50, .outputs = *classes = 1000 };
    QnShape shape = QN_SHAPE(s->batch, 3, s->length, s->length);
    return qn_nn_resnet(net, made_data(m, "x", QN_DTYPE_F32, &shape, -1.7, 1.7), &spec);
}

static QnValue *gpt2(Made *m, QnNet *net, const Size *s, int64_t *classes)
{
    QnGptSpec spec;
    if (!qn_nn_gpt2_size("small", &spec))
        return qn_graph_poison(m->g);
    spec.layers = s->layers ? s->layers : spec.layers;
    spec.vocab = *classes = s->layers ? WORDS_OF_CUT : spec.vocab;
    QnValue *y = qn_nn_gpt2(net, tokens(m, s, spec.vocab), &spec);
    return qn_reshape(m->g, y, &QN_SHAPE(s->batch * s->length, spec.vocab));
}

/* A block of BERT (Devlin et al. 2019): norms after the sums. */
static QnValue *bert_block(QnNet *net, QnValue *x, int64_t i)
{
    enum { WIDTH = 768, HEADS = 12 };
    char name[32];
    QnAttentionSpec spec = { .heads = HEADS, .bias = true };
    snprintf(name, sizeof name, "layer.%lld", (long long)i);
    qn_net_push(net, name);
    x = qn_add(net->g, x, qn_nn_attention(net, "attention", x, &spec));
    x = qn_nn_layer_norm(net, "norm_1", x, true);
    x = qn_add(net->g, x, qn_nn_gelu_mlp(net, "mlp", x, 4 * WIDTH, true, 0, 0.02));
    x = qn_nn_layer_norm(net, "norm_2", x, true);
    qn_net_pop(net);
    return x;
}

/* BERT-base with the head that predicts tokens, at every place. */
static QnValue *bert(Made *m, QnNet *net, const Size *s, int64_t *classes)
{
    enum { WIDTH = 768, WINDOW = 512 };
    QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 };
    int64_t vocab = *classes = s->layers ? WORDS_OF_CUT : 30522;
    int64_t layers = s->layers ? s->layers : 12;
    QnValue *table;
    QnValue *places = qn_arange(m->g, 0, 1, s->length, QN_DTYPE_I64);
    QnValue *x = qn_nn_embedding(net, "word", tokens(m, s, vocab), vocab, WIDTH, &table);
    x = qn_add(m->g, x, qn_nn_embedding(net, "position", places, WINDOW, WIDTH, NULL));
    x = qn_nn_layer_norm(net, "norm", x, true);
    for (int64_t i = 0; i < layers; i++)
        x = bert_block(net, x, i);
    x = qn_gelu_tanh(m->g, qn_nn_linear_init(net, "head", x, WIDTH, true, &init));
    x = qn_nn_layer_norm(net, "head_norm", x, true);
    x = qn_reshape(m->g, x, &QN_SHAPE(s->batch * s->length, WIDTH));
    return qn_matmul(m->g, x, table, NULL, false, true);
}

/* ---- graphs ---- */

typedef struct Counts {
    int64_t classes, params;
    double flops; /* of one run, as MFU counts them */
} Counts;

/* As sessions do it: another graph with the same parameters and results. */
static QnStatus mix_precision(Made *m, QnNet *net, QnValue **result, QnValue **loss)
{
    QnPrecisionOptions o = { .low = QN_DTYPE_BF16, .result = *result };
    QnGraph *mixed;
    QnValue **map;
    QN_TRY(qn_graph_check(m->g));
    QN_TRY(qn_precision(m->g, &o, &mixed, &map, NULL));
    for (int64_t i = 0; i < net->n_params; i++) {
        QnParam *p = &net->params[i];
        p->state = map[p->state->id];
        p->name = qn_node_label(p->state->node);
    }
    *result = map[(*result)->id];
    *loss = *loss ? map[(*loss)->id] : NULL;
    qn_graph_free(m->g);
    m->g = net->g = mixed;
    return QN_OK;
}

/* What MFU counts: the products of the forward as the model is written, thrice for a training
 * step, whatever the plan does beside them or again. bench/peers/torch_gpu.py counts by the same
 * rule. */
static double flops_of(const QnGraph *g, bool trains)
{
    double flops = 0;
    QN_GRAPH_EACH(g, n)
    {
        flops += made_is_product(n->op->name) ? qn_cost_of(n).flops : 0;
    }
    return trains ? 3 * flops : flops;
}

static int64_t count_params(const QnNet *net)
{
    int64_t n = 0;
    for (int64_t i = 0; i < net->n_params; i++)
        n += qn_shape_count(&net->params[i].state->type.shape);
    return n;
}

static QnStatus build_in(Bench *b, Made *m, const Net *what, const Size *s, QnNet *net, Counts *c)
{
    QnValue *y = what->build(m, net, s, &c->classes), *loss = NULL;
    if (what->trains && !qn_value_is_poison(y)) {
        QnShape labels = QN_SHAPE(y->type.shape.dim[0]);
        QnValue *t = made_data(m, "y", QN_DTYPE_I64, &labels, 0, (double)c->classes - 1);
        loss = qn_cross_entropy(m->g, y, t, 0, -100, QN_REDUCTION_MEAN);
    }
    QN_TRY(qn_graph_check(m->g));
    c->flops = flops_of(m->g, what->trains);
    c->params = count_params(net);
    if (!b->o.fp32)
        QN_TRY(mix_precision(m, net, &y, &loss));
    if (!what->trains)
        return qn_graph_output(m->g, "scores", y);
    QnValue *lr = made_data(m, "lr", QN_DTYPE_F32, &(QnShape){ 0 }, 1e-5, 1e-5);
    QnValue *step = made_data(m, "step", QN_DTYPE_I64, &(QnShape){ 0 }, 0, 0);
    QN_TRY(qn_optim_minimise(net, what->optim, loss, lr, step, NULL));
    return qn_graph_output(m->g, "loss", loss);
}

/* Up to the gradients and updates, before it is planned. */
static QnStatus build(Bench *b, Made *m, const Net *what, const Size *s, Counts *c)
{
    QN_TRY(made_begin(m));
    QnNet *net = qn_net_new(m->g, what->trains);
    QnStatus st = net ? build_in(b, m, what, s, net, c) : QN_ENOMEM;
    qn_net_free(net);
    return st;
}

/* ---- rows ---- */

/* Whether a run may be done in the time that a row has, by the measured rate of products. */
static bool has_time(const Bench *b, const Made *m)
{
    double flops = 0, rate = b->product[!b->o.fp32], most = b->o.quick ? 0.3 : 4;
    QN_GRAPH_EACH(m->g, n)
    {
        flops += qn_cost_of(n).flops;
    }
    return b->device->backend->only_counts || rate <= 0 || flops / rate < most;
}

/* The loss of the first step is that of guessing. */
static QnStatus check(const Bench *b, const Made *m, const Net *what, int64_t classes)
{
    float loss;
    if (!what->trains || b->device->backend->only_counts)
        return QN_OK;
    QN_TRY(qn_plan_read(m->plan, "loss", &loss, sizeof loss));
    double chance = log((double)classes);
    if (!(loss > 0.5 * chance && loss < 2 * chance))
        return qn_fail(QN_EINTERNAL, "the first step's loss is %.4g; guessing gives %.4g",
                       (double)loss, chance);
    return QN_OK;
}

static void describe(const Net *what, const Size *s, char name[64])
{
    long long batch = (long long)s->batch, length = (long long)s->length;
    if (s->layers)
        snprintf(name, 64, "%s %lldx%lld, %lld layer%s, %d words", what->of_cut, batch, length,
                 (long long)s->layers, s->layers > 1 ? "s" : "", WORDS_OF_CUT);
    else
        snprintf(name, 64, "%s %lldx%lld", what->name, batch, length);
}

static QnStatus report(Bench *b, Made *m, const Net *what, const Size *s, const Counts *c)
{
    double ns, host, peak = bench_peak(b);
    char name[64];
    describe(what, s, name);
    QN_TRY(made_time(b, m, b->o.quick ? b->o.seconds : 5 * b->o.seconds, &ns, &host));
    Result r = bench_result("nets", name);
    r.ns = ns;
    r.flops = c->flops;
    r.params = c->params;
    r.unit = what->images ? "img/s" : "tokens/s";
    r.rate = (double)(what->images ? s->batch : s->batch * s->length) / (ns * 1e-9);
    r.share = peak > 0 ? c->flops / (ns * 1e-9) / peak : NAN;
    r.first_s = m->first_s;
    snprintf(r.note, sizeof r.note, "MFU; first %s %.2f s; %lld launches, %s",
             what->trains ? "step" : "run", m->first_s, (long long)qn_plan_n_steps(m->plan),
             made_how(m));
    if (s == what->sizes) /* goals are of whole nets and large batches */
        snprintf(r.goal, sizeof r.goal, "%s", what->goal);
    return bench_report(b, &r);
}

/* One size; *fits is false where the device has no room or time for it. */
static QnStatus run_size(Bench *b, const Net *what, const Size *s, bool last, bool *fits)
{
    Made m = { 0 };
    Counts c = { 0 };
    QnStatus st = build(b, &m, what, s, &c);
    *fits = st != QN_OK || last || has_time(b, &m);
    if (st == QN_OK && *fits)
        st = made_finish(b, &m, false);
    if (st == QN_OK && *fits)
        st = check(b, &m, what, c.classes);
    if (st == QN_OK && *fits)
        st = report(b, &m, what, s, &c);
    made_free(&m);
    *fits &= st != QN_ENOMEM || last;
    return *fits ? st : QN_OK;
}

static QnStatus run_net(Bench *b, const Net *what)
{
    int n = 0;
    bool fits = false;
    while (n < QN_COUNT(what->sizes) && what->sizes[n].batch)
        n++;
    for (int i = 0; i < n && !fits; i++)
        QN_TRY(run_size(b, what, &what->sizes[i], i == n - 1, &fits));
    return QN_OK;
}

static const Net nets[] = {
    { "GPT-2 124M training",
      "GPT-2 training",
      true,
      false,
      gpt2,
      &adamw,
      { { 32, 1024 },
        { 16, 1024 },
        { 8, 1024 },
        { 4, 1024 },
        { 1, 1024 },
        { 1, 256 },
        { 1, 32 },
        { 1, 16, 1 } },
      "470k tokens/s on an H100, 1.1 x torch.compile, first step 5 s" },
    { "ResNet-50 training",
      NULL,
      true,
      true,
      resnet50,
      &sgd,
      { { 256, 224 },
        { 128, 224 },
        { 64, 224 },
        { 16, 224 },
        { 4, 224 },
        { 1, 224 },
        { 1, 64 },
        { 2, 32 } },
      "1.1 x torch.compile, first step 5 s" },
    { "BERT-base training",
      "BERT training",
      true,
      false,
      bert,
      &adamw,
      { { 64, 512 },
        { 32, 512 },
        { 16, 512 },
        { 4, 512 },
        { 1, 512 },
        { 1, 128 },
        { 1, 32 },
        { 1, 16, 1 } },
      "1.1 x torch.compile, first step 5 s" },
    { "ResNet-50 inference",
      NULL,
      false,
      true,
      resnet50,
      NULL,
      { { 1, 224 }, { 1, 64 }, { 1, 32 } },
      "1.1 x torch.compile" },
    { "ResNet-50 inference, batch",
      NULL,
      false,
      true,
      resnet50,
      NULL,
      { { 64, 224 }, { 16, 224 }, { 4, 224 }, { 4, 64 }, { 4, 32 } },
      "1.1 x torch.compile" },
    { "GPT-2 124M inference",
      "GPT-2 inference",
      false,
      false,
      gpt2,
      NULL,
      { { 1, 1024 }, { 1, 128 }, { 1, 16, 1 } },
      "1.1 x torch.compile" },
    { "GPT-2 124M inference, batch",
      "GPT-2 inference, batch",
      false,
      false,
      gpt2,
      NULL,
      { { 64, 1024 }, { 64, 128 }, { 16, 128 }, { 4, 64 }, { 4, 16, 2 } },
      "1.1 x torch.compile" },
    { "BERT-base inference",
      "BERT inference",
      false,
      false,
      bert,
      NULL,
      { { 1, 512 }, { 1, 128 }, { 1, 16, 1 } },
      "1.1 x torch.compile" },
    { "BERT-base inference, batch",
      "BERT inference, batch",
      false,
      false,
      bert,
      NULL,
      { { 64, 512 }, { 64, 128 }, { 16, 128 }, { 4, 64 }, { 4, 16, 2 } },
      "1.1 x torch.compile" },
};

QnStatus bench_nets(Bench *b)
{
    bench_heading("nets");
    for (int i = 0; i < QN_COUNT(nets); i++) {
        if (bench_wants(b, nets[i].name) && run_net(b, &nets[i]) != QN_OK)
            QN_TRY(bench_report_failure(b, "nets", nets[i].name));
    }
    return QN_OK;
}
