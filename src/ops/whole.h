/* Integers in references: exact to 64 bits, wrapping. For operators with QN_WHOLE. */
#ifndef QN_OPS_WHOLE_H
#define QN_OPS_WHOLE_H

#include "ir/dtype.h"
#include "ir/op.h"

/* Whether the reference should compute with integers: input 0 holds them, or bools. */
QN_INLINE bool qn_whole_is(const QnRefArgs *a)
{
    return !qn_dtype_is_float(a->in_type[0]->dtype);
}

/* Element i of an input; of a u64 its bits. */
QN_INLINE int64_t qn_whole_at(const QnRefArgs *a, int input, int64_t i)
{
    return qn_dtype_whole_of(a->in_type[input]->dtype, a->in[input][i], a->i64_bits);
}

/* Sets element i of an output; what does not fit its dtype wraps. */
QN_INLINE void qn_whole_put(const QnRefArgs *a, int output, int64_t i, int64_t v)
{
    a->out[output][i] = qn_dtype_whole_to(a->out_type[output]->dtype, v, a->i64_bits);
}

QN_INLINE int64_t qn_whole_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

QN_INLINE int64_t qn_whole_mul(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

QN_INLINE bool qn_whole_less(QnDtype dtype, int64_t a, int64_t b)
{
    return dtype == QN_DTYPE_U64 ? (uint64_t)a < (uint64_t)b : a < b;
}

#endif
