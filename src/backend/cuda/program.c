/* Programs: the dialect, a text, as code of the device's architecture; kept as long as the device
 * is open, and on disk. */
#include "backend/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

#include "backend/cuda/host.h"

static const char *type_option(QnDtype storage)
{
    return storage == QN_DTYPE_F16    ? "-DQN_F16"
           : storage == QN_DTYPE_BF16 ? "-DQN_BF16"
                                      : "-DQN_F32";
}

static QnCacheKey key_of(const QnCuda *c, const char *target, const char *type, const char *text)
{
    char version[32];
    const char *parts[] = { "cuda", version, target, type, qn_cuda_host->dialect, text };
    snprintf(version, sizeof version, "%d.%d", c->rtc.major, c->rtc.minor);
    return qn_cache_key(parts, QN_COUNT(parts));
}

/* false: it is not there, or the driver does not take it. */
static bool read_image(QnCuda *c, const QnCacheKey *key, CUmodule *out)
{
    void *image;
    size_t bytes;
    if (!c->cache[0] || !qn_cache_read(c->cache, key, &image, &bytes))
        return false;
    CUresult err = bytes ? c->cu.cuModuleLoadData(out, image) : CUDA_ERROR_INVALID_IMAGE;
    qn_free(image);
    return err == CUDA_SUCCESS;
}

static QnStatus compile(QnCuda *c, const char *target, const char *type, const char *text,
                        void **image, size_t *bytes)
{
    const char *options[] = { target, "-DQN_DEVICE", type };
    QnStr all = { 0 };
    qn_str_add(&all, qn_cuda_host->dialect);
    qn_str_add(&all, text);
    QnStatus st = all.st;
    if (st == QN_OK)
        st = qn_nvrtc_compile(&c->rtc, qn_str_text(&all), options, QN_COUNT(options), image, bytes);
    qn_str_fini(&all);
    return st;
}

static QnStatus load_module(QnCuda *c, const char *type, const char *text, CUmodule *out)
{
    char target[32];
    void *image;
    size_t bytes;
    qn_nvrtc_target(&c->rtc, target);
    QnCacheKey key = key_of(c, target, type, text);
    if (read_image(c, &key, out))
        return QN_OK;
    QN_TRY(compile(c, target, type, text, &image, &bytes));
    CUresult err = c->cu.cuModuleLoadData(out, image);
    if (err == CUDA_SUCCESS && c->cache[0]) /* a full disk: the program runs all the same */
        qn_cache_write(c->cache, &key, image, bytes, QN_CACHE_PROGRAM_BYTES);
    qn_free(image);
    return err == CUDA_SUCCESS ? QN_OK : qn_cuda_fail(&c->cu, err, "cuModuleLoadData");
}

static QnStatus find_module(QnCuda *c, const char *text, QnDtype storage, CUmodule *out)
{
    const char *type = type_option(storage);
    uint64_t hash = qn_hash_mix(qn_hash_str(type), qn_hash_str(text));
    size_t n = strlen(type), m = strlen(text);
    for (int64_t i = 0; i < c->n_programs; i++) {
        const QnCudaProgram *p = &c->programs[i];
        if (p->hash == hash && !strncmp(p->key, type, n) && !strcmp(p->key + n, text)) {
            *out = p->module;
            return QN_OK;
        }
    }
    QN_TRY(QN_GROW(c->programs, c->cap_programs, c->n_programs));
    char *key = qn_alloc(n + m + 1);
    if (!key)
        return QN_ENOMEM;
    memcpy(key, type, n);
    memcpy(key + n, text, m + 1);
    QnStatus st = load_module(c, type, text, out);
    if (st != QN_OK) {
        qn_free(key);
        return st;
    }
    c->programs[c->n_programs++] = (QnCudaProgram){ hash, key, *out };
    return QN_OK;
}

QnStatus qn_cuda_kernel(QnCuda *c, const char *text, const char *kernel, QnDtype storage,
                        CUfunction *out)
{
    CUmodule module;
    QN_TRY(qn_cuda_enter(c));
    QN_TRY(find_module(c, text, storage, &module));
    CUresult err = c->cu.cuModuleGetFunction(out, module, kernel);
    if (err != CUDA_SUCCESS) {
        qn_cuda_fail(&c->cu, err, "cuModuleGetFunction");
        return qn_fail_prefix("kernel %s", kernel);
    }
    return QN_OK;
}

void qn_cuda_programs_free(QnCuda *c)
{
    for (int64_t i = 0; i < c->n_programs; i++) {
        c->cu.cuModuleUnload(c->programs[i].module);
        qn_free(c->programs[i].key);
    }
    qn_free(c->programs);
    c->programs = NULL;
    c->n_programs = 0;
}
