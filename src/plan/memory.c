#include "plan/memory.h"

#include <string.h>

/* Of maps, what PyTorch's allocator holds beside them in blocks and workspaces of convolutions: the
 * largest batches of ResNet-50 for 11, 16, 24 and 32 GB are 51 MB an image apart. */
#define MAPS_SLACK 0.33

/* Elements that attention writes forward where it is not one kernel. */
static double scores_of(const QnCount *c)
{
    double all = 0;
    for (int64_t i = 0; i < c->n_work; i++)
        if (c->work[i].kind == QN_WORK_ATTENTION && !strstr(c->work[i].op, "grad"))
            all += c->work[i].count * c->work[i].m * c->work[i].n * c->work[i].groups;
    return all;
}

static double activations_of(const QnMemoryRequest *r, const double *x)
{
    double bytes = r->count->activations;
    if (r->stack != QN_MEMORY_EAGER)
        return bytes;
    if (r->images)
        bytes *= x[QN_FLEET_MEMORY_IMAGES];
    else
        bytes = bytes * x[QN_FLEET_MEMORY_TOKENS] +
                scores_of(r->count) * (r->low ? 2 : 4) * x[QN_FLEET_MEMORY_SCORES];
    return r->detection ? bytes + 1e9 * x[QN_FLEET_MEMORY_DETECTION] * r->count->examples : bytes;
}

QnMemoryTerms qn_memory_terms(const QnMemoryRequest *r, const QnFleet *f)
{
    const double *x = f->x;
    double room = r->card->memory_gb * 1024 * 1024 * 1024;
    QnMemoryTerms m = { .weights = r->count->weights,
                        .gradients = r->count->gradients,
                        .optimizer = r->count->optimizer,
                        .activations = activations_of(r, x) };
    double divided = r->count->tables / QN_MAX(r->count->params, 1);
    m.weights *= 1 - divided * (1 - 1.0 / QN_MAX(r->cards, 1));
    if (r->low && r->stack != QN_MEMORY_QUERN) /* and a copy in 16 bits */
        m.weights += 2 * r->count->trained;
    double held = m.weights + m.gradients + m.optimizer + m.activations, maps = 0;
    if (!r->allocated) {
        m.context = 1e9 * x[QN_FLEET_MEMORY_CONTEXT];
        m.workspace = 1e9 * x[QN_FLEET_MEMORY_WORKSPACE];
        m.slack = x[QN_FLEET_MEMORY_SLACK] * held;
        maps = r->images && r->stack == QN_MEMORY_EAGER ? MAPS_SLACK * m.activations : 0;
        m.slack += maps;
    }
    m.total = held + m.context + m.workspace + m.slack;
    if (r->full) { /* blocks that are free stay with the allocator, up to what the device has */
        double kept = x[QN_FLEET_MEMORY_KEPT] * QN_MAX(0, room - (m.total - maps));
        double more = QN_MAX(0, kept - maps); /* which are such blocks too */
        m.slack += more;
        m.total = QN_MIN(m.total + more, room);
    }
    return m;
}
