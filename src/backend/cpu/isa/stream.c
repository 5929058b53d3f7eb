/* Copies past the caches. */
#include "backend/cpu/stream.h"
#include "backend/cpu/isa/simd.h"

#include <string.h>

void QN_ISA_NAME(qn_stream)(const void *from, void *to, size_t bytes)
{
    enum { LINE = VW * (int)sizeof(float) };
    QnVec v;
    const char *x = from;
    char *y = to;
    size_t head = (size_t)(-(uintptr_t)y % LINE);
    if (head)
        memcpy(y, x, head = QN_MIN(head, bytes));
    size_t i = head;
    for (; i + LINE <= bytes; i += LINE)
        qn_vec_stream((float *)(void *)(y + i), *(QnVec *)memcpy(&v, x + i, sizeof v));
    memcpy(y + i, x + i, bytes - i);
}
