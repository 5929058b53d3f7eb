/* .npz: what is accepted holds as many bytes as its shapes say, and they can be read or are
 * refused. */
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "io/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    QnNpz *z;
    if (qn_npz_parse("f", data, size, &z) != QN_OK)
        return 0;
    unsigned sum = 0;
    for (int64_t i = 0; i < qn_npz_count(z); i++) {
        QnNpy a;
        if (qn_npz_find(z, qn_npz_name(z, i)) != i)
            abort();
        if (qn_npz_read(z, i, &a) != QN_OK)
            continue;
        for (size_t k = 0; k < (size_t)a.count * qn_dtype_bytes(a.dtype); k++)
            sum += ((const uint8_t *)a.data)[k];
        qn_npy_fini(&a);
    }
    volatile unsigned sink = sum;
    (void)sink;
    qn_npz_close(z);
    return 0;
}
