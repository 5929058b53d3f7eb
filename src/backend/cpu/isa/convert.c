/* The conversions that maps meet often; the others go the general way. */
#include "backend/cpu/convert.h"
#include "backend/cpu/isa/simd.h"
#include "base/half.h"

/* qn_f16_to_f32 without branches: a multiplication moves the exponent's bias, subnormals included.
 */
QN_INLINE float widen(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, u = (uint32_t)(h & 0x7fffu) << 13;
    uint32_t special = (h & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0;
    uint32_t quiet = (h & 0x7fffu) > 0x7c00u ? 0x400000u : 0;
    return qn_f32_from_bits(qn_f32_bits(qn_f32_from_bits(u) * 0x1p112f) | special | quiet | sign);
}

static void to_f32(QnDtype dtype, const void *src, float *dst, int64_t n)
{
    const uint16_t *half = src;
    const uint8_t *byte = src;
    if (dtype == QN_DTYPE_BF16) {
        QN_IVDEP for (int64_t i = 0; i < n; i++) dst[i] = qn_bf16_to_f32(half[i]);
    } else if (dtype == QN_DTYPE_F16) {
        QN_IVDEP for (int64_t i = 0; i < n; i++) dst[i] = widen(half[i]);
    } else if (dtype == QN_DTYPE_BOOL) {
        QN_IVDEP for (int64_t i = 0; i < n; i++) dst[i] = byte[i] ? 1.0f : 0.0f;
    } else if (dtype == QN_DTYPE_U8) {
        QN_IVDEP for (int64_t i = 0; i < n; i++) dst[i] = (float)byte[i];
    } else {
        qn_dtype_to_f32(dtype, src, dst, n);
    }
}

static void from_f32(QnDtype dtype, const float *src, void *dst, int64_t n)
{
    uint16_t *half = dst;
    uint8_t *byte = dst;
    if (dtype == QN_DTYPE_BF16) {
        QN_IVDEP for (int64_t i = 0; i < n; i++) half[i] = qn_f32_to_bf16(src[i]);
    } else if (dtype == QN_DTYPE_F16) {
        QN_IVDEP for (int64_t i = 0; i < n; i++) half[i] = qn_f32_to_f16(src[i]);
    } else if (dtype == QN_DTYPE_BOOL) {
        QN_IVDEP for (int64_t i = 0; i < n; i++) byte[i] = src[i] != 0.0f;
    } else {
        qn_dtype_from_f32(dtype, src, dst, n);
    }
}

const QnConvertFns QN_ISA_NAME(qn_convert_fns) = {
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
