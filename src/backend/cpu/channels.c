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

void qn_channels_join_grad(const QnChannelJoin *j, int64_t joint)
{
    int64_t c = joint * QN_CHANNELS_JOINT, n = QN_MIN((int64_t)QN_CHANNELS_JOINT, j->c - c);
    double sum[QN_CHANNELS_JOINT] = { 0 }, dot[QN_CHANNELS_JOINT] = { 0 };
    for (int64_t i = 0; i < j->n_parts; i++) {
        const float *part = j->parts + i * j->step + c;
        for (int64_t k = 0; k < n; k++) {
            sum[k] += part[k];
            dot[k] += part[j->c + k];
        }
    }
    for (int64_t k = 0; k < n; k++) {
        double rstd = j->rstd[c + k];
        if (j->gamma)
            j->to_scale[c + k] = j->gamma[c + k] * j->rstd[c + k];
        j->to_k0[c + k] = (float)(sum[k] / j->n);
        j->to_k1[c + k] = (float)(dot[k] / j->n * rstd * rstd);
        j->dscale[c + k] = (float)(dot[k] * rstd);
        j->dbias[c + k] = (float)sum[k];
    }
}
