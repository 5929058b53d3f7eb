/* The tensors that live across runs: parameters, moments, statistics. One block of device memory;
 * several plans (training, evaluation) share a store. */
#ifndef QN_RT_STORE_H
#define QN_RT_STORE_H

#include "rt/device.h"

typedef struct QnSlot {
    const char *name;
    QnType type;      /* concrete; layout as it lies in memory */
    const void *attr; /* of the state node, owned by the store: how to initialise it */
    const QnOp *op;
    int64_t offset, bytes;
} QnSlot;

typedef struct QnStore {
    QnDevice *device; /* borrowed */
    QnArena *arena;
    QnSlot *slots; /* sorted by name once allocated */
    int64_t n, cap;
    char *base; /* device memory; NULL before qn_store_alloc */
    int64_t bytes;
} QnStore;

QnStore *qn_store_new(QnDevice *d);
void qn_store_free(QnStore *s);
/* Takes in the graph's state nodes. A name met before must have the same type. Before alloc only,
 * unless all names are known. */
QnStatus qn_store_add(QnStore *s, const QnGraph *g);
QnStatus qn_store_alloc(QnStore *s); /* zeroed */
const QnSlot *qn_store_find(const QnStore *s, const char *name);
void *qn_store_ptr(const QnStore *s, const QnSlot *slot);
/* Host copies in logical row-major order of the slot's dtype; bytes must be slot->bytes. */
QnStatus qn_store_write(QnStore *s, const QnSlot *slot, const void *src);
QnStatus qn_store_read(const QnStore *s, const QnSlot *slot, void *dst);

#endif
