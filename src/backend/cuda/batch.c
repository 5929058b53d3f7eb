/* Many launches of one text as one: rt/batch.h. */
#include "rt/batch.h"
#include "backend/cuda/cuda.h"

#include "backend/cuda/host.h"

typedef struct Batch {
    CUfunction function;
    unsigned n_groups;
    const void *table;
    int64_t n_rows;
} Batch;

QnStatus qn_cuda_batch_new(QnDevice *d, const QnBatchLaunch *l, void **out)
{
    QnCuda *c = d->impl;
    if (l->n_groups > INT32_MAX)
        return qn_fail(QN_EUNSUPPORTED, "%lld blocks are more than a launch takes, %d",
                       (long long)l->n_groups, INT32_MAX);
    Batch *b = qn_alloc(sizeof *b);
    if (!b)
        return QN_ENOMEM;
    *b = (Batch){ .n_groups = (unsigned)l->n_groups, .table = l->table, .n_rows = l->n_rows };
    QnStatus st = qn_cuda_kernel(c, l->text, "qn_batch", l->storage, &b->function);
    if (st == QN_OK)
        *out = b;
    else
        qn_free(b);
    return st;
}

QnStatus qn_cuda_batch_run(QnDevice *d, void *batch)
{
    QnCuda *c = d->impl;
    Batch *b = batch;
    void *param[] = { &b->table, &b->n_rows };
    QN_TRY(qn_cuda_enter(c));
    QN_CUDA_TRY(&c->cu, cuLaunchKernel(b->function, b->n_groups, 1, 1, QN_BATCH_ITEMS, 1, 1, 0,
                                       c->stream, param, NULL));
    return QN_OK;
}

void qn_cuda_batch_free(QnDevice *d, void *batch)
{
    (void)d;
    qn_free(batch);
}
