/* The dialect of operator files. Each is compiled several times:
 *   - by the host's compiler: descriptor, inference, reference, gradient (QN_HOST is defined);
 *   - by the host's compiler once per instruction set, with QN_TILE_ISA: only the scalar functions
 *     of maps, wrapped into loops over tiles by QN_MAP1..3;
 *   - as OpenCL C and CUDA C, with QN_DEVICE: scalar functions and kernels.
 * Scalar functions are QN_SCALAR, named <op>_f, take and return float, and use only the math below
 * (named as C's float functions: qn_expf; qn_exp is the graph's builder), without branches on data
 * where `?:` will do, so that loops over them vectorise. Maps that are exact on integers (.ref_int)
 * have a second one, <op>_i, over qn_long, and where u64 differs (.ref_uint) a third, <op>_u, over
 * qn_ulong. */
#ifndef QN_OPS_DIALECT_H
#define QN_OPS_DIALECT_H

#ifdef QN_DEVICE /* ---------------------------------------------------- OpenCL C and CUDA C */

#ifdef __OPENCL_VERSION__
#define QN_KERNEL __kernel void
#define QN_GLOBAL __global
#define QN_SHARED __local
#ifndef QN_LOCAL
#define QN_LOCAL __local /* of pointers to what is QN_SHARED */
#endif
#define QN_SYNC() barrier(CLK_LOCAL_MEM_FENCE)
#define QN_SCALAR static inline
typedef long qn_long;
typedef ulong qn_ulong;
typedef uint qn_uint;
typedef ushort qn_ushort;
#define qn_group()         ((qn_long)get_group_id(0))
#define qn_lid()           ((int)get_local_id(0))
#define qn_group_size()    ((int)get_local_size(0))
#define qn_item()          ((qn_long)get_global_id(0))
#define qn_bits(x)         as_uint(x)
#define qn_from_bits(x)    as_float(x)
#define qn_mulhi(a, b)     mul_hi((qn_uint)(a), (qn_uint)(b))
#define QN_LOAD4(T, p)     vload4(0, p)
#define QN_STORE4(T, q, p) vstore4(q, 0, p)
#else
#define QN_KERNEL extern "C" __global__ void
#define QN_GLOBAL
#define QN_SHARED __shared__ __align__(16)
#define QN_LOCAL
#define QN_SYNC()          __syncthreads()
#define QN_SCALAR          static __device__ inline
typedef long long qn_long;
typedef unsigned long long qn_ulong;
typedef unsigned int qn_uint;
typedef unsigned short qn_ushort;
#define qn_group()         ((qn_long)blockIdx.x)
#define qn_lid()           ((int)threadIdx.x)
#define qn_group_size()    ((int)blockDim.x)
#define qn_item()          ((qn_long)blockIdx.x * blockDim.x + threadIdx.x)
#define qn_bits(x)         __float_as_uint(x)
#define qn_from_bits(x)    __uint_as_float(x)
#define qn_mulhi(a, b)     __umulhi((qn_uint)(a), (qn_uint)(b))
#define QN_LOAD4(T, p)     (*(const T *)(p))
#define QN_STORE4(T, q, p) (*(T *)(p) = (q))
#ifndef INFINITY
#define INFINITY __uint_as_float(0x7f800000u)
#endif
#endif

#define QN_INF            INFINITY
#define qn_expf(x)        exp(x)
#define qn_logf(x)        log(x)
#define qn_log1pf(x)      log1p(x)
#define qn_expm1f(x)      expm1(x)
#define qn_tanhf(x)       tanh(x)
#define qn_erff(x)        erf(x)
#define qn_exp_belowf(x)  exp(x)
#define qn_normal_cdff(x) (0.5f * erfc(-0.707106781f * (x)))
#define qn_sinf(x)        sin(x)
#define qn_cosf(x)        cos(x)
#define qn_tanf(x)        tan(x)
#define qn_asinf(x)       asin(x)
#define qn_acosf(x)       acos(x)
#define qn_atanf(x)       atan(x)
#define qn_sinhf(x)       sinh(x)
#define qn_coshf(x)       cosh(x)
#define qn_asinhf(x)      asinh(x)
#define qn_acoshf(x)      acosh(x)
#define qn_atanhf(x)      atanh(x)
#define qn_atan2f(y, x)   atan2(y, x)
#define qn_powf(x, y)     pow(x, y)
#define qn_sqrtf(x)       sqrt(x)
#define qn_absf(x)        fabs(x)
#define qn_floorf(x)      floor(x)
#define qn_ceilf(x)       ceil(x)
#define qn_truncf(x)      trunc(x)
#define qn_rintf(x)       rint(x)
#define qn_fmodf(x, y)    fmod(x, y)
#define qn_minf(a, b)     ((a) < (b) ? (a) : (b))
#define qn_maxf(a, b)     ((a) > (b) ? (a) : (b))

