/* The CPU backend's own declarations. */
#ifndef QN_BACKEND_CPU_CPU_H
#define QN_BACKEND_CPU_CPU_H

#include "rt/device.h"

extern const QnBackend qn_backend_cpu;

/* The best instruction set of base/isa_list.h that this CPU can run: its name, static storage. */
const char *qn_cpu_isa_best(void);
/* Whether the CPU can run it and Quern was built with it. */
bool qn_cpu_isa_is_usable(const char *isa);

/* y[i] = f(x0[i], x1[i], x2[i]; p0..p3); y may be one of the x. */
typedef void QnTileFn(float *y, const float *const *x, const float *p, int64_t n);

typedef struct QnTile {
    const QnOp *op; /* NULL ends the table */
    QnTileFn *fn;
} QnTile;

/* Compiled for the instruction set; NULL: the operator has none. */
QnTileFn *qn_cpu_tile(const char *isa, const QnOp *op);

/* Runs fn(ctx, part, n_parts) for every part, on up to n_threads threads. Parts are numbered from 0
 * and their number does not depend on the threads if the caller's does not. */
void qn_cpu_parallel(int n_threads, int64_t n_parts, void (*fn)(void *ctx, int64_t part),
                     void *ctx);

/* Runs fn(ctx, worker, unit) for every unit, handed out as workers come free; worker < n_threads
 * says whose scratch memory to use. */
void qn_cpu_units(int n_threads, int64_t n_units, void (*fn)(void *ctx, int worker, int64_t unit),
                  void *ctx);

/* Splits n items into parts of at least `grain`, at most 4 a thread: the begin of a part. */
int64_t qn_cpu_parts(int n_threads, int64_t n, int64_t grain);
int64_t qn_cpu_part_begin(int64_t n, int64_t n_parts, int64_t part);

/* Threads that the node's work is worth: 1 for what takes less time than waking the others, whose
 * cost is far from small on a busy machine. */
int qn_cpu_threads(const QnPrepared *p);

/* The node's attribute of that name, which its operator must have. */
const void *qn_cpu_attr(const QnNode *n, const char *name);
/* NULL if all the node's tensors are plain, else the reason that kernels give. */
const char *qn_cpu_need_plain(const QnNode *n);
/* NULL if all the node's floating-point tensors are f32, else the reason that kernels give. */
const char *qn_cpu_need_f32(const QnNode *n);

#endif
