#include "backend/cpu/dots.h"

#include <string.h>

QnDotsFn *qn_dots_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return qn_dots_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}
