#include "backend/cuda/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cuda/host.h"

typedef struct Search {
    QnCudaLibrary *lib;
    QnStr looked; /* places, and what was wrong there */
} Search;

static void note_path(QnCudaLibrary *lib, const char *asked)
{
    struct link_map *map = NULL;
    bool known = !dlinfo(lib->handle, RTLD_DI_LINKMAP, &map) && map && map->l_name[0];
    snprintf(lib->path, sizeof lib->path, "%s", known ? map->l_name : asked);
}

/* The error of a file that is there is worth more than that it was looked for. */
static bool try_file(Search *s, const char *path)
{
    s->lib->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (s->lib->handle) {
        note_path(s->lib, path);
        return true;
    }
    const char *why = dlerror();
    bool plain = !strchr(path, '/');
    if (plain || access(path, F_OK))
        qn_str_printf(&s->looked, "%s%s", s->looked.n ? ", " : "", path);
    else
        qn_str_printf(&s->looked, "%s%s (%s)", s->looked.n ? ", " : "", path, why ? why : "?");
    return false;
}

static bool try_folder(Search *s, const char *folder, const char *below, const char *name)
{
    char path[512];
    if (!folder || !folder[0])
        return false;
    int n = snprintf(path, sizeof path, "%s%s/%s", folder, below, name);
    return n > 0 && (size_t)n < sizeof path && try_file(s, path);
}

static bool try_name(Search *s, const char *name)
{
    static const char *const folders[] = { "/usr/local/cuda/lib64", "/usr/local/cuda/lib",
                                           "/opt/cuda/lib64", "/usr/lib/wsl/lib" };
    if (try_file(s, name) || try_folder(s, getenv("CUDA_HOME"), "/lib64", name) ||
        try_folder(s, getenv("CUDA_PATH"), "/lib64", name))
        return true;
    for (int i = 0; i < QN_COUNT(folders); i++) {
        if (try_folder(s, folders[i], "", name))
            return true;
    }
    return false;
}

QnStatus qn_cuda_library_open(QnCudaLibrary *lib, const char *variable, const char *const *names)
{
    Search s = { .lib = lib };
    const char *only = getenv(variable);
    *lib = (QnCudaLibrary){ 0 };
    bool found = only && only[0] && try_file(&s, only);
    for (int i = 0; !(only && only[0]) && !found && names[i]; i++)
        found = try_name(&s, names[i]);
    QnStatus st = found ? QN_OK
                        : qn_fail(QN_ENOTFOUND, "no %s: looked for %s (%s names the file)",
                                  names[0], qn_str_text(&s.looked), variable);
    qn_str_fini(&s.looked);
    return st;
}

void qn_cuda_library_close(QnCudaLibrary *lib)
{
    if (lib->handle)
        dlclose(lib->handle);
    *lib = (QnCudaLibrary){ 0 };
}

QnStatus qn_cuda_library_symbol(const QnCudaLibrary *lib, const char *name, void **out)
{
    *out = dlsym(lib->handle, name);
    return *out ? QN_OK
                : qn_fail(QN_EUNSUPPORTED, "%s has no %s: too old a version", lib->path, name);
}
