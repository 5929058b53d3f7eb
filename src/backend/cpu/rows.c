#include "backend/cpu/rows.h"

#include <string.h>

const QnRowFns *qn_rows_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return &qn_row_fns_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}
