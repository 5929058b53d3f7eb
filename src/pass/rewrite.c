#include "pass/rewrite.h"
#include "ops/ops.h"

#include <string.h>

enum { MAX_ROUNDS = 50 };

bool qn_rewrite_to(QnGraph *g, QnNode *n, QnValue *v)
{
    if (qn_value_is_poison(v))
        return true; /* the graph has failed */
    const QnType *a = &n->out[0].type, *b = &v->type;
    if (a->dtype != b->dtype || !qn_shape_is_equal(&a->shape, &b->shape)) {
        char x[QN_TYPE_TEXT_BYTES], y[QN_TYPE_TEXT_BYTES];
        qn_fail(QN_EINTERNAL, "%s: a rule gives %s instead of %s", n->op->name, qn_type_text(b, y),
                qn_type_text(a, x));
        qn_graph_poison(g);
        return true;
    }
    qn_value_replace(&n->out[0], v);
    return true;
}

bool qn_rewrite_is_full(const QnValue *v, double number)
{
    double x;
    return qn_full_value(v, &x) && x == number;
}

const QnInts *qn_rewrite_ints(const QnNode *n, const char *name)
{
    const QnAttrField *f = qn_attr_find(n->op, name);
    return f && f->kind == QN_ATTR_INTS
               ? (const QnInts *)(const void *)((const char *)n->attr + f->offset)
               : NULL;
}

bool qn_rewrite_bool(const QnNode *n, const char *name)
{
    const QnAttrField *f = qn_attr_find(n->op, name);
    return f && f->kind == QN_ATTR_BOOL && *((const bool *)n->attr + f->offset);
}

static bool is_plain(const QnNode *n)
{
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] && n->in[i]->type.layout != QN_LAYOUT_PLAIN)
            return false;
    }
    for (int i = 0; i < n->n_out; i++) {
        if (n->out[i].type.layout != QN_LAYOUT_PLAIN)
            return false;
    }
    return n->n_out > 0;
}

static bool apply(QnGraph *g, QnNode *n, const QnRule *rules, int n_rules,
                  const QnPipelineOptions *o)
{
    size_t room = n->name ? strlen(n->name) + 1 : sizeof g->scope + 1;
    g->scope[0] = '\0';
    if (room <= sizeof g->scope)
        memcpy(g->scope, n->name, room);
    qn_graph_set_cursor(g, n);
    for (int i = 0; i < n_rules; i++) {
        if ((!rules[i].op || rules[i].op == n->op) && rules[i].run(g, n, o))
            return true;
    }
    return false;
}

QnStatus qn_rewrite_run(QnGraph *g, const QnRule *rules, int n_rules, const QnPipelineOptions *o)
{
    char scope[sizeof g->scope];
    memcpy(scope, g->scope, sizeof scope);
    bool changed = true;
    for (int round = 0; changed && round < MAX_ROUNDS && !g->error.code; round++) {
        changed = false;
        for (QnNode *n = g->first; n && !g->error.code; n = n->next) {
            for (int i = 0; i < n->n_in; i++)
                n->in[i] = qn_value_resolve(n->in[i]);
            if (is_plain(n) && !n->out[0].forward)
                changed |= apply(g, n, rules, n_rules, o);
        }
        qn_graph_sweep(g);
        qn_graph_set_cursor(g, NULL);
        if (changed && !g->error.code)
            QN_TRY(qn_pass_dce(g, o));
    }
    memcpy(g->scope, scope, sizeof scope);
    qn_graph_set_cursor(g, NULL);
    return qn_graph_check(g);
}
