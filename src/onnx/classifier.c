/* The end of a model that tells classes apart: its logits, and a new head for other classes. */
#include "onnx/onnx.h"

#include "base/hash.h"
#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_one_of(const QnOnnxDef *d, const char *words) /* " A B " */
{
    char word[80];
    snprintf(word, sizeof word, " %.70s ", d->op);
    return !d->domain[0] && strstr(words, word);
}

/* Nodes that pass on what they are given, in another shape at most. */
static const char shapes[] = " Identity Flatten Reshape Squeeze Unsqueeze Dropout Cast ";
static const char pools[] = " Relu GlobalAveragePool AveragePool GlobalMaxPool MaxPool ReduceMean ";
static const char activations[] = " Softmax LogSoftmax Sigmoid ";

/* The place of the node that makes a name; -1: none. */
static int64_t producer(const QnOnnxGraph *g, const char *name)
{
    for (int64_t i = name[0] ? g->n_nodes - 1 : -1; i >= 0; i--) /* "": an absent input */
        for (int k = 0; k < g->node[i].n_out; k++)
            if (!strcmp(g->node[i].out[k], name))
                return i;
    return -1;
}

/* Back over nodes of these operators; d NULL at an input. */
static const char *go_back(const QnOnnxGraph *g, const char *name, const char *words,
                           const char *more, const QnOnnxDef **d)
{
    for (;;) {
        int64_t i = producer(g, name);
        *d = i < 0 ? NULL : &g->node[i];
        if (!*d || (*d)->n_in < 1 || !(is_one_of(*d, words) || is_one_of(*d, more)))
            return name;
        name = (*d)->in[0];
    }
}

const char *qn_onnx_logits(const QnOnnxModel *m, const char *output, const QnOnnxDef **last)
{
    go_back(m->graph, output, shapes, "", last);
    if (*last && (*last)->n_in >= 1 && is_one_of(*last, activations))
        return (*last)->in[0];
    *last = NULL;
    return output;
}

/* ---- the head -------------------------------------------------------------------------------- */

typedef struct Head {
    QnOnnxModel *m;
    const QnOnnxGraph *g;
    int64_t node, add; /* places; add -1: there is none, or it is no node of its own */
    char weight[40], bias[40];
    QnShape shape; /* of the fresh weight */
    int64_t in;    /* features */
    int64_t n;
    uint64_t seed;
} Head;

static QnStatus refuse(const Head *h, const char *output, const QnOnnxDef *d, const char *why)
{
    return qn_fail(QN_EUNSUPPORTED,
                   "%s: no head to replace before '%s': wanted a Gemm, a MatMul or a 1x1 Conv with "
                   "weights of its own, found %s%s%s%s%s",
                   h->m->path, output, d ? "node '" : "the input", d ? d->name : "", d ? "' (" : "",
                   d ? d->op : "", d ? why : "");
}

/* Dims that a Reshape by constants gives to what the file has, if they have no hole. */
static bool reshaped(const QnOnnxGraph *g, const QnOnnxDef *d, QnShape *out)
{
    const QnTensor *to = d->n_in == 2 ? qn_onnx_find_init(g, d->in[1]) : NULL;
    const QnTensor *from = to ? qn_onnx_find_init(g, d->in[0]) : NULL;
    if (!from || to->text || to->type.dtype != QN_DTYPE_I64 || to->type.shape.rank != 1 ||
        to->type.shape.dim[0] > QN_MAX_RANK)
        return false;
    const int64_t *dim = to->data;
    int64_t left = qn_shape_count(&from->type.shape);
    for (int64_t i = 0; i < to->type.shape.dim[0]; i++) {
        if (dim[i] < 1 || left % dim[i])
            return false;
        left /= dim[i];
    }
    *out = qn_shape_make((int)to->type.shape.dim[0], dim);
    return left == 1;
}

