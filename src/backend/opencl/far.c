/* What the device says of itself, and memory of the host that it reaches: fine-grained shared
 * memory, or any, where the device takes the host's addresses; without shared memory, buffers that
 * the driver is asked to allocate on the host. */
#include "backend/opencl/opencl.h"

#ifdef QN_HAVE_OPENCL
#include "base/mem.h"

#include <stdio.h>

QnStatus qn_opencl_info(QnDevice *d, QnDeviceInfo *out)
{
    const QnOpencl *cl = d->impl;
    cl_device_type type = 0;
    cl_uint units = 0, mhz = 0;
    clGetDeviceInfo(cl->id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    clGetDeviceInfo(cl->id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
    clGetDeviceInfo(cl->id, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof mhz, &mhz, NULL);
    *out = (QnDeviceInfo){ .kind = type & CL_DEVICE_TYPE_CPU   ? QN_DEVICE_CPU
                                   : type & CL_DEVICE_TYPE_GPU ? QN_DEVICE_GPU
                                                               : QN_DEVICE_OTHER,
                           .units = units,
                           .clock_hz = 1e6 * mhz,
                           .memory_bytes = (int64_t)cl->memory_bytes };
    if (cl->svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM)
        out->far = "memory of the host";
    else if (cl->svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER)
        out->far = "memory shared with the host";
    else if (!qn_opencl_has_svm(cl))
        out->far = "buffers in memory of the host";
    out->memory = qn_opencl_has_svm(cl) ? "shared virtual memory" : "buffer objects";
    if (!qn_opencl_has_svm(cl))
        out->lacks = cl->svm_is_off ? "shared virtual memory is switched off (QUERN_OPENCL_SVM=0): "
                                      "tensors are buffer objects, and each step is a launch"
                                    : "it has no shared virtual memory (OpenCL 2.0): tensors are "
                                      "buffer objects, and each step is a launch";
    snprintf(out->name, sizeof out->name, "%s", cl->name);
    return QN_OK;
}

void *qn_opencl_alloc_far(QnDevice *d, size_t bytes)
{
    QnOpencl *cl = d->impl;
    void *p = NULL;
    if (!qn_opencl_has_svm(cl))
        return qn_opencl_new_buffer(cl, bytes ? bytes : 1, CL_MEM_ALLOC_HOST_PTR);
    if (cl->svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM)
        return qn_alloc_aligned(bytes);
    if (cl->svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER)
        p = clSVMAlloc(cl->context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER,
                       bytes ? bytes : 1, QN_OPENCL_ALIGN);
    if (!p && cl->svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER)
        qn_fail(QN_ENOMEM, "opencl: no %zu bytes of memory shared with the host", bytes);
    else if (!p)
        qn_fail(QN_ENOMEM, "opencl: %s reaches no memory of the host", cl->name);
    return p;
}

void qn_opencl_free_far(QnDevice *d, void *p, size_t bytes)
{
    QnOpencl *cl = d->impl;
    clFinish(cl->copies);
    clFinish(cl->queue);
    if (!qn_opencl_has_svm(cl))
        qn_opencl_free_buffer(cl, p);
    else if (cl->svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM)
        qn_free_aligned(p, bytes);
    else
        clSVMFree(cl->context, p);
}
#else
typedef int qn_no_opencl_far;
#endif
