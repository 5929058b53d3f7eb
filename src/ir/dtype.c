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
    return dtype <= QN_DTYPE_F64 || (dtype >= QN_DTYPE_F8E4M3FN && dtype <= QN_DTYPE_F4E2M1);
}

bool qn_dtype_is_int(QnDtype dtype)
{
    return (dtype >= QN_DTYPE_I8 && dtype <= QN_DTYPE_I64) ||
           (dtype >= QN_DTYPE_I16 && dtype <= QN_DTYPE_U64) || dtype == QN_DTYPE_I4 ||
           dtype == QN_DTYPE_U4;
}

bool qn_dtype_is_unsigned(QnDtype dtype)
{
    return dtype == QN_DTYPE_U4 || dtype == QN_DTYPE_U8 || dtype == QN_DTYPE_U16 ||
           dtype == QN_DTYPE_U32 || dtype == QN_DTYPE_U64;
}

bool qn_dtype_is_storage(QnDtype dtype)
{
    return dtype >= QN_DTYPE_F8E4M3FN && dtype <= QN_DTYPE_U4;
}

bool qn_dtype_is_wide(QnDtype dtype)
{
    return dtype == QN_DTYPE_I64 || dtype == QN_DTYPE_U64;
}

bool qn_dtype_float8(QnDtype dtype, QnFloat8 *format)
{
    switch (dtype) {
    case QN_DTYPE_F8E4M3FN: *format = QN_FLOAT8_E4M3FN; return true;
    case QN_DTYPE_F8E4M3FNUZ: *format = QN_FLOAT8_E4M3FNUZ; return true;
    case QN_DTYPE_F8E5M2: *format = QN_FLOAT8_E5M2; return true;
    case QN_DTYPE_F8E5M2FNUZ: *format = QN_FLOAT8_E5M2FNUZ; return true;
    case QN_DTYPE_F4E2M1: *format = QN_FLOAT8_E2M1; return true;
    default: return false;
    }
}

static int8_t i4_of(int64_t bits)
{
    return (int8_t)(((bits & 15) ^ 8) - 8);
}

static uint8_t u4_of(int64_t bits)
{
    return bits & 15;
}

