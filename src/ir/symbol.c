/* Symbolic dims: expressions interned in the graph, so that equal expressions have equal numbers.
 * Expression e is the dim -1 - e. */
#include "base/str.h"
#include "ir/graph.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Expr {
    char op; /* 's' symbol, or + - * / */
    QnDim a, b;
    const char *name; /* of a symbol */
} Expr;

struct QnSymbols {
    int64_t n;
    Expr expr[]; /* MAX_EXPR */
};

enum { MAX_EXPR = 4096 };

static const Expr *expr_of(const QnGraph *g, QnDim d)
{
    return g->symbols && -1 - d < g->symbols->n && d < 0 ? &g->symbols->expr[-1 - d] : NULL;
}

/* A negative number that names nothing: an expression of it might come to name itself. */
static bool is_unknown(const QnGraph *g, QnDim d)
{
    return d < 0 && !expr_of(g, d);
}

static QnDim intern(QnGraph *g, Expr e)
{
    if (e.op != 's' && (is_unknown(g, e.a) || is_unknown(g, e.b))) {
        qn_fail(QN_ESHAPE, "the dim %lld is negative", (long long)(is_unknown(g, e.a) ? e.a : e.b));
        qn_graph_poison(g);
        return 0;
    }
    if (!g->symbols) {
        g->symbols =
            qn_arena_alloc(g->arena, sizeof *g->symbols + MAX_EXPR * sizeof *g->symbols->expr);
    }
    struct QnSymbols *s = g->symbols;
    for (int64_t i = 0; s && i < s->n; i++) {
        const Expr *x = &s->expr[i];
        if (x->op == e.op && x->a == e.a && x->b == e.b &&
            (e.op != 's' || !strcmp(x->name, e.name)))
            return -1 - i;
    }
    if (!s || s->n == MAX_EXPR) {
        if (s)
            qn_fail(QN_EGRAPH, "more than %d expressions over symbolic dims", MAX_EXPR);
        qn_graph_poison(g);
        return 0;
    }
    if (e.op == 's' && !(e.name = qn_arena_strdup(g->arena, e.name))) {
        qn_graph_poison(g);
        return 0;
    }
    s->expr[s->n++] = e;
    return -s->n;
}

QnDim qn_dim_symbol(QnGraph *g, const char *name)
{
    return intern(g, (Expr){ .op = 's', .name = name });
}

static QnDim overflow(QnGraph *g, QnDim a, char op, QnDim b)
{
    qn_fail(QN_ESHAPE, "the dim %lld %c %lld overflows 64 bits", (long long)a, op, (long long)b);
    qn_graph_poison(g);
    return 0;
}

QnDim qn_dim_add(QnGraph *g, QnDim a, QnDim b)
{
    QnDim r;
    if (a >= 0 && b >= 0)
        return qn_add_overflow(a, b, &r) ? overflow(g, a, '+', b) : r;
    if (a == 0 || b == 0)
        return a == 0 ? b : a;
    if (a >= 0) { /* constants go right */
        QnDim t = a;
        a = b;
        b = t;
    }
    const Expr *x = expr_of(g, a);
    if (x && b >= 0 && x->op == '+' && x->b >= 0)
        return qn_dim_add(g, x->a, qn_dim_add(g, x->b, b));
    if (x && b >= 0 && x->op == '-' && x->b >= 0)
        return b >= x->b ? qn_dim_add(g, x->a, b - x->b) : qn_dim_sub(g, x->a, x->b - b);
    if (b < 0 && a < b) { /* a sum has one order */
        QnDim t = a;
        a = b;
        b = t;
    }
    return intern(g, (Expr){ .op = '+', .a = a, .b = b });
}

QnDim qn_dim_sub(QnGraph *g, QnDim a, QnDim b)
{
    if (a == b)
        return 0;
    if (a >= 0 && b >= 0) {
        if (a < b) {
            qn_fail(QN_ESHAPE, "the dim %lld - %lld is negative", (long long)a, (long long)b);
            qn_graph_poison(g);
            return 0;
        }
        return a - b;
    }
    if (b == 0)
        return a;
    const Expr *x = expr_of(g, a);
    if (x && x->op == '+') {
        if (x->b == b)
            return x->a;
        if (x->a == b)
            return x->b;
        if (b >= 0 && x->b >= 0)
            return x->b >= b ? qn_dim_add(g, x->a, x->b - b) : qn_dim_sub(g, x->a, b - x->b);
    }
    if (x && x->op == '-' && b >= 0 && x->b >= 0)
        return qn_dim_sub(g, x->a, qn_dim_add(g, x->b, b));
    return intern(g, (Expr){ .op = '-', .a = a, .b = b });
}

