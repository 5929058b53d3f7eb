/* Programs: the dialect, a text, compiled for the device and kept as long as it is open; their
 * binaries are kept on disk. */
#include "backend/opencl/opencl.h"

#ifdef QN_HAVE_OPENCL
#include "base/cache.h"
#include "base/clock.h"
#include "ops/ops.h"

#include <stdio.h>
#include <string.h>

static const char *options_for(QnDtype storage)
{
    return storage == QN_DTYPE_F16    ? "-DQN_DEVICE -DQN_F16"
           : storage == QN_DTYPE_BF16 ? "-DQN_DEVICE -DQN_BF16"
                                      : "-DQN_DEVICE";
}

static QnStatus fail_compile(QnOpencl *cl, cl_program p, cl_int err)
{
    char log[QN_ERROR_TEXT_BYTES / 2] = "";
    clGetProgramBuildInfo(p, cl->id, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
    log[sizeof log - 1] = '\0';
    for (char *c = log; *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    return qn_fail(QN_EDEVICE, "opencl: a kernel's text does not compile (error %d): %s", (int)err,
                   log);
}

static QnStatus compile(QnOpencl *cl, const char *text, const char *options, cl_program *out)
{
    const char *parts[] = { qn_text_dialect, text };
    cl_int err;
    cl_program p = clCreateProgramWithSource(cl->context, 2, parts, NULL, &err);
    if (err != CL_SUCCESS)
        return qn_opencl_fail(err, "creating a program");
    err = clBuildProgram(p, 1, &cl->id, options, NULL, NULL);
    if (err != CL_SUCCESS) {
        QnStatus st = fail_compile(cl, p, err);
        clReleaseProgram(p);
        return st;
    }
    *out = p;
    return QN_OK;
}

/* false: it is not there, or the driver does not take it. */
static bool read_binary(QnOpencl *cl, const QnCacheKey *key, const char *options, cl_program *out)
{
    void *data;
    size_t bytes;
    cl_int err, is_fit = CL_SUCCESS;
    if (!qn_cache_read(cl->cache, key, &data, &bytes))
        return false;
    const unsigned char *binary = data;
    cl_program p =
        clCreateProgramWithBinary(cl->context, 1, &cl->id, &bytes, &binary, &is_fit, &err);
    qn_free(data);
    if (err != CL_SUCCESS || is_fit != CL_SUCCESS) {
        if (p)
            clReleaseProgram(p);
        return false;
    }
    if (clBuildProgram(p, 1, &cl->id, options, NULL, NULL) != CL_SUCCESS) {
        clReleaseProgram(p);
        return false;
    }
    *out = p;
    return true;
}

/* A driver that has no binaries, a full disk: the program runs all the same. */
static void write_binary(QnOpencl *cl, const QnCacheKey *key, cl_program p)
{
    size_t bytes = 0;
    if (clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) != CL_SUCCESS ||
        bytes == 0)
        return;
    unsigned char *binary = qn_alloc(bytes);
    if (!binary)
        return;
    if (clGetProgramInfo(p, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == CL_SUCCESS)
        qn_cache_write(cl->cache, key, binary, bytes, QN_CACHE_PROGRAM_BYTES);
    qn_free(binary);
}

static QnStatus build(QnOpencl *cl, const char *text, const char *options, cl_program *out)
{
    const char *parts[] = { "opencl", cl->driver, options, qn_text_dialect, text };
    QnCacheKey key = qn_cache_key(parts, QN_COUNT(parts));
    if (cl->cache[0] && read_binary(cl, &key, options, out))
        return QN_OK;
    int64_t start = qn_clock_ns();
    QN_TRY(compile(cl, text, options, out));
    int64_t compiled = qn_clock_ns();
    /* Some drivers compile every kernel for its binary, and again for its first launch (PoCL 3.1,
     * which has a cache of its own): one such program is enough. */
    if (cl->cache[0] && cl->binary_price <= cl->max_price) {
        write_binary(cl, &key, *out);
        cl->binary_price = (double)(qn_clock_ns() - compiled) / (double)(compiled - start + 1);
    }
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
