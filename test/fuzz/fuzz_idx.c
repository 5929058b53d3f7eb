/* IDX and gzip: any bytes are read or refused. */
#include <stdint.h>

#include "base/mem.h"
#include "io/gz.h"
#include "io/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    QnIdx idx;
    double sum = 0;
    if (qn_idx_parse("f", data, size, &idx) == QN_OK)
        for (int64_t i = 0; i < idx.count; i++)
            sum += qn_idx_at(&idx, i);
    uint8_t *out;
    size_t n;
    if (qn_gz_is_packed(data, size) && qn_gz_unpack("f", data, size, 1 << 20, &out, &n) == QN_OK)
        qn_free(out);
    volatile double sink = sum;
    (void)sink;
    return 0;
}
