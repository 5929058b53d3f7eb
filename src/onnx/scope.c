#include "onnx/scope.h"

#include "base/hash.h"

#include <string.h>

static QnScopeEntry *slot(const QnScope *s, const char *name)
{
    uint64_t h = qn_hash_str(name);
    for (int64_t i = (int64_t)(h & (uint64_t)(s->cap - 1));; i = (i + 1) & (s->cap - 1))
        if (!s->entry[i].name || !strcmp(s->entry[i].name, name))
            return &s->entry[i];
}

static QnStatus grow(QnScope *s)
{
    QnScope big = { .cap = s->cap ? 2 * s->cap : 64 };
    big.entry = qn_alloc_array((size_t)big.cap, sizeof *big.entry);
    if (!big.entry)
        return QN_ENOMEM;
    for (int64_t i = 0; i < s->cap; i++)
        if (s->entry[i].name)
            *slot(&big, s->entry[i].name) = s->entry[i];
    qn_free(s->entry);
    s->entry = big.entry;
    s->cap = big.cap;
    return QN_OK;
}

static QnStatus enter(QnScope *s, const char *name, QnScopeEntry **out)
{
    if (2 * (s->n + 1) > s->cap)
        QN_TRY(grow(s));
    QnScopeEntry *e = slot(s, name);
    if (!e->name) {
        e->name = name;
        s->n++;
    }
    *out = e;
    return QN_OK;
}

QnStatus qn_scope_hold(QnScope *s, const char *name)
{
    QnScopeEntry *e;
    QN_TRY(enter(s, name, &e));
    e->uses++;
    return QN_OK;
}

/* What a node reads, the graphs inside it too. */
static QnStatus each_read(QnScope *s, const QnOnnxDef *d,
                          QnStatus (*visit)(QnScope *, const char *))
{
    for (int i = 0; i < d->n_in; i++)
        if (d->in[i][0])
            QN_TRY(visit(s, d->in[i]));
    for (int i = 0; i < d->n_attr; i++) {
        const QnOnnxAttr *a = &d->attr[i];
        if (!strcmp(d->op, "Gradient") && !strcmp(a->name, "y") && a->kind == QN_ONNX_STRING)
            QN_TRY(visit(s, a->s.s)); /* what is differentiated is named by an attribute */
        const QnOnnxGraph *in = d->attr[i].kind == QN_ONNX_GRAPH ? d->attr[i].graph : NULL;
        for (int64_t k = 0; in && k < in->n_nodes; k++)
            QN_TRY(each_read(s, &in->node[k], visit));
        for (int64_t k = 0; in && k < in->n_outputs; k++)
            QN_TRY(visit(s, in->output[k].name));
    }
    return QN_OK;
}

QnStatus qn_scope_open(QnScope *s, const QnOnnxGraph *g, QnScope *outer)
{
    *s = (QnScope){ .outer = outer };
    if (outer) {
        s->function = outer->function;
        s->attr = outer->attr;
        s->n_attr = outer->n_attr;
        s->opset = outer->opset;
        s->n_opset = outer->n_opset;
    }
    QN_TRY(grow(s));
    for (int64_t i = 0; i < g->n_nodes; i++)
        QN_TRY(each_read(s, &g->node[i], qn_scope_hold));
    for (int64_t i = 0; i < g->n_outputs; i++)
        QN_TRY(qn_scope_hold(s, g->output[i].name));
    return QN_OK;
}

void qn_scope_close(QnScope *s)
{
    qn_free(s->entry);
    s->entry = NULL;
}

QnStatus qn_scope_set(QnScope *s, const char *name, QnItem *item)
{
    QnScopeEntry *e;
    QN_TRY(enter(s, name, &e));
    e->is_set = true;
    e->item = e->uses ? item : NULL;
    return QN_OK;
}

bool qn_scope_find(const QnScope *s, const char *name, QnItem **item)
{
    for (; s; s = s->outer) {
        const QnScopeEntry *e = slot(s, name);
        if (e->name && e->is_set) {
            *item = e->item;
            return true;
        }
    }
    return false;
}

static QnStatus use_once(QnScope *s, const char *name)
{
    QnScopeEntry *e = slot(s, name);
    if (e->name && e->uses > 0 && --e->uses == 0)
        e->item = NULL;
    return QN_OK;
}

void qn_scope_used(QnScope *s, const QnOnnxDef *d)
{
    each_read(s, d, use_once);
}

bool qn_scope_attr(const QnScope *s, const QnOnnxAttr *a, QnOnnxAttr *out)
{
    *out = *a;
    if (!a->ref)
        return true;
    for (int i = 0; i < s->n_attr; i++)
        if (!strcmp(s->attr[i].name, a->ref)) {
            *out = s->attr[i];
            out->name = a->name;
            return true;
        }
    for (int i = 0; s->function && i < s->function->n_default; i++)
        if (!strcmp(s->function->fallback[i].name, a->ref)) {
            *out = s->function->fallback[i];
            out->name = a->name;
            return true;
        }
    return false;
}
