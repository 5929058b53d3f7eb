/* Einstein's summation: "bhqd,bhkd->bhqk" names the axes of each operand and of the result; named
 * axes that the result lacks are summed over. "..." stands for axes that broadcast; without "->"
 * the result has the names that occur once, in alphabetical order. A name twice in one operand
 * takes its diagonal. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/ops.h"
#include "ops/util.h"

enum { MAX_OPERANDS = 16, LETTERS = 52, LABELS = LETTERS + QN_MAX_RANK };

typedef struct Attr {
    const char *equation;
} Attr;

static const QnAttrField einsum_fields[] = {
    { .name = "equation",
      .kind = QN_ATTR_STRING,
      .offset = offsetof(Attr, equation),
      .doc = "names of the operands' axes and of the result's" },
};

/* Axes by label: letters first, then the axes of "...", counted from the last. */
typedef struct Term {
    int n;
    int label[QN_MAX_RANK];
} Term;

typedef struct Plan {
    int n;
    Term in[MAX_OPERANDS], out;
    QnDim dim[LABELS]; /* 0 until known; see known */
    bool known[LABELS];
    int dots; /* axes of the widest "..." */
} Plan;

static QnStatus wrong(const char *equation, const char *what)
{
    return qn_fail(QN_EARG, "einsum: \"%.100s\" %s", equation, what);
}

static int letter(char c)
{
    return c >= 'a' && c <= 'z' ? c - 'a' + 26 : c >= 'A' && c <= 'Z' ? c - 'A' : -1;
}

/* One term up to ',', '-' or the end. dots: how many axes "..." stands for. */
static QnStatus parse_term(const char *equation, const char **p, int dots, Term *t)
{
    *t = (Term){ 0 };
    for (; **p && **p != ',' && **p != '-'; ++*p) {
        bool is_dots = !strncmp(*p, "...", 3);
        if (**p == ' ')
            continue;
        if (!is_dots && letter(**p) < 0)
            return wrong(equation, "may hold letters, \"...\", ',' and one \"->\"");
        if (t->n + (is_dots ? dots : 1) > QN_MAX_RANK)
            return wrong(equation, "has a term of more than eight axes");
        if (!is_dots) {
            t->label[t->n++] = letter(**p);
            continue;
        }
        for (int i = dots - 1; i >= 0; i--)
            t->label[t->n++] = LETTERS + i;
        *p += 2;
    }
    return QN_OK;
}

/* Letters of a term and whether it has dots. */
static int count_letters(const char *p, bool *has_dots)
{
    int n = 0;
    *has_dots = false;
    for (; *p && *p != ',' && *p != '-'; p++) {
        n += letter(*p) >= 0;
        *has_dots |= *p == '.';
    }
    return n;
}

static QnStatus bind_dims(const char *equation, Plan *plan, const Term *t, const QnShape *s, int k)
{
    for (int i = 0; i < t->n; i++) {
        int label = t->label[i];
        QnDim have = plan->dim[label], d = s->dim[i];
        bool broadcasts = label >= LETTERS && (have == 1 || d == 1);
        if (plan->known[label] && have >= 0 && d >= 0 && have != d && !broadcasts)
            return qn_fail(QN_ESHAPE,
                           "einsum: \"%.100s\": axis %d of operand %d has length %lld, elsewhere "
                           "%lld",
                           equation, i, k, (long long)d, (long long)have);
        if (!plan->known[label] || have < 0 || (label >= LETTERS && have == 1))
            plan->dim[label] = plan->known[label] && d < 0 && have != 1 ? have : d;
        plan->known[label] = true;
    }
    return QN_OK;
}

static void implicit_output(Plan *plan)
{
    int times[LABELS] = { 0 };
    for (int k = 0; k < plan->n; k++) {
        for (int i = 0; i < plan->in[k].n; i++)
            times[plan->in[k].label[i]]++;
    }
    plan->out = (Term){ 0 };
    for (int i = plan->dots - 1; i >= 0; i--)
        plan->out.label[plan->out.n++] = LETTERS + i;
    for (int label = 0; label < LETTERS; label++) {
        if (times[label] == 1 && plan->out.n < QN_MAX_RANK)
            plan->out.label[plan->out.n++] = label;
    }
}

static QnStatus check_output(const char *equation, const Plan *plan)
{
    bool seen[LABELS] = { false };
    for (int i = 0; i < plan->out.n; i++) {
        int label = plan->out.label[i];
        if (!plan->known[label])
            return wrong(equation, "has a name in the result that no operand has");
        if (seen[label])
            return wrong(equation, "has a name twice in the result");
        seen[label] = true;
    }
    return QN_OK;
}

