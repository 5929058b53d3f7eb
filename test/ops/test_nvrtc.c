/* The device text of test_device.c as CUDA C: NVRTC compiles it for a real architecture, on any
 * machine that has the library; nothing is run. timeout: 300 */
#include "ops/batch.h"

#include <dlfcn.h>

/* The few functions of nvrtc.h that this needs; its header is not required. */
typedef struct Nvrtc {
    void *lib;
    int (*create)(void **p, const char *src, const char *name, int n, const char *const *headers,
                  const char *const *names);
    int (*compile)(void *p, int n, const char *const *options);
    int (*log_bytes)(void *p, size_t *n);
    int (*log)(void *p, char *text);
    int (*ptx_bytes)(void *p, size_t *n);
    int (*ptx)(void *p, char *text);
    int (*destroy)(void **p);
} Nvrtc;

static Nvrtc nv;

static void *symbol(const char *name)
{
    void *f = dlsym(nv.lib, name);
    assert_non_null(f);
    return f;
}

static int group_setup(void **state)
{
    static const char *const names[] = { "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                         "/usr/local/cuda/lib64/libnvrtc.so",
                                         "/usr/local/cuda/lib/libnvrtc.so" };
    for (int i = 0; i < QN_COUNT(names) && !nv.lib; i++)
        nv.lib = dlopen(names[i], RTLD_NOW);
    if (!nv.lib)
        return 0;
    *(void **)&nv.create = symbol("nvrtcCreateProgram");
    *(void **)&nv.compile = symbol("nvrtcCompileProgram");
    *(void **)&nv.log_bytes = symbol("nvrtcGetProgramLogSize");
    *(void **)&nv.log = symbol("nvrtcGetProgramLog");
    *(void **)&nv.ptx_bytes = symbol("nvrtcGetPTXSize");
    *(void **)&nv.ptx = symbol("nvrtcGetPTX");
    *(void **)&nv.destroy = symbol("nvrtcDestroyProgram");
    return 0;
}

/* PTX, to be freed; NULL after printing the log. */
static char *compile(const char *text, QnDtype f)
{
    const char *options[] = { "--gpu-architecture=compute_90", "-DQN_DEVICE",
                              f == QN_DTYPE_F16    ? "-DQN_F16"
                              : f == QN_DTYPE_BF16 ? "-DQN_BF16"
                                                   : "-DQN_F32" };
    void *p;
    size_t n = 0;
    char *out = NULL;
    assert_int_equal(nv.create(&p, text, "batch", 0, NULL, NULL), 0);
    if (nv.compile(p, QN_COUNT(options), options)) {
        assert_int_equal(nv.log_bytes(p, &n), 0);
        out = malloc(n + 1);
        assert_non_null(out);
        nv.log(p, out);
        print_message("%.3000s\n", out);
        free(out);
        out = NULL;
    } else {
        assert_int_equal(nv.ptx_bytes(p, &n), 0);
        out = malloc(n + 1);
        assert_non_null(out);
        assert_int_equal(nv.ptx(p, out), 0);
        out[n] = 0;
    }
    nv.destroy(&p);
    return out;
}

/* Kernels with double arithmetic, which costs up to 64 times as much: a literal without its f, or
 * pow(float, int). CUDA's trigonometric functions have some for huge arguments. */
static bool uses_trigonometry(const QnOp *op)
{
    const char *text = op->device ? op->device : "";
    return strstr(text, "qn_sinf") || strstr(text, "qn_cosf") || strstr(text, "qn_tanf");
}

static int count_f64(const Batch *b, const char *ptx)
{
    int n = 0;
    for (int i = 0; i < b->n; i++) {
        char entry[80];
        const Item *it = &b->items[i];
        snprintf(entry, sizeof entry, ".entry %s(", it->call.kernel);
        const char *at = strstr(ptx, entry), *end = at ? strstr(at, "\n}") : NULL;
        if (!end)
            fail_msg("%s: no kernel %s in the PTX", it->c.name, it->call.kernel);
        const char *f64 = strstr(at, ".f64");
        if (uses_trigonometry(it->c.op))
            continue;
        if (f64 && f64 < end) {
            print_message("%s computes in f64\n", it->c.name);
            n++;
        }
    }
    return n;
}

static void check(QnDtype f)
{
    Batch b;
    QnStr text = { 0 };
    if (!nv.lib)
        skip_because("no libnvrtc");
    batch_collect(&b, f);
    qn_str_add(&text, qn_text_dialect);
    qn_str_add(&text, qn_str_text(&b.text));
    assert_ok(text.st);
    char *ptx = compile(qn_str_text(&text), f);
    assert_non_null(ptx);
    assert_int_equal(count_f64(&b, ptx), 0);
    print_message("%s: %d samples compiled\n", qn_dtype_name(f), b.n);
    free(ptx);
    qn_str_fini(&text);
    batch_free(&b);
}

static void test_f32(void **state)
{
    check(QN_DTYPE_F32);
}

static void test_f16(void **state)
{
    check(QN_DTYPE_F16);
}

static void test_bf16(void **state)
{
    check(QN_DTYPE_BF16);
}
