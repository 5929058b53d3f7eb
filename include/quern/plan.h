/* Running graphs: a device, a store of the tensors that live across runs, and plans.
 *
 *   QnDevice *d;  qn_device_open_named("cpu", NULL, &d);
 *   QnStore *s = qn_store_new(d);  qn_store_add(s, g);  qn_store_alloc(s);  qn_store_fill(s, seed);
 *   QnPlan *p;  qn_plan_new(g, d, s, NULL, &p);
 *   qn_plan_write(p, "x", x, bytes);  qn_plan_run(p);  qn_plan_read(p, "y", y, bytes);
 *
 * Free in the opposite order: plans, store, device; a plan's graph after the plan. */
#ifndef QUERN_PLAN_H
#define QUERN_PLAN_H

#include <quern/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices ---- */

typedef struct QnDevice QnDevice;

typedef struct QnDeviceOptions {
    int n_threads;        /* 0: as many as the process may use cores */
    bool strict;          /* only kernels whose result does not depend on the thread count */
    const char *isa;      /* NULL: the best the CPU can run */
    int index;            /* which device of the backend, from 0 */
    int64_t memory_bytes; /* of the device's own that may be used, 0: all; what plans take beyond
                           * that lies in memory of the host, where the device reaches it */
} QnDeviceOptions;

/* "cpu", "opencl" or "opencl:1" (a device of any OpenCL platform), "cuda" or "cuda:1" (through the
 * plugin libquern_cuda.so), "null", which computes nothing and only counts memory, or "auto": a
 * CUDA device, else an OpenCL device that is no CPU, else the CPU. NULL is the CPU. options may be
 * NULL. */
QN_API QnStatus qn_device_open_named(const char *name, const QnDeviceOptions *options,
                                     QnDevice **out);
QN_API void qn_device_close(QnDevice *d); /* NULL is fine; its buffers must be freed before */

/* Whether the device has a kernel of its own for the node. Fits QnPipelineOptions.keep with the
 * device as keep_ctx: composite operators then stay whole where that is faster. */
QN_API bool qn_device_has_kernel(void *device, const QnNode *n);
/* For QnPipelineOptions.prefers: whether the device runs `one` by a kernel of its own, no worse in
 * rank than that of `part`. */
QN_API bool qn_device_prefers(void *device, const QnNode *one, const QnNode *part);
/* Whether what runs the node is tuned rather than generic. Fits QnPipelineOptions.tuned. */
QN_API bool qn_device_is_tuned(void *device, const QnNode *n);

/* ---- the store ---- */

/* Parameters, moments, statistics: what state nodes name. One block of device memory, which
 * several plans (training, evaluation) share. */
typedef struct QnStore QnStore;
typedef struct QnSlot QnSlot; /* one tensor of it; valid while the store is */

QN_API QnStore *qn_store_new(QnDevice *d); /* NULL: out of memory */
QN_API void qn_store_free(QnStore *s);
/* Takes in the graph's state nodes. A name met before must have the same type. Before alloc only,
 * unless all names are known. */
QN_API QnStatus qn_store_add(QnStore *s, const QnGraph *g);
QN_API QnStatus qn_store_alloc(QnStore *s); /* zeroed; a second time it does nothing */
/* Fills every state as its node says, from the seed and the state's name: the same numbers whatever
 * else is in the store. */
QN_API QnStatus qn_store_fill(QnStore *s, uint64_t seed);
/* In order of their names; NULL: there is no i-th. */
QN_API int64_t qn_store_count(const QnStore *s);
QN_API const QnSlot *qn_store_at(const QnStore *s, int64_t i);
QN_API const QnSlot *qn_store_find(const QnStore *s, const char *name); /* or NULL */
QN_API const char *qn_slot_name(const QnSlot *slot);
QN_API const QnType *qn_slot_type(const QnSlot *slot);
/* Copies between the host and the store, in row-major order of the slot's dtype: qn_type_bytes of
 * its type. */
QN_API QnStatus qn_store_write(QnStore *s, const QnSlot *slot, const void *src);
QN_API QnStatus qn_store_read(const QnStore *s, const QnSlot *slot, void *dst);
/* A safetensors file of all states whose name begins with `prefix` (NULL: all), replaced in one
 * step. */
