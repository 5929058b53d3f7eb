/* Tensors of any element size turned from one order in memory to another. */
#ifndef QN_BACKEND_CPU_RELAYOUT_H
#define QN_BACKEND_CPU_RELAYOUT_H

#include "base/isa_list.h"
#include "base/compiler.h"

/* to[j * to_step + i] = from[i * from_step + j] for floats. */
typedef void QnTurnFn(const float *from, int64_t from_step, int64_t rows, int64_t columns,
                      float *to, int64_t to_step);
#define QN_X(name) QnTurnFn qn_turn_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
QnTurnFn *qn_relayout_find(const char *isa);

#endif
