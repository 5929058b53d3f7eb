#include "rt/devtext.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_IN = 32 };

/* The node as a body: a map is a group of one. */
typedef struct Group {
    const QnNode *node;
    const QnBodyInstr *instr;
    int n_instr;
    const int *out; /* instruction numbers */
} Group;

/* The output's axes, longest run of neighbours that every input treats alike in one; and how each
 * input's elements lie in memory. */
typedef struct Axes {
    int n;
    int64_t dim[QN_MAX_RANK];
    bool reads[MAX_IN][QN_MAX_RANK]; /* false: broadcast along the axis */
    int order[MAX_IN][QN_MAX_RANK];  /* axes by memory, outermost first */
} Axes;

static const QnBody *body_of(const QnNode *n)
{
    for (int i = 0; i < n->op->n_fields; i++) {
        const QnAttrField *f = &n->op->fields[i];
        if (f->kind == QN_ATTR_BODY)
            return *(const QnBody *const *)(const void *)((const char *)n->attr + f->offset);
    }
    return NULL;
}

static QnDtype operand_dtype(const Group *g, int operand)
{
    int n_in = g->node->n_in;
    return operand < n_in ? g->node->in[operand]->type.dtype : g->instr[operand - n_in].dtype;
}

/* ---- what text can do ---- */

/* Integers and bools are qn_long in the text, floats float. */
static bool is_whole(QnDtype d)
{
    return !qn_dtype_is_float(d);
}

/* By <op>_i, exactly: integers to integers. */
static bool is_exact(const Group *g, const QnBodyInstr *x)
{
    for (int k = 0; k < x->op->n_in; k++) {
        if (!is_whole(operand_dtype(g, x->arg[k])))
            return false;
    }
    return x->op->map->ref_int && is_whole(x->dtype);
}

static QnStatus check_instr(const Group *g, const QnBodyInstr *x)
{
    if (!x->op->map || !x->op->device)
        return qn_fail(QN_EUNSUPPORTED, "%s: has no scalar function in device text", x->op->name);
    bool exact = is_exact(g, x);
    if (x->dtype == QN_DTYPE_F64 || qn_dtype_is_storage(x->dtype))
        return qn_fail(QN_EUNSUPPORTED, "%s: device text has no %s", x->op->name,
                       qn_dtype_name(x->dtype));
    for (int k = 0; k < x->op->n_in; k++) {
        QnDtype d = operand_dtype(g, x->arg[k]);
        if (d == QN_DTYPE_F64 || qn_dtype_is_storage(d))
            return qn_fail(QN_EUNSUPPORTED, "%s: device text has no %s", x->op->name,
                           qn_dtype_name(d));
        /* a float holds 24 bits: enough only on the way to a float */
        if (qn_dtype_is_int(d) && qn_dtype_bytes(d) >= 4 && !exact && is_whole(x->dtype))
            return qn_fail(QN_EUNSUPPORTED, "%s: device text has no arithmetic on %s", x->op->name,
                           qn_dtype_name(d));
    }
    return QN_OK;
}

