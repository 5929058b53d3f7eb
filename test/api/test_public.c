/* The public interface as another program sees it: only its own headers are used here. */
#include "test.h"

#include <quern/quern.h>

#include "base/fault.h"

#include <math.h>
#include <unistd.h>

static QnDevice *device;

static int setup(void **state)
{
    return qn_device_open_named("cpu", NULL, &device) != QN_OK;
}

static int teardown(void **state)
{
    qn_device_close(device);
    return 0;
}

/* y = x (8,3) times weight^T (out,3) plus bias, with a half-width state beside it. */
static QnGraph *linear(int64_t out, bool training, QnValue **y)
{
    QnGraph *g = qn_graph_new();
    QnNet *net = qn_net_new(g, training);
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(8, 3));
    *y = qn_nn_linear(net, "fc", x, out, true);
    assert_int_equal(qn_net_param_count(net), 2);
    assert_string_equal(qn_op_name(qn_value_op(qn_net_param_at(net, 0))), "state");
    qn_net_free(net);
    assert_ok(qn_graph_output(g, "y", *y));
    return g;
}

static QnStore *store_of(QnGraph *g, uint64_t seed)
{
    QnStore *s = qn_store_new(device);
    assert_non_null(s);
    assert_ok(qn_store_add(s, g));
    assert_ok(qn_store_alloc(s));
    assert_ok(qn_store_fill(s, seed));
    return s;
}

static void read_weight(QnStore *s, float w[6])
{
    assert_ok(qn_store_read(s, qn_store_find(s, "fc.weight"), w));
}

static void test_weights_survive_a_file(void **state)
{
    char path[] = "/tmp/quern_test_XXXXXX";
    close(mkstemp(path));
    QnValue *y;
    QnGraph *g = linear(2, true, &y);
    QnStore *a = store_of(g, 1), *b = store_of(g, 2);
    float wa[6], wb[6];
    int64_t n = 0;
    read_weight(a, wa);
    read_weight(b, wb);
    assert_memory_not_equal(wa, wb, sizeof wa); /* seeds differ */

    assert_ok(qn_store_save(a, NULL, path));
    assert_ok(qn_store_load(b, path, &n));
    assert_int_equal(n, 2);
    assert_int_equal(qn_store_count(b), 2);
    read_weight(b, wb);
    assert_memory_equal(wa, wb, sizeof wa);

    assert_ok(qn_store_save(a, "fc.b", path));
    assert_ok(qn_store_load(b, path, &n));
    assert_int_equal(n, 1);

    float other[6] = { 1, 2, 3, 4, 5, 6 }; /* an archive of NumPy's, by what is in it */
    const char *name = "fc.weight";
    QnNpy array = { .dtype = QN_DTYPE_F32, .rank = 2, .dims = { 2, 3 }, .data = other };
    assert_ok(qn_npz_write(path, &name, &array, 1, false));
    assert_ok(qn_store_load(b, path, &n));
    assert_int_equal(n, 1);
    read_weight(b, wb);
    assert_memory_equal(other, wb, sizeof wb);
    assert_fails(qn_store_load(b, "/nonexistent/x", NULL), QN_ENOTFOUND, "/nonexistent/x");
    qn_store_free(a);
    qn_store_free(b);
    qn_graph_free(g);
    unlink(path);
}

static void test_weights_of_another_model_change_nothing(void **state)
{
    char path[] = "/tmp/quern_test_XXXXXX";
    close(mkstemp(path));
    QnValue *y;
    QnGraph *small = linear(2, true, &y), *large = linear(3, true, &y);
    QnStore *a = store_of(small, 1), *b = store_of(large, 2);
    float before[9], after[9];
    assert_ok(qn_store_save(a, NULL, path));
    assert_ok(qn_store_read(b, qn_store_find(b, "fc.weight"), before));
    assert_fails(qn_store_load(b, path, NULL), QN_ESHAPE, "f32[2");
    assert_ok(qn_store_read(b, qn_store_find(b, "fc.weight"), after));
    assert_memory_equal(before, after, sizeof before);
    qn_store_free(a);
    qn_store_free(b);
    qn_graph_free(small);
    qn_graph_free(large);
    unlink(path);
}

