/* qn_turn as a function. */
#include "backend/cpu/relayout.h"
#include "backend/cpu/isa/simd.h"

QnTurnFn QN_ISA_NAME(qn_turn);

void QN_ISA_NAME(qn_turn)(const float *from, int64_t from_step, int64_t rows, int64_t columns,
                          float *to, int64_t to_step)
{
    qn_turn(from, from_step, rows, columns, to, to_step);
}
