/* Random fused groups of maps, with broadcasting and mixed dtypes, against their maps one by one:
 * on the CPU for each instruction set, and as device text through OpenCL. */
#include "ops/harness.h"

#include "backend/cpu/cpu.h"
#include "base/isa_list.h"
#include "rt/devtext.h"

#ifdef QN_HAVE_OPENCL
#include "ops/opencl.h"
#endif

enum { MAX_INSTR = 7, MAX_IN = 4, CPU_CASES = 300, DEVICE_CASES = 24 };

static const char *const isas[] = {
#define QN_X(name) #name,
    QN_ISA_LIST(QN_X)
#undef QN_X
};

/* Continuous functions of modest growth: a jump would turn a rounding into an error. */
static const QnOp *const float_ops[] = {
    &qn_op_add,  &qn_op_sub,  &qn_op_mul,     &qn_op_tanh,    &qn_op_sigmoid,  &qn_op_relu,
    &qn_op_silu, &qn_op_gelu, &qn_op_minimum, &qn_op_maximum, &qn_op_where,    &qn_op_neg,
    &qn_op_abs,  &qn_op_lerp, &qn_op_erf,     &qn_op_sin,     &qn_op_softplus, &qn_op_softsign,
};
static const QnOp *const int_ops[] = { &qn_op_add,   &qn_op_sub,  &qn_op_minimum, &qn_op_maximum,
                                       &qn_op_equal, &qn_op_less, &qn_op_where,   &qn_op_relu };
static const QnOp *const bool_ops[] = { &qn_op_logical_and, &qn_op_logical_or, &qn_op_logical_xor,
                                        &qn_op_logical_not };

typedef struct Group {
    Case c; /* the fused node */
    QnBodyInstr instr[MAX_INSTR];
    int out[MAX_INSTR];
    QnBody body;
    QnValue *v[MAX_IN + MAX_INSTR]; /* operands, as nodes of their own */
} Group;

static int below(QnRng *rng, int n)
{
    return (int)qn_rng_below(rng, (uint64_t)n);
}

/* An operand of that dtype, -1: none. */
static int pick(const Group *t, int n, QnDtype dtype, QnRng *rng)
{
    int found[MAX_IN + MAX_INSTR], m = 0;
    for (int i = 0; i < n; i++) {
        if (t->v[i]->type.dtype == dtype)
            found[m++] = i;
    }
    return m ? found[below(rng, m)] : -1;
}

static const QnOp *pick_op(QnDtype dtype, QnRng *rng)
{
    if (dtype == QN_DTYPE_BOOL)
        return bool_ops[below(rng, QN_COUNT(bool_ops))];
    return qn_dtype_is_float(dtype) ? float_ops[below(rng, QN_COUNT(float_ops))]
                                    : int_ops[below(rng, QN_COUNT(int_ops))];
}

/* Appends an instruction on operands of one dtype; false: none fits. */
static bool add_instr(Group *t, QnRng *rng)
{
    static const QnDtype casts[] = { QN_DTYPE_F32, QN_DTYPE_F16, QN_DTYPE_BF16 };
    int n = t->body.n_in + t->body.n_instr, first = n - 1 - below(rng, QN_MIN(n, 3));
    QnDtype dtype = t->v[first]->type.dtype;
    struct { /* cast's attributes */
        QnDtype dtype;
        bool saturate;
    } to = { casts[below(rng, 3)], true };
    bool cast = below(rng, 5) == 0;
    QnBodyInstr *x = &t->instr[t->body.n_instr];
    *x = (QnBodyInstr){ .op = cast ? &qn_op_cast : pick_op(dtype, rng), .attr = cast ? &to : NULL };
    QnValue *in[QN_MAP_MAX_IN] = { 0 };
    for (int k = 0; k < x->op->n_in; k++) {
        bool condition = x->op == &qn_op_where && k == 0;
        int a = k == 0 && !condition ? first : pick(t, n, condition ? QN_DTYPE_BOOL : dtype, rng);
        if (a < 0)
            return false;
        x->arg[k] = a;
        in[k] = t->v[a];
    }
    t->v[n] = qn_emitn(t->c.g, x->op, x->attr, in, x->op->n_in);
    if (qn_value_is_poison(t->v[n]))
        fail_msg("%s", t->c.g->error.text);
    x->attr = t->v[n]->node->attr;
    x->dtype = t->v[n]->type.dtype;
    t->body.n_instr++;
    return true;
}