/* Storage of each dtype. qn_load_<dtype> gives a float, of integers and bools a qn_long, and
 * qn_store_<dtype> takes the same. qn_round_<dtype> rounds a float as a store would;
 * qn_<int>_of makes an integer of a float, toward zero, saturating, NaN to 0, and qn_keep_<int>
 * keeps a wider integer's low bits: as the library does everywhere. A u64 is a qn_long of its
 * bits. */
typedef float qn_f32;
typedef qn_ushort qn_bf16;
#define qn_load_f32(p, i)     ((p)[i])
#define qn_store_f32(p, i, v) ((p)[i] = (v))
#define qn_round_f32(v)       (v)

QN_SCALAR qn_ushort qn_bf16_of(float v)
{
    qn_uint u = qn_bits(v), r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return (qn_ushort)((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : r);
}
#define qn_load_bf16(p, i)     qn_from_bits((qn_uint)(p)[i] << 16)
#define qn_store_bf16(p, i, v) ((p)[i] = qn_bf16_of(v))
#define qn_round_bf16(v)       qn_from_bits((qn_uint)qn_bf16_of(v) << 16)

#ifdef __OPENCL_VERSION__
typedef half qn_f16; /* of which only pointers exist without an extension */
#define qn_load_f16(p, i)     vload_half((i), (p))
#define qn_store_f16(p, i, v) vstore_half_rte((v), (i), (p))
QN_SCALAR float qn_round_f16(float v)
{
    qn_ushort u;
    vstore_half_rte(v, 0, (half *)&u);
    return vload_half(0, (const half *)&u);
}
#else
typedef qn_ushort qn_f16;
QN_SCALAR float qn_f16_float(qn_ushort h)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}
QN_SCALAR qn_ushort qn_f16_of(float v)
{
    qn_ushort h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return h;
}
#define qn_load_f16(p, i)     qn_f16_float((p)[i])
#define qn_store_f16(p, i, v) ((p)[i] = qn_f16_of(v))
#define qn_round_f16(v)       qn_f16_float(qn_f16_of(v))
#endif

typedef signed char qn_i8;
typedef short qn_i16;
typedef qn_ushort qn_u16;
typedef qn_uint qn_u32;
typedef qn_ulong qn_u64;
typedef unsigned char qn_u8;
typedef unsigned char qn_bool;
typedef int qn_i32;
typedef qn_long qn_i64;

/* Floats of 8 bits, by their codes: to nearest, ties to even; what is too large, infinities as
 * well, becomes the largest number. */
