#include "backend/cpu/relayout.h"

#include <string.h>

QnTurnFn *qn_relayout_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return qn_turn_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}
