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
    QN_KERNEL_WAITS = 1 << 4,       /* run() waits for the device: it cannot be captured */
    QN_KERNEL_TEXT = 1 << 5,        /* runs device text (rt/devtext.h) and nothing else */
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
    /* Constant inputs in a form of the kernel's own: prepare sets how many bytes that takes and, by
     * a bit each, which inputs run() then no longer reads; pack() fills them once. */
    size_t packed_bytes;
    uint64_t packs;
    void *packed;
} QnPrepared;

/* Whether the input is the same in every run: no state, no input, nothing computed. */
bool qn_prepared_is_constant(const QnPrepared *p, int input);

struct QnKernel {
    const char *name;    /* "cpu.softmax.rows", "onednn.conv" */
    const char *backend; /* "cpu" */
    const QnOp *op;      /* NULL: any operator that accepts() takes */
    int rank;            /* higher runs first: 0 the reference, 10 generic, 50 tuned, 80 library */
    unsigned flags;      /* QnKernelFlag */
    /* NULL if the kernel can run the node in these types and layouts, else a reason that fits
     * "refused: ..." and points to static storage or the device's. */
    const char *(*accepts)(const QnNode *n, const QnKernelEnv *env);
    /* optional: builds p->state, sets p->workspace_bytes */
    QnStatus (*prepare)(QnPrepared *p);
    /* in[i] is NULL for an absent input. Buffers are aligned to 64 bytes. May use env->n_threads
     * threads; must be callable from any one thread at a time. An error names the element. */
    QnStatus (*run)(const QnPrepared *p, const void *const *in, void *const *out, void *workspace);
    /* With packed_bytes: in[i] is on the host, NULL where packs has no bit. Devices whose memory is
     * the host's only. */
    QnStatus (*pack)(const QnPrepared *p, const void *const *in, void *packed);
    void (*fini)(QnPrepared *p); /* optional: frees p->state */
};

#endif