/* Dims of a weight of the file, through the nodes that turn it. */
static bool weight_dims(const QnOnnxGraph *g, const char *name, QnShape *out)
{
    bool turned = false;
    for (int steps = 0; steps < 8; steps++) {
        const QnTensor *t = qn_onnx_find_init(g, name);
        int64_t i = producer(g, name);
        const QnOnnxDef *d = i < 0 ? NULL : &g->node[i];
        if (t)
            *out = t->type.shape;
        if (t || (d && !strcmp(d->op, "Reshape") && reshaped(g, d, out))) {
            if (turned && out->rank == 2)
                *out = QN_SHAPE(out->dim[1], out->dim[0]);
            return !turned || out->rank == 2;
        }
        if (!d || d->n_in < 1)
            return false;
        if (!strcmp(d->op, "Transpose"))
            turned = !turned;
        else if (strcmp(d->op, "Identity"))
            return false;
        name = d->in[0];
    }
    return false;
}

static int64_t int_attr(const QnOnnxDef *d, const char *name, int64_t otherwise)
{
    for (int i = 0; i < d->n_attr; i++)
        if (!strcmp(d->attr[i].name, name))
            return d->attr[i].i;
    return otherwise;
}

/* Reads what the classifier's node has; false: it is none. */
static bool read_classifier(Head *h, const QnOnnxDef *d)
{
    QnShape w;
    if (d->domain[0] || d->n_in < 2 || !weight_dims(h->g, d->in[1], &w))
        return false;
    if (!strcmp(d->op, "Gemm")) {
        h->in = w.rank == 2 ? w.dim[int_attr(d, "transB", 0) ? 1 : 0] : 0;
        h->shape = QN_SHAPE(h->n, h->in);
        return h->in > 0 && !int_attr(d, "transA", 0);
    }
    if (!strcmp(d->op, "MatMul")) {
        h->in = w.rank == 2 ? w.dim[0] : 0;
        h->shape = QN_SHAPE(h->in, h->n);
        return h->in > 0;
    }
    if (strcmp(d->op, "Conv") || w.rank < 3 || int_attr(d, "group", 1) != 1)
        return false;
    h->in = w.dim[1];
    h->shape = w;
    h->shape.dim[0] = h->n;
    for (int i = 2; i < w.rank; i++)
        if (w.dim[i] != 1)
            return false;
    return h->in > 0;
}

/* The Add of a bias to a MatMul's result. */
static int64_t matmul_of_add(const QnOnnxGraph *g, const QnOnnxDef *d, int *side)
{
    for (*side = 0; d->n_in == 2 && *side < 2; ++*side) {
        int64_t i = producer(g, d->in[*side]);
        QnShape bias;
        if (i >= 0 && !strcmp(g->node[i].op, "MatMul") && weight_dims(g, d->in[!*side], &bias))
            return i;
    }
    return -1;
}

static QnStatus find_classifier(Head *h, const char *output, const char **logits)
{
    const QnOnnxDef *d;
    int side;
    *logits = go_back(h->g, qn_onnx_logits(h->m, output, &d), shapes, "", &d);
    go_back(h->g, *logits, shapes, pools, &d);
    if (!d)
        return refuse(h, output, NULL, "");
    h->node = d - h->g->node;
    if (!strcmp(d->op, "Add") && !d->domain[0] && (h->node = matmul_of_add(h->g, d, &side)) >= 0)
        h->add = d - h->g->node;
    if (h->node < 0 || !read_classifier(h, &h->g->node[h->node]))
        return refuse(h, output, d, ")");
    return QN_OK;
}

/* Names that nothing in the file has. */
static void choose_names(Head *h)
{
    for (int k = 1; k < 1000; k++) {
        char number[12] = "";
        if (k > 1)
            snprintf(number, sizeof number, "%d", k);
        snprintf(h->weight, sizeof h->weight, "head%s.weight", number);
        snprintf(h->bias, sizeof h->bias, "head%s.bias", number);
        if (!qn_onnx_find_init(h->g, h->weight) && !qn_onnx_find_init(h->g, h->bias) &&
            producer(h->g, h->weight) < 0 && producer(h->g, h->bias) < 0)
            return;
    }
}

