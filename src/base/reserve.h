/* Addresses without memory: numbers that name what lies elsewhere, as in objects of a driver's. */
#ifndef QN_BASE_RESERVE_H
#define QN_BASE_RESERVE_H

#include "base/status.h"

/* So many addresses that nothing else of the process has, from a page's begin on; whoever reads or
 * writes there is stopped. NULL with QN_ENOMEM recorded. Given back with the same size. */
void *qn_reserve(size_t bytes);
void qn_unreserve(void *p, size_t bytes);

#endif
