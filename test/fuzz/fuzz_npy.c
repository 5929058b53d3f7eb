/* .npy: what is accepted holds as many bytes as its shape says. */
#include <stdint.h>
#include <stdlib.h>

#include "io/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    QnNpy npy;
    if (qn_npy_parse("f", data, size, &npy) != QN_OK)
        return 0;
    size_t bytes = (size_t)npy.count * qn_dtype_bytes(npy.dtype);
    unsigned sum = 0;
    for (size_t i = 0; i < bytes; i++)
        sum += ((const uint8_t *)npy.data)[i];
    volatile unsigned sink = sum;
    (void)sink;
    qn_npy_fini(&npy);
    return 0;
}
