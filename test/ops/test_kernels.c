/* Every CPU kernel against the reference for each sample and storage type it accepts: out of place
 * and in place where the operator allows it, with 1 and 2 threads, for each instruction set that
 * this CPU can run. */
#include "ops/harness.h"

#include "backend/cpu/cpu.h"
#include "base/isa_list.h"

enum { GUARD = 64 };

static const char *const isas[] = {
#define QN_X(name) #name,
    QN_ISA_LIST(QN_X)
#undef QN_X
};

static int n_run, n_inplace, n_bad;

/* Memory with a guard behind it that no kernel may touch. */
typedef struct Memory {
    char *p;
    size_t bytes, room;
} Memory;

static Memory memory_new(size_t bytes)
{
    Memory m = { .bytes = bytes, .room = (bytes + GUARD + 63) / 64 * 64 };
    m.p = qn_alloc_aligned(m.room);
    assert_non_null(m.p);
    memset(m.p, 0xff, bytes);
    memset(m.p + bytes, 0xa5, GUARD);
    return m;
}

static void memory_free(Memory *m, const char *what)
{
    if (!m->p)
        return;
    for (size_t i = 0; i < GUARD; i++) {
        if ((unsigned char)m->p[m->bytes + i] != 0xa5)
            fail_msg("%s: writes behind its memory", what);
    }
    qn_free_aligned(m->p, m->room);
    m->p = NULL;
}

static Memory memory_of(const QnValue *v, const double *x)
{
    Memory m = memory_new((size_t)qn_type_bytes(&v->type));
    if (x)
        qn_dtype_from_f64(v->type.dtype, x, m.p, value_count(v));
    return m;
}

/* One run: `over` says which input output 0 is written over (with pairs: output k over input k),
 * -1 none. */
typedef struct Run {
    const Case *c;
    const QnKernel *k;
    QnKernelEnv env;
    QnDtype f;
    double *const *want;
    int over;
} Run;

static bool shares(const Run *r, int output, int input)
{
    if (r->over < 0)
        return false;
    return r->c->op->inplace_pairs ? output == input : output == 0 && input == r->over;
}

static void compare(const Run *r, int i, const void *raw, const char *what)
{
    const QnValue *y = &r->c->node->out[i];
    QnDtype dtype = y->type.dtype;
    int64_t n = value_count(y);
    double *got = new_doubles(n), tol = case_tol(r->c, qn_dtype_is_float(dtype) ? r->f : dtype);
    qn_dtype_to_f64(dtype, raw, got, n);
    int64_t at = first_difference(got, r->want[i], n, tol);
    if (at >= 0) {
        print_message("%s: output %d, element %lld is %.9g, should be %.9g\n", what, i,
                      (long long)at, got[at], r->want[i][at]);
        n_bad++;
    }
    qn_free(got);
}

static void run_kernel(const Run *r)
{
    const QnNode *n = r->c->node;
    Memory in[QN_SAMPLE_IN] = { 0 }, out[QN_MAX_OUT] = { 0 };
    const void *in_p[QN_SAMPLE_IN] = { 0 };
    void *out_p[QN_MAX_OUT] = { 0 };
    char what[256];
    snprintf(what, sizeof what, "%s (%s, %d threads%s) on %s", r->k->name, r->env.isa,
             r->env.n_threads, r->over >= 0 ? ", in place" : "", r->c->name);
    QnPrepared p = { .kernel = r->k, .node = n, .env = &r->env };
    if (r->k->prepare && r->k->prepare(&p))
        fail_msg("%s: %s", what, qn_error_last()->text);
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i])
            continue;
        in[i] = memory_of(n->in[i], r->c->x[i]);
        in_p[i] = in[i].p;
    }
    for (int i = 0; i < n->n_out; i++) {
        for (int k = 0; k < n->n_in; k++)
            out_p[i] = shares(r, i, k) ? in[k].p : out_p[i];
        if (out_p[i])
            continue;
        out[i] = memory_of(&n->out[i], NULL);
        out_p[i] = out[i].p;
    }
    Memory work = memory_new(p.workspace_bytes);
    if (r->k->run(&p, in_p, out_p, work.p))
        fail_msg("%s: %s", what, qn_error_last()->text);
    for (int i = 0; i < n->n_out; i++)
        compare(r, i, out_p[i], what);
    for (int i = 0; i < n->n_in; i++)
        memory_free(&in[i], what);
    for (int i = 0; i < n->n_out; i++)
        memory_free(&out[i], what);
    memory_free(&work, what);
    if (r->k->fini)
        r->k->fini(&p);
    n_run++;
    n_inplace += r->over >= 0;
}

/* In place is for operands of the output's type that the operator names; maps name all. */
static bool may_overwrite(const Case *c, const QnKernel *k, int input)
{
    const QnNode *n = c->node;
    bool named = (c->op->traits & QN_MAP) || c->op->inplace >> input & 1;
    if (!named || (k->flags & QN_KERNEL_NO_INPLACE) || !n->in[input])
        return false;
    int output = c->op->inplace_pairs ? input : 0;
    return output < n->n_out && qn_type_is_equal(&n->in[input]->type, &n->out[output].type);
}

static void check_kernel(const Case *c, const QnKernel *k, QnDtype f, double *const *want)
{
    for (int i = 0; i < QN_COUNT(isas); i++) {
        for (int threads = 1; threads <= 2; threads++) {
            Run r = { c, k, { .n_threads = threads, .isa = isas[i] }, f, want, -1 };
            if (!qn_cpu_isa_is_usable(isas[i]) || (k->accepts && k->accepts(c->node, &r.env)))
                continue;
            run_kernel(&r);
            bool pairs = c->op->inplace_pairs, all = pairs;
            for (int m = 0; m < c->node->n_in; m++) {
                bool named = c->op->inplace >> m & 1;
                all &= !named || may_overwrite(c, k, m);
                r.over = m;
                if (!pairs && may_overwrite(c, k, m))
                    run_kernel(&r);
            }
            if (pairs && all && c->op->inplace)
                run_kernel(&r);
        }
    }
}

static void run_all(QnDtype f)
{
    n_run = n_inplace = n_bad = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        for (int k = 0; k < all_ops[o]->n_samples && op_has_value(all_ops[o]); k++) {
            Case c;
            double *want[QN_MAX_OUT];
            if (f != QN_DTYPE_F32 && (all_ops[o]->samples[k].flags & QN_SAMPLE_F32_ONLY))
                continue;
            if (!case_try(&c, all_ops[o], k, f))
                continue;
            case_outputs(&c, want);
            case_run(&c, want);
            for (int i = 0; i < c.node->n_out; i++)
                round_to_dtype(c.node->out[i].type.dtype, want[i], value_count(&c.node->out[i]));
            for (int i = 0; i < qn_backend_cpu.n_kernels; i++) {
                const QnKernel *kernel = qn_backend_cpu.kernels[i];
                if (!kernel->op || kernel->op == all_ops[o])
                    check_kernel(&c, kernel, f, want);
            }
            free_outputs(want);
            case_close(&c);
        }
    }
    print_message("%s: %d runs of kernels, %d of them in place\n", qn_dtype_name(f), n_run,
                  n_inplace);
    assert_int_equal(n_bad, 0);
    assert_true(n_inplace > QN_COUNT(all_ops));
}

static void test_f32(void **state)
{
    run_all(QN_DTYPE_F32);
}

static void test_f16(void **state)
{
    run_all(QN_DTYPE_F16);
}

static void test_bf16(void **state)
{
    run_all(QN_DTYPE_BF16);
}

static void test_f64(void **state)
{
    run_all(QN_DTYPE_F64);
}
