#include "backend/cpu/channels.h"

#include <string.h>

enum { PART = 16384, MOST_PARTS = 256 };

QnChannels qn_channels_of(const QnType *x)
{
    const QnShape *s = &x->shape;
    QnChannels c = { .outer = s->dim[0], .c = s->dim[1], .inner = 1 };
    for (int i = 2; i < s->rank; i++)
        c.inner *= s->dim[i];
    if (x->layout == QN_LAYOUT_CHANNELS_LAST) {
        c.outer *= c.inner;
        c.inner = 1;
    }
    int64_t parts = c.outer * c.c * c.inner / PART;
    c.n_parts = QN_MAX(1, QN_MIN(QN_MIN(parts, MOST_PARTS), c.outer));
    return c;
}

const QnChannelFns *qn_channels_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return &qn_channel_fns_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}