QnDim qn_dim_mul(QnGraph *g, QnDim a, QnDim b)
{
    QnDim r;
    if (a >= 0 && b >= 0)
        return qn_mul_overflow(a, b, &r) ? overflow(g, a, '*', b) : r;
    if (a == 0 || b == 0)
        return 0;
    if (a == 1 || b == 1)
        return a == 1 ? b : a;
    if (a >= 0) {
        QnDim t = a;
        a = b;
        b = t;
    }
    const Expr *x = expr_of(g, a);
    if (x && x->op == '*' && x->b >= 0)
        return b >= 0 ? qn_dim_mul(g, x->a, qn_dim_mul(g, x->b, b))
                      : qn_dim_mul(g, qn_dim_mul(g, x->a, b), x->b);
    const Expr *y = expr_of(g, b);
    if (y && y->op == '*' && y->b >= 0)
        return qn_dim_mul(g, qn_dim_mul(g, a, y->a), y->b);
    if (b < 0 && a < b) {
        QnDim t = a;
        a = b;
        b = t;
    }
    return intern(g, (Expr){ .op = '*', .a = a, .b = b });
}

QnDim qn_dim_div(QnGraph *g, QnDim a, QnDim b)
{
    if (b == 0) {
        qn_fail(QN_ESHAPE, "a dim is divided by zero");
        qn_graph_poison(g);
        return 0;
    }
    if (a >= 0 && b > 0)
        return a / b;
    if (a == b)
        return 1;
    if (b == 1)
        return a;
    const Expr *x = expr_of(g, a);
    if (x && x->op == '*') { /* exact when one factor divides */
        if (x->b == b)
            return x->a;
        if (x->a == b)
            return x->b;
        if (b > 0 && x->b > 0 && x->b % b == 0)
            return qn_dim_mul(g, x->a, x->b / b);
        const Expr *z = expr_of(g, x->a); /* ((p*q)*c)/p = q*c */
        if (z && z->op == '*' && (z->a == b || z->b == b))
            return qn_dim_mul(g, z->a == b ? z->b : z->a, x->b);
    }
    return intern(g, (Expr){ .op = '/', .a = a, .b = b });
}

QnDim qn_shape_product(QnGraph *g, const QnShape *s, int from, int to)
{
    QnDim n = 1;
    for (int i = from; i < to; i++)
        n = qn_dim_mul(g, n, s->dim[i]);
    return n;
}

bool qn_dim_is_valid(const QnGraph *g, QnDim d)
{
    return d >= 0 || expr_of(g, d) != NULL;
}

const char *qn_dim_text(const QnGraph *g, QnDim d, char buf[64])
{
    const Expr *x = expr_of(g, d);
    if (d >= 0) {
        snprintf(buf, 64, "%lld", (long long)d);
    } else if (!x) {
        snprintf(buf, 64, "?");
    } else if (x->op == 's') {
        snprintf(buf, 64, "%s", x->name);
    } else {
        char a[64], b[64];
        qn_dim_text(g, x->a, a);
        qn_dim_text(g, x->b, b);
        snprintf(buf, 64, "(%.29s%c%.29s)", a, x->op, b);
    }
    return buf;
}

static const char name_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";

static QnStatus dim_print(const QnGraph *g, QnDim d, QnStr *out, int depth)
{
    const Expr *x = expr_of(g, d);
    if (d >= 0) {
        qn_str_printf(out, "%lld", (long long)d);
    } else if (!x) {
        return qn_fail(QN_EGRAPH, "dim %lld is no expression of this graph", (long long)d);
    } else if (x->op == 's') {
        size_t n = strspn(x->name, name_chars);
        if (!n || x->name[n] || isdigit((unsigned char)x->name[0]) || x->name[0] == '.' || n > 63)
            return qn_fail(QN_EGRAPH, "'%s' cannot be the name of a dim in text", x->name);
        qn_str_add(out, x->name);
    } else {
        if (depth > 64)
            return qn_fail(QN_EGRAPH, "dim expression nests over 64 deep");
        qn_str_add(out, "(");
        QN_TRY(dim_print(g, x->a, out, depth + 1));
        qn_str_printf(out, "%c", x->op);
        QN_TRY(dim_print(g, x->b, out, depth + 1));
        qn_str_add(out, ")");
    }
    return out->st;
}

QnStatus qn_dim_print(const QnGraph *g, QnDim d, QnStr *out)
{
    return dim_print(g, d, out, 0);
}

int64_t qn_dim_count(const QnGraph *g)
{
    return g->symbols ? g->symbols->n : 0;
}

QnStatus qn_dims_copy(const QnGraph *from, QnGraph *to)
{
    for (int64_t i = 0; i < qn_dim_count(from); i++) {
        if (intern(to, from->symbols->expr[i]) != -1 - i)
            return to->error.code ? qn_graph_check(to) : qn_fail(QN_EGRAPH, "the dims differ");
    }
    return QN_OK;
}