/* Uniform in +-1/sqrt(features), as the built-in layers begin. */
static QnStatus add_weight(const Head *h, QnOnnxInit *out, const char *name, const QnShape *shape)
{
    int64_t count = qn_shape_count(shape);
    QnTensor *t = qn_arena_alloc(h->m->arena, sizeof *t);
    float *v = qn_arena_array(h->m->arena, (size_t)count, sizeof *v);
    QnRng rng;
    *out = (QnOnnxInit){ qn_arena_strdup(h->m->arena, name), t };
    if (!t || !v || !out->name)
        return QN_ENOMEM;
    *t = (QnTensor){ .type = { .dtype = QN_DTYPE_F32, .shape = *shape }, .data = v };
    qn_rng_init(&rng, qn_hash_mix(h->seed, qn_hash_str(name)), 0);
    for (int64_t i = 0; i < count; i++)
        v[i] = (float)((2 * (double)qn_rng_uniform(&rng) - 1) / sqrt((double)h->in));
    return QN_OK;
}

static const QnOnnxAttr gemm_attrs[] = {
    { .name = "transB", .kind = QN_ONNX_INT, .i = 1 },
    { .name = "broadcast", .kind = QN_ONNX_INT, .i = 1 }, /* before opset 7 */
};

static QnStatus replace_nodes(const Head *h, QnOnnxDef *node, const QnOnnxInit *init)
{
    QnOnnxDef *d = &node[h->node];
    bool gemm = !strcmp(d->op, "Gemm");
    const char **in = qn_arena_array(h->m->arena, 3, sizeof *in);
    QN_TRY(in ? QN_OK : QN_ENOMEM);
    in[0] = d->in[0];
    in[1] = init[0].name;
    in[2] = init[1].name;
    d->in = in;
    d->n_in = strcmp(d->op, "MatMul") ? 3 : 2;
    if (gemm) {
        d->attr = gemm_attrs;
        d->n_attr = qn_onnx_opset(h->m->opset, h->m->n_opset, "") < 7 ? 2 : 1;
    }
    if (h->add < 0)
        return QN_OK;
    QnOnnxDef *add = &node[h->add];
    const char **sum = qn_arena_array(h->m->arena, 2, sizeof *sum);
    QN_TRY(sum ? QN_OK : QN_ENOMEM);
    sum[0] = d->out[0];
    sum[1] = init[1].name;
    add->in = sum;
    return QN_OK;
}

/* Whether a node reads the name; nodes that hold graphs may read anything. */
static bool is_read(const QnOnnxGraph *g, const char *name)
{
    for (int64_t i = 0; i < g->n_nodes; i++) {
        for (int k = 0; k < g->node[i].n_in; k++)
            if (!strcmp(g->node[i].in[k], name))
                return true;
        for (int k = 0; k < g->node[i].n_attr; k++)
            if (g->node[i].attr[k].graph)
                return true;
    }
    return false;
}

/* The old head's weights, which the file may list among its inputs too. */
static QnStatus drop_unread(QnArena *arena, QnOnnxGraph *g, QnOnnxInit *init)
{
    int64_t n = 0, n_inputs = 0;
    QnOnnxInfo *input = qn_arena_array(arena, (size_t)g->n_inputs + 1, sizeof *input);
    QN_TRY(input ? QN_OK : QN_ENOMEM);
    for (int64_t i = 0; i < g->n_inputs; i++)
        if (!qn_onnx_find_init(g, g->input[i].name) || is_read(g, g->input[i].name))
            input[n_inputs++] = g->input[i];
    for (int64_t i = 0; i < g->n_inits; i++)
        if (is_read(g, init[i].name))
            init[n++] = init[i];
    g->n_inits = n;
    g->input = input;
    g->n_inputs = n_inputs;
    return QN_OK;
}

