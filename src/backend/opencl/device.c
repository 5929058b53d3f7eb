#include "backend/opencl/opencl.h"

#ifdef QN_HAVE_OPENCL
#include "backend/opencl/kernels_list.h"
#include "base/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef QN_HAVE_CLBLAST
#include <clblast_c.h>
#endif

enum { MAX_PLATFORMS = 16, MAX_DEVICES = 64 };

static const QnKernel *const opencl_kernels[] = {
#define QN_X(name) &qn_kernel_##name,
    QN_KERNEL_LIST(QN_X)
#undef QN_X
};

QnStatus qn_opencl_fail(cl_int err, const char *what)
{
    return qn_fail(err == CL_OUT_OF_HOST_MEMORY || err == CL_MEM_OBJECT_ALLOCATION_FAILURE ||
                           err == CL_INVALID_BUFFER_SIZE || err == CL_OUT_OF_RESOURCES
                       ? QN_ENOMEM
                       : QN_EDEVICE,
                   "opencl: %s fails with error %d", what, (int)err);
}

/* All devices in the order of their platforms. */
static int list_devices(cl_device_id ids[MAX_DEVICES])
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint n_platforms = 0;
    int n = 0;
    if (clGetPlatformIDs(MAX_PLATFORMS, platforms, &n_platforms) != CL_SUCCESS)
        return 0;
    for (cl_uint p = 0; p < QN_MIN(n_platforms, (cl_uint)MAX_PLATFORMS); p++) {
        cl_uint more = 0;
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, (cl_uint)(MAX_DEVICES - n), ids + n,
                           &more) == CL_SUCCESS)
            n += (int)QN_MIN(more, (cl_uint)(MAX_DEVICES - n));
        if (n == MAX_DEVICES)
            break;
    }
    return n;
}

int qn_opencl_count(void)
{
    cl_device_id ids[MAX_DEVICES];
    return list_devices(ids);
}

QnStatus qn_opencl_name(int index, char *out, size_t bytes)
{
    cl_device_id ids[MAX_DEVICES];
    int n = list_devices(ids);
    char name[128] = "", version[128] = "";
    if (index < 0 || index >= n)
        return qn_fail(QN_ENOTFOUND, "opencl: no device %d; there are %d", index, n);
    clGetDeviceInfo(ids[index], CL_DEVICE_NAME, sizeof name, name, NULL);
    clGetDeviceInfo(ids[index], CL_DEVICE_VERSION, sizeof version, version, NULL);
    snprintf(out, bytes, "%s (%s)", name, version);
    return QN_OK;
}

