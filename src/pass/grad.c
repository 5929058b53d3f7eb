#include "pass/grad.h"
#include "ops/ops.h"

#include <stdio.h>
#include <string.h>

QnStatus qn_lower_node(QnGraph *g, QnNode *n)
{
    QnValue *out[QN_MAX_OUT] = { 0 };
    QnNode *cursor = g->cursor;
    qn_graph_set_cursor(g, n);
    n->op->lower(g, n, out);
    qn_graph_set_cursor(g, cursor == n ? n->next : cursor);
    QN_TRY(qn_graph_check(g));
    for (int i = 0; i < n->n_out; i++) {
        if (qn_value_is_poison(out[i]))
            return qn_fail(QN_EINTERNAL, "%s: lowering left output %d out", n->op->name, i);
        if (!qn_type_is_equal(&out[i]->type, &n->out[i].type)) {
            char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
            return qn_fail(QN_EINTERNAL, "%s: lowering gives output %d as %s, not %s", n->op->name,
                           i, qn_type_text(&out[i]->type, a), qn_type_text(&n->out[i].type, b));
        }
        qn_value_replace(&n->out[i], out[i]);
    }
    qn_graph_remove(g, n);
    return QN_OK;
}

/* Marks nodes between wrt and y: 1 if they depend on some wrt, 3 if y depends on them as well. */
/* Dtypes for storage alone have no arithmetic, and so no gradients. */
static bool is_real(QnDtype dtype)
{
    return qn_dtype_is_float(dtype) && !qn_dtype_is_storage(dtype);
}

static void mark_path(QnGraph *g, const QnValue *y, QnValue *const *wrt, int n_wrt)
{
    QN_GRAPH_EACH(g, n)
    n->mark = 0;
    for (int i = 0; i < n_wrt; i++)
        wrt[i]->node->mark = 1;
    QN_GRAPH_EACH(g, n)
    {
        for (int i = 0; i < n->n_in && !(n->op->traits & QN_NO_GRAD); i++)
            n->mark |= n->in[i] && n->in[i]->node->mark && is_real(n->in[i]->type.dtype);
    }
    bool seen = false;
    for (QnNode *n = g->last; n; n = n->prev) {
        seen |= n == y->node;
        if (n == y->node && n->mark)
            n->mark = 3;
        for (int i = 0; seen && n->mark == 3 && i < n->n_in; i++) {
            if (n->in[i] && n->in[i]->node->mark)
                n->in[i]->node->mark = 3;
        }
    }
}

static bool has_gradient(const QnNode *n)
{
    return n->op->grad || (n->op->traits & QN_NO_GRAD);
}

/* Lists every node on the path that has no gradient, or lowers it if it can be. */
static QnStatus prepare_path(QnGraph *g, const QnValue *y, QnValue **wrt, int n_wrt)
{
    bool again = true;
    while (again) { /* what a composite lowers to may hold composites */
        again = false;
        mark_path(g, y, wrt, n_wrt);
        for (QnNode *n = g->first, *next; n; n = next) {
            next = n->next;
            if (n->mark == 3 && !has_gradient(n) && n->op->lower) {
                QN_TRY(qn_lower_node(g, n));
                again = true;
            }
        }
        if (again) {
            qn_graph_sweep(g);
            y = qn_value_resolve((QnValue *)(uintptr_t)y);
            for (int i = 0; i < n_wrt; i++)
                wrt[i] = qn_value_resolve(wrt[i]);
        }
    }
    char list[600] = "";
    size_t used = 0;
    QN_GRAPH_EACH(g, n)
    {
        if (n->mark == 3 && !has_gradient(n) && used < sizeof list - 1) {
            int k = snprintf(list + used, sizeof list - used, "%s%s%s%s", used ? ", " : "",
                             n->op->name, n->name ? " at " : "", n->name ? n->name : "");
            used += QN_MIN((size_t)k, sizeof list - used);
        }
    }
    return used ? qn_fail(QN_EUNSUPPORTED, "no gradient for: %s", list) : QN_OK;
}

static void accumulate(QnGraph *g, QnValue **slot, QnValue *dx)
{
    *slot = *slot ? qn_add(g, *slot, dx) : dx;
}

