/* Storage of values: which values share memory, and for how long each block lives. */
#ifndef QN_RT_BLOCKS_H
#define QN_RT_BLOCKS_H

#include "rt/select.h"
#include "rt/store.h"

typedef enum QnPlace {
    QN_PLACE_ARENA,
    QN_PLACE_STATE,
    QN_PLACE_CONSTANT,
    QN_PLACE_NOWHERE /* a constant that kernels have packed */
} QnPlace;

typedef struct QnBlock {
    QnPlace place;
    int64_t bytes;
    int64_t first, last; /* node ids; last is n_nodes for graph outputs and late assigns */
    int64_t offset;      /* in the arena or the constant pool, set by the planner */
    const QnSlot *slot;  /* of a state */
} QnBlock;

typedef enum QnRole {
    QN_ROLE_LEAF, /* nothing runs */
    QN_ROLE_VIEW, /* an alias, nothing runs */
    QN_ROLE_STEP,
    QN_ROLE_PLACED, /* an assign whose value is computed in the state's memory: nothing runs */
    QN_ROLE_COPY,   /* an assign that copies after all other steps */
} QnRole;

typedef struct QnBlocks {
    QnGraph *graph;
    const QnStore *store;
    const QnKernel *const *kernels; /* by node id; NULL where nothing runs yet */
    QnBlock *blocks;
    int64_t n, cap;
    int64_t *of;   /* by value id: number of its block, -1 while unknown */
    QnRole *role;  /* by node id */
    bool *inplace; /* by node id: output 0 lies over an input */
    /* Blocks for old contents of states that are assigned, copied before the assigns; -1: none. */
    int64_t *copy;  /* by the graph's output: it is such a content */
    int64_t *via;   /* by node id: the assign's value is one */
    QnArena *arena; /* of the plan, for the arrays above but blocks */
} QnBlocks;

/* Fills b->blocks, of, role, inplace from graph, store, kernels, arena. The caller frees blocks. */
QnStatus qn_blocks_init(QnBlocks *b);

#endif