static QnStatus parse(const char *equation, int n, const QnShape *const *shape, Plan *plan)
{
    const char *p = equation;
    *plan = (Plan){ .n = n };
    if (n > MAX_OPERANDS)
        return wrong(equation, "has more than 16 operands");
    for (int pass = 0; pass < 2; pass++) { /* first how wide "..." is, then the terms */
        p = equation;
        for (int k = 0; k < n; k++) {
            bool has_dots;
            int rank = shape[k]->rank, letters = count_letters(p, &has_dots);
            int dots = rank - letters;
            if (dots < 0 || (dots && !has_dots))
                return qn_fail(QN_ESHAPE,
                               "einsum: \"%.100s\" names %d axes of operand %d of rank %d",
                               equation, letters, k, rank);
            plan->dots = QN_MAX(plan->dots, dots);
            QN_TRY(parse_term(equation, &p, dots, &plan->in[k]));
            if (pass)
                QN_TRY(bind_dims(equation, plan, &plan->in[k], shape[k], k));
            if (k + 1 < n && *p++ != ',')
                return wrong(equation, "has fewer terms than there are operands");
        }
    }
    if (!*p) {
        implicit_output(plan);
        return QN_OK;
    }
    if (strncmp(p, "->", 2) != 0)
        return wrong(equation, "has more terms than there are operands");
    p += 2;
    QN_TRY(parse_term(equation, &p, plan->dots, &plan->out));
    return *p ? wrong(equation, "goes on after the result") : check_output(equation, plan);
}

static QnStatus plan_of(const char *equation, int n, const QnType *const *in, Plan *plan)
{
    const QnShape *shape[MAX_OPERANDS];
    for (int i = 0; i < QN_MIN(n, MAX_OPERANDS); i++)
        shape[i] = &in[i]->shape;
    return parse(equation, n, shape, plan);
}

static QnStatus einsum_infer(QnInfer *c)
{
    Plan plan;
    for (int i = 0; i < c->n_in; i++) {
        if (c->in[i]->dtype == QN_DTYPE_BOOL || c->in[i]->dtype != c->in[0]->dtype)
            return qn_fail(QN_EDTYPE, "einsum: operand %d is %s; all must be of one number type", i,
                           qn_dtype_name(c->in[i]->dtype));
    }
    QN_TRY(plan_of(((const Attr *)c->attr)->equation, c->n_in, c->in, &plan));
    c->out[0].dtype = c->in[0]->dtype;
    c->out[0].shape.rank = plan.out.n;
    for (int i = 0; i < plan.out.n; i++)
        c->out[0].shape.dim[i] = plan.dim[plan.out.label[i]];
    return QN_OK;
}

static QnCost einsum_cost(const QnNode *n)
{
    const QnType *in[MAX_OPERANDS];
    Plan plan;
    QnCost c = { .flops = n->n_in, .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
    for (int i = 0; i < n->n_in; i++) {
        in[i] = &n->in[i]->type;
        c.bytes_read += (double)qn_type_bytes(in[i]);
    }
    if (plan_of(((const Attr *)n->attr)->equation, n->n_in, in, &plan) != QN_OK)
        return c;
    for (int label = 0; label < LABELS; label++)
        c.flops *= plan.known[label] ? (double)plan.dim[label] : 1;
    return c;
}

/* ---- lowering: operands meet one after another in matrix products ---- */

typedef struct Side {
    QnValue *v;
    Term t;
} Side;

static int find(const Term *t, int label)
{
    for (int i = 0; i < t->n; i++) {
        if (t->label[i] == label)
            return i;
    }
    return -1;
}

static void drop(Term *t, int axis)
{
    t->n--;
    memmove(&t->label[axis], &t->label[axis + 1], (size_t)(t->n - axis) * sizeof *t->label);
}

/* A name twice: the diagonal, as the sum over one of them of x where both agree. */
static void take_diagonals(QnGraph *g, Side *s)
{
    for (int i = 0; i < s->t.n; i++) {
        for (int j = i + 1; j < s->t.n; j++) {
            if (s->t.label[i] != s->t.label[j] || qn_value_is_poison(s->v))
                continue;
            const QnType *t = &s->v->type;
            QnShape mask = qn_util_keep_shape(&t->shape, ~(1u << i | 1u << j));
            QnValue *eye = qn_eye(g, t->shape.dim[i], t->shape.dim[j], 0, t->dtype);
            s->v = qn_sum(g, qn_mul(g, s->v, qn_reshape(g, eye, &mask)), QN_AXES(j), false);
            drop(&s->t, j--);
        }
    }
}

/* Axes of length 1 that "..." broadcasts get their full length. */
static void widen(QnGraph *g, const Plan *plan, Side *s)
{
    QnShape to = { .rank = s->t.n };
    for (int i = 0; i < s->t.n; i++)
        to.dim[i] = plan->dim[s->t.label[i]];
    s->v = qn_expand(g, s->v, &to);
}

/* Sums over names that nothing after asks for. */
static void sum_unneeded(QnGraph *g, Side *s, const bool *needed)
{
    QnInts axes = { 0 };
    Term left = { 0 };
    for (int i = 0; i < s->t.n; i++) {
        if (needed[s->t.label[i]])
            left.label[left.n++] = s->t.label[i];
        else
            axes.v[axes.n++] = i;
    }
    if (axes.n)
        s->v = qn_sum(g, s->v, axes, false);
    s->t = left;
}

static QnDim product_of(QnGraph *g, const Plan *plan, const Term *t)
{
    QnDim n = 1;
    for (int i = 0; i < t->n; i++)
        n = qn_dim_mul(g, n, plan->dim[t->label[i]]);
    return n;
}

/* The side's value as (batch, a, b), each term's axes folded into one; (a, b) without a batch. */
static QnValue *fold3(QnGraph *g, const Plan *plan, const Side *s, const Term *batch, const Term *a,
                      const Term *b)
{
    const Term *terms[] = { batch, a, b };
    QnInts order = { 0 };
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < terms[k]->n; i++)
            order.v[order.n++] = find(&s->t, terms[k]->label[i]);
    }
    QnShape to = { .rank = 0 };
    for (int k = batch->n ? 0 : 1; k < 3; k++) /* no batch: a plain matrix */
        to.dim[to.rank++] = product_of(g, plan, terms[k]);
    return qn_reshape(g, qn_transpose(g, s->v, order), &to);
}

