#include "backend/cpu/stream.h"

#include <string.h>

/* Half of a last-level cache of common size: the other half holds what was read for it. */
enum { STREAM_FROM = 16 << 20 };

QnStreamFn *qn_stream_for(const char *isa, size_t bytes)
{
    if (bytes < STREAM_FROM)
        return NULL;
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return qn_stream_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}
