/* Fault injection, for tests only: fails the n-th allocation, read, write, fsync or rename of the
 * process, counted from the last qn_fault_arm (or from the start, by the environment variable
 * QN_FAULT=n). This and the allocation counter are the library's only process-wide state. */
#ifndef QN_BASE_FAULT_H
#define QN_BASE_FAULT_H

#include "base/compiler.h"

void qn_fault_arm(int64_t n);  /* 0: never fail; 1: fail the next event, once */
bool qn_fault_hit(void);       /* counts one event; true: it must fail */
int64_t qn_fault_events(void); /* events since the last arm */

#endif