QN_API QnStatus qn_store_save(const QnStore *s, const char *prefix, const char *path);
/* Fills the states that the file names: safetensors (or an index of shards), .npz, .npy, or what
 * torch.save wrote, told by the content; its other tensors are passed over. A tensor of another
 * type or shape is an error, which names it, and changes nothing. *n (may be NULL): how many were
 * filled. */
QN_API QnStatus qn_store_load(QnStore *s, const char *path, int64_t *n);

/* States that no assign of the graph writes become constants with what the store holds now: for
 * inference, before qn_pipeline_run, which then computes with them what it can, as batch norms into
 * convolutions; and plans pack them once in place of at every run. Nothing is copied that the host
 * can read where it lies: the elements stay the store's, until the last plan of the graph is made.
 * A state that the store does not hold, or that a device which only counts holds, is an error; the
 * graph is then as it was. */
QN_API QnStatus qn_graph_freeze(QnGraph *g, const QnStore *store);
/* Gives the memory of all states back: once frozen graphs are planned, nothing needs it. No such
 * graph may be planned or printed after that. Names and types stay; qn_store_alloc takes memory
 * anew. */
QN_API void qn_store_release(QnStore *s);

/* ---- plans ---- */

typedef struct QnChoices QnChoices; /* measured choices of kernels */
/* A graph compiled for one device into a flat list of steps with buffers at fixed offsets. Running
 * it allocates nothing. */
typedef struct QnPlan QnPlan;

typedef struct QnPlanOptions {
    const QnChoices *choices; /* NULL: ranks decide */
    bool poison;              /* fill memory with NaN patterns before it is written and after its
                               * last use: finds reads of what is not there (tests) */
    bool profile;             /* measure each step */
    bool profile_cpu;  /* the same in processor time of all threads, which the time that other
                        * programs take does not add to */
    bool check_finite; /* stop at the first step that writes an infinity or a NaN, naming node
                        * and element; costs a pass over all outputs, on the host */
    bool no_capture;   /* launch every step, though the device could replay all as a graph */
} QnPlanOptions;

/* Compiles and allocates. The graph must be concrete (qn_graph_bind), have gone through
 * qn_pipeline_run, and outlive the plan unchanged. The store must hold the graph's states and be
 * allocated; NULL where there are none. options may be NULL. */
QN_API QnStatus qn_plan_new(QnGraph *g, QnDevice *d, QnStore *store, const QnPlanOptions *options,
                            QnPlan **out);
QN_API void qn_plan_free(QnPlan *p);

/* Copies `bytes` (what the input's type takes) to input `name`, before each run: an input does not
 * keep its content over one. An error names the input and what it takes. Inputs that nothing uses
 * are still there if the pipeline had keep_inputs. */
QN_API QnStatus qn_plan_write(QnPlan *p, const char *name, const void *src, size_t bytes);
/* One run. An error names the node; states may then be half updated. */
QN_API QnStatus qn_plan_run(QnPlan *p);
/* Copies the graph output `name` after a run. */
QN_API QnStatus qn_plan_read(const QnPlan *p, const char *name, void *dst, size_t bytes);

/* The device memory of input `name`, to be written before each run; on the CPU it can be written in
 * place. NULL: the graph has no such input. *type may be NULL. */
QN_API void *qn_plan_input(const QnPlan *p, const char *name, QnType *type);
/* Device memory of a graph output, valid after a run until the next. NULL: no such output. */
QN_API const void *qn_plan_output(const QnPlan *p, const char *name, QnType *type);

/* Bytes: the arena of activations and workspaces, as planned; constants; and the sum of both and
 * the store, which is what the device has been asked for. */
typedef struct QnPlanMemory {
    int64_t arena_bytes, bound_bytes; /* bound: no placement could be smaller */
    int64_t constant_bytes, state_bytes;
    int64_t planned_peak_bytes;
} QnPlanMemory;
QN_API QnPlanMemory qn_plan_memory(const QnPlan *p);

#ifdef __cplusplus
}
#endif

#endif
