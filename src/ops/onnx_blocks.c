#include "ops/onnx_blocks.h"

#include "base/mem.h"

#include <stdlib.h>

void qn_onnx_blocks_free(QnOnnxBlocks *b)
{
    for (int64_t i = 0; i < b->n; i++)
        qn_free(b->block[i].p);
    qn_free(b->block);
    *b = (QnOnnxBlocks){ 0 };
}

void *qn_onnx_blocks_take(QnOnnxBlocks *b, size_t bytes)
{
    if (b->most && (bytes > b->most || b->bytes > b->most - bytes)) {
        qn_fail(QN_ENOMEM, "%zu bytes are needed besides %llu; at most %llu may be taken", bytes,
                (unsigned long long)b->bytes, (unsigned long long)b->most);
        return NULL;
    }
    if (QN_GROW(b->block, b->cap, b->n) != QN_OK)
        return NULL;
    char *p = qn_alloc(bytes);
    if (!p)
        return NULL;
    b->block[b->n++] = (QnOnnxBlock){ p, bytes, false };
    b->bytes += bytes;
    return p;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const QnOnnxBlock *)a)->p;
    uintptr_t y = (uintptr_t)((const QnOnnxBlock *)b)->p;
    return x < y ? -1 : x > y;
}

void qn_onnx_blocks_begin(QnOnnxBlocks *b)
{
    if (b->n > 1)
        qsort(b->block, (size_t)b->n, sizeof *b->block, by_address);
    for (int64_t i = 0; i < b->n; i++)
        b->block[i].is_live = false;
}

bool qn_onnx_blocks_mark(QnOnnxBlocks *b, const void *p)
{
    uintptr_t at = (uintptr_t)p;
    int64_t lo = 0, hi = b->n; /* the last block that begins at or before p */
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if ((uintptr_t)b->block[mid].p <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == 0 || at - (uintptr_t)b->block[lo - 1].p >= QN_MAX(b->block[lo - 1].bytes, 1))
        return false;
    bool is_new = !b->block[lo - 1].is_live;
    b->block[lo - 1].is_live = true;
    return is_new;
}

void qn_onnx_blocks_sweep(QnOnnxBlocks *b)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < b->n; i++) {
        if (b->block[i].is_live) {
            b->block[kept++] = b->block[i];
        } else {
            b->bytes -= b->block[i].bytes;
            qn_free(b->block[i].p);
        }
    }
    b->n = kept;
}
