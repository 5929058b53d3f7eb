/* Results that will have left the caches before anybody reads them are written past the caches: a
 * store there would first read the line that it overwrites. */
#ifndef QN_BACKEND_CPU_STREAM_H
#define QN_BACKEND_CPU_STREAM_H

#include "base/compiler.h"
#include "base/isa_list.h"

#include <stddef.h>

/* As memcpy, past the caches. Other threads may see it after qn_stream_end. */
typedef void QnStreamFn(const void *from, void *to, size_t bytes);

#define QN_X(name) QnStreamFn qn_stream_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
QN_INLINE void qn_stream_end(void)
{
    qn_store_fence();
}

/* NULL: a tensor of so many bytes may still be in a cache when it is read. */
QnStreamFn *qn_stream_for(const char *isa, size_t bytes);

#endif
