/* labels: io */
#include "temp.h"

#include <math.h>

#include "base/compiler.h"
#include "io/npy.h"
#include "io/npy_set.h"

static const char *put(const char *name, QnDtype dtype, int rank, const int64_t *dims,
                       const void *data)
{
    const char *path = temp_path(name);
    assert_ok(qn_npy_write(path, dtype, rank, dims, data));
    return path;
}

static void test_arrays_as_samples(void **state)
{
    uint8_t x[12] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255 };
    int32_t y[3] = { 2, 0, 1 };
    float t[6] = { 1, 2, 3, 4, 5, 6 };
    QnNpySetOptions o = { .x_path = put("x", QN_DTYPE_U8, 3, (int64_t[]){ 3, 2, 2 }, x),
                          .y_path = put("y", QN_DTYPE_I32, 1, (int64_t[]){ 3 }, y),
                          .scale = 1.0f / 255.0f };
    QnDataset *ds;
    float got[4], values[2];
    int64_t label;
    assert_ok(qn_npy_set_open(&o, &ds));
    const QnSampleSpec *s = qn_dataset_spec(ds);
    assert_true(s->x_rank == 2 && s->x_dims[0] == 2 && s->x_dims[1] == 2);
    assert_int_equal(s->class_count, 3);
    assert_ok(qn_dataset_validate_labels(ds, true));
    assert_ok(qn_dataset_get(ds, 2, 0, 0, got, &label));
    assert_int_equal(label, 1);
    assert_float_equal(got[3], 1.0, 1e-6);
    assert_float_equal(got[0], 8.0 / 255, 1e-6);
    qn_dataset_free(ds);
    o.regression = true;
    assert_ok(qn_npy_set_open(&o, &ds));
    assert_ok(qn_dataset_get_label(ds, 0, values));
    assert_true(values[0] == 2.0f);
    qn_dataset_free(ds);
    o.y_path = put("t", QN_DTYPE_F32, 2, (int64_t[]){ 3, 2 }, t);
    o.regression = false;
    assert_ok(qn_npy_set_open(&o, &ds));
    assert_int_equal(qn_dataset_spec(ds)->y_count, 2);
    assert_ok(qn_dataset_get(ds, 1, 0, 0, got, values));
    assert_true(values[0] == 3 && values[1] == 4);
    qn_dataset_free(ds);
}

static void test_arrays_that_do_not_fit(void **state)
{
    uint8_t x[40] = { 0 };
    int64_t y[3] = { 0, 1, (int64_t)1 << 40 };
    QnNpySetOptions o = { .x_path = put("x", QN_DTYPE_U8, 2, (int64_t[]){ 4, 2 }, x),
                          .y_path = put("y", QN_DTYPE_I64, 1, (int64_t[]){ 3 }, y) };
    QnDataset *ds;
    assert_fails(qn_npy_set_open(&o, &ds), QN_EFORMAT, "3 labels");
    o.x_path = put("x", QN_DTYPE_U8, 1, (int64_t[]){ 3 }, x);
    assert_fails(qn_npy_set_open(&o, &ds), QN_EFORMAT, "not a class index");
    o.class_count = 2;
    assert_ok(qn_npy_set_open(&o, &ds));
    assert_fails(qn_dataset_validate_labels(ds, false), QN_EARG, "label 1099511627776");
    qn_dataset_free(ds);
    o.x_path = put("x", QN_DTYPE_U8, 0, NULL, x);
    assert_fails(qn_npy_set_open(&o, &ds), QN_EFORMAT, "0 dimensions");
    o.x_path = put("x", QN_DTYPE_U8, 6, (int64_t[]){ 3, 1, 1, 1, 1, 1 }, x);
    assert_fails(qn_npy_set_open(&o, &ds), QN_EFORMAT, "6 dimensions");
    o.x_path = put("x", QN_DTYPE_U8, 2, (int64_t[]){ 0, 1 }, x);
    assert_fails(qn_npy_set_open(&o, &ds), QN_EFORMAT, "dimension 0 is 0");
}

/* Found when the file is opened, not as a loss of NaN that is blamed on the learning rate. */
static void test_features_that_are_not_finite(void **state)
{
    float x[6] = { 0, 1, 2, 3, NAN, 5 };
    double large[2] = { 0, 1e300 };
    QnNpySetOptions o = { .x_path = put("x", QN_DTYPE_F32, 2, (int64_t[]){ 3, 2 }, x) };
    QnDataset *ds;
    assert_fails(qn_npy_set_open(&o, &ds), QN_EFORMAT, "sample 2: value 0 is nan");
    o.x_path = put("x", QN_DTYPE_F64, 1, (int64_t[]){ 2 }, large);
    assert_fails(qn_npy_set_open(&o, &ds), QN_EFORMAT, "sample 1: value 0 is inf");
}
