/* OpenCL devices: the operators' device text, compiled at run time. A planned arena is addressed by
 * pointers as anywhere else: of OpenCL 2.0's shared virtual memory, or where a device has none,
 * reserved addresses that stand for places in buffer objects. */
#ifndef QN_BACKEND_OPENCL_OPENCL_H
#define QN_BACKEND_OPENCL_OPENCL_H

#include "rt/device.h"

#ifdef QN_HAVE_OPENCL
#define CL_TARGET_OPENCL_VERSION          200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* of devices that have no other */
#include <CL/cl.h>

extern const QnBackend qn_backend_opencl;

typedef struct QnOpenclProgram {
    uint64_t hash;
    char *key; /* options and text */
    cl_program program;
} QnOpenclProgram;

typedef struct QnOpenclRegion { /* an allocation of the device's */
    char *base;
    size_t bytes;
    cl_mem buffer;              /* NULL: nobody asked for one */
    struct QnOpenclPart *parts; /* a hash table of what kernels get of it, without shared memory */
    size_t n_parts, cap_parts;
} QnOpenclRegion;

typedef struct QnOpencl { /* QnDevice.impl */
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;  /* in order */
    cl_command_queue copies; /* in order: what travels while the other computes */
    char name[128];
    char driver[512];       /* platform, device and driver by version: what binaries are made for */
    char cache[1024];       /* folder of compiled programs; "" where none is kept */
    double binary_price;    /* time that a binary took beside that of compiling its program */
    double max_price;       /* the highest at which others are asked for */
    size_t max_group;       /* work items in a group */
    char small_groups[160]; /* why a kernel with larger ones is refused */
    cl_device_svm_capabilities svm;       /* 0: memory is of buffer objects */
    bool svm_is_off;                      /* by QUERN_OPENCL_SVM */
    cl_ulong memory_bytes, largest_bytes; /* of the device; of one allocation */
    QnOpenclProgram *programs;
    int64_t n_programs, cap_programs;
    QnOpenclRegion *regions; /* buffers.c */
    int64_t n_regions, cap_regions;
    int64_t n_parts;               /* of all regions */
    struct QnOpenclPinned *pinned; /* ahead.c */
} QnOpencl;

/* QN_EDEVICE with what failed and OpenCL's number. */
QnStatus qn_opencl_fail(cl_int err, const char *what);

/* A kernel of the program `text` (after the dialect), compiled once per device; storage is the type
 * of QN_T. A compile error gives the first lines of the log. *out is the caller's to release. */
QnStatus qn_opencl_kernel(QnOpencl *cl, const char *text, const char *kernel, QnDtype storage,
                          cl_kernel *out);

/* ahead.c: the backend's second queue, pinned memory and events. */
void *qn_opencl_host_alloc(QnDevice *d, size_t bytes);
void qn_opencl_host_free(QnDevice *d, void *p, size_t bytes);
QnStatus qn_opencl_copy_ahead(QnDevice *d, void *dst, const void *src, size_t bytes);
QnStatus qn_opencl_event_new(QnDevice *d, void **event);
void qn_opencl_event_free(QnDevice *d, void *event);
QnStatus qn_opencl_event_record(QnDevice *d, QnQueue q, void *event);
QnStatus qn_opencl_event_order(QnDevice *d, QnQueue q, void *event);
QnStatus qn_opencl_event_wait(QnDevice *d, void *event);

static inline bool qn_opencl_has_svm(const QnOpencl *cl)
{
    return cl->svm != 0;
}

/* buffers.c: allocations as buffer objects. `buffer` (or NULL) becomes the region's. */
QnStatus qn_opencl_region_add(QnOpencl *cl, void *p, size_t bytes, cl_mem buffer);
void qn_opencl_region_remove(QnOpencl *cl, const void *p);
/* The one that the address lies in, until one is added or removed; NULL: it is in none. */
QnOpenclRegion *qn_opencl_region(QnOpencl *cl, const void *p);
/* The object and the offset in it, in bytes, borrowed until the allocation is freed. */
QnStatus qn_opencl_buffer(QnOpencl *cl, const void *p, cl_mem *out, size_t *offset);
/* A kernel's argument: so many bytes of a tensor; p may be NULL. */
cl_int qn_opencl_set_pointer(QnOpencl *cl, cl_kernel k, cl_uint arg, const void *p, int64_t bytes);

/* memory.c: the backend's memory, and one buffer object more, NULL with the error recorded. */
void *qn_opencl_alloc(QnDevice *d, size_t bytes);
void qn_opencl_free(QnDevice *d, void *p, size_t bytes);
void *qn_opencl_new_buffer(QnOpencl *cl, size_t bytes, cl_mem_flags flags);
void qn_opencl_free_buffer(QnOpencl *cl, void *p);
/* A copy between any two of the host's and the device's memory. */
QnStatus qn_opencl_move(QnOpencl *cl, cl_command_queue q, void *dst, const void *src, size_t bytes,
                        cl_bool waits);
QnStatus qn_opencl_transfer(QnDevice *d, void *dst, const void *src, size_t bytes);
QnStatus qn_opencl_copy(QnDevice *d, void *dst, const void *src, size_t bytes);

enum { QN_OPENCL_ALIGN = 64 };

/* far.c: what it is, and memory of the host that it reaches. */
QnStatus qn_opencl_info(QnDevice *d, QnDeviceInfo *out);
void *qn_opencl_alloc_far(QnDevice *d, size_t bytes);
void qn_opencl_free_far(QnDevice *d, void *p, size_t bytes);

/* batch.c: the backend's launches of many steps. */
QnStatus qn_opencl_batch_new(QnDevice *d, const struct QnBatchLaunch *launch, void **out);
QnStatus qn_opencl_batch_run(QnDevice *d, void *batch);
void qn_opencl_batch_free(QnDevice *d, void *batch);

/* Devices of all platforms: how many, and the name of one (for doctor). */
int qn_opencl_count(void);
QnStatus qn_opencl_name(int index, char *out, size_t bytes);
#endif

#endif
