/* A device: memory and kernels of one backend. */
#ifndef QN_RT_DEVICE_H
#define QN_RT_DEVICE_H

#include "quern/plan.h"
#include "rt/kernel.h"

typedef enum QnDeviceKind { QN_DEVICE_OTHER, QN_DEVICE_CPU, QN_DEVICE_GPU } QnDeviceKind;

/* What a device says of itself; 0 or "" where it does not. */
typedef struct QnDeviceInfo {
    char name[128];
    QnDeviceKind kind;
    int64_t units; /* multiprocessors, compute units, cores */
    double clock_hz;
    int64_t memory_bytes;
    const char *far;    /* what alloc_far gives, "managed memory"; NULL: the device has none */
    bool far_moves;     /* what is in use of it lies in the device's memory, as far as it fits */
    const char *memory; /* what kind its own is, "buffer objects"; NULL: memory at addresses */
    const char *lacks;  /* to be said where it is opened; NULL: nothing */
} QnDeviceInfo;

/* What a device's work is enqueued to. */
typedef enum QnQueue {
    QN_QUEUE_COMPUTE, /* kernels, and all copies but those of copy_ahead */
    QN_QUEUE_COPY,    /* copies that travel while kernels run */
} QnQueue;

struct QnBatchLaunch;

/* A backend: static, one a folder of src/backend. */
typedef struct QnBackend {
    const char *name; /* "cpu" */
    const QnKernel *const *kernels;
    int n_kernels;
    double balance; /* floating-point operations that such devices do for each byte they move */
    QnStatus (*open)(QnDevice *d, const QnDeviceOptions *o); /* fills env and impl */
    void (*close)(QnDevice *d);                              /* optional */
    void *(*alloc)(QnDevice *d, size_t bytes);               /* aligned to 64; NULL: no memory */
    void (*free)(QnDevice *d, void *p, size_t bytes);
    /* Copies between host memory and the device's; complete on return. */
    QnStatus (*write)(QnDevice *d, void *dst, const void *src, size_t bytes);
    QnStatus (*read)(QnDevice *d, void *dst, const void *src, size_t bytes);
    /* Within the device; regions do not overlap. */
    QnStatus (*copy)(QnDevice *d, void *dst, const void *src, size_t bytes);
    /* optional: waits for all that was enqueued, and gives its error. NULL: nothing outlives a
     * call. */
    QnStatus (*sync)(QnDevice *d);
    /* optional, all four: what kernels and copies enqueue from begin to end becomes a graph and
     * does not run; replay enqueues it whole. Where begin or end fail, nothing is left to be freed.
     */
    QnStatus (*capture_begin)(QnDevice *d);
    QnStatus (*capture_end)(QnDevice *d, void **graph);
    QnStatus (*replay)(QnDevice *d, void *graph);
    void (*capture_free)(QnDevice *d, void *graph);
    /* optional, all of them: a second queue, and events that order the two (rt/staging.h). */
    void *(*host_alloc)(QnDevice *d, size_t bytes); /* that the device copies from by itself; NULL
                                                     * with the error recorded */
    void (*host_free)(QnDevice *d, void *p, size_t bytes);
    /* Enqueues to the copy queue; src is of host_alloc and must stay until the copy is done. */
    QnStatus (*copy_ahead)(QnDevice *d, void *dst, const void *src, size_t bytes);
    QnStatus (*event_new)(QnDevice *d, void **event); /* has happened, until it is recorded */
    void (*event_free)(QnDevice *d, void *event);
    /* It happens when all that the queue holds now is done. */
    QnStatus (*event_record)(QnDevice *d, QnQueue q, void *event);
    /* What is enqueued from now on begins after the event. The host goes on. */
    QnStatus (*event_order)(QnDevice *d, QnQueue q, void *event);
    QnStatus (*event_wait)(QnDevice *d, void *event); /* the host waits for it */
    QnStatus (*info)(QnDevice *d, QnDeviceInfo *out); /* optional */
    /* optional, both: memory of the host at addresses of the device, for what does not fit into its
     * own; NULL with the error recorded. */
    void *(*alloc_far)(QnDevice *d, size_t bytes);
    void (*free_far)(QnDevice *d, void *p, size_t bytes);
    /* optional, all three: many launches of one device text as one (rt/batch.h). Where batch_new
     * refuses, they stay many. */
    QnStatus (*batch_new)(QnDevice *d, const struct QnBatchLaunch *launch, void **out);
    QnStatus (*batch_run)(QnDevice *d, void *batch);
    void (*batch_free)(QnDevice *d, void *batch);
    bool is_host;     /* device pointers can be read and written by the host */
    bool only_counts; /* there is no memory behind its pointers: constants need no values */
} QnBackend;

struct QnDevice {
    const QnBackend *backend;
    QnKernelEnv env;
    size_t now_bytes, peak_bytes; /* allocated through qn_device_alloc */
    size_t limit_bytes;           /* of it in the device's own memory; 0: until that is full */
    size_t far_bytes;             /* of now_bytes, in memory of the host */
    struct QnFarBlock *far;
    size_t align; /* of what kernels get within an allocation; 0: QN_ARENA_ALIGN is enough */
    void *impl;
};

QnStatus qn_device_open(const QnBackend *backend, const QnDeviceOptions *options, QnDevice **out);

/* The passes that a graph for this device goes through: all, and its kernels are asked. */
QnPipelineOptions qn_device_passes(QnDevice *d);

/* What tensors within one allocation begin at multiples of. */
int64_t qn_device_align(const QnDevice *d);

/* NULL with QN_ENOMEM (or the device's failure) recorded, which says how many bytes and what is
 * already taken. What does not fit into the device's memory goes to far memory where it has any. */
void *qn_device_alloc(QnDevice *d, size_t bytes);
void qn_device_free(QnDevice *d, void *p, size_t bytes);
/* Whether the address is in far memory. */
bool qn_device_is_far(const QnDevice *d, const void *p);

/* Zeros where the backend says nothing. */
QnStatus qn_device_info(QnDevice *d, QnDeviceInfo *out);

#endif
