/* safetensors: what is accepted has every tensor inside the file, once. */
#include <stdint.h>
#include <stdlib.h>

#include "io/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    QnSafetensors *s;
    if (qn_safetensors_parse("f", data, size, &s) != QN_OK)
        return 0;
    unsigned sum = 0;
    size_t bytes = 0;
    for (int64_t i = 0; i < qn_safetensors_count(s); i++) {
        const QnSafetensor *t = qn_safetensors_at(s, i);
        if (qn_safetensors_find(s, t->name) != t)
            abort();
        for (size_t k = 0; k < t->bytes; k++)
            sum += ((const uint8_t *)t->data)[k];
        bytes += t->bytes;
    }
    if (bytes > size)
        abort();
    volatile unsigned sink = sum;
    (void)sink;
    qn_safetensors_free(s);
    return 0;
}
