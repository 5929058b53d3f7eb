/* What is written is read back: weights inside and outside, attributes, random weights. labels:
 * onnx
 */
#include "model.h"

#include "base/fault.h"

#include <math.h>
#include <sys/stat.h>

static const float weights[] = { 1, 2, 3, 4, 5, 6 };
static const QnTensor tensor = { { .dtype = QN_DTYPE_F32, .shape = { 2, { 2, 3 } } },
                                 weights,
                                 NULL };

static void read_or_skip(const char *path, QnOnnxModel **out)
{
    if (qn_onnx_read(path, out) == QN_EUNSUPPORTED)
        skip();
    assert_non_null(*out);
}

static void make(Made *m)
{
    static const char *const in[] = { "x", "w" }, *const out[] = { "y" };
    static const int64_t perm[] = { 1, 0 };
    static const QnOnnxAttr attr[] = {
        { .name = "perm", .kind = QN_ONNX_INTS, .n = 2, .ints = perm }
    };
    static const char *const turned[] = { "z" };
    made_begin(m, 17);
    made_input(m, "x", QN_DTYPE_F32, QN_SHAPE(2, 3));
    made_output(m, "z", QN_DTYPE_F32, QN_SHAPE(3, 2));
    made_init(m, "w", &tensor);
    made_node(m, "Add", in, 2, out, 1);
    QnOnnxDef *t = made_node(m, "Transpose", out, 1, turned, 1);
    t->attr = attr;
    t->n_attr = 1;
}

static void check_read(const char *path)
{
    QnOnnxModel *r = NULL;
    read_or_skip(path, &r);
    assert_int_equal(r->ir_version, 8);
    assert_int_equal(qn_onnx_opset(r->opset, r->n_opset, ""), 17);
    assert_int_equal(r->graph->n_nodes, 2);
    assert_string_equal(r->graph->node[0].op, "Add");
    assert_int_equal(r->graph->node[1].attr[0].ints[0], 1);
    assert_int_equal(r->graph->n_inits, 1);
    assert_memory_equal(r->graph->init[0].tensor->data, weights, sizeof weights);
    assert_int_equal(r->graph->output[0].type->dim[0], 3);
    qn_onnx_free(r);
}

static void test_inside(void **state)
{
    Made m;
    make(&m);
    const char *path = temp_path("inside.onnx");
    if (qn_onnx_write(&m.model, path, false) == QN_EUNSUPPORTED)
        skip();
    check_read(path);
}

/* A large weight lies beside the model, small ones stay. */
static void test_outside(void **state)
{
    static float big[1000];
    static const QnTensor t = { { .dtype = QN_DTYPE_F32, .shape = { 1, { 1000 } } }, big, NULL };
    struct stat info;
    Made m;
    QnOnnxModel *r = NULL;
    for (int i = 0; i < 1000; i++)
        big[i] = (float)i;
    make(&m);
    made_init(&m, "big", &t);
    char *path = qn_strdup(temp_path("outside.onnx"));
    if (qn_onnx_write(&m.model, path, true) == QN_EUNSUPPORTED)
        skip();
    assert_int_equal(stat(temp_path("outside.onnx.data"), &info), 0);
    assert_true(info.st_size >= 4000);
    read_or_skip(path, &r);
    assert_memory_equal(r->graph->init[1].tensor->data, big, sizeof big);
    assert_memory_equal(r->graph->init[0].tensor->data, weights, sizeof weights);
    qn_onnx_free(r);
    qn_free(path);
}

static QnOnnxModel *written_over(Made *m, float first)
{
    QnOnnxModel *r = NULL;
    ((float *)m->init[1].tensor->data)[0] = first;
    if (qn_onnx_write(&m->model, temp_path("again.onnx"), true) == QN_EUNSUPPORTED)
        skip();
    read_or_skip(temp_path("again.onnx"), &r);
    assert_true(((const float *)r->graph->init[1].tensor->data)[0] == first);
    return r;
}

/* New weights never go over the file that the model which is there reads, and its file goes only
 * once the new model stands; where that fails, the old one is whole. */
static void test_over_an_older_model(void **state)
{
    static float big[1000];
    static const QnTensor t = { { .dtype = QN_DTYPE_F32, .shape = { 1, { 1000 } } }, big, NULL };
    Made m;
    struct stat info;
    make(&m);
    made_init(&m, "big", &t);
    qn_onnx_free(written_over(&m, 1));
    qn_onnx_free(written_over(&m, 2)); /* to again.onnx.1.data */
    assert_int_equal(stat(temp_path("again.onnx.data"), &info), -1);
    assert_int_equal(stat(temp_path("again.onnx.1.data"), &info), 0);
    big[0] = 3;
    int64_t failed = 0;
    for (int64_t n = 1;; n++) { /* each operation on files and each allocation fails once */
        QnOnnxModel *r = NULL;
        qn_fault_arm(n);
        QnStatus st = qn_onnx_write(&m.model, temp_path("again.onnx"), true);
        int64_t events = qn_fault_events();
        qn_fault_arm(0);
        if (st == QN_OK && events < n)
            break;
        failed += st != QN_OK;
        assert_true(n < 1000);
        assert_ok(qn_onnx_read(temp_path("again.onnx"), &r));
        float got = ((const float *)r->graph->init[1].tensor->data)[0];
        assert_true(got == 2 || got == 3); /* 3: only the folder could not be synced */
        qn_onnx_free(r);
    }
    assert_true(failed > 10);
}

/* y = x W for a W that ConstantOfShape makes. */
static void test_random_weights(void **state)
{
    static const int64_t dims[] = { 3, 400 };
    static const QnTensor shape = { { .dtype = QN_DTYPE_I64, .shape = { 1, { 2 } } }, dims, NULL };
    static const char *const in[] = { "shape" }, *const w[] = { "w" }, *const xw[] = { "x", "w" },
                             *const y[] = { "y" };
    Made m;
    QnOnnxModel *r = NULL;
    int64_t count;
    double sum = 0, square = 0;
    made_begin(&m, 9);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(2, 3));
    made_output(&m, "y", QN_DTYPE_F32, QN_SHAPE(2, 400));
    made_init(&m, "shape", &shape);
    made_node(&m, "ConstantOfShape", in, 1, w, 1);
    made_node(&m, "MatMul", xw, 2, y, 1);
    if (qn_onnx_write(&m.model, temp_path("random.onnx"), false) == QN_EUNSUPPORTED)
        skip();
    read_or_skip(temp_path("random.onnx"), &r);
    assert_ok(qn_onnx_randomize(r, 7, &count));
    assert_int_equal(count, 1);
    assert_int_equal(r->graph->n_nodes, 1);
    assert_int_equal(r->graph->n_inits, 1); /* the shape has gone */
    const QnTensor *t = r->graph->init[0].tensor;
    assert_true(qn_shape_is_equal(&t->type.shape, &QN_SHAPE(3, 400)));
    for (int i = 0; i < 1200; i++) {
        double v = (double)((const float *)t->data)[i];
        sum += v;
        square += v * v;
    }
    /* 1,200 draws of deviation sqrt(2/400): the mean is within 5 s/sqrt(n), the deviation within 10
     * % */
    assert_true(fabs(sum / 1200) < 5 * sqrt(2.0 / 400 / 1200));
    assert_true(fabs(sqrt(square / 1200) / sqrt(2.0 / 400) - 1) < 0.1);
    qn_onnx_free(r);
}