typedef qn_u8 qn_f8e4m3fn;
typedef qn_u8 qn_f8e5m2;
QN_SCALAR qn_uint qn_f8_of(float v, int fraction, int bias, float most)
{
    const int cut = 23 - fraction;
    float a = v != v ? 0.0f : qn_absf(v);
    a = a > most ? most : a;
    qn_uint u = qn_bits(a), more = (1u << (cut - 1)) - 1u + (u >> cut & 1u);
    qn_uint normal = ((u + more) >> cut) - ((qn_uint)(127 - bias) << fraction);
    qn_uint tiny = (qn_uint)qn_rintf(a * qn_from_bits((qn_uint)(126 + bias + fraction) << 23));
    qn_uint code = a < qn_from_bits((qn_uint)(128 - bias) << 23) ? tiny : normal;
    return (v != v ? 0x7fu : code) | (qn_bits(v) >> 24 & 0x80u);
}
/* The number of a code that is neither infinite nor NaN. */
QN_SCALAR float qn_f8_float(qn_uint code, int fraction, int bias)
{
    qn_uint a = code & 0x7fu, normal = (a << (23 - fraction)) + ((qn_uint)(127 - bias) << 23);
    float tiny = (float)a * qn_from_bits((qn_uint)(128 - bias - fraction) << 23);
    float x = a >> fraction ? qn_from_bits(normal) : tiny;
    return qn_from_bits(qn_bits(x) | (code & 0x80u) << 24);
}
QN_SCALAR float qn_f8e4m3fn_float(qn_uint code)
{
    return (code & 0x7fu) == 0x7fu ? qn_from_bits(0x7fc00000u) : qn_f8_float(code, 3, 7);
}
QN_SCALAR float qn_f8e5m2_float(qn_uint code)
{
    qn_uint whole = 0x7f800000u | (code & 3u) << 21 | (code & 0x80u) << 24;
    return (code & 0x7cu) == 0x7cu ? qn_from_bits(whole) : qn_f8_float(code, 2, 15);
}
#define qn_f8e4m3fn_of(v)          ((qn_u8)qn_f8_of(v, 3, 7, 448.0f))
#define qn_f8e5m2_of(v)            ((qn_u8)qn_f8_of(v, 2, 15, 57344.0f))
#define qn_load_f8e4m3fn(p, i)     qn_f8e4m3fn_float((p)[i])
#define qn_load_f8e5m2(p, i)       qn_f8e5m2_float((p)[i])
#define qn_store_f8e4m3fn(p, i, v) ((p)[i] = qn_f8e4m3fn_of(v))
#define qn_store_f8e5m2(p, i, v)   ((p)[i] = qn_f8e5m2_of(v))
#define qn_round_f8e4m3fn(v)       qn_f8e4m3fn_float(qn_f8e4m3fn_of(v))
#define qn_round_f8e5m2(v)         qn_f8e5m2_float(qn_f8e5m2_of(v))

#define qn_load_i8(p, i)       ((qn_long)(p)[i])
#define qn_load_u8(p, i)       ((qn_long)(p)[i])
#define qn_load_i32(p, i)      ((qn_long)(p)[i])
#define qn_load_i64(p, i)      ((qn_long)(p)[i])
#define qn_load_i16(p, i)      ((qn_long)(p)[i])
#define qn_load_u16(p, i)      ((qn_long)(p)[i])
#define qn_load_u32(p, i)      ((qn_long)(p)[i])
#define qn_load_u64(p, i)      ((qn_long)(p)[i])
#define qn_load_bool(p, i)     ((qn_long)((p)[i] != 0))
#define qn_store_i8(p, i, v)   ((p)[i] = (qn_i8)(v))
#define qn_store_u8(p, i, v)   ((p)[i] = (qn_u8)(v))
#define qn_store_i32(p, i, v)  ((p)[i] = (int)(v))
#define qn_store_i64(p, i, v)  ((p)[i] = (v))
#define qn_store_i16(p, i, v)  ((p)[i] = (qn_i16)(v))
#define qn_store_u16(p, i, v)  ((p)[i] = (qn_u16)(v))
#define qn_store_u32(p, i, v)  ((p)[i] = (qn_u32)(v))
#define qn_store_u64(p, i, v)  ((p)[i] = (qn_u64)(v))
#define qn_store_bool(p, i, v) ((p)[i] = (qn_bool)(v))
QN_SCALAR qn_long qn_clamp(qn_long v, qn_long lo, qn_long hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}
#define qn_keep_i8(v)   ((qn_long)(qn_i8)(v))
#define qn_keep_u8(v)   ((qn_long)(qn_u8)(v))
#define qn_keep_i16(v)  ((qn_long)(qn_i16)(v))
#define qn_keep_u16(v)  ((qn_long)(qn_u16)(v))
#define qn_keep_i32(v)  ((qn_long)(int)(v))
#define qn_keep_u32(v)  ((qn_long)(qn_uint)(v))
#define qn_keep_i64(v)  (v)
#define qn_keep_u64(v)  (v)
#define qn_keep_bool(v) ((qn_long)((v) != 0))
QN_SCALAR qn_long qn_i64_of(float v)
{
    const qn_long most = 9223372036854775807;
    qn_long cut = v >= 9223372036854775808.0f ? most : (qn_long)v;
    return v != v ? 0 : v <= -9223372036854775808.0f ? -most - 1 : cut;
}
QN_SCALAR qn_long qn_u64_of(float v)
{
    qn_ulong most = ~(qn_ulong)0;
    return (qn_long)(v >= 18446744073709551616.0f ? most : v > 0.0f ? (qn_ulong)v : 0);
}
#define qn_i8_of(v)   qn_clamp(qn_i64_of(v), -128, 127)
#define qn_u8_of(v)   qn_clamp(qn_i64_of(v), 0, 255)
#define qn_i16_of(v)  qn_clamp(qn_i64_of(v), -32768, 32767)
#define qn_u16_of(v)  qn_clamp(qn_i64_of(v), 0, 65535)
#define qn_i32_of(v)  qn_clamp(qn_i64_of(v), -2147483647 - 1, 2147483647)
#define qn_u32_of(v)  qn_clamp(qn_i64_of(v), 0, 4294967295)
#define qn_bool_of(v) ((qn_long)((v) != 0.0f))

