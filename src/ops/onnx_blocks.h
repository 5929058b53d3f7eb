/* Memory of what is made while a model is imported, tensors and lists: freed piece by piece when
 * nothing reaches it any more, and bounded. A loop of many turns would else fill the machine. */
#ifndef QN_OPS_ONNX_BLOCKS_H
#define QN_OPS_ONNX_BLOCKS_H

#include "base/status.h"

typedef struct QnOnnxBlock {
    char *p;
    size_t bytes;
    bool is_live;
} QnOnnxBlock;

typedef struct QnOnnxBlocks {
    QnOnnxBlock *block;
    int64_t n, cap;
    uint64_t bytes, most; /* held now; at most. 0: no bound */
} QnOnnxBlocks;

void qn_onnx_blocks_free(QnOnnxBlocks *b);
/* Zeroed; lives until a sweep that finds it unmarked. NULL: the error is recorded. */
void *qn_onnx_blocks_take(QnOnnxBlocks *b, size_t bytes);

/* In this order: begin, mark whatever is reached (addresses inside of blocks, and others, which are
 * passed over; true: it was not marked before), sweep. */
void qn_onnx_blocks_begin(QnOnnxBlocks *b);
bool qn_onnx_blocks_mark(QnOnnxBlocks *b, const void *p);
void qn_onnx_blocks_sweep(QnOnnxBlocks *b);

#endif