/* Whatever fails in saving leaves the old file or the new one, whole; the last event is the sync of
 * the folder. Whatever fails in loading is an error. */
static void test_faults_of_weights(void **state)
{
    char path[] = "/tmp/quern_test_XXXXXX";
    close(mkstemp(path));
    QnValue *y;
    QnGraph *g = linear(2, true, &y);
    QnStore *old = store_of(g, 1), *new = store_of(g, 2), *read = store_of(g, 3);
    float was[6], want[6], got[6];
    read_weight(old, was);
    read_weight(new, want);
    assert_ok(qn_store_save(old, NULL, path));
    int64_t n_save = 0, n_load = 0;
    for (bool done = false; !done; n_save++) {
        qn_fault_arm(n_save + 1);
        done = qn_store_save(new, NULL, path) == QN_OK;
        qn_fault_arm(0);
        if (done)
            continue;
        assert_ok(qn_store_load(read, path, NULL));
        read_weight(read, got);
        if (memcmp(was, got, sizeof got))
            assert_memory_equal(want, got, sizeof got);
    }
    for (bool done = false; !done; n_load++) {
        qn_fault_arm(n_load + 1);
        done = qn_store_load(read, path, NULL) == QN_OK;
        qn_fault_arm(0);
    }
    read_weight(read, got);
    assert_memory_equal(want, got, sizeof want);
    assert_true(n_save > 5 && n_load > 2);
    qn_store_free(old);
    qn_store_free(new);
    qn_store_free(read);
    qn_graph_free(g);
    unlink(path);
}

static void test_plan_takes_and_gives(void **state)
{
    QnValue *y;
    QnGraph *g = linear(2, false, &y);
    QnStore *s = store_of(g, 5);
    QnPlan *p;
    float x[8][3] = { { 1, 2, 3 } }, out[8][2], w[6], bias[2];
    QnPipelineOptions o = { .level = QN_O2, .keep = qn_device_has_kernel, .keep_ctx = device };
    assert_ok(qn_pipeline_run(g, &o));
    assert_ok(qn_plan_new(g, device, s, NULL, &p));
    assert_fails(qn_plan_write(p, "z", x, sizeof x), QN_ENOTFOUND, "no input 'z'");
    assert_fails(qn_plan_write(p, "x", x, 4), QN_ESHAPE, "f32[8,3]");
    assert_ok(qn_plan_write(p, "x", x, sizeof x));
    assert_ok(qn_plan_run(p));
    assert_fails(qn_plan_read(p, "z", out, sizeof out), QN_ENOTFOUND, "no output 'z'");
    assert_fails(qn_plan_read(p, "y", out, 1), QN_ESHAPE, "f32[8,2]");
    assert_ok(qn_plan_read(p, "y", out, sizeof out));
    read_weight(s, w);
    assert_ok(qn_store_read(s, qn_store_find(s, "fc.bias"), bias));
    for (int i = 0; i < 2; i++)
        assert_true(fabsf(out[0][i] - (w[3 * i] + 2 * w[3 * i + 1] + 3 * w[3 * i + 2] + bias[i])) <
                    1e-5f);
    qn_plan_free(p);
    qn_store_free(s);
    qn_graph_free(g);
}

static void test_builders_report_once(void **state)
{
    QnGraph *g = qn_graph_new();
    QnValue *a = qn_input(g, "a", QN_DTYPE_F32, &QN_SHAPE(2, 3));
    QnValue *b = qn_input(g, "b", QN_DTYPE_F32, &QN_SHAPE(4, 5));
    QnValue *bad = qn_matmul(g, a, b, NULL, false, false);
    bad = qn_relu(g, qn_add(g, bad, a)); /* harmless */
    assert_non_null(qn_value_type(bad));
    assert_fails(qn_graph_check(g), QN_ESHAPE, "matmul");
    assert_fails(qn_graph_check(g), QN_ESHAPE, "matmul");
    assert_int_equal(qn_value_type(NULL)->shape.rank, 0);
    qn_graph_free(g);
}

