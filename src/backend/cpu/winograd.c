#include "backend/cpu/winograd.h"

#include <string.h>

const QnWinogradFns *qn_winograd_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return &qn_winograd_fns_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}
