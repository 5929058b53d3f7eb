/* What the operators that multiply matrices share. */
#ifndef QN_OPS_MATMUL_H
#define QN_OPS_MATMUL_H

#include "ir/graph.h"

typedef struct QnMatmulAttr {
    bool trans_a, trans_b; /* the last two axes of the operand are swapped */
} QnMatmulAttr;

/* Length of the folded axis of inputs 0 and 1. */
int64_t qn_matmul_length(const QnNode *n, bool trans_a);

/* The launch of a kernel of matmul's device text, one work group 64x64 of out[0]; those that take
 * a bias of any shape get its strides as well. */
QnStatus qn_matmul_tiles(const QnNode *n, bool trans_a, bool trans_b, const char *kernel,
                         QnDeviceCall *c);
void qn_matmul_tiles_bias(const QnNode *n, QnDeviceCall *c);

#endif