/* What a caller can get wrong before anything has run. */
static void test_misuse_is_an_error(void **state)
{
    QnValue *y;
    QnGraph *g = linear(2, true, &y);
    QnStore *s = qn_store_new(device);
    QnPlan *p = NULL;
    float w[6];
    assert_ok(qn_store_add(s, g));
    assert_fails(qn_store_fill(s, 1), QN_EARG, "not allocated");
    assert_fails(qn_store_save(s, NULL, "/tmp/quern_test_never"), QN_EARG, "not allocated");
    assert_fails(qn_plan_new(g, device, s, NULL, &p), QN_EARG, "not allocated");
    assert_ok(qn_store_alloc(s));
    assert_ok(qn_store_fill(s, 1));
    assert_ok(qn_store_alloc(s)); /* keeps what is there */
    read_weight(s, w);
    assert_true(w[0] != 0);
    assert_fails(qn_store_read(s, qn_store_find(s, "no"), w), QN_ENOTFOUND, "no such state");
    assert_fails(qn_plan_new(g, device, NULL, NULL, &p), QN_ENOTFOUND, "fc.weight");
    assert_ok(qn_pipeline_run(g, NULL));
    qn_store_free(s);
    qn_graph_free(g);

    g = qn_graph_new();
    qn_constant(g, QN_DTYPE_F32, &QN_SHAPE(3), NULL);
    assert_fails(qn_graph_check(g), QN_EARG, "NULL");
    qn_graph_free(g);
    g = qn_graph_new();
    qn_constant(g, QN_DTYPE_F32, &(QnShape){ .rank = 99 }, w);
    assert_fails(qn_graph_check(g), QN_ESHAPE, "rank 99");
    qn_graph_free(g);
    g = qn_graph_new();
    QnNet *net = qn_net_new(g, true);
    qn_nn_linear(net, NULL, qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(8, 3)), 2, true);
    assert_fails(qn_graph_check(g), QN_EARG, "no name");
    qn_net_free(net);
    qn_graph_free(g);
}

static void test_symbols_are_bound(void **state)
{
    QnGraph *g = qn_graph_new(), *bound = NULL;
    QnDim n = qn_dim_symbol(g, "N");
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(n, 3));
    char *text, type[QN_TYPE_TEXT_BYTES];
    int64_t seven = 7;
    assert_ok(qn_graph_output(g, "y", qn_softmax(g, x, -1)));
    assert_ok(qn_graph_print_text(g, &text));
    assert_contains(text, "softmax(%0)");
    qn_free(text);
    assert_fails(qn_graph_bind(g, NULL, NULL, 0, &bound), QN_EARG, "N");
    assert_null(bound);
    assert_ok(qn_graph_bind(g, (const char *const[]){ "N" }, &seven, 1, &bound));
    assert_string_equal(qn_type_text(qn_value_type(qn_graph_output_find(bound, "y")), type),
                        "f32[7,3]");
    qn_graph_free(bound);
    qn_graph_free(g);
}

static void test_devices_by_name(void **state)
{
    QnDevice *d = NULL;
    assert_fails(qn_device_open_named("tpu", NULL, &d), QN_EUSAGE, "no device 'tpu'");
    assert_null(d);
    assert_fails(qn_device_open_named("cpu", &(QnDeviceOptions){ .n_threads = -1 }, &d), QN_EARG,
                 "thread");
    assert_ok(qn_device_open_named("null", NULL, &d));
    qn_device_close(d);
    assert_ok(qn_device_open_named(NULL, NULL, &d));
    qn_device_close(d);
}

static void test_operators_are_listed(void **state)
{
    int n;
    const QnOp *const *all = qn_op_all(&n);
    assert_true(n > 90);
    for (int i = 0; i < n; i++) {
        assert_ptr_equal(qn_op_find(qn_op_name(all[i])), all[i]);
        assert_true(strlen(qn_op_doc(all[i])) > 0);
    }
    assert_null(qn_op_find("no such"));
}
