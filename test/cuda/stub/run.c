/* Kernels on the host: the device text, read as OpenCL C with a few lines before it, is C. It is
 * compiled by cc; the items of a group take turns at its barriers. */
#include "cuda/stub/inside.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

typedef struct Item { /* as the prelude has it */
    unsigned long group, local, size;
    void (*wait)(void);
} Item;

struct StubKernel { /* as the compiled code has it */
    const char *name;
    int n, waits;
    const unsigned char *bytes, *is_pointer; /* of each argument */
    void (*call)(uint64_t *args);
    Item *item;
};

struct StubCode {
    void *lib;
    const StubKernel *kernels;
};

static const char prelude[] =
    "#include <stdbool.h>\n#include <tgmath.h>\n#include <sys/types.h>\n"
    "struct { unsigned long group, local, size; void (*wait)(void); } stub_item;\n"
    "#define __OPENCL_VERSION__ 200\n#define __global\n#define __local static\n#define QN_LOCAL\n"
    "#define CLK_LOCAL_MEM_FENCE 0\n#define barrier(flags) stub_item.wait()\n"
    "#define get_group_id(d) stub_item.group\n#define get_local_id(d) stub_item.local\n"
    "#define get_local_size(d) stub_item.size\n"
    "#define get_global_id(d) (stub_item.group * stub_item.size + stub_item.local)\n"
    "static inline uint as_uint(float x) { union { float f; uint u; } v = { x }; return v.u; }\n"
    "static inline float as_float(uint x) { union { uint u; float f; } v = { x }; return v.f; }\n"
    "#define mul_hi(a, b) ((uint)(((ulong)(a) * (b)) >> 32))\n"
    "#include \"base/half.h\"\ntypedef unsigned short half;\n"
    "#define vload_half(i, p) qn_f16_to_f32((p)[i])\n"
    "#define vstore_half_rte(v, i, p) ((p)[i] = qn_f32_to_f16(v))\n"
    "typedef struct { float x, y, z, w; } float4;\n"
    "typedef struct { unsigned short x, y, z, w; } ushort4;\n"
    "typedef struct { unsigned char x, y, z, w; } uchar4;\n"
    "static inline float4 stub_f4(const void *p) { float4 q; return __builtin_memcpy(&q, p, sizeof "
    "q), q; }\n"
    "static inline ushort4 stub_u4(const void *p) { ushort4 q; return __builtin_memcpy(&q, p, "
    "sizeof q), q; }\n"
    "static inline uchar4 stub_c4(const void *p) { uchar4 q; return __builtin_memcpy(&q, p, sizeof "
    "q), q; }\n"
    "#define vload4(i, p) _Generic(*(p), float: stub_f4, ushort: stub_u4, unsigned char: "
    "stub_c4)(p)\n"
    "#define vstore4(q, i, p) __builtin_memcpy(p, &(q), sizeof(q))\n"
    "static inline float4 vload_half4(int i, const half *p) { return (float4){ "
    "qn_f16_to_f32(p[0]), qn_f16_to_f32(p[1]), qn_f16_to_f32(p[2]), qn_f16_to_f32(p[3]) }; }\n"
    "static inline void vstore_half4_rte(float4 q, int i, half *p) { p[0] = qn_f32_to_f16(q.x); "
    "p[1] = qn_f32_to_f16(q.y); p[2] = qn_f32_to_f16(q.z); p[3] = qn_f32_to_f16(q.w); }\n";

/* ---- the arguments of each kernel, from the preprocessed text ---- */

/* `at` follows "__kernel void": prints a caller and adds a row to the table. */
static bool print_kernel(const char *at, FILE *calls, FILE *table)
{
    const char *open = strchr(at, '('), *close = open ? strchr(open, ')') : NULL;
    char name[128], type[128];
    int n = 0;
    if (!close || sscanf(at, " %127[A-Za-z0-9_]", name) != 1)
        return false;
    fprintf(table,
            "{ \"%s\", sizeof bytes_%s, WAITS, bytes_%s, pointer_%s, call_%s, &stub_item },\n",
            name, name, name, name, name);
    fprintf(calls, "static void call_%s(ulong *a) { %s(", name, name);
    char bytes[8192] = "", pointers[1024] = "";
    for (const char *p = open + 1; p < close; n++) {
        const char *end = memchr(p, ',', (size_t)(close - p)), *cut = end ? end : close;
        const char *word = cut;
        while (word > p && isspace((unsigned char)word[-1]))
            word--;
        while (word > p && (isalnum((unsigned char)word[-1]) || word[-1] == '_'))
            word--;
        snprintf(type, sizeof type, "%.*s", (int)(word - p), p);
        fprintf(calls, "%s*(__typeof__(%s) *)&a[%d]", n ? ", " : "", type, n);
        snprintf(bytes + strlen(bytes), sizeof bytes - strlen(bytes), "sizeof(%s), ", type);
        strcat(pointers, strchr(type, '*') ? "1, " : "0, ");
        p = end ? end + 1 : close;
    }
    fprintf(calls, "); }\nstatic const unsigned char bytes_%s[] = { %s }, pointer_%s[] = { %s };\n",
            name, bytes, name, pointers);
    return n > 0 && n <= STUB_MAX_PARAM;
}

