#include "backend/cpu/fold.h"

#include <string.h>

const QnFoldFns *qn_fold_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return &qn_fold_fns_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}
