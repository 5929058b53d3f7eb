/* Kernels: implementations of operators on one backend, competing behind one selection. */
#ifndef QN_RT_KERNEL_H
#define QN_RT_KERNEL_H

#include "ir/graph.h"

typedef struct QnKernel QnKernel;

typedef enum QnKernelFlag {
    QN_KERNEL_ANY_THREADS = 1 << 0, /* the same bits whatever the thread count (needed by
                                     * `determinism: strict`) */
    QN_KERNEL_EXACT_COPY = 1 << 1,  /* only moves data; never needs a check against ref */
    QN_KERNEL_LIBRARY = 1 << 2,     /* wraps a library (named in the kernel's name) */
    QN_KERNEL_NO_INPLACE = 1 << 3,  /* outputs must not overlap inputs though the op allows it */
} QnKernelFlag;

/* What a kernel may know of the machine it runs on. */
typedef struct QnKernelEnv {
    int n_threads;   /* that run() may use, at least 1 */
    const char *isa; /* "v2", "v3", "v4", "neon": the best the CPU can run, or as asked for */
    bool strict;     /* determinism for any thread count */
    void *impl;      /* the device's own (QnDevice.impl) */
} QnKernelEnv;

/* A kernel made ready for one node: shapes are fixed, run() allocates nothing. */
typedef struct QnPrepared {
    const QnKernel *kernel;
    const QnNode *node;     /* types concrete, layouts decided; borrowed */
    const QnKernelEnv *env; /* borrowed */
    void *state;            /* the kernel's own, freed by fini */
    size_t workspace_bytes; /* scratch that run() gets, from the planned arena */
} QnPrepared;

struct QnKernel {
    const char *name;    /* "cpu.softmax.rows", "onednn.conv" */
    const char *backend; /* "cpu" */
    const QnOp *op;      /* NULL: any operator that accepts() takes */
    int rank;            /* higher runs first: 0 the reference, 10 generic, 50 tuned, 80 library */
    unsigned flags;      /* QnKernelFlag */
    /* NULL if the kernel can run the node in these types and layouts, else a reason that fits
     * "refused: ..." and points to static storage. */
    const char *(*accepts)(const QnNode *n, const QnKernelEnv *env);
    /* optional: builds p->state, sets p->workspace_bytes */
    QnStatus (*prepare)(QnPrepared *p);
    /* in[i] is NULL for an absent input. Buffers are aligned to 64 bytes. May use env->n_threads
     * threads; must be callable from any one thread at a time. An error names the element. */
    QnStatus (*run)(const QnPrepared *p, const void *const *in, void *const *out, void *workspace);
    void (*fini)(QnPrepared *p); /* optional: frees p->state */
};

#endif