int64_t qn_dtype_wrap(QnDtype dtype, int64_t v)
{
    switch (dtype) {
    case QN_DTYPE_I4: return i4_of(v);
    case QN_DTYPE_U4: return u4_of(v);
    case QN_DTYPE_I8: return (int8_t)v;
    case QN_DTYPE_U8: return (uint8_t)v;
    case QN_DTYPE_I16: return (int16_t)v;
    case QN_DTYPE_U16: return (uint16_t)v;
    case QN_DTYPE_I32: return (int32_t)v;
    case QN_DTYPE_U32: return (uint32_t)v;
    case QN_DTYPE_BOOL: return v != 0;
    default: return v;
    }
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

static uint64_t to_u64(double x)
{
    if (x >= 0x1p64)
        return UINT64_MAX;
    return x > 0 ? (uint64_t)x : 0; /* not NaN either */
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

static double float8_at(QnDtype dtype, uint8_t code)
{
    QnFloat8 format = QN_FLOAT8_COUNT;
    qn_dtype_float8(dtype, &format);
    return qn_float8_decode(format, code);
}

static uint8_t float8_of(QnDtype dtype, double x)
{
    QnFloat8 format = QN_FLOAT8_COUNT;
    qn_dtype_float8(dtype, &format);
    return qn_float8_encode(format, x);
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
    case QN_DTYPE_I16: LOOP(dst[i] = ((const int16_t *)src)[i]);
    case QN_DTYPE_U16: LOOP(dst[i] = ((const uint16_t *)src)[i]);
    case QN_DTYPE_U32: LOOP(dst[i] = ((const uint32_t *)src)[i]);
    case QN_DTYPE_U64: LOOP(dst[i] = (double)((const uint64_t *)src)[i]);
    case QN_DTYPE_F8E4M3FN:
    case QN_DTYPE_F8E4M3FNUZ:
    case QN_DTYPE_F8E5M2:
    case QN_DTYPE_F8E5M2FNUZ:
    case QN_DTYPE_F4E2M1: LOOP(dst[i] = float8_at(dtype, ((const uint8_t *)src)[i]));
    case QN_DTYPE_I4: LOOP(dst[i] = i4_of(((const uint8_t *)src)[i]));
    case QN_DTYPE_U4: LOOP(dst[i] = u4_of(((const uint8_t *)src)[i]));
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
    case QN_DTYPE_I16:
        LOOP(((int16_t *)dst)[i] = (int16_t)clamp_trunc(src[i], INT16_MIN, INT16_MAX));
    case QN_DTYPE_U16: LOOP(((uint16_t *)dst)[i] = (uint16_t)clamp_trunc(src[i], 0, UINT16_MAX));
    case QN_DTYPE_U32: LOOP(((uint32_t *)dst)[i] = (uint32_t)clamp_trunc(src[i], 0, UINT32_MAX));
    case QN_DTYPE_U64: LOOP(((uint64_t *)dst)[i] = to_u64(src[i]));
    case QN_DTYPE_F8E4M3FN:
    case QN_DTYPE_F8E4M3FNUZ:
    case QN_DTYPE_F8E5M2:
    case QN_DTYPE_F8E5M2FNUZ:
    case QN_DTYPE_F4E2M1: LOOP(((uint8_t *)dst)[i] = float8_of(dtype, src[i]));
    case QN_DTYPE_I4: LOOP(((int8_t *)dst)[i] = (int8_t)clamp_trunc(src[i], -8, 7));
    case QN_DTYPE_U4: LOOP(((uint8_t *)dst)[i] = (uint8_t)clamp_trunc(src[i], 0, 15));
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
    case QN_DTYPE_I16: LOOP(dst[i] = ((const int16_t *)src)[i]);
    case QN_DTYPE_U16: LOOP(dst[i] = ((const uint16_t *)src)[i]);
    case QN_DTYPE_U32: LOOP(dst[i] = (float)((const uint32_t *)src)[i]);
    case QN_DTYPE_U64: LOOP(dst[i] = (float)((const uint64_t *)src)[i]);
    case QN_DTYPE_F8E4M3FN:
    case QN_DTYPE_F8E4M3FNUZ:
    case QN_DTYPE_F8E5M2:
    case QN_DTYPE_F8E5M2FNUZ:
    case QN_DTYPE_F4E2M1: LOOP(dst[i] = (float)float8_at(dtype, ((const uint8_t *)src)[i]));
    case QN_DTYPE_I4: LOOP(dst[i] = i4_of(((const uint8_t *)src)[i]));
    case QN_DTYPE_U4: LOOP(dst[i] = u4_of(((const uint8_t *)src)[i]));
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
    case QN_DTYPE_COUNT: break;
    default:
        LOOP({
            double x = src[i];
            qn_dtype_from_f64(dtype, &x, (char *)dst + (size_t)i * qn_dtype_bytes(dtype), 1);
        });
    }
}

int64_t qn_dtype_whole_of(QnDtype dtype, double x, bool bits)
{
    int64_t v;
    if (bits && qn_dtype_is_wide(dtype))
        memcpy(&v, &x, sizeof v);
    else
        v = dtype == QN_DTYPE_U64 ? (int64_t)to_u64(x) : to_i64(x);
    return v;
}

double qn_dtype_whole_to(QnDtype dtype, int64_t v, bool bits)
{
    double x;
    v = qn_dtype_wrap(dtype, v);
    if (bits && qn_dtype_is_wide(dtype))
        memcpy(&x, &v, sizeof x);
    else
        x = dtype == QN_DTYPE_U64 ? (double)(uint64_t)v : (double)v;
    return x;
}

void qn_dtype_to_i64(QnDtype dtype, const void *src, int64_t *dst, int64_t n)
{
    switch (dtype) {
    case QN_DTYPE_U64:
    case QN_DTYPE_I64: memcpy(dst, src, (size_t)n * 8); break;
    case QN_DTYPE_U32: LOOP(dst[i] = ((const uint32_t *)src)[i]);
    case QN_DTYPE_I32: LOOP(dst[i] = ((const int32_t *)src)[i]);
    case QN_DTYPE_U16: LOOP(dst[i] = ((const uint16_t *)src)[i]);
    case QN_DTYPE_I16: LOOP(dst[i] = ((const int16_t *)src)[i]);
    default: LOOP(dst[i] = qn_dtype_wrap(dtype, ((const int8_t *)src)[i]));
    }
}