static QnStatus end_at(const Head *h, const char *logits, QnOnnxGraph *g)
{
    QnOnnxInfo *out = qn_arena_alloc(h->m->arena, sizeof *out);
    QnOnnxType *type = qn_arena_alloc(h->m->arena, sizeof *type);
    QN_TRY(out && type ? QN_OK : QN_ENOMEM);
    *type = (QnOnnxType){ .kind = QN_ONNX_TYPE_TENSOR,
                          .elem = qn_onnx_dtype_number(QN_DTYPE_F32),
                          .rank = -1 };
    for (int64_t i = 0; i < g->n_outputs; i++) /* what stood after it, a Softmax, kept its dims */
        if ((!strcmp(g->output[i].name, logits) || type->rank < 0) &&
            g->output[i].type->kind == QN_ONNX_TYPE_TENSOR && g->output[i].type->rank >= 2) {
            *type = *g->output[i].type;
            type->dim[!strcmp(h->g->node[h->node].op, "Conv") ? 1 : type->rank - 1] = h->n;
        }
    *out = (QnOnnxInfo){ logits, type };
    g->output = out;
    g->n_outputs = 1;
    g->n_nodes = producer(g, logits) + 1;
    g->n_infos = 0; /* shapes that no longer hold */
    return QN_OK;
}

QnStatus qn_onnx_new_head(QnOnnxModel *m, QnOnnxNetOptions *o, int64_t n, uint64_t seed)
{
    Head h = { .m = m, .g = m->graph, .add = -1, .n = n, .seed = seed };
    const char *logits;
    QN_TRY(find_classifier(&h, o->output, &logits));
    choose_names(&h);
    size_t n_inits = (size_t)h.g->n_inits, n_nodes = (size_t)h.g->n_nodes;
    QnOnnxGraph *g = qn_arena_copy(m->arena, h.g, sizeof *g);
    QnOnnxInit *init = qn_arena_array(m->arena, n_inits + 2, sizeof *init);
    QnOnnxDef *node = qn_arena_copy(m->arena, h.g->node, n_nodes * sizeof *node);
    QN_TRY(g && init && node ? QN_OK : QN_ENOMEM);
    if (n_inits)
        memcpy(init, h.g->init, n_inits * sizeof *init);
    QN_TRY(add_weight(&h, &init[n_inits], h.weight, &h.shape));
    QN_TRY(add_weight(&h, &init[n_inits + 1], h.bias, &QN_SHAPE(n)));
    QN_TRY(replace_nodes(&h, node, init + n_inits));
    g->init = init;
    g->node = node;
    g->n_inits = (int64_t)n_inits + 2;
    QN_TRY(end_at(&h, logits, g));
    QN_TRY(drop_unread(m->arena, g, init));
    m->graph = g;
    m->ir_version = QN_MAX(m->ir_version, 4); /* initialisers need not be inputs from then on */
    o->output = logits;
    o->head = qn_arena_printf(m->arena, "%.*s.", (int)strcspn(h.weight, "."), h.weight);
    return o->head ? QN_OK : QN_ENOMEM;
}

/* ---- trained weights ------------------------------------------------------------------------- */

static QnStatus take_one(QnOnnxModel *m, const QnStore *store, QnOnnxInit *init)
{
    const char *average = qn_arena_printf(m->arena, "ema.%s", init->name);
    QN_TRY(average ? QN_OK : QN_ENOMEM);
    const QnSlot *slot = qn_store_find(store, average);
    if (!slot && !(slot = qn_store_find(store, init->name)))
        return QN_OK;
    QnTensor *t = qn_arena_copy(m->arena, init->tensor, sizeof *t);
    void *data = qn_arena_alloc(m->arena, (size_t)QN_MAX(qn_type_bytes(&init->tensor->type), 1));
    QN_TRY(t && data ? QN_OK : QN_ENOMEM);
    QN_TRY(qn_store_read(store, slot, data));
    t->data = data;
    init->tensor = t;
    return QN_OK;
}

QnStatus qn_onnx_take(QnOnnxModel *m, const QnStore *store)
{
    QnOnnxGraph *g = qn_arena_copy(m->arena, m->graph, sizeof *g);
    QnOnnxInit *init = qn_arena_array(m->arena, (size_t)m->graph->n_inits + 1, sizeof *init);
    QN_TRY(g && init ? QN_OK : QN_ENOMEM);
    for (int64_t i = 0; i < g->n_inits; i++) {
        init[i] = g->init[i];
        QN_TRY(take_one(m, store, &init[i]));
    }
    g->init = init;
    m->graph = g;
    return QN_OK;
}
