/* Maps as device text through OpenCL (PoCL on machines without a GPU) on tensors of several
 * layouts, against the reference. test_parity.c runs every operator's samples.
 * timeout: 900 pocl: -cl-opt-disable labels: device */
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

/* a - b with layouts of a, b and y; b is of lower rank and shape (C,1,...) where `broadcast`. */
static void check_layouts(bool a_last, bool b_last, bool y_last, bool broadcast)
{
    Case c = { .op = &qn_op_sub, .sample = &qn_op_sub.samples[0], .g = qn_graph_new() };
    QnShape s = QN_SHAPE(2, 3, 5, 7), bias = QN_SHAPE(3, 1, 1);
    QnLayout layout[] = { QN_LAYOUT_PLAIN, QN_LAYOUT_CHANNELS_LAST };
    QnRng rng;
    QnStr text = { 0 };
    QnDeviceCall call;
    double *got[QN_MAX_OUT], *want[QN_MAX_OUT];
    snprintf(c.name, sizeof c.name, "layouts %d %d %d, broadcast %d", a_last, b_last, y_last,
             broadcast);
    qn_rng_init(&rng, 6, 0);
    c.in[0] = qn_input(c.g, "a", QN_DTYPE_F32, &s);
    c.in[1] = qn_input(c.g, "b", QN_DTYPE_F32, broadcast ? &bias : &s);
    c.node = qn_sub(c.g, c.in[0], c.in[1])->node;
    fill_input(&c, 0, &rng);
    fill_input(&c, 1, &rng);
    c.in[0]->type.layout = layout[a_last];
    c.in[1]->type.layout = layout[b_last];
    c.node->out[0].type.layout = layout[y_last];
    assert_ok(qn_devtext_map(c.node, &text, &call));
    cl_program p = opencl_build(&cl, c.name, qn_str_text(&text), QN_DTYPE_F32);
    assert_non_null(p);
    case_outputs(&c, got);
    case_outputs(&c, want);
    case_run(&c, want);
    opencl_run(&cl, p, &call, &c, got);
    assert_false(differs(&c, QN_DTYPE_F32, got, want));
    free_outputs(got);
    free_outputs(want);
    clReleaseProgram(p);
    qn_str_fini(&text);
    case_close(&c);
}

static void run_layouts(void)
{
    if (!have)
        skip_because("no OpenCL device");
    for (int i = 0; i < 8; i++)
        check_layouts(i & 1, i & 2, i & 4, false);
    check_layouts(true, false, true, true); /* a bias as models write it */
    check_layouts(false, true, false, true);
    check_layouts(true, true, false, true);
}
#else
static void run_layouts(void)
{
    skip_because("built without OpenCL");
}

static int group_setup(void **state)
{
    return 0;
}

static int group_teardown(void **state)
{
    return 0;
}
#endif

static void test_channels_last(void **state)
{
    run_layouts();
}