/* One node backwards: its outputs' gradients become its inputs' gradients. */
static QnStatus back_node(QnGraph *g, QnNode *n, QnValue **grads)
{
    QnValue *dy[QN_MAX_OUT], *small[16] = { 0 }, **dx = small;
    bool any = false;
    for (int i = 0; i < n->n_out; i++) {
        dy[i] = grads[n->out[i].id];
        any |= dy[i] != NULL;
    }
    if (!any || n->n_in == 0 || (n->op->traits & QN_NO_GRAD))
        return QN_OK;
    if (n->n_in > QN_COUNT(small) && !(dx = qn_arena_array(g->arena, (size_t)n->n_in, sizeof *dx)))
        return QN_ENOMEM;
    n->op->grad(g, n, dy, dx);
    QN_TRY(qn_graph_check(g));
    for (int i = 0; i < n->n_in; i++) {
        if (!dx[i] || !n->in[i] || n->in[i]->node->mark != 3)
            continue;
        QnType want = n->in[i]->type, got = dx[i]->type;
        want.layout = got.layout;
        if (!qn_type_is_equal(&want, &got)) {
            char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
            return qn_fail(QN_EINTERNAL, "%s: the gradient of input %d is %s, not %s", n->op->name,
                           i, qn_type_text(&got, a), qn_type_text(&want, b));
        }
        accumulate(g, &grads[n->in[i]->id], dx[i]);
    }
    return qn_graph_check(g);
}

static QnStatus grad_from(QnGraph *g, QnValue *y, QnValue *dy, QnValue *const *values, int n,
                          QnValue **out)
{
    QnValue **wrt = qn_arena_array(g->arena, (size_t)QN_MAX(n, 1), sizeof *wrt);
    if (!wrt)
        return QN_ENOMEM;
    for (int i = 0; i < n; i++)
        wrt[i] = qn_value_resolve(values[i]);
    if (qn_value_is_poison(y) || !is_real(y->type.dtype))
        return qn_fail(QN_EDTYPE, "only a floating-point value can be differentiated");
    if (dy && !qn_type_is_equal(&dy->type, &y->type))
        return qn_fail(QN_ESHAPE, "the given gradient is not of the value's type");
    QN_TRY(prepare_path(g, y, wrt, n));
    y = qn_value_resolve(y);
    qn_graph_number(g);
    mark_path(g, y, wrt, n);
    QnValue **grads = qn_arena_array(g->arena, (size_t)g->n_values + 1, sizeof *grads);
    if (!grads)
        return QN_ENOMEM;
    QnNode *node = g->last;
    grads[y->id] = dy ? dy : qn_full(g, 1, y->type.dtype, &y->type.shape);
    QN_TRY(qn_graph_check(g));
    for (; node; node = node->prev) {
        if (node->mark != 3)
            continue;
        qn_scope_push(g, node->name ? node->name : node->op->name);
        QnStatus st = back_node(g, node, grads);
        g->scope[0] = '\0';
        if (st != QN_OK)
            return qn_fail_prefix("gradient of %s", node->name ? node->name : node->op->name);
    }
    for (int i = 0; i < n; i++) {
        const QnType *t = &wrt[i]->type;
        out[i] = grads[wrt[i]->id] ? grads[wrt[i]->id] : qn_full(g, 0, t->dtype, &t->shape);
    }
    return qn_graph_check(g);
}

QnStatus qn_grad_from(QnGraph *g, QnValue *y, QnValue *dy, QnValue *const *wrt, int n,
                      QnValue **out)
{
    QN_TRY(qn_graph_check(g));
    for (int i = 0; i < n; i++) {
        if (qn_value_is_poison(wrt[i]) || !is_real(wrt[i]->type.dtype))
            return qn_fail(QN_EDTYPE,
                           "gradient wanted with respect to value %d, which is no "
                           "floating-point value",
                           i);
    }
    char scope[sizeof g->scope];
    memcpy(scope, g->scope, sizeof scope);
    g->scope[0] = '\0';
    QnStatus st = grad_from(g, y, dy, wrt, n, out);
    memcpy(g->scope, scope, sizeof scope);
    if (st != QN_OK)
        qn_graph_poison(g);
    return st;
}

QnStatus qn_grad(QnGraph *g, QnValue *y, QnValue *const *wrt, int n, QnValue **out)
{
    return qn_grad_from(g, y, NULL, wrt, n, out);
}
