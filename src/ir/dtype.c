#include "ir/dtype.h"
#include "base/half.h"

#include <math.h>

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
#define QN_X(name, text, bytes) { text, bytes },
    QN_DTYPE_MAP(QN_X)
#undef QN_X
};

size_t qn_dtype_bytes(QnDtype dtype)
{
    return (unsigned)dtype < QN_DTYPE_COUNT ? dtypes[dtype].bytes : 0;
}

const char *qn_dtype_name(QnDtype dtype)
{
    return (unsigned)dtype < QN_DTYPE_COUNT ? dtypes[dtype].name : "?";
}

bool qn_dtype_find(const char *text, QnDtype *dtype)
{
    for (int i = 0; i < QN_DTYPE_COUNT; i++) {
        if (!strcmp(dtypes[i].name, text)) {
            *dtype = (QnDtype)i;
            return true;
        }
    }
    return false;
}

bool qn_dtype_is_float(QnDtype dtype)
{
    return dtype <= QN_DTYPE_F64;
}

bool qn_dtype_is_int(QnDtype dtype)
{
    return dtype >= QN_DTYPE_I8 && dtype <= QN_DTYPE_I64;
}

static double clamp_trunc(double x, double lo, double hi)
{
    if (isnan(x))
        return 0;
    return x < lo ? lo : x > hi ? hi : trunc(x);
}

static int64_t to_i64(double x)
{
    if (isnan(x))
        return 0;
    if (x >= 0x1p63)
        return INT64_MAX;
    return x <= -0x1p63 ? INT64_MIN : (int64_t)x;
}

/* Double rounding f64 -> f32 -> f16 could differ from one rounding in the last bit; rounding the
 * first step to odd (von Neumann) makes the second one exact. */
static float round_to_odd(double x)
{
    float f = (float)x;
    if ((double)f == x || !isfinite(f) || !isfinite(x))
        return f;
    uint32_t u = qn_f32_bits(f);
    if (fabs((double)f) > fabs(x))
        u--; /* now truncated toward zero */
    return qn_f32_from_bits(u | 1u);
}

#define LOOP(body)                                                                                 \
    for (int64_t i = 0; i < n; i++)                                                                \
        body;                                                                                      \
    break

void qn_dtype_to_f64(QnDtype dtype, const void *src, double *dst, int64_t n)
{
    switch (dtype) {
    case QN_DTYPE_F32: LOOP(dst[i] = ((const float *)src)[i]);
    case QN_DTYPE_F16: LOOP(dst[i] = qn_f16_to_f32(((const uint16_t *)src)[i]));
    case QN_DTYPE_BF16: LOOP(dst[i] = qn_bf16_to_f32(((const uint16_t *)src)[i]));
    case QN_DTYPE_F64: memcpy(dst, src, (size_t)n * 8); break;
    case QN_DTYPE_I8: LOOP(dst[i] = ((const int8_t *)src)[i]);
    case QN_DTYPE_U8: LOOP(dst[i] = ((const uint8_t *)src)[i]);
    case QN_DTYPE_I32: LOOP(dst[i] = ((const int32_t *)src)[i]);
    case QN_DTYPE_I64: LOOP(dst[i] = (double)((const int64_t *)src)[i]);
    case QN_DTYPE_BOOL: LOOP(dst[i] = ((const uint8_t *)src)[i] != 0);
    case QN_DTYPE_COUNT: break;
    }
}

void qn_dtype_from_f64(QnDtype dtype, const double *src, void *dst, int64_t n)
{
    switch (dtype) {
    case QN_DTYPE_F32: LOOP(((float *)dst)[i] = (float)src[i]);
    case QN_DTYPE_F16: LOOP(((uint16_t *)dst)[i] = qn_f32_to_f16(round_to_odd(src[i])));
    case QN_DTYPE_BF16: LOOP(((uint16_t *)dst)[i] = qn_f32_to_bf16(round_to_odd(src[i])));
    case QN_DTYPE_F64: memcpy(dst, src, (size_t)n * 8); break;
    case QN_DTYPE_I8: LOOP(((int8_t *)dst)[i] = (int8_t)clamp_trunc(src[i], -128, 127));
    case QN_DTYPE_U8: LOOP(((uint8_t *)dst)[i] = (uint8_t)clamp_trunc(src[i], 0, 255));
    case QN_DTYPE_I32:
        LOOP(((int32_t *)dst)[i] = (int32_t)clamp_trunc(src[i], INT32_MIN, INT32_MAX));
    case QN_DTYPE_I64: LOOP(((int64_t *)dst)[i] = to_i64(src[i]));
    case QN_DTYPE_BOOL: LOOP(((uint8_t *)dst)[i] = src[i] != 0);
    case QN_DTYPE_COUNT: break;
    }
}

void qn_dtype_to_f32(QnDtype dtype, const void *src, float *dst, int64_t n)
{
    switch (dtype) {
    case QN_DTYPE_F32: memcpy(dst, src, (size_t)n * 4); break;
    case QN_DTYPE_F16: LOOP(dst[i] = qn_f16_to_f32(((const uint16_t *)src)[i]));
    case QN_DTYPE_BF16: LOOP(dst[i] = qn_bf16_to_f32(((const uint16_t *)src)[i]));
    case QN_DTYPE_F64: LOOP(dst[i] = (float)((const double *)src)[i]);
    case QN_DTYPE_I8: LOOP(dst[i] = ((const int8_t *)src)[i]);
    case QN_DTYPE_U8: LOOP(dst[i] = ((const uint8_t *)src)[i]);
    case QN_DTYPE_I32: LOOP(dst[i] = (float)((const int32_t *)src)[i]);
    case QN_DTYPE_I64: LOOP(dst[i] = (float)((const int64_t *)src)[i]);
    case QN_DTYPE_BOOL: LOOP(dst[i] = ((const uint8_t *)src)[i] != 0);
    case QN_DTYPE_COUNT: break;
    }
}

void qn_dtype_from_f32(QnDtype dtype, const float *src, void *dst, int64_t n)
{
    switch (dtype) {
    case QN_DTYPE_F32: memcpy(dst, src, (size_t)n * 4); break;
    case QN_DTYPE_F16: LOOP(((uint16_t *)dst)[i] = qn_f32_to_f16(src[i]));
    case QN_DTYPE_BF16: LOOP(((uint16_t *)dst)[i] = qn_f32_to_bf16(src[i]));
    case QN_DTYPE_BOOL: LOOP(((uint8_t *)dst)[i] = src[i] != 0);
    case QN_DTYPE_F64: LOOP(((double *)dst)[i] = src[i]);
    case QN_DTYPE_I8:
    case QN_DTYPE_U8:
    case QN_DTYPE_I32:
    case QN_DTYPE_I64:
        LOOP({
            double x = src[i];
            qn_dtype_from_f64(dtype, &x, (char *)dst + (size_t)i * qn_dtype_bytes(dtype), 1);
        });
    case QN_DTYPE_COUNT: break;
    }
}
