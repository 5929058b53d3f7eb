/* ai.onnx.ml: features made ready, and linear models. */
#include "onnx/mapping.h"
#include "onnx/ml.h"
#include "ops/ops.h"

#include <math.h>

static QnStatus need_numbers(const QnOnnxNode *n, const QnType **t)
{
    *t = qn_onnx_type(n, 0);
    return *t ? QN_OK : qn_onnx_refuse(n, "input 0 must be a tensor of numbers");
}

/* Floats of an attribute that broadcast along the last axis: one, or one for each. */
static QnStatus along_last(QnOnnxNode *n, const char *name, const QnShape *x, double otherwise,
                           QnValue **out)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, name);
    int64_t last = x->rank ? x->dim[x->rank - 1] : 1;
    float one = (float)otherwise;
    if (!a || a->n == 0) {
        *out = qn_constant(n->g, QN_DTYPE_F32, &QN_SHAPE(1), &one);
        return QN_OK;
    }
    if (a->kind != QN_ONNX_FLOATS || (a->n != 1 && a->n != last))
        return qn_fail(QN_ESHAPE, "attribute '%s' must hold one float, or one for each of %lld",
                       name, (long long)last);
    *out = qn_constant(n->g, QN_DTYPE_F32, &QN_SHAPE(a->n), a->floats);
    return QN_OK;
}

/* Columns of the last axis; a vector counts as one row. */
static QnStatus import_extract(QnOnnxNode *n)
{
    const QnType *t;
    const int64_t *at;
    int64_t count;
    QN_TRY(need_numbers(n, &t));
    QN_TRY(qn_onnx_in_array(n, 1, &at, &count));
    if (t->shape.rank == 0)
        return qn_fail(QN_ESHAPE, "input 0 is a scalar; it has no columns");
    for (int64_t i = 0; i < count; i++)
        if (at[i] < 0 || at[i] >= t->shape.dim[t->shape.rank - 1])
            return qn_fail(QN_ESHAPE, "column %lld of %lld", (long long)at[i],
                           (long long)t->shape.dim[t->shape.rank - 1]);
    bool is_row = t->shape.rank == 1;
    QnValue *index = qn_constant(n->g, QN_DTYPE_I64, &QN_SHAPE(count), at);
    QnValue *y = qn_gather(n->g, qn_onnx_in(n, 0), index, -1);
    return qn_onnx_out0(n, is_row ? qn_unsqueeze(n->g, y, 0) : y);
}

static QnStatus import_binarizer(QnOnnxNode *n)
{
    const QnType *t;
    QN_TRY(need_numbers(n, &t));
    QnDtype dtype = t->dtype;
    QnValue *x = qn_onnx_in(n, 0), *f = qn_cast(n->g, x, QN_DTYPE_F64);
    QnValue *over = qn_greater(n->g, f, qn_scalar_like(n->g, f, qn_onnx_float(n, "threshold", 0)));
    return qn_onnx_out0(n, qn_cast(n->g, over, dtype));
}

/* Rows by their greatest number, sum of absolutes, or length; rows of zeros stay. */
static QnStatus import_normalizer(QnOnnxNode *n)
{
    const QnType *t;
    QN_TRY(need_numbers(n, &t));
    if (t->shape.rank == 0)
        return qn_fail(QN_ESHAPE, "input 0 is a scalar; it has no rows");
    QnInts last = { 1, { t->shape.rank - 1 } };
    QnGraph *g = n->g;
    QnValue *x = qn_cast(g, qn_onnx_in(n, 0), QN_DTYPE_F32), *by;
    if (qn_onnx_is(n, "norm", "MAX", "MAX"))
        by = qn_reduce_max(g, x, last, true);
    else if (qn_onnx_is(n, "norm", "L1", "MAX"))
        by = qn_sum(g, qn_abs(g, x), last, true);
    else if (qn_onnx_is(n, "norm", "L2", "MAX"))
        by = qn_sqrt(g, qn_sum(g, qn_mul(g, x, x), last, true));
    else
        return qn_onnx_refuse(n, "a norm other than MAX, L1 and L2");
    QnValue *none = qn_equal(g, by, qn_scalar_like(g, by, 0));
    return qn_onnx_out0(n, qn_div(g, x, qn_where(g, none, qn_scalar_like(g, by, 1), by)));
}

