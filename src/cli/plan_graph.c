#include "cli/plan_graph.h"

#include "cli/model_dims.h"
#include "ops/ops.h"
#include "train/session.h"

#include <stdio.h>
#include <string.h>

static const QnPlanSubject *subject_of(const QnModel *m)
{
    return (const QnPlanSubject *)((const char *)m - offsetof(QnPlanSubject, own));
}

/* ---- recipes ---- */

/* The recipe as it would be with this batch. */
static QnRecipe recipe_at(const QnRecipe *from, const QnCountRequest *r)
{
    QnRecipe to = *from;
    to.batch = to.eval_batch = r->batch;
    to.accumulate = 1;                /* what is between two updates is the planner's business */
    to.precision = QN_PRECISION_FP32; /* as 16 bits it is counted, not built */
    return to;
}

static void set_size(const QnCountRequest *r, QnSampleSpec *spec)
{
    if (spec->x_rank == 3 && r->image) {
        spec->x_dims[1] = r->image;
        spec->x_dims[2] = r->width ? r->width : r->image;
    }
    if (spec->x_kind == QN_FEATURE_TOKENS && r->sequence)
        spec->x_dims[0] = spec->y_count = r->sequence;
}

/* Numbers of all states of the graph. */
static double count_states(const QnGraph *g)
{
    double n = 0;
    QN_GRAPH_EACH(g, node)
    {
        if (node->op == &qn_op_state)
            n += (double)qn_shape_count(&node->out[0].type.shape);
    }
    return n;
}

static void free_session(void *session)
{
    qn_session_free(session);
}

QnStatus qn_plan_graph_recipe(const QnModel *m, const QnCountRequest *r, QnStep *out)
{
    const QnPlanSubject *s = subject_of(m);
    QnRecipe recipe = recipe_at(s->recipe, r);
    QnSampleSpec spec = s->spec;
    QnSession *session;
    set_size(r, &spec);
    QN_TRY(qn_session_new(&recipe, &spec, s->host,
                          &(QnSessionOptions){ .training = r->train, .build_only = true },
                          &session));
    QnGraph **graph = r->train ? &session->train_graph : &session->eval_graph;
    double params = r->train ? (double)session->n_params : count_states(*graph);
    *out = (QnStep){ .graph = *graph,
                     .params = params,
                     .matrices = params,
                     .off = s->recipe->passes_off,
                     .halves = r->low > 0,
                     .owner = session, /* a model's file, whose constants the graph reads */
                     .free_owner = free_session };
    *graph = NULL;
    return QN_OK;
}

/* ---- ONNX files ---- */

static QnStatus import(const QnPlanSubject *s, const QnCountRequest *r, QnArena *tmp, QnGraph **out)
{
    QnCliDims dims;
    QnOnnxImportOptions i = { .batch = r->batch };
    QnOnnxProblems problems = { 0 };
    const QnTensor **given;
    const char *open;
    QnItem **in = qn_arena_array(tmp, (size_t)s->onnx->graph->n_inputs + 1, sizeof *in);
    QN_TRY(in ? QN_OK : QN_ENOMEM);
    QN_TRY(qn_cli_dims(s->args, s->dim_option, s->onnx, &dims));
    QN_TRY(qn_cli_dims_types(s->onnx, in, &dims, r->batch, tmp, &given, &open));
    if (open[0])
        return qn_fail(QN_EUSAGE, "%s: an open dim, '%s', has no number; --dim NAME=N gives it one",
                       s->onnx->path, open);
    i.given = given;
    QnStatus st = qn_onnx_import(s->onnx, s->host, &i, out, &problems);
    QnStr line = { 0 };
    if (st != QN_OK && problems.n) {
        qn_onnx_join_problems(qn_str_text(&problems.text), &line);
        st = qn_fail(st, "%s: %s", s->onnx->path, qn_str_text(&line));
    }
    qn_str_fini(&line);
    qn_str_fini(&problems.text);
    return st;
}

/* Floats among the weights of the file. */
static double count_weights(const QnOnnxGraph *g)
{
    double n = 0;
    for (int64_t i = 0; i < g->n_inits; i++)
        if (!g->init[i].tensor->text && qn_dtype_is_float(g->init[i].tensor->type.dtype))
            n += (double)qn_shape_count(&g->init[i].tensor->type.shape);
    return n;
}

