#include "rt/axes.h"
#include "rt/devtext_impl.h"

#include <stdio.h>

/* The node as a body. */
typedef struct Group {
    const QnNode *node;
    QnDevBody body;
    const int *out; /* instruction numbers */
} Group;

static QnStatus check_group(const Group *g)
{
    const QnNode *n = g->node;
    if (n->n_in > QN_DEVTEXT_MAX_IN)
        return qn_fail(QN_EUNSUPPORTED, "%s: %d inputs, device text takes %d", n->op->name, n->n_in,
                       QN_DEVTEXT_MAX_IN);
    for (int i = 0; i < n->n_out; i++) {
        const QnType *t = &n->out[i].type, *first = &n->out[0].type;
        if (!qn_shape_is_equal(&t->shape, &first->shape) || t->layout != first->layout)
            return qn_fail(QN_EUNSUPPORTED, "%s: outputs differ in shape or layout", n->op->name);
        if (!qn_shape_is_concrete(&t->shape))
            return qn_fail(QN_ESHAPE, "%s: its shape is symbolic", n->op->name);
    }
    return qn_devbody_check(&g->body);
}

/* ---- printing ---- */

static const char *dtype_of(const QnValue *v)
{
    return qn_dtype_name(v->type.dtype);
}

static const char *register_of(QnDtype d)
{
    return qn_devbody_is_whole(d) ? "qn_long" : "float";
}

/* The arguments, to be declared or passed on. */
static void print_args(const QnNode *n, const QnAxes *a, bool declare, QnStr *s)
{
    for (int i = 0; i < n->n_out; i++) {
        if (declare)
            qn_str_printf(s, "QN_GLOBAL qn_%s *", dtype_of(&n->out[i]));
        qn_str_printf(s, "y%d, ", i);
    }
    for (int i = 0; i < n->n_in; i++) {
        if (declare)
            qn_str_printf(s, "QN_GLOBAL const qn_%s *", dtype_of(n->in[i]));
        qn_str_printf(s, "x%d, ", i);
    }
    qn_str_add(s, declare ? "qn_long n" : "n");
    for (int k = 0; k < a->n && a->n > 1; k++)
        qn_str_printf(s, ", %sd%d", declare ? "qn_long " : "", k);
    qn_str_add(s, ")");
}

static bool is_read(const QnNode *n, const QnAxes *a, int axis)
{
    for (int x = 0; x < n->n_in; x++) {
        if (a->reads[x][axis])
            return true;
    }
    return false;
}

/* The index along each axis that an input reads, of element `at`: what nobody reads, compilers warn
 * of. */
static void print_indices(const QnNode *n, const QnAxes *a, const char *at, QnStr *s)
{
    int first = 0;
    while (first < a->n && !is_read(n, a, first))
        first++;
    if (first < a->n)
        qn_str_printf(s, "qn_long r = %s;\n", at);
    for (int k = a->n - 1; k > first; k--) {
        qn_str_printf(s, "qn_long t%d = qn_div(r, d%d);\n", k, k);
        if (is_read(n, a, k))
            qn_str_printf(s, "qn_long i%d = r - t%d * d%d;\n", k, k, k);
        qn_str_printf(s, "r = t%d;\n", k);
    }
    if (first < a->n && first > 0)
        qn_str_printf(s, "qn_long i%d = r - qn_div(r, d%d) * d%d;\n", first, first, first);
    else if (first < a->n)
        qn_str_add(s, "qn_long i0 = r;\n");
}

/* Each input's offset, by Horner's rule over the axes it reads. */
static void print_offsets(const QnNode *n, const QnAxes *a, const char *at, QnStr *s)
{
    print_indices(n, a, at, s);
    for (int x = 0; x < n->n_in; x++) {
        bool first = true;
        qn_str_printf(s, "qn_long o%d = ", x);
        for (int k = 0; k < a->n; k++) {
            int axis = a->order[x][k];
            if (!a->reads[x][axis])
                continue;
            if (first)
                qn_str_printf(s, "i%d", axis);
            else
                qn_str_printf(s, ";\no%d = o%d * d%d + i%d", x, x, axis, axis);
            first = false;
        }
        qn_str_add(s, first ? "0;\n" : ";\n");
    }
}

static void print_one(const Group *g, const QnAxes *a, QnStr *s)
{
    const QnNode *n = g->node;
    qn_str_add(s, "qn_long i = item;\nif (i >= n)\nreturn;\n");
    print_offsets(n, a, "i", s);
    for (int i = 0; i < n->n_in; i++) {
        char at[16];
        snprintf(at, sizeof at, "o%d", i);
        qn_devbody_load(&g->body, i, i, at, s);
        qn_str_add(s, "\n");
    }
    qn_devbody_run(&g->body, "\n", s);
    for (int i = 0; i < n->n_out; i++)
        qn_str_printf(s, "qn_store_%s(y%d, i, v%d);\n", dtype_of(&n->out[i]), i,
                      n->n_in + g->out[i]);
}

