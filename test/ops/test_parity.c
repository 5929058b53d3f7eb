/* Every sample of every operator, and its variants (ops/variants.h), in every type, through every
 * kernel of the CPU that accepts it and through the device text on OpenCL, compared with the
 * reference; on CUDA, where there is a card, through its kernels. QN_PARITY=FILE writes the tables
 * that docs/parity.md holds. Sanitizers do not see into compiled text: under them it is only
 * printed. timeout: 1200 */
#include "ops/parity.h"

#include "base/file.h"
#include "ops/parity_table.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { RUNS_TEXT = 0 };
#else
enum { RUNS_TEXT = 1 };
#endif

#ifdef QN_HAVE_OPENCL
#include "ops/batch.h"
#include "ops/opencl.h"
#endif

/* Runs the kernel; false: it gives an error, as on a division by zero. */
static bool run(const Case *c, const QnKernel *k, const QnKernelEnv *env, int t,
                double *const *want)
{
    const QnNode *n = c->node;
    void *in[QN_SAMPLE_IN] = { 0 }, *out[QN_MAX_OUT] = { 0 };
    double *got[QN_MAX_OUT];
    QnPrepared p = { .kernel = k, .node = n, .env = env };
    assert_ok(k->prepare ? k->prepare(&p) : QN_OK);
    for (int i = 0; i < n->n_in; i++)
        in[i] = n->in[i] ? raw_of(n->in[i], c->x[i]) : NULL;
    for (int i = 0; i < n->n_out; i++)
        out[i] = raw_of(&n->out[i], NULL);
    void *work = qn_alloc_aligned(p.workspace_bytes + 64);
    assert_non_null(work);
    bool fine = k->run(&p, (const void *const *)in, out, work) == QN_OK;
    case_outputs(c, got);
    for (int i = 0; fine && i < n->n_out; i++)
        qn_dtype_to_f64(n->out[i].type.dtype, out[i], got[i], value_count(&n->out[i]));
    if (fine)
        errors_case(&errors[ON_CPU][number_of(c->op)][t], c, types[t], k->name, got, want);
    free_outputs(got);
    for (int i = 0; i < n->n_in; i++)
        free_raw(n->in[i], in[i]);
    for (int i = 0; i < n->n_out; i++)
        free_raw(&n->out[i], out[i]);
    qn_free_aligned(work, p.workspace_bytes + 64);
    if (k->fini)
        k->fini(&p);
    return fine;
}

/* Takes the case over. */
static void run_case(Case *c, int o, int t)
{
    QnKernelEnv env = { .n_threads = 2, .isa = qn_cpu_isa_best() };
    double *want[QN_MAX_OUT];
    bool about = is_about(c->node, types[t]);
    case_outputs(c, want);
    takes[o][t] |= about;
    if (about && qn_eval_node(c->node, (const double *const *)c->x, want, false) == QN_OK) {
        int n = 0;
        for (int i = 0; i < qn_backend_cpu.n_kernels; i++) {
            const QnKernel *k = qn_backend_cpu.kernels[i];
            bool fits =
                (!k->op || k->op == all_ops[o]) && !(k->accepts && k->accepts(c->node, &env));
            if (fits && run(c, k, &env, t, want))
                n += ++ran[o][t][i] > 0;
        }
        n_cases[ON_CPU] += n > 0;
    }
    free_outputs(want);
    case_close(c);
}

/* Types whose shapes vary too; in the others, that is not another kernel. */
static bool varies_in(int t)
{
    return t < N_FLOATS || types[t] == QN_DTYPE_I32 || types[t] == QN_DTYPE_I64 ||
           types[t] == QN_DTYPE_BOOL;
}

static void run_sample(int o, int k, int t)
{
    static Variants all;
    Case c;
    if (case_try(&c, all_ops[o], k, types[t]))
        run_case(&c, o, t);
    if (!varies_in(t))
        return;
    variants_of(&all, all_ops[o], k);
    for (int v = 0; v < all.n; v++) {
        if (case_vary(&c, all_ops[o], k, &all, v, types[t]))
            run_case(&c, o, t);
    }
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
    check_backend(ON_CPU);
}