static QnStatus dim_parse(QnGraph *g, const char *p, const char **end, QnDim *out, int depth)
{
    if (depth > 64)
        return qn_fail(QN_EFORMAT, "dim expression nests over 64 deep");
    if (isdigit((unsigned char)*p)) {
        char *e;
        unsigned long long v = strtoull(p, &e, 10);
        if (v > INT64_MAX || e - p > 19)
            return qn_fail(QN_EFORMAT, "dim %.24s does not fit 63 bits", p);
        *out = (QnDim)v;
        *end = e;
        return QN_OK;
    }
    if (isalpha((unsigned char)*p) || *p == '_') {
        char name[64];
        size_t n = strspn(p, name_chars);
        if (n >= sizeof name)
            return qn_fail(QN_EFORMAT, "dim name over 63 characters");
        memcpy(name, p, n);
        name[n] = '\0';
        *out = qn_dim_symbol(g, name);
        *end = p + n;
        return g->error.code;
    }
    if (*p != '(')
        return qn_fail(QN_EFORMAT, "expected a dim at '%.16s'", p);
    QnDim a, b;
    QN_TRY(dim_parse(g, p + 1, &p, &a, depth + 1));
    char op = *p;
    if (!op || !strchr("+-*/", op))
        return qn_fail(QN_EFORMAT, "expected + - * or / in a dim at '%.16s'", p);
    QN_TRY(dim_parse(g, p + 1, &p, &b, depth + 1));
    if (*p != ')')
        return qn_fail(QN_EFORMAT, "expected ) in a dim at '%.16s'", p);
    *out = op == '+'   ? qn_dim_add(g, a, b)
           : op == '-' ? qn_dim_sub(g, a, b)
           : op == '*' ? qn_dim_mul(g, a, b)
                       : qn_dim_div(g, a, b);
    *end = p + 1;
    return g->error.code;
}

QnStatus qn_dim_parse(QnGraph *g, const char *text, const char **end, QnDim *out)
{
    return dim_parse(g, text, end, out, 0);
}

typedef struct Binding {
    const QnGraph *from;
    QnGraph *to;
    const char *const *names;
    const int64_t *values;
    int n;
    const char *missing; /* first symbol without a value */
} Binding;

static QnDim bind_dim(void *ctx, QnDim d)
{
    Binding *b = ctx;
    const Expr *x = expr_of(b->from, d);
    if (d >= 0 || !x)
        return d;
    if (x->op == 's') {
        for (int i = 0; i < b->n; i++) {
            if (!strcmp(b->names[i], x->name))
                return b->values[i];
        }
        b->missing = x->name;
        return 0;
    }
    QnDim p = bind_dim(ctx, x->a), q = bind_dim(ctx, x->b);
    if (b->missing)
        return 0;
    return x->op == '+'   ? qn_dim_add(b->to, p, q)
           : x->op == '-' ? qn_dim_sub(b->to, p, q)
           : x->op == '*' ? qn_dim_mul(b->to, p, q)
                          : qn_dim_div(b->to, p, q);
}

QnStatus qn_graph_bind(QnGraph *g, const char *const *names, const int64_t *values, int n,
                       QnGraph **out)
{
    QN_TRY(qn_graph_check(g));
    qn_graph_number(g);
    Binding b = { .from = g, .to = qn_graph_new(), .names = names, .values = values, .n = n };
    QnStatus st = b.to ? QN_OK : QN_ENOMEM;
    QnValue **map = st ? NULL : qn_arena_array(b.to->arena, (size_t)g->n_values + 1, sizeof *map);
    QnValue **in = map ? qn_arena_array(b.to->arena, QN_MAX_IN, sizeof *in) : NULL;
    if (!in)
        QN_TRY_DONE(QN_ENOMEM);
    QN_GRAPH_EACH(g, node)
    {
        for (int i = 0; i < node->n_in; i++)
            in[i] = node->in[i] ? map[node->in[i]->id] : NULL;
        const void *attr = node->attr;
        if (node->op->attr_bytes)
            attr = qn_attr_copy(b.to->arena, node->op, attr, bind_dim, &b);
        if (b.missing)
            QN_TRY_DONE(qn_fail(QN_EARG, "symbolic dim '%s' has no value", b.missing));
        QnNode *copy =
            attr || !node->op->attr_bytes ? qn_emit(b.to, node->op, attr, in, node->n_in) : NULL;
        if (!copy)
            QN_TRY_DONE(b.to->error.code ? qn_graph_check(b.to) : QN_ENOMEM);
        if (node->name && !(copy->name = qn_arena_strdup(b.to->arena, node->name)))
            QN_TRY_DONE(QN_ENOMEM);
        for (int i = 0; i < node->n_out; i++)
            map[node->out[i].id] = &copy->out[i];
    }
    for (int64_t i = 0; i < g->n_outputs; i++)
        QN_TRY_DONE(qn_graph_output(b.to, g->outputs[i].name, map[g->outputs[i].value->id]));
    b.to->next_stream = g->next_stream;
    *out = b.to;
    b.to = NULL;
done:
    qn_graph_free(b.to);
    return st;
}
