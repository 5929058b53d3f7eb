/* Which kernel runs which operator in which type: every sample through every kernel of the CPU that
 * accepts it and through OpenCL, compared with the reference. QN_PARITY=FILE writes the table that
 * docs/parity.md holds.
 * timeout: 300 */
#include "ops/harness.h"

#include "backend/cpu/cpu.h"
#include "base/file.h"
#include "base/str.h"

#ifdef QN_HAVE_OPENCL
#include "ops/batch.h"
#include "ops/opencl.h"
#endif

static const QnDtype types[] = {
    QN_DTYPE_F32,    QN_DTYPE_F16,        QN_DTYPE_BF16,   QN_DTYPE_F64,      QN_DTYPE_I8,
    QN_DTYPE_U8,     QN_DTYPE_I32,        QN_DTYPE_I64,    QN_DTYPE_BOOL,     QN_DTYPE_I16,
    QN_DTYPE_U16,    QN_DTYPE_U32,        QN_DTYPE_U64,    QN_DTYPE_F8E4M3FN, QN_DTYPE_F8E4M3FNUZ,
    QN_DTYPE_F8E5M2, QN_DTYPE_F8E5M2FNUZ, QN_DTYPE_F4E2M1, QN_DTYPE_I4,       QN_DTYPE_U4
};
enum { N_TYPES = QN_COUNT(types), N_FLOATS = 4, MAX_KERNELS = 512 };

/* Samples that ran, by operator, type, kernel; and by operator and type on the device. */
static int ran[QN_COUNT(all_ops)][N_TYPES][MAX_KERNELS];
static bool takes[QN_COUNT(all_ops)][N_TYPES];
static bool on_device[QN_COUNT(all_ops)][N_FLOATS];
static bool have_device;
static int n_bad;

static void *raw_of(const QnValue *v, const double *x)
{
    size_t bytes = (size_t)qn_type_bytes(&v->type);
    void *p = qn_alloc_aligned(bytes + 64);
    assert_non_null(p);
    if (x)
        qn_dtype_from_f64(v->type.dtype, x, p, value_count(v));
    return p;
}

static void free_raw(const QnValue *v, void *p)
{
    if (p)
        qn_free_aligned(p, (size_t)qn_type_bytes(&v->type) + 64);
}

/* Runs the kernel; false: it gives an error, as on a division by zero. */
static bool run(const Case *c, const QnKernel *k, const QnKernelEnv *env, QnDtype f,
                double *const *want)
{
    const QnNode *n = c->node;
    void *in[QN_SAMPLE_IN] = { 0 }, *out[QN_MAX_OUT] = { 0 };
    QnPrepared p = { .kernel = k, .node = n, .env = env };
    assert_ok(k->prepare ? k->prepare(&p) : QN_OK);
    for (int i = 0; i < n->n_in; i++)
        in[i] = n->in[i] ? raw_of(n->in[i], c->x[i]) : NULL;
    for (int i = 0; i < n->n_out; i++)
        out[i] = raw_of(&n->out[i], NULL);
    void *work = qn_alloc_aligned(p.workspace_bytes + 64);
    assert_non_null(work);
    bool fine = k->run(&p, (const void *const *)in, out, work) == QN_OK;
    for (int i = 0; fine && i < n->n_out; i++) {
        QnDtype d = n->out[i].type.dtype;
        int64_t count = value_count(&n->out[i]);
        double *got = new_doubles(count);
        qn_dtype_to_f64(d, out[i], got, count);
        int64_t at =
            first_difference(got, want[i], count, case_tol(c, qn_dtype_is_float(d) ? f : d));
        if (at >= 0) {
            print_message("%s: %s: output %d, element %lld is %.9g, should be %.9g\n", c->name,
                          k->name, i, (long long)at, got[at], want[i][at]);
            n_bad++;
        }
        qn_free(got);
    }
    for (int i = 0; i < n->n_in; i++)
        free_raw(n->in[i], in[i]);
    for (int i = 0; i < n->n_out; i++)
        free_raw(&n->out[i], out[i]);
    qn_free_aligned(work, p.workspace_bytes + 64);
    if (k->fini)
        k->fini(&p);
    return fine;
}

