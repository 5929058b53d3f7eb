/* `quern run --each --feed`: a run for each row, with a state carried on. labels: onnx cli */
#include "cli/program.h"

#include "io/npy.h"
#include "onnx/model.h"

/* sum' = sum + x; y = sum'. Three runs of x = 1, 2, 3 give 1, 3, 6. */
static void test_running_sum(void **state)
{
    static const char *const in[] = { "x", "sum" }, *const out[] = { "y" };
    static const float x[] = { 1, 2, 3 }, zero[] = { 0 };
    QnNpy y;
    Made m;
    made_begin(&m, 17);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(1));
    made_input(&m, "sum", QN_DTYPE_F32, QN_SHAPE(1));
    made_output(&m, "y", QN_DTYPE_F32, QN_SHAPE(1));
    made_node(&m, "Add", in, 2, out, 1);
    if (qn_onnx_write(&m.model, temp_path("sum.onnx"), false) == QN_EUNSUPPORTED)
        skip();
    assert_ok(qn_npy_write(temp_path("x.npy"), QN_DTYPE_F32, 2, (int64_t[]){ 3, 1 }, x));
    assert_ok(qn_npy_write(temp_path("zero.npy"), QN_DTYPE_F32, 1, (int64_t[]){ 1 }, zero));
    assert_int_equal(run("run sum.onnx --input x=x.npy sum=zero.npy --each x --feed sum=y -o out"),
                     0);
    assert_ok(qn_npy_read(temp_path("out/y.npy"), &y));
    assert_int_equal(y.rank, 2);
    assert_true(((float *)y.data)[0] == 1 && ((float *)y.data)[1] == 3 &&
                ((float *)y.data)[2] == 6);
    qn_npy_fini(&y);
    assert_int_equal(run("run sum.onnx --input x=x.npy sum=zero.npy --each y"), 2);
    assert_int_equal(run("run sum.onnx --input x=x.npy sum=zero.npy --each x --feed sum=z"), 2);
    assert_int_equal(run("run sum.onnx --input x=x.npy --each x"), 2); /* sum is missing */
}
