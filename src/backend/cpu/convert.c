#include "backend/cpu/convert.h"

#include <string.h>

const QnConvertFns *qn_convert_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return &qn_convert_fns_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}
