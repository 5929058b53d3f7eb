/* Element types: quern/types.h. */
#ifndef QN_IR_DTYPE_H
#define QN_IR_DTYPE_H

#include "base/float8.h"
#include "base/status.h"
#include "quern/types.h"

/* Whether it is a float of 8 or 4 bits, and which. */
bool qn_dtype_float8(QnDtype dtype, QnFloat8 *format);

/* i64 and u64, which doubles cannot hold: where it must be exact, their bits stand in for them. */
bool qn_dtype_is_wide(QnDtype dtype);

/* An integer's or bool's low bits as an element of the dtype: what overflow leaves, as an int64_t
 * (a u64 as its bits). */
int64_t qn_dtype_wrap(QnDtype dtype, int64_t v);

/* An element of an integer dtype or bool among doubles, where with `bits` 64-bit integers are bit
 * patterns. To: what does not fit wraps. */
int64_t qn_dtype_whole_of(QnDtype dtype, double x, bool bits);
double qn_dtype_whole_to(QnDtype dtype, int64_t v, bool bits);

/* n elements of an integer dtype or bool, exactly; u64 as bits. */
void qn_dtype_to_i64(QnDtype dtype, const void *src, int64_t *dst, int64_t n);

#endif
