#include "rt/devtext_impl.h"

#include <stdio.h>

/* The node as a body. */
typedef struct Group {
    const QnNode *node;
    QnDevBody body;
    const int *out; /* instruction numbers */
} Group;

/* The output's axes, longest run of neighbours that every input treats alike in one; and how each
 * input's elements lie in memory. */
typedef struct Axes {
    int n;
    int64_t dim[QN_MAX_RANK];
    bool reads[QN_DEVTEXT_MAX_IN][QN_MAX_RANK]; /* false: broadcast along the axis */
    int order[QN_DEVTEXT_MAX_IN][QN_MAX_RANK];  /* axes by memory, outermost first */
} Axes;

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

/* ---- axes ---- */

/* Logical axes of a type of rank `rank` in the order of memory. */
static void memory_order(const QnType *t, int rank, int order[QN_MAX_RANK])
{
    int lead = rank - t->shape.rank, n = 0;
    bool last = t->layout == QN_LAYOUT_CHANNELS_LAST && t->shape.rank >= 3;
    for (int d = 0; d < rank; d++) {
        if (!last || d != lead + 1)
            order[n++] = d;
    }
    if (last)
        order[n] = lead + 1;
}

static bool reads_axis(const QnType *in, const QnType *out, int axis)
{
    int d = axis - (out->shape.rank - in->shape.rank);
    return d >= 0 && in->shape.dim[d] != 1;
}

/* Whether all tensors lie in memory as the output does, so that neighbours may be joined. */
static bool same_order(const QnNode *n)
{
    for (int i = 0; i < n->n_in; i++) {
        const QnType *t = &n->in[i]->type, *y = &n->out[0].type;
        if (t->layout != y->layout ||
            (t->layout != QN_LAYOUT_PLAIN && t->shape.rank != y->shape.rank))
            return false;
    }
    return true;
}

static bool joins(const Axes *a, int n_in, int axis)
{
    for (int i = 0; i < n_in; i++) {
        if (a->reads[i][axis] != a->reads[i][axis - 1])
            return false;
    }
    return axis > 0;
}

/* Axes in the order of the output's memory; those of length 1 are left out. */
static void find_axes(const QnNode *n, Axes *a)
{
    const QnType *y = &n->out[0].type;
    int rank = y->shape.rank, out_order[QN_MAX_RANK] = { 0 }, place[QN_MAX_RANK] = { 0 };
    bool join = same_order(n);
    *a = (Axes){ 0 };
    memory_order(y, rank, out_order);
    for (int k = 0; k < rank; k++) {
        int d = out_order[k];
        place[d] = -1;
        if (y->shape.dim[d] == 1)
            continue;
        a->dim[a->n] = y->shape.dim[d];
        for (int i = 0; i < n->n_in; i++)
            a->reads[i][a->n] = reads_axis(&n->in[i]->type, y, d);
        if (join && a->n > 0 && joins(a, n->n_in, a->n)) {
            a->dim[a->n - 1] *= a->dim[a->n];
        } else {
            place[d] = a->n++;
        }
    }
    for (int i = 0; i < n->n_in; i++) {
        int order[QN_MAX_RANK] = { 0 }, m = 0;
        memory_order(&n->in[i]->type, rank, order);
        for (int k = 0; k < rank; k++) {
            if (place[order[k]] >= 0)
                a->order[i][m++] = place[order[k]];
        }
    }
}

/* ---- printing ---- */

static void print_head(const Group *g, const Axes *a, QnStr *s)
{
    const QnNode *n = g->node;
    qn_str_add(s, "QN_KERNEL qn_map(");
    for (int i = 0; i < n->n_out; i++)
        qn_str_printf(s, "QN_GLOBAL qn_%s *y%d, ", qn_dtype_name(n->out[i].type.dtype), i);
    for (int i = 0; i < n->n_in; i++)
        qn_str_printf(s, "QN_GLOBAL const qn_%s *x%d, ", qn_dtype_name(n->in[i]->type.dtype), i);
    qn_str_add(s, "qn_long n");
    for (int k = 0; k < a->n && a->n > 1; k++)
        qn_str_printf(s, ", qn_long d%d", k);
    qn_str_add(s, ")\n{\nqn_long i = qn_item();\nif (i >= n)\nreturn;\n");
}

static bool is_read(const QnNode *n, const Axes *a, int axis)
{
    for (int x = 0; x < n->n_in; x++) {
        if (a->reads[x][axis])
            return true;
    }
    return false;
}

/* The index along each axis that an input reads: what nobody reads, compilers warn of. */
static void print_indices(const QnNode *n, const Axes *a, QnStr *s)
{
    int first = 0;
    while (first < a->n && !is_read(n, a, first))
        first++;
    if (first < a->n)
        qn_str_add(s, "qn_long r = i;\n");
    for (int k = a->n - 1; k > first; k--) {
        if (is_read(n, a, k))
            qn_str_printf(s, "qn_long i%d = r %% d%d;\n", k, k);
        qn_str_printf(s, "r /= d%d;\n", k);
    }
    if (first < a->n && first > 0)
        qn_str_printf(s, "qn_long i%d = r %% d%d;\n", first, first);
    else if (first < a->n)
        qn_str_add(s, "qn_long i0 = r;\n");
}

/* Each input's offset, by Horner's rule over the axes it reads. */
static void print_offsets(const QnNode *n, const Axes *a, QnStr *s)
{
    print_indices(n, a, s);
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

static void print_kernel(const Group *g, const Axes *a, QnStr *s)
{
    const QnNode *n = g->node;
    qn_devbody_functions(&g->body, s);
    qn_str_add(s, "#line 1 \"map\"\n");
    print_head(g, a, s);
    print_offsets(n, a, s);
    for (int i = 0; i < n->n_in; i++) {
        char at[16];
        snprintf(at, sizeof at, "o%d", i);
        qn_devbody_load(&g->body, i, i, at, s);
        qn_str_add(s, "\n");
    }
    qn_devbody_run(&g->body, "\n", s);
    for (int i = 0; i < n->n_out; i++)
        qn_str_printf(s, "qn_store_%s(y%d, i, v%d);\n", qn_dtype_name(n->out[i].type.dtype), i,
                      n->n_in + g->out[i]);
    qn_str_add(s, "}\n");
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
    Axes a;
    QN_TRY(check_group(&g));
    find_axes(n, &a);
    print_kernel(&g, &a, text);
    *call = (QnDeviceCall){ .kernel = "qn_map", .n_groups = qn_shape_count(&n->out[0].type.shape) };
    qn_device_int(call, call->n_groups);
    for (int k = 0; k < a.n && a.n > 1; k++)
        qn_device_int(call, a.dim[k]);
    return text->st;
}