static bool print_calls(const char *preprocessed, FILE *out)
{
    static const char mark[] = "__kernel void";
    char *text = NULL;
    size_t bytes = 0;
    FILE *table = open_memstream(&text, &bytes);
    bool ok = true;
    for (const char *at = preprocessed; ok && (at = strstr(at, mark)); at += sizeof mark)
        ok = print_kernel(at + sizeof mark - 1, out, table);
    fclose(table);
    fprintf(out,
            "enum { WAITS = %d };\nconst struct { const char *name; int n, waits; "
            "const unsigned char *bytes, *is_pointer; void (*call)(ulong *); void *item; } "
            "stub_kernels[] = {\n%s{ 0 } };\n",
            strstr(preprocessed, "stub_item.wait()") != NULL, text);
    free(text);
    return ok;
}

/* ---- compiling ---- */

static char *read_all(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = NULL;
    size_t bytes = 0;
    if (!f)
        return NULL;
    FILE *to = open_memstream(&text, &bytes);
    for (int c; (c = getc(f)) != EOF;)
        putc(c, to);
    fclose(f);
    fclose(to);
    return text;
}

static bool shell(const char *dir, const char *command)
{
    char line[1024];
    snprintf(line, sizeof line, "cd '%s' && %s", dir, command);
    return system(line) == 0;
}

static bool build(const char *dir, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/k.c", dir);
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    fprintf(f, "%s%s\n#ifdef CALLS\n#include \"calls.c\"\n#endif\n", prelude, text);
    fclose(f);
    if (!shell(dir, "${CC:-cc} -std=gnu11 -w -I'" STUB_SOURCES "' -E -P k.c -o k.i"))
        return false;
    snprintf(path, sizeof path, "%s/k.i", dir);
    char *preprocessed = read_all(path);
    snprintf(path, sizeof path, "%s/calls.c", dir);
    f = preprocessed ? fopen(path, "w") : NULL;
    bool ok = f && print_calls(preprocessed, f);
    free(preprocessed);
    if (f)
        fclose(f);
    return ok && shell(dir, "${CC:-cc} -std=gnu11 -w -O1 -ffp-contract=off -fPIC -shared -DCALLS "
                            "-I'" STUB_SOURCES "' "
                            "-D__kernel= k.c -o k.so -lm");
}

StubCode *stub_code_load(const char *text)
{
    char dir[] = "/tmp/quern-stub-XXXXXX", path[64];
    if (!mkdtemp(dir))
        return NULL;
    StubCode *code = calloc(1, sizeof *code);
    snprintf(path, sizeof path, "%s/k.so", dir);
    code->lib = build(dir, text) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    snprintf(path, sizeof path, "rm -r '%s'", dir);
    bool removed = shell("/", path);
    if (code->lib && removed)
        code->kernels = dlsym(code->lib, "stub_kernels");
    if (code->kernels)
        return code;
    stub_code_free(code);
    return NULL;
}

void stub_code_free(StubCode *code)
{
    if (code && code->lib)
        dlclose(code->lib);
    free(code);
}

/* ---- running ---- */

enum { MOST_THREADS = 1024, STACK = 64 << 10 };

static struct {
    ucontext_t main, thread[MOST_THREADS];
    bool done[MOST_THREADS];
    char *stacks;
    const StubKernel *kernel;
    uint64_t *args;
    int now;
} run;

StubKernel *stub_code_find(StubCode *code, const char *name)
{
    for (const StubKernel *k = code->kernels; k->name; k++) {
        if (!strcmp(k->name, name))
            return (StubKernel *)(uintptr_t)k;
    }
    return NULL;
}

bool stub_kernel_args(const StubKernel *k, void *const *from, uint64_t *to)
{
    for (int i = 0; i < k->n; i++) {
        to[i] = 0;
        memcpy(&to[i], from[i], k->bytes[i]);
        if (k->is_pointer[i] && to[i] && !stub_is_live(to[i], 0))
            return false;
    }
    return true;
}

static void wait_for_group(void)
{
    int i = run.now;
    swapcontext(&run.thread[i], &run.main);
    run.kernel->item->local = (unsigned long)i;
}

static void thread_main(void)
{
    int i = run.now;
    run.kernel->call(run.args);
    run.done[i] = true;
    swapcontext(&run.thread[i], &run.main);
}

static void start_thread(unsigned i)
{
    getcontext(&run.thread[i]);
    run.thread[i].uc_stack.ss_sp = run.stacks + (size_t)i * STACK;
    run.thread[i].uc_stack.ss_size = STACK;
    run.done[i] = false;
    makecontext(&run.thread[i], thread_main, 0);
}

static void run_group(unsigned threads)
{
    unsigned left = threads;
    for (unsigned i = 0; i < threads; i++)
        start_thread(i);
    while (left) {
        for (unsigned i = 0; i < threads; i++) {
            if (run.done[i])
                continue;
            run.now = (int)i;
            run.kernel->item->local = i;
            swapcontext(&run.main, &run.thread[i]);
            left -= run.done[i];
        }
    }
}

void stub_kernel_run(const StubKernel *k, uint64_t *args, unsigned blocks, unsigned threads)
{
    if (!run.stacks)
        run.stacks = malloc((size_t)MOST_THREADS * STACK);
    run.kernel = k;
    run.args = args;
    k->item->wait = wait_for_group;
    k->item->size = threads;
    for (unsigned b = 0; b < blocks; b++) {
        k->item->group = b;
        for (unsigned i = 0; !k->waits && i < threads; i++) {
            k->item->local = i;
            k->call(args);
        }
        if (k->waits)
            run_group(threads);
    }
}

/* When the library goes: what is kept is not lost. */
__attribute__((destructor)) static void free_stacks(void)
{
    free(run.stacks);
}