/* Whether term a's names all come before term b's in t. */
static bool comes_before(const Term *t, const Term *a, const Term *b)
{
    int last = -1, first = QN_MAX_RANK;
    for (int i = 0; i < a->n; i++)
        last = QN_MAX(last, find(t, a->label[i]));
    for (int i = 0; i < b->n; i++)
        first = QN_MIN(first, find(t, b->label[i]));
    return last < first;
}

static void append(Term *t, const Term *from)
{
    for (int i = 0; i < from->n && t->n < QN_MAX_RANK; i++)
        t->label[t->n++] = from->label[i];
}

static Side contract(QnGraph *g, const Plan *plan, const Side *l, const Side *r, const bool *needed)
{
    Term batch = { 0 }, both = { 0 }, left = { 0 }, right = { 0 };
    for (int i = 0; i < l->t.n; i++) {
        int label = l->t.label[i];
        Term *t = find(&r->t, label) < 0 ? &left : needed[label] ? &batch : &both;
        t->label[t->n++] = label;
    }
    for (int i = 0; i < r->t.n; i++) {
        if (find(&l->t, r->t.label[i]) < 0)
            right.label[right.n++] = r->t.label[i];
    }
    Side y = { 0 };
    if (batch.n + left.n + right.n > QN_MAX_RANK) {
        qn_fail(QN_ESHAPE, "einsum: a product on the way has more than %d axes", QN_MAX_RANK);
        y.v = qn_graph_poison(g);
        return y;
    }
    append(&y.t, &batch);
    append(&y.t, &left);
    append(&y.t, &right);
    bool trans_a = comes_before(&l->t, &both, &left), trans_b = comes_before(&r->t, &right, &both);
    QnValue *a = fold3(g, plan, l, &batch, trans_a ? &both : &left, trans_a ? &left : &both);
    QnValue *b = fold3(g, plan, r, &batch, trans_b ? &right : &both, trans_b ? &both : &right);
    if (both.n) {
        y.v = qn_matmul(g, a, b, NULL, trans_a, trans_b);
    } else { /* nothing to sum: (batch, left, 1) times (batch, 1, right) */
        QnDim nb = product_of(g, plan, &batch);
        a = qn_reshape(g, a, &QN_SHAPE(nb, product_of(g, plan, &left), 1));
        b = qn_reshape(g, b, &QN_SHAPE(nb, 1, product_of(g, plan, &right)));
        y.v = qn_mul(g, a, b);
    }
    QnShape to = { .rank = y.t.n };
    for (int i = 0; i < y.t.n; i++)
        to.dim[i] = plan->dim[y.t.label[i]];
    y.v = qn_reshape(g, y.v, &to);
    return y;
}

