/* Random weights for topologies whose weights are constants made by ConstantOfShape. */
#include "onnx/onnx.h"

#include "base/hash.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

/* What a weight is for, by the node that reads it. */
typedef enum Role { MATRIX, SCALE, OFFSET, VARIANCE } Role;

static Role role_of(const QnOnnxGraph *g, const char *name, int rank)
{
    for (int64_t i = 0; i < g->n_nodes; i++) {
        const QnOnnxDef *d = &g->node[i];
        for (int k = 0; k < d->n_in; k++) {
            if (strcmp(d->in[k], name))
                continue;
            if (!strcmp(d->op, "BatchNormalization"))
                return k == 4 ? VARIANCE : k == 1 ? SCALE : OFFSET;
            if (!strcmp(d->op, "Unsqueeze") && d->n_out == 1)
                return role_of(g, d->out[0], rank);
            if (!strcmp(d->op, "Mul") || !strcmp(d->op, "Div"))
                return SCALE;
        }
    }
    return rank >= 2 ? MATRIX : OFFSET;
}

/* He et al. 2015 for matrices and filters, so that activations keep their size; variances around
 * one; scales around a half, as nets that add up many branches would grow otherwise. */
static void fill(float *v, const QnShape *s, Role role, uint64_t key)
{
    int64_t n = qn_shape_count(s), fan_in = 1;
    for (int i = 1; i < s->rank; i++)
        fan_in *= s->dim[i];
    QnRng rng;
    qn_rng_init(&rng, key, 0);
    for (int64_t i = 0; i < n; i++) {
        double u = (double)qn_rng_uniform(&rng), z = (double)qn_rng_normal(&rng);
        v[i] = (float)(role == MATRIX   ? z * sqrt(2 / (double)QN_MAX(fan_in, 1))
                       : role == OFFSET ? 0.1 * z
                       : role == SCALE  ? 0.25 + 0.5 * u
                                        : 0.5 + u);
    }
}

/* Whether the node makes a float weight of a known shape. */
static bool is_weight(const QnOnnxGraph *g, const QnOnnxDef *d, QnShape *shape)
{
    if (strcmp(d->op, "ConstantOfShape") || d->n_in != 1 || d->n_out != 1)
        return false;
    const QnTensor *t = qn_onnx_find_init(g, d->in[0]);
    if (!t || t->text || t->type.dtype != QN_DTYPE_I64 || t->type.shape.rank != 1 ||
        t->type.shape.dim[0] > QN_MAX_RANK)
        return false;
    for (int i = 0; i < d->n_attr; i++)
        if (!strcmp(d->attr[i].name, "value") &&
            (!d->attr[i].tensor || d->attr[i].tensor->type.dtype != QN_DTYPE_F32))
            return false;
    *shape = qn_shape_make((int)t->type.shape.dim[0], t->data);
    return qn_shape_count(shape) > 0;
}

static bool is_read(const QnOnnxGraph *g, const char *name)
{
    for (int64_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->node[i].n_in; k++)
            if (!strcmp(g->node[i].in[k], name))
                return true;
    return false;
}

static QnStatus new_weight(QnArena *arena, const QnOnnxGraph *g, const char *name,
                           const QnShape *shape, uint64_t seed, QnOnnxInit *out)
{
    QnTensor *t = qn_arena_alloc(arena, sizeof *t);
    float *v = qn_arena_array(arena, (size_t)qn_shape_count(shape), sizeof *v);
    if (!t || !v)
        return QN_ENOMEM;
    fill(v, shape, role_of(g, name, shape->rank), qn_hash_mix(seed, qn_hash_str(name)));
    *t = (QnTensor){ .type = { .dtype = QN_DTYPE_F32, .shape = *shape }, .data = v };
    *out = (QnOnnxInit){ name, t };
    return QN_OK;
}

/* The shapes that only the replaced nodes read go, as initialisers and as inputs. */
static void drop_unread(QnOnnxGraph *g, QnOnnxInit *init, QnOnnxInfo *input)
{
    int64_t n = 0, n_inputs = 0;
    for (int64_t i = 0; i < g->n_inputs; i++)
        if (is_read(g, g->input[i].name) && !qn_onnx_find_init(g, g->input[i].name))
            input[n_inputs++] = g->input[i];
    for (int64_t i = 0; i < g->n_inits; i++)
        if (is_read(g, init[i].name))
            init[n++] = init[i];
    g->input = input;
    g->n_inputs = n_inputs;
    g->init = init;
    g->n_inits = n;
}

QnStatus qn_onnx_randomize(QnOnnxModel *m, uint64_t seed, int64_t *count)
{
    QnOnnxGraph *g = qn_arena_copy(m->arena, m->graph, sizeof *g);
    size_t most = (size_t)(m->graph->n_inits + m->graph->n_nodes) + 1;
    QnOnnxInit *init = qn_arena_array(m->arena, most, sizeof *init);
    QnOnnxInfo *input = qn_arena_array(m->arena, (size_t)m->graph->n_inputs + 1, sizeof *input);
    QnOnnxDef *node = qn_arena_array(m->arena, (size_t)m->graph->n_nodes + 1, sizeof *node);
    int64_t n = m->graph->n_inits, n_nodes = 0;
    if (!g || !init || !input || !node)
        return QN_ENOMEM;
    memcpy(init, m->graph->init, (size_t)n * sizeof *init);
    *count = 0;
    for (int64_t i = 0; i < m->graph->n_nodes; i++) {
        const QnOnnxDef *d = &m->graph->node[i];
        QnShape shape;
        if (!is_weight(m->graph, d, &shape)) {
            node[n_nodes++] = *d;
            continue;
        }
        QN_TRY(new_weight(m->arena, m->graph, d->out[0], &shape, seed, &init[n++]));
        ++*count;
    }
    g->node = node;
    g->n_nodes = n_nodes;
    g->n_inits = n;
    g->init = init;
    drop_unread(g, init, input);
    m->graph = g;
    m->ir_version = QN_MAX(m->ir_version, 4); /* initialisers need not be inputs from then on */
    return QN_OK;
}
