/* Device text run through OpenCL (PoCL on machines without a GPU): maps printed from their scalar
 * functions, other operators by .call, with f32, f16 and bf16 storage, against the reference.
 * timeout: 300 */
#include "ops/harness.h"

#ifdef QN_HAVE_OPENCL
#include "ops/opencl.h"
#include "rt/devtext.h"

static Opencl cl;
static bool have;

static int group_setup(void **state)
{
    have = opencl_open(&cl);
    return 0;
}

static int group_teardown(void **state)
{
    if (have)
        opencl_close(&cl);
    return 0;
}

/* What the launch needs, or the reason why the text does not cover the sample. */
static QnStatus describe(const Case *c, QnStr *text, QnDeviceCall *call)
{
    if (c->op->traits & QN_MAP)
        return qn_devtext_map(c->node, text, call);
    if (!c->op->call)
        return qn_fail(QN_EUNSUPPORTED, "no device text");
    QN_TRY(c->op->call(c->node, call));
    qn_str_add(text, c->op->device);
    return text->st;
}

static bool differs(const Case *c, QnDtype f, double *const got[], double *const want[])
{
    for (int i = 0; i < c->node->n_out; i++) {
        QnDtype dtype = c->node->out[i].type.dtype;
        int64_t n = value_count(&c->node->out[i]);
        double tol = case_tol(c, qn_dtype_is_float(dtype) ? f : dtype);
        round_to_dtype(dtype, want[i], n); /* integers, and infinities of f16 */
        int64_t at = first_difference(got[i], want[i], n, tol);
        if (at >= 0) {
            print_message("%s: output %d, element %lld: device %.9g, reference %.9g\n", c->name, i,
                          (long long)at, got[i][at], want[i][at]);
            return true;
        }
    }
    return false;
}

typedef struct Tally {
    int run, refused, bad;
} Tally;

static void check(const QnOp *op, int k, QnDtype f, Tally *t)
{
    Case c;
    QnStr text = { 0 };
    QnDeviceCall call = { 0 };
    if (!case_try(&c, op, k, f))
        return; /* test_types sees to it that the dtype is refused */
    QnStatus st = describe(&c, &text, &call);
    cl_program p = st ? NULL : opencl_build(&cl, c.name, qn_str_text(&text), f);
    t->refused += st != QN_OK;
    t->bad += !st && !p;
    if (p) {
        double *got[QN_MAX_OUT], *want[QN_MAX_OUT];
        case_outputs(&c, got);
        case_outputs(&c, want);
        case_run(&c, want);
        opencl_run(&cl, p, &call, &c, got);
        t->run++;
        t->bad += differs(&c, f, got, want);
        free_outputs(got);
        free_outputs(want);
        clReleaseProgram(p);
    }
    qn_str_fini(&text);
    case_close(&c);
}

static void run_all(QnDtype f)
{
    Tally t = { 0 };
    if (!have)
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        for (int k = 0; k < all_ops[o]->n_samples; k++) {
            if (all_ops[o]->device || (all_ops[o]->traits & QN_MAP)) {
                if (f == QN_DTYPE_F32 || !(all_ops[o]->samples[k].flags & QN_SAMPLE_F32_ONLY))
                    check(all_ops[o], k, f, &t);
            }
        }
    }
    print_message("%s: %d samples run, %d that the text does not cover\n", qn_dtype_name(f), t.run,
                  t.refused);
    assert_int_equal(t.bad, 0);
    assert_true(t.run > 3 * t.refused);
}
#else
static int group_setup(void **state)
{
    return 0;
}

static int group_teardown(void **state)
{
    return 0;
}

static void run_all(QnDtype f)
{
    skip_because("%s: built without OpenCL", qn_dtype_name(f));
}
#endif

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