#ifdef QN_HAVE_OPENCL
/* Integers and bools, by maps: their kernels name types, so that one program has all. */
static void add_integer_maps(Batch *b)
{
    for (int t = N_FLOATS; t < N_TYPES; t++) {
        for (int o = 0; o < QN_COUNT(all_ops); o++) {
            const QnSample *s = all_ops[o]->samples;
            if (all_ops[o]->map && all_ops[o]->n_samples && !(s->flags & QN_SAMPLE_F32_ONLY))
                batch_add(b, all_ops[o], 0, types[t]);
        }
    }
    batch_done(b);
}

/* false: the reference gives an error. */
static bool run_item(Opencl *cl, cl_program p, const Item *it)
{
    bool fine;
    double *got[QN_MAX_OUT], *want[QN_MAX_OUT];
    int o = number_of(it->c.op), t = type_of(it->c.node, it->dtype);
    case_outputs(&it->c, got);
    case_outputs(&it->c, want);
    fine = qn_eval_node(it->c.node, (const double *const *)it->c.x, want, false) == QN_OK;
    if (fine) {
        opencl_run(cl, p, &it->call, &it->c, got);
        errors_case(&errors[ON_OPENCL][o][t], &it->c, it->dtype, "opencl.text", got, want);
        n_cases[ON_OPENCL]++;
    }
    free_outputs(got);
    free_outputs(want);
    return fine;
}

/* Of the items, the first n_own are operators' own samples, which must run. */
static void run_batch(Opencl *cl, const Batch *b, int64_t n_own, QnDtype f)
{
    cl_program p = opencl_build(cl, qn_dtype_name(f), qn_str_text(&b->text), f);
    assert_non_null(p);
    for (int64_t i = 0; i < b->n; i++) {
        if (!run_item(cl, p, &b->items[i]) && i < n_own)
            fail_msg("%s: %s", b->items[i].c.name, qn_error_last()->text);
    }
    clReleaseProgram(p);
}

static void run_device(Opencl *cl, int t)
{
    Batch b;
    batch_collect(&b, types[t]);
    int64_t n_own = b.n;
    print_message("%s: %lld samples, %d that the text does not cover\n", qn_dtype_name(types[t]),
                  (long long)n_own, b.refused);
    assert_true(n_own > 3 * b.refused);
    if (types[t] == QN_DTYPE_F32)
        add_integer_maps(&b);
    batch_collect_variants(&b, types[t]);
    assert_true(b.n > 500);
    if (RUNS_TEXT)
        run_batch(cl, &b, n_own, types[t]);
    batch_free(&b);
}
#endif

static void test_opencl(void **state)
{
#ifdef QN_HAVE_OPENCL
    Opencl cl;
    have[ON_OPENCL] = opencl_open(&cl);
    if (!have[ON_OPENCL])
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    for (int t = 0; t < 3; t++) /* f32, f16, bf16 */
        run_device(&cl, t);
    opencl_close(&cl);
    have[ON_OPENCL] = RUNS_TEXT;
    if (RUNS_TEXT)
        check_backend(ON_OPENCL);
#else
    skip_because("built without OpenCL");
#endif
}

/* ---- CUDA, through the kernels of the device ---- */