/* Four neighbours at p + i, which is aligned to them, into or from v[0..4): in one access of memory
 * for floats. QN_GET4 and QN_PUT4 do the same where an array of n may end before: its last element
 * stands for what is behind it, where nothing is written. */
#define QN_EACH4(statement)                                                                        \
    for (int u = 0; u < 4; u++) {                                                                  \
        statement;                                                                                 \
    }
#define QN_SPREAD4(v, q) v[0] = (q).x, v[1] = (q).y, v[2] = (q).z, v[3] = (q).w
#define QN_GATHER4(q, v) (q).x = v[0], (q).y = v[1], (q).z = v[2], (q).w = v[3]
#define qn_load4_f32(p, i, v)                                                                      \
    {                                                                                              \
        const float4 qn_q = QN_LOAD4(float4, (p) + (i));                                           \
        QN_SPREAD4(v, qn_q);                                                                       \
    }
#define qn_store4_f32(p, i, v)                                                                     \
    {                                                                                              \
        float4 qn_q;                                                                               \
        QN_GATHER4(qn_q, v);                                                                       \
        QN_STORE4(float4, qn_q, (p) + (i));                                                        \
    }
#define qn_load4_bf16(p, i, v)                                                                     \
    {                                                                                              \
        const ushort4 qn_q = QN_LOAD4(ushort4, (p) + (i));                                         \
        qn_ushort qn_w[4];                                                                         \
        QN_SPREAD4(qn_w, qn_q);                                                                    \
        QN_EACH4(v[u] = qn_load_bf16(qn_w, u))                                                     \
    }
#define qn_store4_bf16(p, i, v)                                                                    \
    {                                                                                              \
        ushort4 qn_q;                                                                              \
        qn_ushort qn_w[4];                                                                         \
        QN_EACH4(qn_w[u] = qn_bf16_of(v[u]))                                                       \
        QN_GATHER4(qn_q, qn_w);                                                                    \
        QN_STORE4(ushort4, qn_q, (p) + (i));                                                       \
    }
#ifdef __OPENCL_VERSION__
#define qn_load4_f16(p, i, v)                                                                      \
    {                                                                                              \
        const float4 qn_q = vload_half4(0, (p) + (i));                                             \
        QN_SPREAD4(v, qn_q);                                                                       \
    }
#define qn_store4_f16(p, i, v)                                                                     \
    {                                                                                              \
        float4 qn_q;                                                                               \
        QN_GATHER4(qn_q, v);                                                                       \
        vstore_half4_rte(qn_q, 0, (p) + (i));                                                      \
    }
