#include "base/reserve.h"

#include "base/fault.h"

#include <sys/mman.h>

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

void *qn_reserve(size_t bytes)
{
    void *p = MAP_FAILED;
    if (!qn_fault_hit())
        p = mmap(NULL, bytes ? bytes : 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
    if (p != MAP_FAILED)
        return p;
    qn_fail(QN_ENOMEM, "cannot reserve %zu addresses", bytes);
    return NULL;
}

void qn_unreserve(void *p, size_t bytes)
{
    if (p)
        munmap(p, bytes ? bytes : 1);
}