static bool run_kernel(QnDevice *d, const Case *c, const QnKernel *k, double *got[QN_MAX_OUT])
{
    const QnNode *n = c->node;
    const QnBackend *b = d->backend;
    void *in[QN_SAMPLE_IN] = { 0 }, *out[QN_MAX_OUT] = { 0 };
    QnPrepared p = { .kernel = k, .node = n, .env = &d->env };
    assert_ok(k->prepare ? k->prepare(&p) : QN_OK);
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i])
            continue;
        size_t bytes = (size_t)qn_type_bytes(&n->in[i]->type);
        void *raw = raw_of(n->in[i], c->x[i]);
        in[i] = qn_device_alloc(d, bytes + 1);
        assert_non_null(in[i]);
        assert_ok(b->write(d, in[i], raw, bytes));
        free_raw(n->in[i], raw);
    }
    for (int i = 0; i < n->n_out; i++) {
        out[i] = qn_device_alloc(d, (size_t)qn_type_bytes(&n->out[i].type) + 1);
        assert_non_null(out[i]);
    }
    void *work = qn_device_alloc(d, p.workspace_bytes + 1);
    assert_non_null(work);
    bool fine = k->run(&p, (const void *const *)in, out, work) == QN_OK;
    assert_ok(b->sync ? b->sync(d) : QN_OK);
    for (int i = 0; i < n->n_out; i++) {
        size_t bytes = (size_t)qn_type_bytes(&n->out[i].type);
        void *raw = raw_of(&n->out[i], NULL);
        assert_ok(b->read(d, raw, out[i], bytes));
        qn_dtype_to_f64(n->out[i].type.dtype, raw, got[i], value_count(&n->out[i]));
        free_raw(&n->out[i], raw);
        qn_device_free(d, out[i], bytes + 1);
    }
    for (int i = 0; i < n->n_in; i++) {
        if (in[i])
            qn_device_free(d, in[i], (size_t)qn_type_bytes(&n->in[i]->type) + 1);
    }
    qn_device_free(d, work, p.workspace_bytes + 1);
    if (k->fini)
        k->fini(&p);
    return fine;
}

/* Takes the case over. */
static void run_on(QnDevice *d, Case *c, QnDtype f)
{
    double *got[QN_MAX_OUT], *want[QN_MAX_OUT];
    int o = number_of(c->op), t = type_of(c->node, f);
    case_outputs(c, got);
    case_outputs(c, want);
    if (qn_eval_node(c->node, (const double *const *)c->x, want, false) == QN_OK) {
        int n = 0;
        for (int i = 0; i < d->backend->n_kernels; i++) {
            const QnKernel *k = d->backend->kernels[i];
            bool own = k->rank > 0 && (!k->op || k->op == c->op); /* not on the host */
            if (!own || (k->accepts && k->accepts(c->node, &d->env)) || !run_kernel(d, c, k, got))
                continue;
            errors_case(&errors[ON_CUDA][o][t], c, f, k->name, got, want);
            n++;
        }
        n_cases[ON_CUDA] += n > 0;
    }
    free_outputs(got);
    free_outputs(want);
    case_close(c);
}

static void run_all_on(QnDevice *d, int o, int k, QnDtype f)
{
    static Variants all;
    Case c;
    if (case_try(&c, all_ops[o], k, f))
        run_on(d, &c, f);
    variants_of(&all, all_ops[o], k);
    for (int v = 0; v < all.n; v++) {
        if (case_vary(&c, all_ops[o], k, &all, v, f))
            run_on(d, &c, f);
    }
}

/* QN_PARITY_DEVICE names another device to do it on. */
static void test_cuda(void **state)
{
    const char *name = getenv("QN_PARITY_DEVICE");
    QnDevice *d;
    if (qn_device_open_named(name ? name : "cuda:0", NULL, &d) != QN_OK)
        skip_because("no card: %.200s", qn_error_last()->text);
    have[ON_CUDA] = true;
    for (int t = 0; t < N_TYPES; t++) {
        for (int o = 0; o < QN_COUNT(all_ops); o++) {
            for (int k = 0; k < all_ops[o]->n_samples && op_has_value(all_ops[o]); k++) {
                if (t == 0 || !(all_ops[o]->samples[k].flags & QN_SAMPLE_F32_ONLY))
                    run_all_on(d, o, k, types[t]);
            }
        }
    }
    qn_device_close(d);
    check_backend(ON_CUDA);
}

static void test_tables(void **state)
{
    QnStr s = { 0 };
    int n_f32 = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++)
        n_f32 += errors[ON_CPU][o][0].cases > 0;
    assert_true(n_f32 > 100);
    print_tables(&s);
    assert_ok(s.st);
    const char *path = getenv("QN_PARITY");
    if (path)
        assert_ok(qn_file_write_atomic(path, qn_str_text(&s), s.n));
    qn_str_fini(&s);
}