static QnStatus check_capabilities(QnOpencl *cl)
{
    cl_int err =
        clGetDeviceInfo(cl->id, CL_DEVICE_SVM_CAPABILITIES, sizeof cl->svm, &cl->svm, NULL);
    const char *wanted = getenv("QUERN_OPENCL_SVM");
    if (wanted && *wanted && strcmp(wanted, "0") != 0 && strcmp(wanted, "1") != 0)
        return qn_fail(QN_EUSAGE,
                       "QUERN_OPENCL_SVM is '%.32s': 0 does without shared virtual "
                       "memory; 1, or none, takes it where a device has it",
                       wanted);
    cl->svm_is_off = wanted && !strcmp(wanted, "0");
    if (err != CL_SUCCESS || cl->svm_is_off || !(cl->svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
        cl->svm = 0;
    err = clGetDeviceInfo(cl->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof cl->max_group,
                          &cl->max_group, NULL);
    if (err != CL_SUCCESS)
        return qn_opencl_fail(err, "asking for the largest work group");
    snprintf(cl->small_groups, sizeof cl->small_groups,
             "its device text needs larger work groups than the %zu items that %.64s takes",
             cl->max_group, cl->name);
    return QN_OK;
}

static void opencl_close(QnDevice *d)
{
    QnOpencl *cl = d->impl;
    if (!cl)
        return;
    for (int64_t i = 0; i < cl->n_programs; i++) {
        clReleaseProgram(cl->programs[i].program);
        qn_free(cl->programs[i].key);
    }
    qn_free(cl->programs);
    qn_free(cl->regions);
#ifdef QN_HAVE_CLBLAST
    CLBlastClearCache(); /* its programs hold the context */
#endif
    if (cl->copies)
        clReleaseCommandQueue(cl->copies);
    if (cl->queue)
        clReleaseCommandQueue(cl->queue);
    if (cl->context)
        clReleaseContext(cl->context);
    qn_free(cl);
    d->impl = NULL;
}

/* Without shared memory the device may be of OpenCL 1.2, and so its driver. */
static cl_command_queue new_queue(const QnOpencl *cl, cl_int *err)
{
    return qn_opencl_has_svm(cl)
               ? clCreateCommandQueueWithProperties(cl->context, cl->id, NULL, err)
               : clCreateCommandQueue(cl->context, cl->id, 0, err);
}

/* Where an operand may begin in a buffer. */
static size_t operand_align(const QnOpencl *cl)
{
    enum { PAGE = 4096 }; /* enough for any */
    cl_uint bits = 0;
    if (qn_opencl_has_svm(cl))
        return 0;
    clGetDeviceInfo(cl->id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
    return bits ? (bits + 7) / 8 : PAGE;
}

static QnStatus open_queues(QnOpencl *cl)
{
    cl_int err;
    cl->context = clCreateContext(NULL, 1, &cl->id, NULL, NULL, &err);
    if (err != CL_SUCCESS)
        return qn_opencl_fail(err, "creating a context");
    cl->queue = new_queue(cl, &err);
    if (err == CL_SUCCESS)
        cl->copies = new_queue(cl, &err);
    return err == CL_SUCCESS ? QN_OK : qn_opencl_fail(err, "creating a queue");
}

static void describe(QnOpencl *cl)
{
    char version[128] = "", driver[64] = "", platform[128] = "";
    cl_platform_id of = NULL;
    clGetDeviceInfo(cl->id, CL_DEVICE_NAME, sizeof cl->name, cl->name, NULL);
    clGetDeviceInfo(cl->id, CL_DEVICE_VERSION, sizeof version, version, NULL);
    clGetDeviceInfo(cl->id, CL_DRIVER_VERSION, sizeof driver, driver, NULL);
    clGetDeviceInfo(cl->id, CL_DEVICE_PLATFORM, sizeof of, &of, NULL);
    clGetDeviceInfo(cl->id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof cl->memory_bytes, &cl->memory_bytes,
                    NULL);
    clGetDeviceInfo(cl->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof cl->largest_bytes,
                    &cl->largest_bytes, NULL);
    clGetPlatformInfo(of, CL_PLATFORM_VERSION, sizeof platform, platform, NULL);
    snprintf(cl->driver, sizeof cl->driver, "%s, %s, %s, %s", platform, cl->name, version, driver);
    if (qn_cache_path("programs", cl->cache, sizeof cl->cache) != QN_OK)
        cl->cache[0] = '\0';
    cl->max_price = 1;
}

static QnStatus opencl_open(QnDevice *d, const QnDeviceOptions *o)
{
    cl_device_id ids[MAX_DEVICES];
    int n = list_devices(ids);
    if (n == 0)
        return qn_fail(QN_ENOTFOUND, "opencl: no device; install a driver, or pocl-opencl-icd to "
                                     "run on the CPU");
    if (o->index < 0 || o->index >= n)
        return qn_fail(QN_ENOTFOUND, "opencl: no device %d; there are 0 to %d", o->index, n - 1);
    QnOpencl *cl = qn_alloc(sizeof *cl);
    if (!cl)
        return QN_ENOMEM;
    d->impl = cl;
    d->env = (QnKernelEnv){ .n_threads = 1, .isa = "opencl", .strict = o->strict, .impl = cl };
    cl->id = ids[o->index];
    describe(cl);
    d->env.isa = cl->name; /* what was measured on one device says nothing of another */
    QnStatus st = check_capabilities(cl);
    if (st == QN_OK)
        st = open_queues(cl);
    d->align = operand_align(cl);
    if (st != QN_OK)
        opencl_close(d);
    return st;
}

static QnStatus opencl_sync(QnDevice *d)
{
    QnOpencl *cl = d->impl;
    cl_int err = clFinish(cl->queue);
    return err == CL_SUCCESS ? QN_OK : qn_opencl_fail(err, "waiting for the device");
}

const QnBackend qn_backend_opencl = {
    .name = "opencl",
    .kernels = opencl_kernels,
    .n_kernels = QN_COUNT(opencl_kernels),
    .balance = 12, /* A100 without matrix units, its data sheet: 19.5 TFLOP/s, 1.555 TB/s */
    .open = opencl_open,
    .close = opencl_close,
    .alloc = qn_opencl_alloc,
    .free = qn_opencl_free,
    .write = qn_opencl_transfer,
    .read = qn_opencl_transfer,
    .copy = qn_opencl_copy,
    .sync = opencl_sync,
    .info = qn_opencl_info,
    .alloc_far = qn_opencl_alloc_far,
    .free_far = qn_opencl_free_far,
    .host_alloc = qn_opencl_host_alloc,
    .host_free = qn_opencl_host_free,
    .copy_ahead = qn_opencl_copy_ahead,
    .event_new = qn_opencl_event_new,
    .event_free = qn_opencl_event_free,
    .event_record = qn_opencl_event_record,
    .event_order = qn_opencl_event_order,
    .event_wait = qn_opencl_event_wait,
    .batch_new = qn_opencl_batch_new,
    .batch_run = qn_opencl_batch_run,
    .batch_free = qn_opencl_batch_free,
};
#else
typedef int qn_no_opencl;
#endif
