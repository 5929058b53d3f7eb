/* Windows of signals and mel filters: constants, computed while a model is imported. */
#include "ir/dtype.h"
#include "onnx/mapping.h"

#include <math.h>

enum { WINDOW_MOST = 1 << 28 };

static const double pi = 3.14159265358979323846;

static QnStatus result_dtype(const QnOnnxNode *n, QnDtype *dtype)
{
    int64_t number = qn_onnx_int(n, "output_datatype", 1);
    if (!qn_onnx_dtype(number, dtype))
        return qn_onnx_refuse(n, "output_datatype %lld", (long long)number);
    return QN_OK;
}

static void set(QnTensor *t, int64_t i, double v)
{
    char *data = (char *)(uintptr_t)t->data;
    qn_dtype_from_f64(t->type.dtype, &v, data + (size_t)i * qn_dtype_bytes(t->type.dtype), 1);
}

/* a - b cos(2 pi i / n) + c cos(4 pi i / n), n the length, or one less for symmetric windows. */
static QnStatus cosines(QnOnnxNode *n, double a, double b, double c)
{
    int64_t size;
    QnDtype dtype;
    QN_TRY(qn_onnx_in_int(n, 0, &size));
    QN_TRY(result_dtype(n, &dtype));
    if (size < 0)
        return qn_fail(QN_EARG, "a window of %lld elements", (long long)size);
    if (size > WINDOW_MOST)
        return qn_onnx_refuse(n, "a window of %lld elements, at most %d are supported",
                              (long long)size, WINDOW_MOST);
    QnTensor *t = qn_onnx_tensor(n, dtype, &QN_SHAPE(size));
    if (!t)
        return QN_ENOMEM;
    int64_t period = qn_onnx_int(n, "periodic", 1) ? size : QN_MAX(size - 1, 1);
    for (int64_t i = 0; i < size; i++) {
        double angle = 2 * pi * (double)i / (double)period;
        set(t, i, a - b * cos(angle) + c * cos(2 * angle));
    }
    return qn_onnx_out_known(n, 0, t);
}

static QnStatus import_hann(QnOnnxNode *n)
{
    return cosines(n, 0.5, 0.5, 0);
}

static QnStatus import_hamming(QnOnnxNode *n)
{
    return cosines(n, 25.0 / 46, 21.0 / 46, 0);
}

static QnStatus import_blackman(QnOnnxNode *n)
{
    return cosines(n, 0.42, 0.5, 0.08);
}

static double to_mel(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

/* Triangles (spectrogram bins, mel bins) whose corners are equally far apart in mel. */
static QnStatus import_mel(QnOnnxNode *n)
{
    int64_t bins, length, rate;
    double low, high;
    QnDtype dtype;
    QN_TRY(qn_onnx_in_int(n, 0, &bins));
    QN_TRY(qn_onnx_in_int(n, 1, &length));
    QN_TRY(qn_onnx_in_int(n, 2, &rate));
    QN_TRY(qn_onnx_in_double(n, 3, &low));
    QN_TRY(qn_onnx_in_double(n, 4, &high));
    QN_TRY(result_dtype(n, &dtype));
    if (bins < 0 || length < 0 || rate <= 0 || !(low >= 0 && high >= low && high < 1e12))
        return qn_fail(QN_EARG,
                       "%lld mel bins from %g to %g Hz of %lld samples at %lld Hz; rates are "
                       "positive, frequencies rise",
                       (long long)bins, low, high, (long long)length, (long long)rate);
    if (length > WINDOW_MOST || bins > WINDOW_MOST || (length / 2 + 1) > WINDOW_MOST / (bins + 1))
        return qn_onnx_refuse(n, "a matrix of %lld by %lld", (long long)(length / 2 + 1),
                              (long long)bins);
    int64_t rows = length / 2 + 1;
    QnTensor *t = qn_onnx_tensor(n, dtype, &QN_SHAPE(rows, bins));
    int64_t *corner = qn_arena_array(n->arena, (size_t)bins + 2, sizeof *corner);
    if (!t || !corner)
        return QN_ENOMEM;
    double step = (to_mel(high) - to_mel(low)) / (double)(bins + 2);
    for (int64_t i = 0; i < bins + 2; i++) {
        double hertz = 700 * (pow(10, ((double)i * step + to_mel(low)) / 2595) - 1);
        corner[i] = (int64_t)floor((double)(length + 1) * hertz / (double)rate);
        if (corner[i] < 0 || corner[i] > rows)
            return qn_fail(QN_EARG, "%g Hz is no frequency of %lld samples at %lld Hz", hertz,
                           (long long)length, (long long)rate);
    }
    for (int64_t k = 0; k < bins; k++) {
        int64_t from = corner[k], top = corner[k + 1], to = corner[k + 2];
        if (from == top && top < rows)
            set(t, top * bins + k, 1);
        for (int64_t i = from; i <= top && i < rows && from < top; i++)
            set(t, i * bins + k, (double)(i - from) / (double)(top - from));
        for (int64_t i = top; i < to && i < rows; i++)
            set(t, i * bins + k, (double)(to - i) / (double)(to - top));
    }
    return qn_onnx_out_known(n, 0, t);
}

const QnOnnxMap qn_onnx_windows[] = {
    { "HannWindow", NULL, 17, 0, import_hann, NULL },
    { "HammingWindow", NULL, 17, 0, import_hamming, NULL },
    { "BlackmanWindow", NULL, 17, 0, import_blackman, NULL },
    { "MelWeightMatrix", NULL, 17, 0, import_mel, NULL },
    { 0 },
};
