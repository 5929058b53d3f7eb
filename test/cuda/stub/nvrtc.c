/* NVRTC that keeps the text as the code, after a check that braces and an architecture are there.
 */
#include "cuda/stub/inside.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

struct _nvrtcProgram {
    char *text, *code;
    bool is_ptx;
};

static int newest(void)
{
    return stub.options.newest_arch ? stub.options.newest_arch : 121;
}

STUB_API nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = 12;
    *minor = 9;
    return stub_fails("nvrtcVersion") ? NVRTC_ERROR_INTERNAL_ERROR : NVRTC_SUCCESS;
}

STUB_API const char *nvrtcGetErrorString(nvrtcResult err)
{
    return err == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_OTHER";
}

static const int archs[] = { 75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121 };

STUB_API nvrtcResult nvrtcGetNumSupportedArchs(int *n)
{
    *n = 0;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        *n += archs[i] <= newest();
    return NVRTC_SUCCESS;
}

STUB_API nvrtcResult nvrtcGetSupportedArchs(int *out)
{
    int n = 0;
    nvrtcGetNumSupportedArchs(&n);
    memcpy(out, archs, (size_t)n * sizeof *archs);
    return NVRTC_SUCCESS;
}

STUB_API nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *text, const char *name,
                                        int n, const char *const *headers, const char *const *names)
{
    (void)name, (void)n, (void)headers, (void)names;
    if (stub_fails("nvrtcCreateProgram"))
        return NVRTC_ERROR_OUT_OF_MEMORY;
    *out = calloc(1, sizeof **out);
    (*out)->text = strdup(text);
    stub.counts.programs++;
    return NVRTC_SUCCESS;
}

/* The options become #defines, as run.c compiles it. */
STUB_API nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int n, const char *const *options)
{
    size_t bytes = strlen(p->text) + 4096, at;
    int arch = 0;
    stub.counts.compiles++;
    if (stub_fails("nvrtcCompileProgram") || strstr(p->text, "does not compile"))
        return NVRTC_ERROR_COMPILATION;
    p->code = malloc(bytes);
    at = (size_t)snprintf(p->code, bytes, "%s", STUB_MAGIC);
    for (int i = 0; i < n; i++) {
        p->is_ptx |= sscanf(options[i], "--gpu-architecture=compute_%d", &arch) == 1;
        sscanf(options[i], "--gpu-architecture=sm_%d", &arch);
        if (!strncmp(options[i], "-D", 2))
            at += (size_t)snprintf(p->code + at, bytes - at, "#define %s\n", options[i] + 2);
    }
    snprintf(p->code + at, bytes - at, "%s", p->text);
    return arch >= 75 && arch <= newest() ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_OPTION;
}

STUB_API nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *n)
{
    (void)p;
    *n = sizeof "stub(1): error:\nas the test asked";
    return NVRTC_SUCCESS;
}

STUB_API nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *log)
{
    (void)p;
    strcpy(log, "stub(1): error:\nas the test asked");
    return NVRTC_SUCCESS;
}

static nvrtcResult size_of(const nvrtcProgram p, bool ptx, size_t *n)
{
    if (!p->code || p->is_ptx != ptx)
        return NVRTC_ERROR_INVALID_PROGRAM;
    *n = strlen(p->code) + 1;
    return NVRTC_SUCCESS;
}

STUB_API nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *n)
{
    return stub_fails("nvrtcGetCUBINSize") ? NVRTC_ERROR_INTERNAL_ERROR : size_of(p, false, n);
}

STUB_API nvrtcResult nvrtcGetPTXSize(nvrtcProgram p, size_t *n)
{
    return stub_fails("nvrtcGetPTXSize") ? NVRTC_ERROR_INTERNAL_ERROR : size_of(p, true, n);
}

STUB_API nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *out)
{
    strcpy(out, p->code);
    return stub_fails("nvrtcGetCUBIN") ? NVRTC_ERROR_INTERNAL_ERROR : NVRTC_SUCCESS;
}

STUB_API nvrtcResult nvrtcGetPTX(nvrtcProgram p, char *out)
{
    strcpy(out, p->code);
    return stub_fails("nvrtcGetPTX") ? NVRTC_ERROR_INTERNAL_ERROR : NVRTC_SUCCESS;
}

STUB_API nvrtcResult nvrtcDestroyProgram(nvrtcProgram *p)
{
    free((*p)->text);
    free((*p)->code);
    free(*p);
    *p = NULL;
    stub.counts.programs--;
    return NVRTC_SUCCESS;
}