/* Inputs of the output's shape or broadcast to it; the first is whole. */
static void add_inputs(Group *t, QnRng *rng)
{
    static const QnDtype dtypes[] = { QN_DTYPE_F32,  QN_DTYPE_F32, QN_DTYPE_F16, QN_DTYPE_BF16,
                                      QN_DTYPE_BOOL, QN_DTYPE_I32, QN_DTYPE_F32, QN_DTYPE_U8 };
    t->body.n_in = 1 + below(rng, MAX_IN);
    for (int i = 0; i < t->body.n_in; i++) {
        char name[16];
        QnShape s = QN_SHAPE(2, 3, 5, 23);
        for (int d = 0; i > 0 && d < s.rank; d++)
            s.dim[d] = below(rng, 3) ? s.dim[d] : 1;
        for (int drop = i > 0 ? below(rng, 3) : 0; drop > 0; drop--) {
            memmove(s.dim, s.dim + 1, (size_t)--s.rank * sizeof *s.dim);
            s.dim[s.rank] = 0;
        }
        snprintf(name, sizeof name, "x%d", i);
        t->c.in[i] = t->v[i] = qn_input(t->c.g, name, dtypes[below(rng, 8)], &s);
        fill_input(&t->c, i, rng);
    }
}

static void group_open(Group *t, int number)
{
    static const QnSample sample = { .n_in = MAX_IN, .lo = -2, .hi = 2 };
    QnRng rng;
    *t = (Group){ .c = { .op = &qn_op_fused, .sample = &sample, .g = qn_graph_new() } };
    qn_rng_init(&rng, 7, (uint64_t)number);
    snprintf(t->c.name, sizeof t->c.name, "group %d", number);
    add_inputs(t, &rng);
    int wanted = 1 + below(&rng, MAX_INSTR);
    for (int tries = 0; tries < 50 && t->body.n_instr < wanted; tries++)
        add_instr(t, &rng);
    while (t->body.n_instr == 0)
        add_instr(t, &rng);
    for (int i = t->body.n_instr - 1; i >= 0; i--) {
        if (i == t->body.n_instr - 1 || below(&rng, 4) == 0)
            t->out[t->body.n_out++] = i;
    }
    t->body.instr = t->instr;
    t->body.out = t->out;
    t->c.node = qn_fused(t->c.g, &t->body, t->c.in);
    if (!t->c.node)
        fail_msg("%s: %s", t->c.name, t->c.g->error.text);
}

/* The maps one by one, each result rounded to its dtype. */
static void group_want(Group *t, double *want[QN_MAX_OUT])
{
    QnValue *wide[MAX_INSTR];
    for (int i = 0; i < t->body.n_out; i++)
        wide[i] = qn_expand(t->c.g, t->v[t->body.n_in + t->out[i]], &t->c.node->out[0].type.shape);
    QnEval *e = qn_eval_new(t->c.g, true);
    assert_non_null(e);
    for (int i = 0; i < t->body.n_in; i++)
        assert_ok(qn_eval_set(e, t->c.in[i], t->c.x[i]));
    for (int i = 0; i < t->body.n_out; i++) {
        const double *y;
        assert_ok(qn_eval_get(e, wide[i], &y));
        memcpy(want[i], y, (size_t)value_count(wide[i]) * sizeof *y);
    }
    qn_eval_free(e);
}

/* Roundings of 16-bit results on the way may fall to the other side: the coarsest of them counts,
 * as often as there are instructions. */
static double group_tol(const Group *t)
{
    double tol = 1e-5;
    for (int i = 0; i < t->body.n_instr; i++) {
        QnDtype d = t->instr[i].dtype;
        tol = fmax(tol, d == QN_DTYPE_BF16 ? 2e-2 : d == QN_DTYPE_F16 ? 2e-3 : 0);
    }
    return 2 * tol;
}

static void print_group(const Group *t)
{
    for (int i = 0; i < t->body.n_in; i++) {
        char text[QN_TYPE_TEXT_BYTES];
        print_message("  %d: %s\n", i, qn_type_text(&t->v[i]->type, text));
    }
    for (int i = 0; i < t->body.n_instr; i++)
        print_message("  %d: %s %s(%d, %d, %d)\n", t->body.n_in + i,
                      qn_dtype_name(t->instr[i].dtype), t->instr[i].op->name, t->instr[i].arg[0],
                      t->instr[i].arg[1], t->instr[i].arg[2]);
}

