/* The axes of a map as its device text walks them. */
#ifndef QN_RT_AXES_H
#define QN_RT_AXES_H

#include "rt/devtext_impl.h"

/* The output's axes, longest run of neighbours that every input treats alike in one; and how each
 * input's elements lie in memory. */
typedef struct QnAxes {
    int n;
    int64_t dim[QN_MAX_RANK];
    bool reads[QN_DEVTEXT_MAX_IN][QN_MAX_RANK]; /* false: broadcast along the axis */
    int order[QN_DEVTEXT_MAX_IN][QN_MAX_RANK];  /* axes by memory, outermost first */
    bool by_four; /* an item does four neighbours of the output's memory */
} QnAxes;

/* Of a node whose outputs are of one shape and layout, with at most QN_DEVTEXT_MAX_IN inputs. */
void qn_axes_find(const QnNode *n, QnAxes *a);

#endif
