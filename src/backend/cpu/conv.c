#include "backend/cpu/conv.h"

#include <string.h>

const QnConvFns *qn_conv_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return &qn_conv_fns_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}