static bool is_right(const Group *t, const char *where, double *const got[], double *const want[])
{
    for (int i = 0; i < t->body.n_out; i++) {
        const QnType *y = &t->c.node->out[i].type;
        double tol = qn_dtype_is_float(y->dtype) ? group_tol(t) : 0;
        int64_t at = first_difference(got[i], want[i], qn_shape_count(&y->shape), tol);
        if (at >= 0) {
            print_message("%s on %s: output %d, element %lld is %.9g, should be %.9g\n", t->c.name,
                          where, i, (long long)at, got[i][at], want[i][at]);
            print_group(t);
            return false;
        }
    }
    return true;
}

/* 0: refused, 1: right, -1: wrong. */
static int run_cpu(const Group *t, const QnKernel *k, const char *isa, double *want[QN_MAX_OUT])
{
    const QnNode *n = t->c.node;
    QnKernelEnv env = { .n_threads = 2, .isa = isa };
    QnPrepared p = { .kernel = k, .node = n, .env = &env };
    void *in[MAX_IN] = { 0 }, *out[QN_MAX_OUT] = { 0 };
    double *got[QN_MAX_OUT];
    if (k->accepts(n, &env))
        return 0;
    assert_ok(k->prepare(&p));
    void *work = qn_alloc_aligned(p.workspace_bytes + 64);
    for (int i = 0; i < n->n_in; i++) {
        in[i] = qn_alloc_aligned((size_t)qn_type_bytes(&n->in[i]->type) + 64);
        qn_dtype_from_f64(n->in[i]->type.dtype, t->c.x[i], in[i], value_count(n->in[i]));
    }
    for (int i = 0; i < n->n_out; i++)
        out[i] = qn_alloc_aligned((size_t)qn_type_bytes(&n->out[i].type) + 64);
    assert_ok(k->run(&p, (const void *const *)in, out, work));
    case_outputs(&t->c, got);
    for (int i = 0; i < n->n_out; i++) {
        qn_dtype_to_f64(n->out[i].type.dtype, out[i], got[i], value_count(&n->out[i]));
        qn_free_aligned(out[i], (size_t)qn_type_bytes(&n->out[i].type) + 64);
    }
    for (int i = 0; i < n->n_in; i++)
        qn_free_aligned(in[i], (size_t)qn_type_bytes(&n->in[i]->type) + 64);
    qn_free_aligned(work, p.workspace_bytes + 64);
    if (k->fini)
        k->fini(&p);
    int result = is_right(t, isa, got, want) ? 1 : -1;
    free_outputs(got);
    return result;
}

static void test_cpu(void **state)
{
    int run = 0, wrong = 0;
    for (int number = 0; number < CPU_CASES; number++) {
        Group t;
        double *want[QN_MAX_OUT];
        group_open(&t, number);
        case_outputs(&t.c, want);
        group_want(&t, want);
        for (int i = 0; i < qn_backend_cpu.n_kernels; i++) {
            const QnKernel *k = qn_backend_cpu.kernels[i];
            for (int j = 0; j < QN_COUNT(isas); j++) {
                int r = (k->op && k->op != &qn_op_fused) || !qn_cpu_isa_is_usable(isas[j])
                            ? 0
                            : run_cpu(&t, k, isas[j], want);
                run += r != 0;
                wrong += r < 0;
            }
        }
        free_outputs(want);
        case_close(&t.c);
    }
    print_message("%d runs of fused groups\n", run);
    assert_int_equal(wrong, 0);
    assert_true(run > CPU_CASES / 2);
}

static void test_device(void **state)
{
#ifdef QN_HAVE_OPENCL
    Opencl cl;
    int run = 0, wrong = 0;
    if (!opencl_open(&cl))
        skip_because("no OpenCL device");
    for (int number = 0; number < DEVICE_CASES; number++) {
        Group t;
        QnStr text = { 0 };
        QnDeviceCall call;
        double *want[QN_MAX_OUT], *got[QN_MAX_OUT];
        group_open(&t, number);
        case_outputs(&t.c, want);
        case_outputs(&t.c, got);
        group_want(&t, want);
        if (qn_devtext_map(t.c.node, &text, &call))
            fail_msg("%s: %s", t.c.name, qn_error_last()->text);
        cl_program p = opencl_build(&cl, t.c.name, qn_str_text(&text), QN_DTYPE_F32);
        assert_non_null(p);
        opencl_run(&cl, p, &call, &t.c, got);
        wrong += !is_right(&t, "the device", got, want);
        run++;
        clReleaseProgram(p);
        qn_str_fini(&text);
        free_outputs(want);
        free_outputs(got);
        case_close(&t.c);
    }
    opencl_close(&cl);
    print_message("%d fused groups as device text\n", run);
    assert_int_equal(wrong, 0);
#else
    skip_because("built without OpenCL");
#endif
}
