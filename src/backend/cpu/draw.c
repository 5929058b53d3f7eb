#include "backend/cpu/draw.h"

#include <string.h>

QnDrawFn *qn_draw_words_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return qn_draw_words_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}
