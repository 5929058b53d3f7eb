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
    void **copies; /* of each slot's elements, on the host; NULL: none was asked for */
};

void *qn_store_ptr(const QnStore *s, const QnSlot *slot);

/* The slot's elements, row-major, where the host can read them: the store's own memory, or, where
 * the host cannot read that, a copy that the store keeps. They stay until qn_store_release. */
QnStatus qn_store_borrow(const QnStore *s, const QnSlot *slot, const void **data);

#endif