static void einsum_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const QnType *in[MAX_OPERANDS];
    Plan plan;
    Side y = { 0 };
    for (int i = 0; i < n->n_in; i++)
        in[i] = &n->in[i]->type;
    if (plan_of(((const Attr *)n->attr)->equation, n->n_in, in, &plan) != QN_OK) {
        out[0] = qn_graph_poison(g); /* emission has parsed it before */
        return;
    }
    for (int k = 0; k < plan.n; k++) {
        bool later[LABELS] = { false }, here[LABELS];
        for (int i = 0; i < plan.out.n; i++)
            later[plan.out.label[i]] = true;
        for (int j = k + 1; j < plan.n; j++) {
            for (int i = 0; i < plan.in[j].n; i++)
                later[plan.in[j].label[i]] = true;
        }
        Side x = { n->in[k], plan.in[k] };
        take_diagonals(g, &x);
        widen(g, &plan, &x);
        memcpy(here, later, sizeof here);
        for (int i = 0; i < y.t.n; i++)
            here[y.t.label[i]] = true;
        sum_unneeded(g, &x, here);
        y = k ? contract(g, &plan, &y, &x, later) : x;
        if (k == 0 || y.t.n)
            sum_unneeded(g, &y, later);
    }
    QnInts order = { 0 };
    for (int i = 0; i < plan.out.n; i++)
        order.v[order.n++] = find(&y.t, plan.out.label[i]);
    out[0] = order.n ? qn_transpose(g, y.v, order) : y.v;
}

static const QnSample einsum_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 7, 3 } } }, .n_in = 2, .attr = &(Attr){ "ij,jk->ik" } },
    { .in = { { 4, { 2, 3, 4, 5 } }, { 4, { 2, 3, 6, 5 } } },
      .n_in = 2,
      .attr = &(Attr){ "bhqd, bhkd -> bhqk" } },
    { .in = { { 3, { 3, 5, 5 } } }, .n_in = 1, .attr = &(Attr){ "bii->b" } },
    { .in = { { 2, { 4, 130 } } }, .n_in = 1, .attr = &(Attr){ "ij->j" } },
    { .in = { { 1, { 4 } }, { 1, { 5 } } }, .n_in = 2, .attr = &(Attr){ "i,j->ji" } },
    { .in = { { 2, { 3, 4 } }, { 3, { 4, 5, 2 } }, { 2, { 2, 3 } } },
      .n_in = 3,
      .attr = &(Attr){ "ab,bcd,da->ac" } },
    { .in = { { 3, { 2, 3, 4 } }, { 3, { 1, 4, 5 } } },
      .n_in = 2,
      .attr = &(Attr){ "...ij,...jk->...ik" } },
    { .in = { { 2, { 4, 7 } }, { 2, { 7, 4 } } }, .n_in = 2, .attr = &(Attr){ "ij,ji" } },
    { .in = { { 3, { 2, 3, 3 }, QN_DTYPE_I64, -9, 9 }, { 2, { 3, 4 }, QN_DTYPE_I64, -9, 9 } },
      .n_in = 2,
      .attr = &(Attr){ "bii,ij->bj" } },
};

QN_API QnValue *qn_einsum(QnGraph *g, const char *equation, QnValue *const *x, int n)
{
    return qn_emitn(g, &qn_op_einsum, &(Attr){ equation }, x, n);
}

static QnStatus einsum_import(QnOnnxNode *n)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, "equation");
    QnValue *x[MAX_OPERANDS];
    if (!a || a->kind != QN_ONNX_STRING || n->n_in < 1)
        return qn_fail(QN_EFORMAT, "it needs an equation and operands");
    if (n->n_in > MAX_OPERANDS)
        return qn_onnx_refuse(n, "%d operands, at most %d", n->n_in, MAX_OPERANDS);
    char *equation = qn_arena_alloc(n->arena, a->s.n + 1); /* zeroed */
    if (!equation)
        return QN_ENOMEM;
    memcpy(equation, a->s.s, a->s.n);
    for (int i = 0; i < n->n_in; i++)
        x[i] = qn_onnx_in(n, i);
    return qn_onnx_out0(n, qn_einsum(n->g, equation, x, n->n_in));
}

static const QnOnnxMap einsum_onnx[] = {
    { .name = "Einsum", .since = 12, .import = einsum_import },
};

const QnOp qn_op_einsum = {
    .name = "einsum",
    .version = 1,
    .doc = "products summed over named axes",
    .n_in = 1,
    .n_in_max = QN_MAX_IN,
    QN_ATTRS(Attr, einsum_fields),
    .infer = einsum_infer,
    .cost = einsum_cost,
    .lower = einsum_lower,
    QN_ONNX(einsum_onnx),
    QN_SAMPLES(einsum_samples),
};
#endif
