#include "base/fault.h"

#include <stdatomic.h>
#include <stdlib.h>

static _Atomic int64_t armed_at = -1; /* -1: environment not read yet */
static _Atomic int64_t events;

void qn_fault_arm(int64_t n)
{
    atomic_store(&events, 0);
    atomic_store(&armed_at, n);
}

bool qn_fault_hit(void)
{
    int64_t at = atomic_load_explicit(&armed_at, memory_order_relaxed);
    if (at < 0) {
        const char *text = getenv("QN_FAULT");
        at = text ? atoll(text) : 0;
        atomic_store(&armed_at, at);
    }
    return atomic_fetch_add_explicit(&events, 1, memory_order_relaxed) + 1 == at;
}

int64_t qn_fault_events(void)
{
    return atomic_load(&events);
}
