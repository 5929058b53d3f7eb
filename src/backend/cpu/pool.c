#include "backend/cpu/pool.h"

#include "base/mem.h"

#include <string.h>

const QnPoolFns *qn_pool_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return &qn_pool_fns_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}

const QnPoolNormFns *qn_pool_norm_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return &qn_pool_norm_fns_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}

static void reach_axis(QnPoolReach *r, const QnWindow *w, int d)
{
    int64_t n = 0;
    for (int64_t e = 0; e < w->in[d]; e++) {
        r->begin[d][e] = n;
        for (int64_t t = w->k[d] - 1; t >= 0; t--) { /* windows in order */
            int64_t from = e + w->pad[d] - t * w->dil[d];
            if (from < 0 || from % w->stride[d] || from / w->stride[d] >= w->out[d])
                continue;
            r->window[d][n] = from / w->stride[d];
            r->tap[d][n++] = t;
        }
    }
    r->begin[d][w->in[d]] = n;
}

QnStatus qn_pool_reach_init(QnPoolReach *r, const QnWindow *w)
{
    *r = (QnPoolReach){ 0 };
    for (int d = 0; d < 3; d++) {
        size_t most = (size_t)(w->in[d] * w->k[d]) + 1;
        r->begin[d] = qn_alloc_array((size_t)w->in[d] + 1, sizeof *r->begin[d]);
        r->window[d] = qn_alloc_array(most, sizeof *r->window[d]);
        r->tap[d] = qn_alloc_array(most, sizeof *r->tap[d]);
        if (!r->begin[d] || !r->window[d] || !r->tap[d])
            return QN_ENOMEM;
        reach_axis(r, w, d);
    }
    return QN_OK;
}

void qn_pool_reach_fini(QnPoolReach *r)
{
    for (int d = 0; d < 3; d++) {
        qn_free(r->begin[d]);
        qn_free(r->window[d]);
        qn_free(r->tap[d]);
    }
}
