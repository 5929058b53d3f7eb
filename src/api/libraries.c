#include "api/libraries.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef QN_HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

/* ---- how each says its version; `f` is the function of that name ------------------------------
 */

static void by_text(void *f, char out[64])
{
    const char *(*version)(void);
    *(void **)&version = f;
    snprintf(out, 64, "%s", version());
}

/* 10639 is 1.6.39. */
static void by_number(void *f, char out[64])
{
    uint32_t (*version)(void);
    *(void **)&version = f;
    uint32_t v = version();
    snprintf(out, 64, "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
}

#ifdef QN_HAVE_ONEDNN
static void by_dnnl(void *f, char out[64])
{
    const dnnl_version_t *(*version)(void);
    *(void **)&version = f;
    const dnnl_version_t *v = version();
    snprintf(out, 64, "%d.%d.%d", v->major, v->minor, v->patch);
}
#else
#define by_dnnl NULL
#endif

/* ---- the table ------------------------------------------------------------------------------- */

#ifdef QN_HAVE_ONEDNN
#define HAS_ONEDNN true
#else
#define HAS_ONEDNN false
#endif
#ifdef QN_HAVE_XSMM
#define HAS_XSMM true
#else
#define HAS_XSMM false
#endif
#ifdef QN_HAVE_OPENCL
#define HAS_OPENCL true
#else
#define HAS_OPENCL false
#endif
#ifdef QN_HAVE_CLBLAST
#define HAS_CLBLAST true
#else
#define HAS_CLBLAST false
#endif
#ifdef QN_HAVE_PROTOBUF
#define HAS_PROTOBUF true
#else
#define HAS_PROTOBUF false
#endif
#ifdef QN_HAVE_YAML
#define HAS_YAML true
#else
#define HAS_YAML false
#endif
#ifdef QN_HAVE_JPEG
#define HAS_JPEG true
#else
#define HAS_JPEG false
#endif
#ifdef QN_HAVE_PNG
#define HAS_PNG true
#else
#define HAS_PNG false
#endif
#ifdef QN_HAVE_ZLIB
#define HAS_ZLIB true
#else
#define HAS_ZLIB false
#endif
#ifdef _OPENMP
#define HAS_OPENMP true
#else
#define HAS_OPENMP false
#endif

typedef struct Known {
    const char *name, *use;
    bool is_there;
    const char *symbol;                          /* of the library, which tells the file */
    void (*version)(void *symbol, char out[64]); /* NULL: it does not say */
} Known;

static const Known known[QN_LIBRARIES] = {
    { "oneDNN", "convolutions and products on the CPU", HAS_ONEDNN, "dnnl_version", by_dnnl },
    { "libxsmm", "small products on the CPU", HAS_XSMM, "libxsmm_init", NULL },
    { "OpenMP", "threads", HAS_OPENMP, "omp_get_max_threads", NULL },
    { "OpenCL", "opencl:N", HAS_OPENCL, "clGetPlatformIDs", NULL },
    { "CLBlast", "products on opencl:N", HAS_CLBLAST, "CLBlastSgemm", NULL },
    { "protobuf-c", "ONNX files", HAS_PROTOBUF, "protobuf_c_version", by_text },
    { "libyaml", "YAML recipes", HAS_YAML, "yaml_get_version_string", by_text },
    { "libjpeg", "JPEG images", HAS_JPEG, "jpeg_std_error", NULL },
    { "libpng", "PNG images", HAS_PNG, "png_access_version_number", by_number },
    { "zlib", "compressed files", HAS_ZLIB, "zlibVersion", by_text },
};

void qn_libraries(QnLibrary out[QN_LIBRARIES])
{
    for (int i = 0; i < QN_LIBRARIES; i++) {
        const Known *k = &known[i];
        Dl_info where;
        out[i] = (QnLibrary){ .name = k->name, .use = k->use, .is_there = k->is_there };
        void *symbol = k->is_there ? dlsym(RTLD_DEFAULT, k->symbol) : NULL;
        if (!symbol)
            continue;
        if (k->version)
            k->version(symbol, out[i].version);
        char real[PATH_MAX]; /* whose name often ends in the version */
        if (dladdr(symbol, &where) && where.dli_fname)
            snprintf(out[i].path, sizeof out[i].path, "%.1000s",
                     realpath(where.dli_fname, real) ? real : where.dli_fname);
    }
}