static QnStatus check_group(const Group *g)
{
    const QnNode *n = g->node;
    if (n->n_in > MAX_IN)
        return qn_fail(QN_EUNSUPPORTED, "%s: %d inputs, device text takes %d", n->op->name, n->n_in,
                       MAX_IN);
    for (int i = 0; i < n->n_out; i++) {
        const QnType *t = &n->out[i].type, *first = &n->out[0].type;
        if (!qn_shape_is_equal(&t->shape, &first->shape) || t->layout != first->layout)
            return qn_fail(QN_EUNSUPPORTED, "%s: outputs differ in shape or layout", n->op->name);
        if (!qn_shape_is_concrete(&t->shape))
            return qn_fail(QN_ESHAPE, "%s: its shape is symbolic", n->op->name);
    }
    for (int i = 0; i < g->n_instr; i++)
        QN_TRY(check_instr(g, &g->instr[i]));
    return QN_OK;
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

static void print_float(QnStr *s, double v)
{
    char digits[32];
    if (isinf(v) || isnan(v)) {
        qn_str_add(s, isnan(v) ? "(QN_INF - QN_INF)" : v < 0 ? "-QN_INF" : "QN_INF");
        return;
    }
    snprintf(digits, sizeof digits, "%.9g", v);
    qn_str_printf(s, "%s%sf", digits, strpbrk(digits, ".e") ? "" : ".0");
}

/* Every operator's text once: it holds the scalar function. */
static void print_functions(const Group *g, QnStr *s)
{
    for (int i = 0; i < g->n_instr; i++) {
        bool seen = false;
        for (int k = 0; k < i; k++)
            seen |= g->instr[k].op == g->instr[i].op;
        if (!seen)
            qn_str_add(s, g->instr[i].op->device);
    }
    qn_str_add(s, "#line 1 \"map\"\n");
}

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

/* A u64 is a qn_long of its bits: where that differs, the operator has <op>_u over qn_ulong. */
static void print_call(const Group *g, const QnBodyInstr *x, bool exact, QnStr *s)
{
    double param[QN_MAP_MAX_PARAM];
    int n_param = x->attr && !exact ? qn_attr_floats(x->op, x->attr, param) : 0;
    QnDtype last = operand_dtype(g, x->arg[x->op->n_in - 1]);
    bool is_unsigned = exact && last == QN_DTYPE_U64 && x->op->map->ref_uint;
    qn_str_printf(s, "%s%s_%s(", is_unsigned ? "(qn_long)" : "", x->op->name,
                  is_unsigned ? "u"
                  : exact     ? "i"
                              : "f");
    for (int k = 0; k < x->op->n_in; k++) {
        QnDtype d = operand_dtype(g, x->arg[k]);
        const char *convert = exact || !is_whole(d) ? ""
                              : d == QN_DTYPE_U64   ? "(float)(qn_ulong)"
                                                    : "(float)";
        qn_str_printf(s, "%s%s%sv%d", k ? ", " : "", is_unsigned ? "(qn_ulong)" : "", convert,
                      x->arg[k]);
    }
    for (int k = 0; k < n_param; k++) {
        qn_str_add(s, ", ");
        print_float(s, param[k]);
    }
    qn_str_add(s, ")");
}

static void print_instr(const Group *g, int i, QnStr *s)
{
    const QnBodyInstr *x = &g->instr[i];
    bool exact = is_exact(g, x), whole = is_whole(x->dtype);
    const char *dtype = qn_dtype_name(x->dtype);
    qn_str_printf(s, "%s v%d = ", whole ? "qn_long" : "float", g->node->n_in + i);
    if (exact)
        qn_str_printf(s, "qn_keep_%s(", dtype);
    else if (whole)
        qn_str_printf(s, "qn_%s_of(", dtype);
    else
        qn_str_printf(s, "qn_round_%s(", dtype);
    print_call(g, x, exact, s);
    qn_str_add(s, ");\n");
}

static void print_kernel(const Group *g, const Axes *a, QnStr *s)
{
    const QnNode *n = g->node;
    print_functions(g, s);
    print_head(g, a, s);
    print_offsets(n, a, s);
    for (int i = 0; i < n->n_in; i++)
        qn_str_printf(s, "%s v%d = qn_load_%s(x%d, o%d);\n",
                      is_whole(n->in[i]->type.dtype) ? "qn_long" : "float", i,
                      qn_dtype_name(n->in[i]->type.dtype), i, i);
    for (int i = 0; i < g->n_instr; i++)
        print_instr(g, i, s);
    for (int i = 0; i < n->n_out; i++)
        qn_str_printf(s, "qn_store_%s(y%d, i, v%d);\n", qn_dtype_name(n->out[i].type.dtype), i,
                      n->n_in + g->out[i]);
    qn_str_add(s, "}\n");
}

QnStatus qn_devtext_map(const QnNode *n, QnStr *text, QnDeviceCall *call)
{
    static const int first = 0;
    const QnBody *body = body_of(n);
    QnBodyInstr alone = {
        .op = n->op, .attr = n->attr, .dtype = n->out[0].type.dtype, .arg = { 0, 1, 2 }
    };
    Group g = { n, body ? body->instr : &alone, body ? body->n_instr : 1,
                body ? body->out : &first };
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
