/* The tensors that live across runs: parameters, moments, statistics. One block of device memory;
 * several plans (training, evaluation) share a store. Its functions are in quern/plan.h. */
#ifndef QN_RT_STORE_H
#define QN_RT_STORE_H

#include "rt/device.h"

struct QnSlot {
    const char *name;
    QnType type;      /* concrete; layout as it lies in memory */
    const void *attr; /* of the state node, owned by the store: how to initialise it */
    const QnOp *op;
    int64_t offset, bytes;
};

struct QnStore {
    QnDevice *device; /* borrowed */
    QnArena *arena;
    QnSlot *slots; /* sorted by name once allocated */
    int64_t n, cap;
    char *base; /* device memory; NULL before qn_store_alloc */
    int64_t bytes;
};

void *qn_store_ptr(const QnStore *s, const QnSlot *slot);

#endif
