/* Device text run through OpenCL (PoCL on machines without a GPU): maps printed from their scalar
 * functions, other operators by .call, with f32, f16 and bf16 storage, against the reference.
 * timeout: 300 */
#include "ops/harness.h"

#ifdef QN_HAVE_OPENCL
#include "ops/batch.h"
#include "ops/opencl.h"

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

static bool is_bad(const Batch *b, const Item *it, cl_program p)
{
    double *got[QN_MAX_OUT], *want[QN_MAX_OUT];
    case_outputs(&it->c, got);
    case_outputs(&it->c, want);
    case_run(&it->c, want);
    opencl_run(&cl, p, &it->call, &it->c, got);
    bool bad = differs(&it->c, b->dtype, got, want);
    free_outputs(got);
    free_outputs(want);
    return bad;
}

static void run_all(QnDtype f)
{
    Batch b;
    int bad = 0;
    if (!have)
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    batch_collect(&b, f);
    cl_program p = opencl_build(&cl, qn_dtype_name(f), qn_str_text(&b.text), f);
    assert_non_null(p);
    for (int i = 0; i < b.n; i++) {
        bad += is_bad(&b, &b.items[i], p);
    }
    print_message("%s: %d samples run, %d that the text does not cover\n", qn_dtype_name(f), b.n,
                  b.refused);
    assert_int_equal(bad, 0);
    assert_true(b.n > 3 * b.refused);
    clReleaseProgram(p);
    batch_free(&b);
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
