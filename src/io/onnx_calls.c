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
    const QnOnnxFunction *function;
    int64_t n;
    Callee *callee;
} Calls;

/* What a graph comes to. */
typedef struct Sum {
    int height;
    int64_t n_nodes;
} Sum;

static int compare(const char *domain, const char *name, const QnOnnxFunction *f)
{
    int c = strcmp(domain, f->domain);
    return c ? c : strcmp(name, f->name);
}

static int by_name(const void *a, const void *b)
{
    const QnOnnxFunction *x = a;
    return compare(x->domain, x->name, b);
}

static int64_t find(const Calls *c, const QnOnnxDef *d)
{
    int64_t lo = 0, hi = c->n;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        int order = compare(d->domain, d->op, &c->function[mid]);
        if (order == 0)
            return mid;
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return -1;
}

static QnStatus add_graph(Calls *c, const QnOnnxGraph *g, int depth, Sum *sum);

static QnStatus add_call(Calls *c, int64_t i, int depth, Sum *sum)
{
    Callee *k = &c->callee[i];
    const char *name = c->function[i].name;
    if (k->is_open)
        return qn_fail(QN_EFORMAT, "%s: function '%s' calls itself", c->file, name);
    if (!k->is_done) {
        Sum own = { 0 };
        if (depth > QN_ONNX_DEPTH)
            return qn_fail(QN_EFORMAT, "%s: function '%s': calls are nested more than %d deep",
                           c->file, name, QN_ONNX_DEPTH);
        k->is_open = true;
        QN_TRY(add_graph(c, &c->function[i].body, depth + 1, &own));
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
        int64_t callee = find(c, d);
        sum->n_nodes++;
        for (int k = 0; k < d->n_attr; k++)
            if (d->attr[k].kind == QN_ONNX_GRAPH && d->attr[k].graph)
                QN_TRY(add_graph(c, d->attr[k].graph, depth, sum));
        if (callee >= 0)
            QN_TRY(add_call(c, callee, depth, sum));
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
    Calls c = { .file = file, .function = function, .n = m->n_functions };
    if (c.n > 1)
        qsort(function, (size_t)c.n, sizeof *function, by_name);
    for (int64_t i = 1; i < c.n; i++)
        if (by_name(&function[i - 1], &function[i]) == 0)
            return qn_fail(QN_EFORMAT, "%s: function '%s' of domain '%s' is there twice", file,
                           function[i].name, function[i].domain);
    c.callee = qn_arena_array(arena, (size_t)QN_MAX(c.n, 1), sizeof *c.callee);
    if (!c.callee)
        return QN_ENOMEM;
    for (int64_t i = 0; i < c.n; i++) { /* those that nobody calls too */
        Sum one = { 0 };
        QN_TRY(add_call(&c, i, 1, &one));
    }
    return add_graph(&c, m->graph, 1, &sum);
}
#endif
