#include "backend/cpu/lrn.h"

#include <string.h>

const QnLrnFns *qn_lrn_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return &qn_lrn_fns_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}
