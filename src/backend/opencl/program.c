/* Programs: the dialect, a text, compiled for the device and kept as long as it is open. */
#include "backend/opencl/opencl.h"

#ifdef QN_HAVE_OPENCL
#include "base/hash.h"
#include "ops/ops.h"

#include <stdio.h>
#include <string.h>

static const char *options_for(QnDtype storage)
{
    return storage == QN_DTYPE_F16    ? "-DQN_DEVICE -DQN_F16"
           : storage == QN_DTYPE_BF16 ? "-DQN_DEVICE -DQN_BF16"
                                      : "-DQN_DEVICE";
}

static QnStatus build(QnOpencl *cl, const char *text, const char *options, cl_program *out)
{
    const char *parts[] = { qn_text_dialect, text };
    cl_int err;
    cl_program p = clCreateProgramWithSource(cl->context, 2, parts, NULL, &err);
    if (err != CL_SUCCESS)
        return qn_opencl_fail(err, "creating a program");
    err = clBuildProgram(p, 1, &cl->id, options, NULL, NULL);
    if (err != CL_SUCCESS) {
        char log[QN_ERROR_TEXT_BYTES / 2] = "";
        clGetProgramBuildInfo(p, cl->id, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
        clReleaseProgram(p);
        log[sizeof log - 1] = '\0';
        for (char *c = log; *c; c++)
            *c = *c == '\n' ? ' ' : *c;
        return qn_fail(QN_EDEVICE, "opencl: a kernel's text does not compile (error %d): %s",
                       (int)err, log);
    }
    *out = p;
    return QN_OK;
}

static QnStatus find_program(QnOpencl *cl, const char *text, QnDtype storage, cl_program *out)
{
    const char *options = options_for(storage);
    uint64_t hash = qn_hash_mix(qn_hash_str(options), qn_hash_str(text));
    for (int64_t i = 0; i < cl->n_programs; i++) {
        QnOpenclProgram *p = &cl->programs[i];
        size_t n = strlen(options);
        if (p->hash == hash && !strncmp(p->key, options, n) && !strcmp(p->key + n, text)) {
            *out = p->program;
            return QN_OK;
        }
    }
    QN_TRY(QN_GROW(cl->programs, cl->cap_programs, cl->n_programs));
    size_t n = strlen(options), m = strlen(text);
    char *key = qn_alloc(n + m + 1);
    if (!key)
        return QN_ENOMEM;
    memcpy(key, options, n);
    memcpy(key + n, text, m + 1);
    QnStatus st = build(cl, text, options, out);
    if (st != QN_OK) {
        qn_free(key);
        return st;
    }
    cl->programs[cl->n_programs++] = (QnOpenclProgram){ hash, key, *out };
    return QN_OK;
}

QnStatus qn_opencl_kernel(QnOpencl *cl, const char *text, const char *kernel, QnDtype storage,
                          cl_kernel *out)
{
    cl_program program;
    cl_int err;
    QN_TRY(find_program(cl, text, storage, &program));
    *out = clCreateKernel(program, kernel, &err);
    if (err != CL_SUCCESS)
        return qn_opencl_fail(err, kernel);
    return QN_OK;
}
#else
typedef int qn_no_opencl_programs;
#endif
