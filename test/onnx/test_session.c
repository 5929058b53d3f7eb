/* Models that are run many times: one plan for each set of shapes, one for each value of a small
 * integer that decides what is computed, and pieces where nothing else helps. labels: onnx */
#include "model.h"

#include "quern/onnx.h"

static const float two[] = { 2 };
static const QnTensor factor = { { .dtype = QN_DTYPE_F32, .shape = { 0 } }, two, NULL };

static void open_or_skip(Made *m, QnDevice **d, QnModel **out)
{
    assert_ok(qn_device_open_named("cpu", NULL, d));
    if (qn_onnx_write(&m->model, temp_path("s.onnx"), false) == QN_EUNSUPPORTED)
        skip();
    assert_ok(qn_model_open(temp_path("s.onnx"), *d, out));
}

/* y = 2 x for x of any length. */
static void test_shapes(void **state)
{
    static const char *const in[] = { "x", "two" }, *const out[] = { "y" };
    static const float x[] = { 1, 2, 3, 4 };
    Made made;
    QnModel *m;
    QnDevice *d;
    QnType type;
    const void *y;
    made_begin(&made, 17);
    made_input(&made, "x", QN_DTYPE_F32, QN_SHAPE(-1));
    made_output(&made, "y", QN_DTYPE_F32, QN_SHAPE(-1));
    made_init(&made, "two", &factor);
    made_node(&made, "Mul", in, 2, out, 1);
    open_or_skip(&made, &d, &m);
    assert_int_equal(qn_model_run(m), QN_EARG); /* x is not set */
    for (int round = 0; round < 2; round++)
        for (int n = 1; n <= 4; n++) {
            assert_ok(
                qn_model_set(m, "x", &(QnType){ .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(n) }, x));
            assert_ok(qn_model_run(m));
            assert_ok(qn_model_get(m, "y", &type, &y));
            assert_int_equal(type.shape.dim[0], n);
            assert_true(((const float *)y)[n - 1] == 2 * (float)n);
        }
    assert_int_equal(qn_model_plan_count(m), 4);
    uint64_t calls = qn_alloc_count(); /* what is compiled runs without memory of its own */
    assert_ok(qn_model_set(m, "x", &(QnType){ .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(3) }, x));
    assert_ok(qn_model_run(m));
    assert_ok(qn_model_get(m, "y", &type, &y));
    assert_int_equal(qn_alloc_count(), calls);
    assert_int_equal(qn_model_set(m, "x", &(QnType){ .dtype = QN_DTYPE_F64 }, x), QN_ESHAPE);
    assert_int_equal(qn_model_set(m, "z", &(QnType){ .dtype = QN_DTYPE_F32 }, x), QN_ENOTFOUND);
    assert_int_equal(qn_model_get(m, "z", &type, &y), QN_ENOTFOUND);
    assert_int_equal(qn_model_input_type(m, 1, 1, &type), QN_EARG);
    assert_int_equal(qn_model_input_type(m, -1, 1, &type), QN_EARG);
    assert_ok(qn_model_input_type(m, 0, 3, &type));
    assert_int_equal(type.shape.dim[0], 3);
    qn_model_close(m);
    qn_device_close(d);
}

/* y = reshape(x, shape): the plan is for one shape, another value makes another. */
static void test_small_integers(void **state)
{
    static const char *const in[] = { "x", "shape" }, *const out[] = { "y" };
    static const float x[] = { 1, 2, 3, 4, 5, 6 };
    static const int64_t shapes[][2] = { { 2, 3 }, { 3, 2 }, { 2, 3 } };
    Made made;
    QnModel *m;
    QnDevice *d;
    QnType type;
    const void *y;
    made_begin(&made, 17);
    made_input(&made, "x", QN_DTYPE_F32, QN_SHAPE(6));
    made_input(&made, "shape", QN_DTYPE_I64, QN_SHAPE(2));
    made_output(&made, "y", QN_DTYPE_F32, QN_SHAPE(-1, -1));
    made_node(&made, "Reshape", in, 2, out, 1);
    open_or_skip(&made, &d, &m);
    for (size_t i = 0; i < QN_COUNT(shapes); i++) {
        QnType t = { .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(6) };
        QnType s = { .dtype = QN_DTYPE_I64, .shape = QN_SHAPE(2) };
        assert_ok(qn_model_set(m, "x", &t, x));
        assert_ok(qn_model_set(m, "shape", &s, shapes[i]));
        assert_ok(qn_model_run(m));
        assert_ok(qn_model_get(m, "y", &type, &y));
        assert_int_equal(type.shape.dim[0], shapes[i][0]);
        assert_memory_equal(y, x, sizeof x);
    }
    assert_int_equal(qn_model_plan_count(m), 2);
    qn_model_close(m);
    qn_device_close(d);
}

/* How many elements come out is known after the run alone. */
static void test_pieces(void **state)
{
    static const char *const in[] = { "x" }, *const out[] = { "y" };
    static const float x[] = { 0, 2, 0, 4 };
    Made made;
    QnModel *m;
    QnDevice *d;
    QnType type;
    const void *y;
    made_begin(&made, 17);
    made_input(&made, "x", QN_DTYPE_F32, QN_SHAPE(4));
    made_output(&made, "y", QN_DTYPE_I64, QN_SHAPE(1, -1));
    made_node(&made, "NonZero", in, 1, out, 1);
    open_or_skip(&made, &d, &m);
    for (int round = 0; round < 2; round++) {
        assert_ok(
            qn_model_set(m, "x", &(QnType){ .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(4) }, x));
        assert_ok(qn_model_run(m));
        assert_ok(qn_model_get(m, "y", &type, &y));
        assert_int_equal(type.shape.dim[1], 2);
        assert_int_equal(((const int64_t *)y)[1], 3);
    }
    assert_int_equal(qn_model_plan_count(m), 0);
    qn_model_close(m);
    qn_device_close(d);
}
