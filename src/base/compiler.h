/* The one place for compiler extensions: everything else is plain C11. */
#ifndef QN_BASE_COMPILER_H
#define QN_BASE_COMPILER_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#if defined(__GNUC__) || defined(__clang__)
#define QN_PRINTF(fmt, args)       __attribute__((format(printf, fmt, args)))
#define QN_UNUSED                  __attribute__((unused))
#define QN_ALIGNED(n)              __attribute__((aligned(n)))
#define QN_INLINE                  static inline __attribute__((always_inline, unused))
#define QN_LIKELY(x)               __builtin_expect(!!(x), 1)
#define QN_UNLIKELY(x)             __builtin_expect(!!(x), 0)
#define QN_TARGET(features)        __attribute__((target(features)))
#define QN_RESTRICT                __restrict__
#define QN_TYPEOF(x)               __typeof__(x)
#define qn_mul_overflow(a, b, out) __builtin_mul_overflow((a), (b), (out))
#define qn_add_overflow(a, b, out) __builtin_add_overflow((a), (b), (out))
#ifdef __clang__
#define QN_IVDEP  _Pragma("clang loop vectorize(assume_safety)")
#define QN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define QN_IVDEP  _Pragma("GCC ivdep")
#define QN_UNROLL _Pragma("GCC unroll 64")
#endif
/* In a typedef of float: a vector of so many bytes, which may lie anywhere a float may. */
#define QN_VECTOR(bytes) __attribute__((vector_size(bytes), aligned(4), may_alias))
/* The lanes of a and b, counted through, that the numbers name. */
#define QN_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#if defined(__x86_64__)
#define qn_cpu_has(feature) __builtin_cpu_supports(feature)
#endif
#define qn_prefetch(p)     __builtin_prefetch(p)
#define qn_prefetch_far(p) __builtin_prefetch((p), 0, 2) /* into the second-level cache */
/* Before it: stores past the caches. */
#if defined(__x86_64__)
#define qn_store_fence() __builtin_ia32_sfence()
#else
#define qn_store_fence() ((void)0)
#endif
#else
#error "Quern needs gcc or clang: add this compiler's extensions here"
#endif

#define QN_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define QN_MIN(a, b)    ((a) < (b) ? (a) : (b))
#define QN_MAX(a, b)    ((a) > (b) ? (a) : (b))

#endif
