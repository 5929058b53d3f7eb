/* A model's functions: who calls whom, and how often that multiplies. */
#include "base/compiler.h"
#include "base/mem.h"

#ifdef QN_HAVE_ONNX
#include "io/onnx_read.h"

#include <stdlib.h>
#include <string.h>

typedef struct Callee {
    bool is_open, is_done;
    int height;      /* calls below it, itself included */
    int64_t n_nodes; /* with those of what it calls */
} Callee;

typedef struct Calls {
    const char *file;
    const QnOnnxModel *model;
    Callee *callee;
} Calls;

/* What a graph comes to. */
typedef struct Sum {
    int height;
    int64_t n_nodes;
} Sum;

static int by_name(const void *a, const void *b)
{
    const QnOnnxFunction *x = a, *y = b;
    int c = strcmp(x->domain, y->domain);
    return c ? c : strcmp(x->name, y->name);
}

static QnStatus add_graph(Calls *c, const QnOnnxGraph *g, int depth, Sum *sum);

static QnStatus add_call(Calls *c, int64_t i, int depth, Sum *sum)
{
    Callee *k = &c->callee[i];
    const QnOnnxFunction *f = &c->model->function[i];
    const char *name = f->name;
    if (k->is_open)
        return qn_fail(QN_EFORMAT, "%s: function '%s' calls itself", c->file, name);
    if (!k->is_done) {
        Sum own = { 0 };
        if (depth > QN_ONNX_DEPTH)
            return qn_fail(QN_EFORMAT, "%s: function '%s': calls are nested more than %d deep",
                           c->file, name, QN_ONNX_DEPTH);
        k->is_open = true;
        QN_TRY(add_graph(c, &f->body, depth + 1, &own));
        for (int a = 0; a < f->n_default; a++)
            if (f->fallback[a].kind == QN_ONNX_GRAPH && f->fallback[a].graph)
                QN_TRY(add_graph(c, f->fallback[a].graph, depth + 1, &own));
        *k = (Callee){ .is_done = true, .height = own.height + 1, .n_nodes = own.n_nodes };
    }
    if (k->height > QN_ONNX_DEPTH)
        return qn_fail(QN_EFORMAT, "%s: function '%s': calls are nested more than %d deep", c->file,
                       name, QN_ONNX_DEPTH);
    sum->height = QN_MAX(sum->height, k->height);
    sum->n_nodes += k->n_nodes;
    return QN_OK;
}

static QnStatus add_graph(Calls *c, const QnOnnxGraph *g, int depth, Sum *sum)
{
    for (int64_t i = 0; i < g->n_nodes; i++) {
        const QnOnnxDef *d = &g->node[i];
        const QnOnnxFunction *callee = qn_onnx_function(c->model, d->domain, d->op);
        sum->n_nodes++;
        for (int k = 0; k < d->n_attr; k++)
            if (d->attr[k].kind == QN_ONNX_GRAPH && d->attr[k].graph)
                QN_TRY(add_graph(c, d->attr[k].graph, depth, sum));
        if (callee)
            QN_TRY(add_call(c, callee - c->model->function, depth, sum));
        if (sum->n_nodes > QN_ONNX_EXPANDED)
            return qn_fail(QN_EUNSUPPORTED,
                           "%s: node '%s': with what functions call, there are over %d nodes",
                           c->file, d->name, QN_ONNX_EXPANDED);
    }
    return QN_OK;
}

QnStatus qn_onnx_check_calls(QnArena *arena, const char *file, QnOnnxModel *m,
                             QnOnnxFunction *function)
{
    Sum sum = { 0 };
    Calls c = { .file = file, .model = m };
    if (m->n_functions > 1)
        qsort(function, (size_t)m->n_functions, sizeof *function, by_name);
    for (int64_t i = 1; i < m->n_functions; i++)
        if (by_name(&function[i - 1], &function[i]) == 0)
            return qn_fail(QN_EFORMAT, "%s: function '%s' of domain '%s' is there twice", file,
                           function[i].name, function[i].domain);
    c.callee = qn_arena_array(arena, (size_t)QN_MAX(m->n_functions, 1), sizeof *c.callee);
    if (!c.callee)
        return QN_ENOMEM;
    for (int64_t i = 0; i < m->n_functions; i++) { /* those that nobody calls too */
        Sum one = { 0 };
        QN_TRY(add_call(&c, i, 1, &one));
    }
    return add_graph(&c, m->graph, 1, &sum);
}
#endif