static QnStatus import_scaler(QnOnnxNode *n)
{
    const QnType *t;
    QnValue *offset, *scale;
    QN_TRY(need_numbers(n, &t));
    QnShape s = t->shape;
    QN_TRY(along_last(n, "offset", &s, 0, &offset));
    QN_TRY(along_last(n, "scale", &s, 1, &scale));
    QnValue *x = qn_cast(n->g, qn_onnx_in(n, 0), QN_DTYPE_F32);
    return qn_onnx_out0(n, qn_mul(n->g, qn_sub(n->g, x, offset), scale));
}

static QnStatus import_imputer(QnOnnxNode *n)
{
    const QnType *t;
    QnGraph *g = n->g;
    QnValue *instead, *missing;
    QN_TRY(need_numbers(n, &t));
    QnShape s = t->shape;
    const QnOnnxAttr *ints = qn_onnx_attr(n, "imputed_value_int64s");
    bool floats = qn_dtype_is_float(t->dtype);
    QnValue *x = qn_onnx_in(n, 0);
    if (floats) {
        double what = qn_onnx_float(n, "replaced_value_float", 0);
        QN_TRY(along_last(n, "imputed_value_floats", &s, 0, &instead));
        instead = qn_cast(g, instead, t->dtype);
        missing = isnan(what) ? qn_is_nan(g, x) : qn_equal(g, x, qn_scalar_like(g, x, what));
    } else {
        int64_t last = s.rank ? s.dim[s.rank - 1] : 1;
        int64_t what = qn_onnx_int(n, "replaced_value_int64", 0);
        if (!ints || ints->kind != QN_ONNX_INTS || (ints->n != 1 && ints->n != last))
            return qn_fail(QN_ESHAPE,
                           "attribute 'imputed_value_int64s' must hold one integer, or one for "
                           "each of %lld",
                           (long long)last);
        x = qn_cast(g, x, QN_DTYPE_I64);
        instead = qn_constant(g, QN_DTYPE_I64, &QN_SHAPE(ints->n), ints->ints);
        missing = qn_equal(g, x, qn_constant(g, QN_DTYPE_I64, &(QnShape){ 0 }, &what));
    }
    return qn_onnx_out0(n, qn_where(g, missing, instead, x));
}

/* A new last axis: 1 at the category. What is none of them is all zeros. */
static QnStatus import_one_hot(QnOnnxNode *n)
{
    const QnType *t = qn_onnx_type(n, 0);
    const QnOnnxAttr *cats = qn_onnx_attr(n, "cats_int64s");
    if (!qn_onnx_int(n, "zeros", 1))
        return qn_onnx_refuse(n, "zeros 0, by which unknown categories are errors");
    if (!t || !cats || cats->kind != QN_ONNX_INTS || !cats->n)
        return qn_onnx_refuse(n, "categories other than integers");
    if (t->shape.rank == QN_MAX_RANK)
        return qn_onnx_refuse(n, "a tensor of rank %d leaves no room for an axis", t->shape.rank);
    QnValue *x = qn_cast(n->g, qn_onnx_in(n, 0), QN_DTYPE_I64);
    QnValue *c = qn_constant(n->g, QN_DTYPE_I64, &QN_SHAPE(cats->n), cats->ints);
    QnValue *hit = qn_equal(n->g, qn_unsqueeze(n->g, x, -1), c);
    return qn_onnx_out0(n, qn_cast(n->g, hit, QN_DTYPE_F32));
}

