/* Constants of plans: written as they are, packed by kernels that want them otherwise, and then not
 * kept twice. labels: rt */
#include "test.h"

#include "ops/ops.h"
#include "rt/plan.h"

#include <math.h>

static void fill(float *v, int64_t n, int seed)
{
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)((i * 7919 + seed) % 1009) / 1009.0f - 0.5f;
}

typedef enum Product { CONV, MATMUL, MATMUL_TRANS_B } Product;

static QnValue *product(QnGraph *g, Product what, QnValue *x, QnValue *w)
{
    QnConvAttr a = { .pads = QN_INTS(1, 1, 1, 1) };
    return what == CONV ? qn_conv(g, x, w, NULL, &a)
                        : qn_matmul(g, x, w, NULL, false, what == MATMUL_TRANS_B);
}

/* y = product of x and w, with w a constant or an input. */
static void run(QnDevice *d, Product what, bool constant, const float *x, const float *w, float *y,
                QnPlanMemory *memory)
{
    QnGraph *g = qn_graph_new();
    QnShape xs = what == CONV ? QN_SHAPE(2, 32, 14, 14) : QN_SHAPE(112, 112);
    QnShape ws = what == CONV     ? QN_SHAPE(48, 32, 3, 3)
                 : what == MATMUL ? QN_SHAPE(112, 168)
                                  : QN_SHAPE(168, 112);
    QnValue *vx = qn_input(g, "x", QN_DTYPE_F32, &xs);
    QnValue *vw =
        constant ? qn_constant(g, QN_DTYPE_F32, &ws, w) : qn_input(g, "w", QN_DTYPE_F32, &ws);
    QnPlan *p;
    assert_ok(qn_graph_output(g, "y", product(g, what, vx, vw)));
    QnPipelineOptions o = { .level = QN_O2,
                            .keep = qn_device_has_kernel,
                            .keep_ctx = d,
                            .tuned = qn_device_is_tuned,
                            .tuned_ctx = d };
    assert_ok(qn_pipeline_run(g, &o));
    assert_ok(qn_plan_new(g, d, NULL, NULL, &p));
    *memory = qn_plan_memory(p);
    for (int turn = 0; turn < 2; turn++) { /* the second finds what the first has packed */
        assert_ok(qn_plan_write(p, "x", x, (size_t)qn_shape_count(&xs) * 4));
        if (!constant)
            assert_ok(qn_plan_write(p, "w", w, (size_t)qn_shape_count(&ws) * 4));
        assert_ok(qn_plan_run(p));
        assert_ok(qn_plan_read(p, "y", y, 2 * 48 * 14 * 14 * 4));
    }
    qn_plan_free(p);
    qn_graph_free(g);
}

static void test_packed_weights(void **state)
{
    static float x[2 * 32 * 14 * 14], w[112 * 168], y1[2 * 48 * 14 * 14], y2[2 * 48 * 14 * 14];
    QnPlanMemory constant, input;
    QnDevice *d;
    fill(x, QN_COUNT(x), 1);
    fill(w, QN_COUNT(w), 2);
    assert_ok(qn_device_open_named("cpu", NULL, &d));
    for (Product what = CONV; what <= MATMUL_TRANS_B; what++) {
        int64_t bytes = what == CONV ? 48 * 32 * 9 * 4 : 112 * 168 * 4;
        run(d, what, true, x, w, y1, &constant);
        run(d, what, false, x, w, y2, &input);
        for (size_t i = 0; i < QN_COUNT(y1); i++)
            assert_true(fabsf(y1[i] - y2[i]) <= 1e-5f * (1 + fabsf(y2[i])));
        /* once, as packed or as they are; blocks of channels may be rounded up to whole vectors */
        assert_true(constant.constant_bytes >= bytes);
        assert_true(constant.constant_bytes < 2 * bytes);
    }
    qn_device_close(d);
}

/* Numbers that a float64 does not hold are the constant's, bit by bit. */
static void test_wide_integers(void **state)
{
    static const int64_t v[] = { INT64_MAX, INT64_MIN, (1LL << 60) + 1 };
    int64_t got[3];
    QnDevice *d;
    QnPlan *p;
    QnGraph *g = qn_graph_new();
    assert_ok(qn_device_open_named("cpu", NULL, &d));
    QnValue *c = qn_constant(g, QN_DTYPE_I64, &QN_SHAPE(3), v);
    assert_ok(qn_graph_output(g, "y", c));
    assert_ok(qn_pipeline_run(g, &(QnPipelineOptions){ .level = QN_O2 }));
    assert_ok(qn_plan_new(g, d, NULL, NULL, &p));
    assert_ok(qn_plan_run(p));
    assert_ok(qn_plan_read(p, "y", got, sizeof got));
    assert_memory_equal(got, v, sizeof v);
    qn_plan_free(p);
    qn_graph_free(g);
    qn_device_close(d);
}
