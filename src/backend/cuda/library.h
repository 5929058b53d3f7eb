/* NVIDIA's libraries, found at run time: each error names every place that was looked at. */
#ifndef QN_BACKEND_CUDA_LIBRARY_H
#define QN_BACKEND_CUDA_LIBRARY_H

#include "rt/plugin.h"

typedef struct QnCudaLibrary {
    void *handle;
    char path[512]; /* where it was found */
} QnCudaLibrary;

/* The first of `names` (ending with NULL) that loads: as the system's loader finds it, then in the
 * toolkit's folders. If the environment variable `variable` is set, only the file that it names. */
QnStatus qn_cuda_library_open(QnCudaLibrary *lib, const char *variable, const char *const *names);
void qn_cuda_library_close(QnCudaLibrary *lib); /* all zeros is fine */
/* QN_EUNSUPPORTED names the library and what it lacks. */
QnStatus qn_cuda_library_symbol(const QnCudaLibrary *lib, const char *name, void **out);

/* The name that a header gives a symbol, after its renames (cuMemAlloc is cuMemAlloc_v2). */
#define QN_CUDA_SYMBOL2(name) #name
#define QN_CUDA_SYMBOL(name)  QN_CUDA_SYMBOL2(name)

#endif