/* Columns of all inputs, side by side. */
static QnStatus import_vectorizer(QnOnnxNode *n)
{
    QnValue *part[64];
    if (n->n_in < 1 || n->n_in > (int)QN_COUNT(part))
        return qn_onnx_refuse(n, "%d inputs; 1 to %d are supported", n->n_in, (int)QN_COUNT(part));
    for (int i = 0; i < n->n_in; i++) {
        int rank = qn_onnx_rank(n, i);
        if (rank < 1 || rank > 2)
            return qn_fail(QN_ESHAPE, "input %d must be (N,columns)", i);
        part[i] = qn_cast(n->g, qn_onnx_in(n, i), QN_DTYPE_F32);
        part[i] = rank == 1 ? qn_unsqueeze(n->g, part[i], 1) : part[i];
    }
    return qn_onnx_out0(n, qn_concat(n->g, part, n->n_in, 1));
}

/* ---- linear models --------------------------------------------------------------------------- */

/* x (N,F) by `rows` rows of coefficients, intercepts added. */
static QnStatus linear(QnOnnxNode *n, int64_t rows, QnValue **out)
{
    const QnOnnxAttr *w = qn_onnx_attr(n, "coefficients"), *b = qn_onnx_attr(n, "intercepts");
    const QnType *t;
    QnGraph *g = n->g;
    QN_TRY(need_numbers(n, &t));
    int rank = t->shape.rank;
    int64_t features = rank ? t->shape.dim[rank - 1] : 0;
    if (rank < 1 || rank > 2)
        return qn_fail(QN_ESHAPE, "input 0 is of rank %d; it must be (N,features)", rank);
    if (!w || w->kind != QN_ONNX_FLOATS || rows < 1 || w->n % rows || w->n / rows != features)
        return qn_fail(QN_ESHAPE, "%lld coefficients for %lld features and %lld results",
                       (long long)(w ? w->n : 0), (long long)features, (long long)rows);
    if (b && b->n && (b->kind != QN_ONNX_FLOATS || b->n != rows))
        return qn_fail(QN_ESHAPE, "%lld intercepts for %lld results", (long long)b->n,
                       (long long)rows);
    QnValue *x = qn_cast(g, qn_onnx_in(n, 0), QN_DTYPE_F32);
    QnValue *c = qn_constant(g, QN_DTYPE_F32, &QN_SHAPE(rows, features), w->floats);
    QnValue *bias = b && b->n ? qn_constant(g, QN_DTYPE_F32, &QN_SHAPE(rows), b->floats) : NULL;
    *out = qn_matmul(g, rank == 1 ? qn_unsqueeze(g, x, 0) : x, c, bias, false, true);
    return QN_OK;
}

static QnStatus import_regressor(QnOnnxNode *n)
{
    QnValue *y;
    QnMlAfter after;
    QN_TRY(qn_ml_after(n, &after));
    QN_TRY(linear(n, qn_onnx_int(n, "targets", 1), &y));
    return qn_onnx_out0(n, qn_ml_transform(n->g, y, after));
}

static QnStatus import_classifier(QnOnnxNode *n)
{
    QnValue *y;
    QnMlAfter after;
    QnMlLabels labels;
    QN_TRY(qn_ml_after(n, &after));
    QN_TRY(qn_ml_labels(n, "classlabels_ints", "classlabels_strings", &labels));
    QN_TRY(linear(n, labels.n, &y));
    return qn_ml_classify(n, &labels, qn_ml_transform(n->g, y, after));
}

const QnOnnxMap qn_onnx_ml[] = {
    { "ArrayFeatureExtractor", QN_ML, 1, 0, import_extract, NULL },
    { "Binarizer", QN_ML, 1, 0, import_binarizer, NULL },
    { "Normalizer", QN_ML, 1, 0, import_normalizer, NULL },
    { "Scaler", QN_ML, 1, 0, import_scaler, NULL },
    { "Imputer", QN_ML, 1, 0, import_imputer, NULL },
    { "OneHotEncoder", QN_ML, 1, 0, import_one_hot, NULL },
    { "FeatureVectorizer", QN_ML, 1, 0, import_vectorizer, NULL },
    { "LinearRegressor", QN_ML, 1, 0, import_regressor, NULL },
    { "LinearClassifier", QN_ML, 1, 0, import_classifier, NULL },
    { 0 },
};
