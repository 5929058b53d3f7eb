#include "backend/cpu/pool.h"

#include <string.h>

const QnPoolFns *qn_pool_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return &qn_pool_fns_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}