/* Input i's four elements as q<i>. Rows that fours divide are indexed once for four; of others, and
 * of the last elements, each has its own index. */
static void print_loads(const QnNode *n, const QnAxes *a, QnStr *s)
{
    int last = a->n - 1;
    for (int i = 0; i < n->n_in; i++)
        qn_str_printf(s, "%s q%d[4];\n", register_of(n->in[i]->type.dtype), i);
    if (a->n == 1) {
        for (int i = 0; i < n->n_in; i++) {
            const char *d = dtype_of(n->in[i]);
            if (a->reads[i][0])
                qn_str_printf(s, "QN_GET4(%s, x%d, i, n, q%d);\n", d, i, i);
            else
                qn_str_printf(s, "QN_EACH4(q%d[u] = qn_load_%s(x%d, 0));\n", i, d, i);
        }
        return;
    }
    qn_str_printf(s, "if (d%d %% 4 == 0) {\n", last);
    print_offsets(n, a, "i", s);
    for (int i = 0; i < n->n_in; i++) {
        const char *d = dtype_of(n->in[i]);
        if (a->reads[i][last])
            qn_str_printf(s, "qn_load4_%s(x%d, o%d, q%d);\n", d, i, i, i);
        else
            qn_str_printf(s, "QN_EACH4(q%d[u] = qn_load_%s(x%d, o%d));\n", i, d, i, i);
    }
    qn_str_add(s, "} else {\nfor (int u = 0; u < 4; u++) {\n"
                  "qn_long at = i + u < n ? i + u : n - 1;\n");
    print_offsets(n, a, "at", s);
    for (int i = 0; i < n->n_in; i++)
        qn_str_printf(s, "q%d[u] = qn_load_%s(x%d, o%d);\n", i, dtype_of(n->in[i]), i, i);
    qn_str_add(s, "}\n}\n");
}

static void print_four(const Group *g, const QnAxes *a, QnStr *s)
{
    const QnNode *n = g->node;
    qn_str_add(s, "qn_long i = item * 4;\nif (i >= n)\nreturn;\n");
    print_loads(n, a, s);
    for (int i = 0; i < n->n_out; i++)
        qn_str_printf(s, "%s z%d[4];\n", register_of(n->out[i].type.dtype), i);
    qn_str_add(s, "for (int u = 0; u < 4; u++) {\n");
    for (int i = 0; i < n->n_in; i++)
        qn_str_printf(s, "%s v%d = q%d[u];\n", register_of(n->in[i]->type.dtype), i, i);
    qn_devbody_run(&g->body, "\n", s);
    for (int i = 0; i < n->n_out; i++)
        qn_str_printf(s, "z%d[u] = v%d;\n", i, n->n_in + g->out[i]);
    qn_str_add(s, "}\n");
    for (int i = 0; i < n->n_out; i++)
        qn_str_printf(s, "QN_PUT4(%s, y%d, i, n, z%d);\n", dtype_of(&n->out[i]), i, i);
}

static void print_kernel(const Group *g, const QnAxes *a, QnStr *s)
{
    qn_devbody_functions(&g->body, s);
    qn_str_add(s, "#line 1 \"map\"\n");
    qn_str_add(s, "QN_SCALAR void qn_map_at(qn_long item, ");
    print_args(g->node, a, true, s);
    qn_str_add(s, "\n{\n");
    if (a->by_four)
        print_four(g, a, s);
    else
        print_one(g, a, s);
    qn_str_add(s, "}\nQN_KERNEL qn_map(");
    print_args(g->node, a, true, s);
    qn_str_add(s, "\n{\nqn_map_at(qn_item(), ");
    print_args(g->node, a, false, s);
    qn_str_add(s, ";\n}\n");
}

QnStatus qn_devtext_map(const QnNode *n, QnStr *text, QnDeviceCall *call)
{
    static const int first = 0;
    const QnBody *body = qn_devbody_of(n);
    QnBodyInstr alone = {
        .op = n->op, .attr = n->attr, .dtype = n->out[0].type.dtype, .arg = { 0, 1, 2 }
    };
    Group g = { n,
                { .n_in = n->n_in,
                  .instr = body ? body->instr : &alone,
                  .n_instr = body ? body->n_instr : 1 },
                body ? body->out : &first };
    for (int i = 0; i < QN_MIN(n->n_in, QN_DEVTEXT_MAX_IN); i++)
        g.body.in[i] = n->in[i]->type.dtype;
    QnAxes a;
    QN_TRY(check_group(&g));
    qn_axes_find(n, &a);
    print_kernel(&g, &a, text);
    int64_t count = qn_shape_count(&n->out[0].type.shape);
    *call = (QnDeviceCall){ .kernel = "qn_map",
                            .at = "qn_map_at",
                            .n_groups = a.by_four ? (count + 3) / 4 : count };
    qn_device_int(call, count);
    for (int k = 0; k < a.n && a.n > 1; k++)
        qn_device_int(call, a.dim[k]);
    return text->st;
}
