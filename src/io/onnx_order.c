#include "io/onnx_order.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

/* Who makes a name: a node's number, or SOURCE. Sorted by name. */
enum { SOURCE = -1 };

typedef struct Maker {
    const char *name;
    int64_t node;
    bool may_repeat; /* initialisers that are inputs too */
} Maker;

static int by_name(const void *a, const void *b)
{
    const Maker *x = a, *y = b;
    int c = strcmp(x->name, y->name);
    return c ? c : x->node < y->node ? -1 : x->node > y->node;
}

static const Maker *find(const Maker *m, int64_t n, const char *name)
{
    int64_t lo = 0, hi = n;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (strcmp(m[mid].name, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && !strcmp(m[lo].name, name) ? &m[lo] : NULL;
}

static Maker *list_makers(QnArena *arena, const QnOnnxGraph *g, int64_t *count)
{
    int64_t n = g->n_inputs + g->n_inits, k = 0;
    for (int64_t i = 0; i < g->n_nodes; i++)
        n += g->node[i].n_out;
    Maker *m = qn_arena_array(arena, (size_t)QN_MAX(n, 1), sizeof *m);
    if (!m)
        return NULL;
    for (int64_t i = 0; i < g->n_inputs; i++)
        m[k++] = (Maker){ g->input[i].name, SOURCE, false };
    for (int64_t i = 0; i < g->n_inits; i++)
        m[k++] = (Maker){ g->init[i].name, SOURCE, true };
    for (int64_t i = 0; i < g->n_nodes; i++)
        for (int o = 0; o < g->node[i].n_out; o++)
            if (g->node[i].out[o][0])
                m[k++] = (Maker){ g->node[i].out[o], i, false };
    qsort(m, (size_t)k, sizeof *m, by_name);
    *count = k;
    return m;
}

static QnStatus refuse_twice(const char *file, const QnOnnxGraph *g, const Maker *m, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        if (strcmp(m[i].name, m[i - 1].name))
            continue;
        if (m[i].node == SOURCE && m[i - 1].may_repeat != m[i].may_repeat)
            continue;
        return qn_fail(QN_EFORMAT, "%s: the name '%s' is made twice%s%s%s", file, m[i].name,
                       m[i].node == SOURCE ? "" : ", by node '",
                       m[i].node == SOURCE ? "" : g->node[m[i].node].name,
                       m[i].node == SOURCE ? "" : "'");
    }
    return QN_OK;
}

/* Depth-first from each node in the files' order, without recursion. */
typedef struct Sort {
    const Maker *makers;
    int64_t n_makers;
    const QnOnnxGraph *g;
    unsigned char *state; /* 0 new, 1 open, 2 done */
    int64_t *stack;
    const int64_t *const *needs; /* nodes that a node reads from */
    const int64_t *n_needs;
    int64_t *next; /* which need of an open node comes next */
    int64_t *order, n_order;
} Sort;

/* Names that the graphs inside a node take from outside count as what it reads. */
static int64_t count_reads(const QnOnnxDef *d)
{
    int64_t n = d->n_in;
    for (int i = 0; i < d->n_attr; i++)
        if (d->attr[i].kind == QN_ONNX_GRAPH && d->attr[i].graph) {
            const QnOnnxGraph *in = d->attr[i].graph;
            n += in->n_outputs;
            for (int64_t k = 0; k < in->n_nodes; k++)
                n += count_reads(&in->node[k]);
        }
    return n;
}

static void add_read(const Sort *s, int64_t self, const char *name, int64_t *list, int64_t *n)
{
    const Maker *m = name[0] ? find(s->makers, s->n_makers, name) : NULL;
    while (m && m < s->makers + s->n_makers && !strcmp(m->name, name)) {
        if (m->node != SOURCE)
            list[(*n)++] = m->node;
        m++;
    }
    (void)self;
}

static void collect_reads(const Sort *s, int64_t self, const QnOnnxDef *d, int64_t *list,
                          int64_t *n)
{
    for (int i = 0; i < d->n_in; i++)
        add_read(s, self, d->in[i], list, n);
    for (int i = 0; i < d->n_attr; i++) {
        if (d->attr[i].kind != QN_ONNX_GRAPH || !d->attr[i].graph)
            continue;
        const QnOnnxGraph *in = d->attr[i].graph;
        for (int64_t k = 0; k < in->n_nodes; k++)
            collect_reads(s, self, &in->node[k], list, n);
        for (int64_t k = 0; k < in->n_outputs; k++)
            add_read(s, self, in->output[k].name, list, n);
    }
}

static QnStatus visit(Sort *s, const char *file, int64_t root)
{
    int64_t top = 0;
    if (s->state[root])
        return QN_OK;
    s->stack[top++] = root;
    s->state[root] = 1;
    while (top > 0) {
        int64_t i = s->stack[top - 1];
        if (s->next[i] == s->n_needs[i]) {
            s->state[i] = 2;
            s->order[s->n_order++] = i;
            top--;
            continue;
        }
        int64_t need = s->needs[i][s->next[i]++];
        if (s->state[need] == 1)
            return qn_fail(QN_EFORMAT, "%s: node '%s' needs its own result: the graph has a cycle",
                           file, s->g->node[need].name);
        if (s->state[need] == 0) {
            s->state[need] = 1;
            s->stack[top++] = need;
        }
    }
    return QN_OK;
}

static QnStatus sort(Sort *s, QnArena *arena, const char *file, QnOnnxGraph *g)
{
    size_t n = (size_t)QN_MAX(g->n_nodes, 1);
    const int64_t **needs = qn_arena_array(arena, n, sizeof *needs);
    int64_t *n_needs = qn_arena_array(arena, n, sizeof *n_needs);
    QnOnnxDef *sorted = qn_arena_array(arena, n, sizeof *sorted);
    s->state = qn_arena_array(arena, n, 1);
    s->stack = qn_arena_array(arena, n, sizeof *s->stack);
    s->next = qn_arena_array(arena, n, sizeof *s->next);
    s->order = qn_arena_array(arena, n, sizeof *s->order);
    if (!needs || !n_needs || !sorted || !s->state || !s->stack || !s->next || !s->order)
        return QN_ENOMEM;
    for (int64_t i = 0; i < g->n_nodes; i++) {
        int64_t *list = qn_arena_array(arena, (size_t)count_reads(&g->node[i]) + 1, sizeof *list);
        if (!list)
            return QN_ENOMEM;
        collect_reads(s, i, &g->node[i], list, &n_needs[i]);
        needs[i] = list;
    }
    s->needs = needs;
    s->n_needs = n_needs;
    for (int64_t i = 0; i < g->n_nodes; i++)
        QN_TRY(visit(s, file, i));
    for (int64_t i = 0; i < g->n_nodes; i++)
        sorted[i] = g->node[s->order[i]];
    g->node = sorted;
    return QN_OK;
}

QnStatus qn_onnx_order(QnArena *arena, const char *file, QnOnnxGraph *g)
{
    Sort s = { .g = g };
    s.makers = list_makers(arena, g, &s.n_makers);
    if (!s.makers)
        return QN_ENOMEM;
    QN_TRY(refuse_twice(file, g, s.makers, s.n_makers));
    return sort(&s, arena, file, g);
}