/* Whether the node has to do with the type at all: that of arange, say, is an attribute. */
static bool is_about(const QnNode *n, QnDtype t)
{
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const QnValue *v = i < n->n_in ? n->in[i] : &n->out[i - n->n_in];
        if (v && v->type.dtype == t)
            return true;
    }
    return false;
}

static void run_sample(int o, int sample, int t)
{
    QnKernelEnv env = { .n_threads = 2, .isa = qn_cpu_isa_best() };
    double *want[QN_MAX_OUT];
    Case c;
    if (!case_try(&c, all_ops[o], sample, types[t]))
        return;
    case_outputs(&c, want);
    bool about = is_about(c.node, types[t]);
    takes[o][t] |= about;
    if (about && qn_eval_node(c.node, (const double *const *)c.x, want, false) == QN_OK) {
        for (int i = 0; i < c.node->n_out; i++)
            round_to_dtype(c.node->out[i].type.dtype, want[i], value_count(&c.node->out[i]));
        for (int i = 0; i < qn_backend_cpu.n_kernels; i++) {
            const QnKernel *k = qn_backend_cpu.kernels[i];
            if ((!k->op || k->op == all_ops[o]) && !(k->accepts && k->accepts(c.node, &env)))
                ran[o][t][i] += run(&c, k, &env, types[t], want);
        }
    }
    free_outputs(want);
    case_close(&c);
}

static void test_cpu(void **state)
{
    assert_true(qn_backend_cpu.n_kernels < MAX_KERNELS);
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        for (int t = 0; t < N_TYPES && op_has_value(all_ops[o]); t++) {
            for (int k = 0; k < all_ops[o]->n_samples; k++) {
                if (t == 0 || !(all_ops[o]->samples[k].flags & QN_SAMPLE_F32_ONLY))
                    run_sample(o, k, t);
            }
        }
    }
    assert_int_equal(n_bad, 0);
}

#ifdef QN_HAVE_OPENCL
static int number_of(const QnOp *op)
{
    int o = 0;
    while (all_ops[o] != op)
        o++;
    return o;
}

static void run_device(Opencl *cl, int t)
{
    Batch b;
    batch_collect(&b, types[t]);
    cl_program p = opencl_build(cl, qn_dtype_name(types[t]), qn_str_text(&b.text), types[t]);
    assert_non_null(p);
    for (int i = 0; i < b.n; i++) {
        const Item *it = &b.items[i];
        double *got[QN_MAX_OUT], *want[QN_MAX_OUT];
        case_outputs(&it->c, got);
        case_outputs(&it->c, want);
        case_run(&it->c, want);
        opencl_run(cl, p, &it->call, &it->c, got);
        for (int k = 0; k < it->c.node->n_out; k++) {
            const QnValue *y = &it->c.node->out[k];
            QnDtype d = y->type.dtype;
            round_to_dtype(d, want[k], value_count(y));
            if (first_difference(got[k], want[k], value_count(y),
                                 case_tol(&it->c, qn_dtype_is_float(d) ? types[t] : d)) >= 0) {
                print_message("%s: differs on the device\n", it->c.name);
                n_bad++;
            }
        }
        on_device[number_of(it->c.op)][t] = true;
        free_outputs(got);
        free_outputs(want);
    }
    clReleaseProgram(p);
    batch_free(&b);
}
#endif

static void test_device(void **state)
{
#ifdef QN_HAVE_OPENCL
    Opencl cl;
    have_device = opencl_open(&cl);
    if (!have_device)
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    for (int t = 0; t < 3; t++) /* f32, f16, bf16 */
        run_device(&cl, t);
    opencl_close(&cl);
    assert_int_equal(n_bad, 0);
#else
    skip_because("built without OpenCL");
#endif
}

/* ---- the table ---- */

