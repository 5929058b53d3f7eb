#include "backend/cpu/update.h"

#include <string.h>

const QnUpdateFns *qn_update_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return &qn_update_fns_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}