#else
#define qn_load4_f16(p, i, v)                                                                      \
    {                                                                                              \
        const ushort4 qn_q = QN_LOAD4(ushort4, (p) + (i));                                         \
        qn_ushort qn_w[4];                                                                         \
        QN_SPREAD4(qn_w, qn_q);                                                                    \
        QN_EACH4(v[u] = qn_f16_float(qn_w[u]))                                                     \
    }
#define qn_store4_f16(p, i, v)                                                                     \
    {                                                                                              \
        ushort4 qn_q;                                                                              \
        qn_ushort qn_w[4];                                                                         \
        QN_EACH4(qn_w[u] = qn_f16_of(v[u]))                                                        \
        QN_GATHER4(qn_q, qn_w);                                                                    \
        QN_STORE4(ushort4, qn_q, (p) + (i));                                                       \
    }
#endif
#define QN_LOAD4_F8(dtype, p, i, v)                                                                \
    {                                                                                              \
        const uchar4 qn_q = QN_LOAD4(uchar4, (p) + (i));                                           \
        qn_u8 qn_w[4];                                                                             \
        QN_SPREAD4(qn_w, qn_q);                                                                    \
        QN_EACH4(v[u] = qn_load_##dtype(qn_w, u))                                                  \
    }
#define QN_STORE4_F8(dtype, p, i, v)                                                               \
    {                                                                                              \
        uchar4 qn_q;                                                                               \
        qn_u8 qn_w[4];                                                                             \
        QN_EACH4(qn_w[u] = qn_##dtype##_of(v[u]))                                                  \
        QN_GATHER4(qn_q, qn_w);                                                                    \
        QN_STORE4(uchar4, qn_q, (p) + (i));                                                        \
    }
#define qn_load4_f8e4m3fn(p, i, v)  QN_LOAD4_F8(f8e4m3fn, p, i, v)
#define qn_store4_f8e4m3fn(p, i, v) QN_STORE4_F8(f8e4m3fn, p, i, v)
#define qn_load4_f8e5m2(p, i, v)    QN_LOAD4_F8(f8e5m2, p, i, v)
#define qn_store4_f8e5m2(p, i, v)   QN_STORE4_F8(f8e5m2, p, i, v)

#define qn_load4_i8(p, i, v)    QN_EACH4(v[u] = qn_load_i8(p, (i) + u))
#define qn_store4_i8(p, i, v)   QN_EACH4(qn_store_i8(p, (i) + u, v[u]))
#define qn_load4_u8(p, i, v)    QN_EACH4(v[u] = qn_load_u8(p, (i) + u))
#define qn_store4_u8(p, i, v)   QN_EACH4(qn_store_u8(p, (i) + u, v[u]))
#define qn_load4_i16(p, i, v)   QN_EACH4(v[u] = qn_load_i16(p, (i) + u))
#define qn_store4_i16(p, i, v)  QN_EACH4(qn_store_i16(p, (i) + u, v[u]))
#define qn_load4_u16(p, i, v)   QN_EACH4(v[u] = qn_load_u16(p, (i) + u))
#define qn_store4_u16(p, i, v)  QN_EACH4(qn_store_u16(p, (i) + u, v[u]))
#define qn_load4_i32(p, i, v)   QN_EACH4(v[u] = qn_load_i32(p, (i) + u))
#define qn_store4_i32(p, i, v)  QN_EACH4(qn_store_i32(p, (i) + u, v[u]))
#define qn_load4_u32(p, i, v)   QN_EACH4(v[u] = qn_load_u32(p, (i) + u))
#define qn_store4_u32(p, i, v)  QN_EACH4(qn_store_u32(p, (i) + u, v[u]))
#define qn_load4_i64(p, i, v)   QN_EACH4(v[u] = qn_load_i64(p, (i) + u))
#define qn_store4_i64(p, i, v)  QN_EACH4(qn_store_i64(p, (i) + u, v[u]))
#define qn_load4_u64(p, i, v)   QN_EACH4(v[u] = qn_load_u64(p, (i) + u))
#define qn_store4_u64(p, i, v)  QN_EACH4(qn_store_u64(p, (i) + u, v[u]))
#define qn_load4_bool(p, i, v)  QN_EACH4(v[u] = qn_load_bool(p, (i) + u))
#define qn_store4_bool(p, i, v) QN_EACH4(qn_store_bool(p, (i) + u, v[u]))
#define QN_GET4(dtype, p, i, n, v)                                                                 \
    do {                                                                                           \
        if ((i) + 4 <= (n)) {                                                                      \
            qn_load4_##dtype(p, i, v);                                                             \
        } else {                                                                                   \
            QN_EACH4(v[u] = qn_load_##dtype(p, (i) + u < (n) ? (i) + u : (n)-1));                  \
        }                                                                                          \
    } while (0)
#define QN_PUT4(dtype, p, i, n, v)                                                                 \
    do {                                                                                           \
        if ((i) + 4 <= (n)) {                                                                      \
            qn_store4_##dtype(p, i, v);                                                            \
        } else {                                                                                   \
            QN_EACH4(if ((i) + u < (n)) qn_store_##dtype(p, (i) + u, v[u]));                       \
        }                                                                                          \
    } while (0)

/* a / b of what is not negative: of 32 bits where they are enough, which costs a third. */
QN_SCALAR qn_long qn_div(qn_long a, qn_long b)
{
    return ((a | b) >> 32) != 0 ? a / b : (qn_long)((qn_uint)a / (qn_uint)b);
}

/* Storage type of the floating-point tensors of an operator's own kernels: float, or 16 bits when
 * QN_F16 or QN_BF16 is defined. Arithmetic is in float. */
#if defined(QN_BF16)
typedef qn_bf16 QN_T;
#define qn_get4(p, i, n, v) QN_GET4(bf16, p, i, n, v)
#define qn_put4(p, i, n, v) QN_PUT4(bf16, p, i, n, v)
#define qn_load(p, i)       qn_load_bf16(p, i)
#define qn_store(p, i, v)   qn_store_bf16(p, i, v)
#elif defined(QN_F16)
typedef qn_f16 QN_T;
#define qn_get4(p, i, n, v) QN_GET4(f16, p, i, n, v)
#define qn_put4(p, i, n, v) QN_PUT4(f16, p, i, n, v)
#define qn_load(p, i)       qn_load_f16(p, i)
#define qn_store(p, i, v)   qn_store_f16(p, i, v)
#else
typedef float QN_T;
#define qn_get4(p, i, n, v) QN_GET4(f32, p, i, n, v)
#define qn_put4(p, i, n, v) QN_PUT4(f32, p, i, n, v)
#define qn_load(p, i)       qn_load_f32(p, i)
#define qn_store(p, i, v)   qn_store_f32(p, i, v)
#endif

/* Eight dims or strides as kernel arguments, outermost first (unused ones lead: dim 1, stride 0),
 * and the offset under strides s of element i of an array of dims d. The host passes them with
 * qn_region_call. */
#define QN_ARG8(d)                                                                                 \
    qn_long d##0, qn_long d##1, qn_long d##2, qn_long d##3, qn_long d##4, qn_long d##5,            \
        qn_long d##6, qn_long d##7
#define QN_PASS8(d) d##0, d##1, d##2, d##3, d##4, d##5, d##6, d##7
QN_SCALAR qn_long qn_strided(qn_long i, QN_ARG8(d), QN_ARG8(s))
{
    qn_long at = i % d7 * s7;
    i /= d7;
    at += i % d6 * s6;
    i /= d6;
    at += i % d5 * s5;
    i /= d5;
    at += i % d4 * s4;
    i /= d4;
    at += i % d3 * s3;
    i /= d3;
    at += i % d2 * s2;
    i /= d2;
    at += i % d1 * s1;
    i /= d1;
    return at + i % d0 * s0;
}

/* A reduction of x, seen as (outer, n, inner, m), over n and m to y, (outer, inner), in one order
 * that its shape decides. The file says what <name>_take makes of an accumulator A and an element,
 * <name>_join of two accumulators, and <name>_end of the last and the number of elements.
 *
 * <name>_fold: a work group folds a share of `width` neighbouring columns, of which there are
 * `splits` shares: every item a strided share of one column, then a tree in shared memory. With one
 * share that is all; else <name>_last folds the shares, eight outputs a group. width is a power of
 * two, so that both the reads of neighbours and the tree stay within columns. */
#define QN_FOLD(name, T, LOAD, STORE, A, START)                                                    \
    QN_KERNEL name##_fold(QN_GLOBAL T *y, QN_GLOBAL const T *x, QN_GLOBAL A *work, qn_long outer,  \
                          qn_long n, qn_long inner, qn_long m, qn_long width, qn_long splits)      \
    {                                                                                              \
        QN_SHARED A part[256];                                                                     \
        const qn_long tiles = (inner + width - 1) / width, tile = qn_group() / splits;             \
        const qn_long share = (n * m + splits - 1) / splits, from = qn_group() % splits * share;   \
        const qn_long to = from + share < n * m ? from + share : n * m;                            \
        const int lid = qn_lid(), w = (int)width, lanes = qn_group_size() / w;                     \
        const qn_long o = tile / tiles, k = tile % tiles * width + lid % w;                        \
        const qn_long rows = lanes / m, rest = lanes % m;                                          \
        qn_long row = (from + lid / w) / m, j = (from + lid / w) % m;                              \
        A a = START;                                                                               \
        for (qn_long i = from + lid / w; i < to && k < inner; i += lanes) {                        \
            a = name##_take(a, LOAD(x, ((o * n + row) * inner + k) * m + j));                      \
            row += rows;                                                                           \
            j += rest;                                                                             \
            if (j >= m) {                                                                          \
                j -= m;                                                                            \
                row++;                                                                             \
            }                                                                                      \
        }                                                                                          \
        part[lid] = a;                                                                             \
        QN_SYNC();                                                                                 \
        for (int h = qn_group_size() / 2; h >= w; h /= 2) {                                        \
            if (lid < h)                                                                           \
                part[lid] = name##_join(part[lid], part[lid + h]);                                 \
            QN_SYNC();                                                                             \
        }                                                                                          \
        if (lid < w && k < inner) {                                                                \
            if (splits > 1)                                                                        \
                work[(o * inner + k) * splits + qn_group() % splits] = part[lid];                  \
            else                                                                                   \
                STORE(y, o *inner + k, name##_end(part[lid], n * m));                              \
        }                                                                                          \
    }                                                                                              \
    QN_KERNEL name##_last(QN_GLOBAL T *y, QN_GLOBAL const T *x, QN_GLOBAL A *work, qn_long outer,  \
                          qn_long n, qn_long inner, qn_long m, qn_long width, qn_long splits)      \
    {                                                                                              \
        QN_SHARED A part[256];                                                                     \
        const int lid = qn_lid(), lane = lid % 32;                                                 \
        const qn_long at = qn_group() * 8 + lid / 32, count = outer * inner;                       \
        A a = START;                                                                               \
        for (qn_long i = lane; i < splits && at < count; i += 32)                                  \
            a = name##_join(a, work[at * splits + i]);                                             \
        part[lid] = a;                                                                             \
        QN_SYNC();                                                                                 \
        for (int h = 16; h > 0; h /= 2) {                                                          \
            if (lane < h)                                                                          \
                part[lid] = name##_join(part[lid], part[lid + h]);                                 \
            QN_SYNC();                                                                             \
        }                                                                                          \
        if (lane == 0 && at < count)                                                               \
            STORE(y, at, name##_end(part[lid], n *m));                                             \
    }

/* For channel ch of an array (rows, c, inner), its elements [from, to): each item runs the
 * statement for a strided share of them, with `at` the element's offset in the array. */
#define QN_CHANNEL(ch, c, inner, from, to, statement)                                              \
    {                                                                                              \
        const qn_long qn_rows = qn_group_size() / (inner), qn_rest = qn_group_size() % (inner);    \
        qn_long qn_row = qn_div((from) + qn_lid(), inner);                                         \
        qn_long qn_j = (from) + qn_lid() - qn_row * (inner);                                       \
        for (qn_long qn_i = (from) + qn_lid(); qn_i < (to); qn_i += qn_group_size()) {             \
            const qn_long at = (qn_row * (c) + (ch)) * (inner) + qn_j;                             \
            statement;                                                                             \
            qn_row += qn_rows;                                                                     \
            qn_j += qn_rest;                                                                       \
            if (qn_j >= (inner)) {                                                                 \
                qn_j -= (inner);                                                                   \
                qn_row++;                                                                          \
            }                                                                                      \
        }                                                                                          \
    }

/* Random words as base/rng.h makes them: Philox 4x32, 10 rounds; out[0..4) is block `counter`. The
 * key tensor is step, or step and seed, as ops/draw.h has it. */
QN_SCALAR void qn_philox(QN_GLOBAL const qn_long *key, qn_long n_key, qn_long stream,
                         qn_ulong counter, qn_uint *out)
{
    qn_ulong seed = n_key > 1 ? (qn_ulong)key[1] : 0;
    qn_uint k0 = (qn_uint)seed, k1 = (qn_uint)(seed >> 32);
    qn_uint x0 = (qn_uint)counter, x1 = (qn_uint)(counter >> 32);
    qn_uint x2 = (qn_uint)stream | 0x80000000u, x3 = (qn_uint)key[0];
    for (int round = 0; round < 10; round++) {
        qn_uint y0 = qn_mulhi(0xcd9e8d57u, x2) ^ x1 ^ k0, y2 = qn_mulhi(0xd2511f53u, x0) ^ x3 ^ k1;
        x1 = 0xcd9e8d57u * x2;
        x3 = 0xd2511f53u * x0;
        x0 = y0;
        x2 = y2;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
}

#define QN_MAP1(name)
#define QN_MAP2(name)
#define QN_MAP3(name)
#define QN_MAP1P(name, ...)
#define QN_MAP2P(name, ...)

#else /* ------------------------------------------------------------------------ C11 */

#include "base/compiler.h"
#include "base/vmath.h"

#define QN_SCALAR       QN_INLINE
#define qn_bits(x)      qn_f32_bits(x)
#define qn_from_bits(x) qn_f32_from_bits(x)
typedef int64_t qn_long;
typedef uint64_t qn_ulong;
typedef uint32_t qn_uint;

#ifdef QN_TILE_ISA /* y[i] = f(x0[i], …) over n elements; y may be one of the x */

#define QN_TILE_JOIN2(name, isa) qn_tile_##name##_##isa
#define QN_TILE_JOIN(name, isa)  QN_TILE_JOIN2(name, isa)
#define QN_TILE(name, call)                                                                        \
    void QN_TILE_JOIN(name, QN_TILE_ISA)(float *y, const float *const *x, const float *p,          \
                                         int64_t n);                                               \
    void QN_TILE_JOIN(name, QN_TILE_ISA)(float *y, const float *const *x, const float *p,          \
                                         int64_t n)                                                \
    {                                                                                              \
        const float *a = x[0], *b = x[1], *c = x[2];                                               \
        const float p0 = p[0], p1 = p[1], p2 = p[2], p3 = p[3];                                    \
        (void)a, (void)b, (void)c, (void)p0, (void)p1, (void)p2, (void)p3;                         \
        QN_IVDEP for (int64_t i = 0; i < n; i++) y[i] = call;                                      \
    }
#define QN_MAP1(name)       QN_TILE(name, name##_f(a[i]))
#define QN_MAP2(name)       QN_TILE(name, name##_f(a[i], b[i]))
#define QN_MAP3(name)       QN_TILE(name, name##_f(a[i], b[i], c[i]))
#define QN_MAP1P(name, ...) QN_TILE(name, name##_f(a[i], __VA_ARGS__)) /* parameters p0.. p3 */
#define QN_MAP2P(name, ...) QN_TILE(name, name##_f(a[i], b[i], __VA_ARGS__))

#else

#define QN_HOST
#define QN_MAP1(name)
#define QN_MAP2(name)
#define QN_MAP3(name)
#define QN_MAP1P(name, ...)
#define QN_MAP2P(name, ...)
#include "ir/graph.h"
#include "ops/ops.h" /* generated: every builder and descriptor */
#include <math.h>
#include <string.h>

#endif
#endif
#endif