static void print_head(QnStr *s)
{
    qn_str_add(s, "# Kernels by operator and type\n\nMeasured with");
    qn_str_printf(s, " the instruction set %s", qn_cpu_isa_best());
#ifdef QN_HAVE_ONEDNN
    qn_str_add(s, ", oneDNN");
#endif
#ifdef QN_HAVE_XSMM
    qn_str_add(s, ", libxsmm");
#endif
    qn_str_add(s, have_device ? ", OpenCL" : "");
    qn_str_add(
        s, ".\n\n"
           "Written by `./do docs` from a test that runs every sample of every operator through "
           "every\nkernel that accepts it and compares with the float64 reference: what stands "
           "here has passed.\nThe kernel that comes first by rank stands first. *ref* is the "
           "reference, slow but right; *parts*:\nthe operator is lowered to others; *none*: "
           "nothing runs it; an empty cell: it does not take the\ntype, or its samples are for f32 "
           "alone. OpenCL C runs on\n"
           "whatever device there is, such as PoCL on a CPU.\n\n"
           "| operator | f32 | f16 | bf16 | f64 | other types | OpenCL C |\n"
           "|---|---|---|---|---|---|---|\n");
}

/* Kernels that ran, by falling rank. */
static void print_cell(QnStr *s, int o, int t)
{
    int n = 0;
    const QnOp *op = all_ops[o];
    for (int rank = 1000; rank >= 0; rank--) {
        for (int i = 0; i < qn_backend_cpu.n_kernels; i++) {
            const QnKernel *k = qn_backend_cpu.kernels[i];
            if (k->rank != rank || !ran[o][t][i] || (rank == 0 && n))
                continue;
            const char *name = !strncmp(k->name, "cpu.", 4) ? k->name + 4 : k->name;
            qn_str_printf(s, "%s%s", n++ ? ", " : "", rank == 0 ? "*ref*" : name);
        }
    }
    if (!n && takes[o][t])
        qn_str_add(s, op->lower ? "*parts*" : "*none*");
}

/* The other types; "all" if it is all of them, "integers" if of i8 to u64. */
static void print_others(QnStr *s, int o)
{
    bool takes_all = true, takes_ints = true, any[N_TYPES] = { false };
    for (int t = N_FLOATS; t < N_TYPES; t++) {
        any[t] = all_ops[o]->lower && takes[o][t];
        for (int i = 0; i < qn_backend_cpu.n_kernels; i++)
            any[t] |= ran[o][t][i] > 0;
        takes_all &= any[t];
        takes_ints &= any[t] || !qn_dtype_is_int(types[t]) || qn_dtype_is_storage(types[t]);
    }
    if (takes_all || takes_ints)
        qn_str_add(s, takes_all ? " all" : " integers");
    for (int t = N_FLOATS; t < N_TYPES && !takes_all; t++) {
        bool named = takes_ints && qn_dtype_is_int(types[t]) && !qn_dtype_is_storage(types[t]);
        if (any[t] && !named)
            qn_str_printf(s, " %s", qn_dtype_name(types[t]));
    }
}

static void print_row(QnStr *s, int o)
{
    const QnOp *op = all_ops[o];
    qn_str_printf(s, "| `%s` |", op->name);
    for (int t = 0; t < N_FLOATS; t++) {
        qn_str_add(s, " ");
        print_cell(s, o, t);
        qn_str_add(s, " |");
    }
    print_others(s, o);
    qn_str_add(s, " |");
    for (int t = 0; t < 3; t++)
        qn_str_printf(s, "%s%s", on_device[o][t] ? " " : "",
                      on_device[o][t] ? qn_dtype_name(types[t]) : "");
    qn_str_add(s, op->lower && !op->ref && !op->device ? " *parts* |\n" : " |\n");
}

static void test_table(void **state)
{
    QnStr s = { 0 };
    print_head(&s);
    int n_f32 = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        int any = 0;
        for (int i = 0; i < qn_backend_cpu.n_kernels; i++)
            any += ran[o][0][i];
        n_f32 += any > 0;
        if (op_has_value(all_ops[o]))
            print_row(&s, o);
    }
    assert_ok(s.st);
    assert_true(n_f32 > 100);
    const char *path = getenv("QN_PARITY");
    if (path)
        assert_ok(qn_file_write_atomic(path, qn_str_text(&s), s.n));
    qn_str_fini(&s);
}
