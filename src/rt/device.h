/* A device: memory and kernels of one backend. */
#ifndef QN_RT_DEVICE_H
#define QN_RT_DEVICE_H

#include "quern/plan.h"
#include "rt/kernel.h"

/* A backend: static, one a folder of src/backend. */
typedef struct QnBackend {
    const char *name; /* "cpu" */
    const QnKernel *const *kernels;
    int n_kernels;
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
    bool is_host;     /* device pointers can be read and written by the host */
    bool only_counts; /* there is no memory behind its pointers: constants need no values */
} QnBackend;

struct QnDevice {
    const QnBackend *backend;
    QnKernelEnv env;
    size_t now_bytes, peak_bytes; /* allocated through qn_device_alloc */
    void *impl;
};

QnStatus qn_device_open(const QnBackend *backend, const QnDeviceOptions *options, QnDevice **out);

/* The passes that a graph for this device goes through: all, and its kernels are asked. */
QnPipelineOptions qn_device_passes(QnDevice *d);

/* NULL with QN_ENOMEM (or the device's failure) recorded, which says how many bytes and what is
 * already taken. */
void *qn_device_alloc(QnDevice *d, size_t bytes);
void qn_device_free(QnDevice *d, void *p, size_t bytes);

#endif