QnStatus qn_plan_graph_onnx(const QnModel *m, const QnCountRequest *r, QnStep *out)
{
    const QnPlanSubject *s = subject_of(m);
    QnArena *tmp = qn_arena_new();
    QnGraph *g = NULL;
    QnStatus st = tmp ? import(s, r, tmp, &g) : QN_ENOMEM;
    qn_arena_free(tmp);
    if (st != QN_OK) {
        qn_graph_free(g);
        return st;
    }
    double weights = count_weights(s->onnx->graph);
    *out = (QnStep){ .graph = g, .params = weights, .matrices = weights, .halves = r->low > 0 };
    return QN_OK;
}

/* Of a file with one input that is no weight, and one output; NULL: it has more. */
static const QnOnnxInfo *only_input(const QnOnnxGraph *g)
{
    const QnOnnxInfo *only = NULL;
    int64_t n = 0;
    for (int64_t i = 0; i < g->n_inputs; i++) {
        if (qn_onnx_find_init(g, g->input[i].name))
            continue;
        n++;
        only = &g->input[i];
    }
    return n == 1 && g->n_outputs == 1 ? only : NULL;
}

bool qn_plan_graph_is_plain(const QnOnnxModel *m)
{
    return only_input(m->graph) != NULL;
}

static QnStatus input_type(const QnPlanSubject *s, const QnOnnxInfo *input, const QnStepInput *in,
                           QnDtype *dtype, QnShape *shape)
{
    const QnOnnxType *t = input->type;
    QnCliDims dims;
    char called[QN_ONNX_DIM_NAME_BYTES];
    if (t->kind != QN_ONNX_TYPE_TENSOR || t->rank < 1 || !qn_onnx_dtype(t->elem, dtype))
        return qn_fail(QN_EUNSUPPORTED, "%s: input '%s' is no tensor of numbers", s->onnx->path,
                       input->name);
    QN_TRY(qn_cli_dims(s->args, s->dim_option, s->onnx, &dims));
    *shape = (QnShape){ t->rank, { in->batch } };
    for (int i = 1; i < t->rank; i++) {
        const char *name = qn_onnx_dim_name(input, i, called);
        shape->dim[i] = t->dim[i];
        for (int k = 0; k < dims.n && t->dim[i] < 0; k++)
            if (!strcmp(dims.name[k], name))
                shape->dim[i] = dims.length[k];
        if (t->rank == 4 && i > 1 && in->height)
            shape->dim[i] = i == 2 ? in->height : in->width;
        if (shape->dim[i] < 0)
            return qn_fail(QN_EUSAGE,
                           "%s: an open dim, '%s', has no number; --dim NAME=N gives it one",
                           s->onnx->path, name);
    }
    return QN_OK;
}

static QnStatus build_onnx(const QnPlanSubject *s, QnNet *net, const QnStepInput *in, QnValue **out)
{
    const QnOnnxGraph *g = s->onnx->graph;
    const QnOnnxInfo *input = only_input(g);
    const QnOnnxDef *last;
    QnOnnxNetOptions o = { 0 };
    QnDtype dtype;
    QnShape shape;
    if (!input)
        return qn_fail(
            QN_EUNSUPPORTED,
            "%s has %lld inputs and %lld outputs: training it takes a recipe, which says "
            "what each is for (model: {onnx: …, input: …, output: …})",
            s->onnx->path, (long long)g->n_inputs, (long long)g->n_outputs);
    QN_TRY(input_type(s, input, in, &dtype, &shape));
    o.input = input->name;
    o.output = g->output[0].name;
    if (in->train)
        o.output = qn_onnx_logits(s->onnx, o.output, &last);
    QnValue *x = qn_input(net->g, o.input, dtype, &shape);
    QN_TRY(qn_onnx_net(net, s->onnx, s->host, &o, x, out, NULL));
    if (in->train)
        *out = qn_step_cross_entropy(net, "labels", *out);
    return qn_graph_check(net->g);
}

QnValue *qn_plan_step_onnx(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    QnValue *loss;
    (void)layers;
    return build_onnx(subject_of(m), net, in, &loss) == QN_OK ? loss : qn_graph_poison(net->g);
}
