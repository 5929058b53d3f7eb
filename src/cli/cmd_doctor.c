#include "cli/cli.h"

#include "api/plugin.h"
#include "backend/cpu/cpu.h"
#include "backend/opencl/opencl.h"
#include "base/cache.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/isa_list.h"
#include "base/term.h"
#include "ir/eval.h"
#include "ops/ops.h"
#include "pass/grad.h"
#include "quern/quern.h"
#include "rt/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const QnOption options[] = {
    { .name = "--json", .kind = QN_OPTION_FLAG, .help = "one JSON object a check" },
};

typedef enum Verdict { GOOD, NOTE, BAD } Verdict;

typedef struct Doctor {
    const QnArgs *args;
    bool color;
    int n_bad;
} Doctor;

static void say(Doctor *d, Verdict v, const char *what, const char *fmt, ...) QN_PRINTF(4, 5);

static void say(Doctor *d, Verdict v, const char *what, const char *fmt, ...)
{
    static const char *const words[] = { "ok", "note", "bad" };
    static const char *const colors[] = { "\033[32m", "\033[33m", "\033[31m" };
    QnStr text = { 0 };
    va_list args;
    va_start(args, fmt);
    qn_str_vprintf(&text, fmt, args);
    va_end(args);
    d->n_bad += v == BAD;
    if (d->args->json) {
        QnStr line = { 0 };
        QnJsonWriter w;
        qn_json_begin(&w, &line, 0);
        qn_json_open_object(&w);
        qn_json_put_string(&w, "check", what);
        qn_json_put_string(&w, "verdict", words[v]);
        qn_json_put_string(&w, "text", qn_str_text(&text));
        qn_json_close(&w);
        if (qn_json_end(&w) == QN_OK)
            qn_cli_print_json(&line);
        qn_str_fini(&line);
    } else {
        printf("%s%-5s%s %-14s %s\n", d->color ? colors[v] : "", words[v],
               d->color ? "\033[0m" : "", what, qn_str_text(&text));
    }
    qn_str_fini(&text);
}

static void check_build(Doctor *d)
{
    QnStr s = { 0 };
    static const struct {
        const char *name;
        bool have;
    } libraries[] = {
#ifdef QN_HAVE_ONEDNN
        { "oneDNN", true },
#else
        { "oneDNN", false },
#endif
#ifdef QN_HAVE_XSMM
        { "libxsmm", true },
#else
        { "libxsmm", false },
#endif
#ifdef QN_HAVE_YAML
        { "libyaml", true },
#else
        { "libyaml", false },
#endif
#ifdef QN_HAVE_JPEG
        { "libjpeg", true },
#else
        { "libjpeg", false },
#endif
#ifdef QN_HAVE_PNG
        { "libpng", true },
#else
        { "libpng", false },
#endif
#ifdef QN_HAVE_ZLIB
        { "zlib", true },
#else
        { "zlib", false },
#endif
#ifdef _OPENMP
        { "OpenMP", true },
#else
        { "OpenMP", false },
#endif
    };
    int missing = 0;
    for (int i = 0; i < QN_COUNT(libraries); i++) {
        qn_str_printf(&s, "%s%s %s", i ? ", " : "", libraries[i].name,
                      libraries[i].have ? "yes" : "no");
        missing += !libraries[i].have;
    }
    say(d, missing ? NOTE : GOOD, "libraries", "quern %s with %s", qn_version(), qn_str_text(&s));
    qn_str_fini(&s);
}

static void check_cpu(Doctor *d, const QnDevice *dev)
{
    QnStr s = { 0 };
#define QN_X(name)                                                                                 \
    qn_str_printf(&s, "%s%s %s", s.n ? ", " : "", #name,                                           \
                  qn_cpu_isa_is_usable(#name) ? "yes" : "no");
    QN_ISA_LIST(QN_X)
#undef QN_X
    say(d, GOOD, "cpu", "%d threads, kernels for %s (built: %s)", dev->env.n_threads, dev->env.isa,
        qn_str_text(&s));
    qn_str_fini(&s);
    say(d, GOOD, "kernels", "%d on cpu", dev->backend->n_kernels);
}

static void check_memory(Doctor *d)
{
    char total[QN_STR_NUMBER], free_text[QN_STR_NUMBER];
    long pages = sysconf(_SC_PHYS_PAGES), free_pages = sysconf(_SC_AVPHYS_PAGES);
    long size = sysconf(_SC_PAGESIZE);
    if (pages > 0 && size > 0)
        say(d, GOOD, "memory", "%s, %s of it free",
            qn_str_bytes(total, (uint64_t)pages * (uint64_t)size),
            qn_str_bytes(free_text, (uint64_t)free_pages * (uint64_t)size));
}

/* A stream of y = x * a + b over arrays larger than caches: bytes read and written a second. */
static void check_bandwidth(Doctor *d)
{
    enum { N = 16 << 20 };
    float *x = qn_alloc_aligned(N * sizeof *x), *y = qn_alloc_aligned(N * sizeof *y);
    double best = INFINITY;
    char rate[QN_STR_NUMBER];
    for (int64_t i = 0; x && y && i < N; i++)
        x[i] = (float)i;
    for (int k = 0; x && y && k < 4; k++) {
        int64_t t = qn_clock_ns();
        QN_IVDEP for (int64_t i = 0; i < N; i++) y[i] = x[i] * 1.5f + 2.0f;
        best = fmin(best, (double)(qn_clock_ns() - t));
    }
    if (x && y)
        say(d, y[1] > 3.0f ? GOOD : BAD, "bandwidth", "%sB/s, one thread",
            qn_str_si(rate, 2.0 * N * sizeof *x / (best * 1e-9)));
    qn_free_aligned(x, N * sizeof *x);
    qn_free_aligned(y, N * sizeof *y);
}

/* y = softmax(silu(x w)) and its gradient by the kernels that would run, against float64. */
static QnStatus step_error(QnDevice *dev, double *error)
{
    QnGraph *g = qn_graph_new();
    QnEval *e = NULL;
    QnPlan *p = NULL;
    QnStatus st = g ? QN_OK : QN_ENOMEM;
    if (st != QN_OK)
        return st;
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(37, 65));
    QnValue *w = qn_input(g, "w", QN_DTYPE_F32, &QN_SHAPE(65, 41)), *dw;
    QnValue *y = qn_softmax(g, qn_silu(g, qn_matmul(g, x, w, NULL, false, false)), 1);
    QN_TRY_DONE(qn_grad(g, qn_mul(g, y, y), &w, 1, &dw));
    QN_TRY_DONE(qn_graph_output(g, "dw", dw));
    QN_TRY_DONE(qn_plan_new(g, dev, NULL, NULL, &p));
    e = qn_eval_new(g, false);
    if (!e)
        QN_TRY_DONE(QN_ENOMEM);
    double wide[65 * 41];
    float single[65 * 41];
    QnValue *inputs[] = { x, w };
    for (int k = 0; k < 2; k++) {
        int64_t n = qn_shape_count(&inputs[k]->type.shape);
        for (int64_t i = 0; i < n; i++)
            wide[i] = single[i] = (float)((i * 37 + k * 11) % 101) / 50.5f - 1.0f;
        QN_TRY_DONE(qn_plan_write(p, k ? "w" : "x", single, (size_t)n * sizeof *single));
        QN_TRY_DONE(qn_eval_set(e, inputs[k], wide));
    }
    QN_TRY_DONE(qn_plan_run(p));
    const double *want;
    QN_TRY_DONE(qn_eval_get(e, dw, &want));
    QN_TRY_DONE(qn_plan_read(p, "dw", single, sizeof single));
    *error = 0;
    for (int i = 0; i < 65 * 41; i++)
        *error = fmax(*error, fabs(single[i] - want[i]) / (1e-3 + fabs(want[i])));
done:
    qn_eval_free(e);
    qn_plan_free(p);
    qn_graph_free(g);
    return st;
}

static void check_step(Doctor *d, QnDevice *dev, const char *name)
{
    double error;
    if (step_error(dev, &error) != QN_OK)
        say(d, BAD, "self-test", "%s: %s", name, qn_error_last()->text);
    else
        say(d, error < 1e-3 ? GOOD : BAD, "self-test",
            "%s: forward and gradient differ from float64 by at most %.1e", name, error);
}

static void check_opencl(Doctor *d)
{
#ifdef QN_HAVE_OPENCL
    int n = qn_opencl_count();
    if (n == 0)
        say(d, NOTE, "opencl",
            "no device; a driver's ICD, or pocl-opencl-icd for the CPU, is needed");
    for (int i = 0; i < n; i++) {
        char name[300];
        QnDevice *dev;
        if (qn_opencl_name(i, name, sizeof name) != QN_OK)
            continue;
        if (qn_device_open(&qn_backend_opencl, &(QnDeviceOptions){ .index = i }, &dev) != QN_OK) {
            say(d, NOTE, "opencl", "opencl:%d %s cannot be used: %s", i, name,
                qn_error_last()->text);
            continue;
        }
        say(d, GOOD, "opencl", "opencl:%d %s", i, name);
        snprintf(name, sizeof name, "opencl:%d", i);
        check_step(d, dev, name);
        qn_device_close(dev);
    }
#else
    say(d, NOTE, "opencl", "built without it");
#endif
}

static void say_plugin(void *ctx, QnPluginVerdict verdict, const char *what, const char *text)
{
    static const Verdict of[] = {
        [QN_PLUGIN_FOUND] = GOOD, [QN_PLUGIN_MISSING] = NOTE, [QN_PLUGIN_BROKEN] = BAD
    };
    say(ctx, of[verdict], what, "%s", text);
}

/* Every device of the backend that opens. */
static void check_cuda_devices(Doctor *d, const QnBackend *backend)
{
    for (int i = 0;; i++) {
        char name[32];
        QnDevice *dev;
        if (qn_device_open(backend, &(QnDeviceOptions){ .index = i }, &dev) != QN_OK)
            return;
        snprintf(name, sizeof name, "cuda:%d", i);
        check_step(d, dev, name);
        qn_device_close(dev);
    }
}

static void check_cuda(Doctor *d)
{
    const QnPlugin *plugin;
    const QnBackend *backend;
    QnStr path = { 0 };
    if (qn_plugin_find("cuda", &plugin, &backend, &path) != QN_OK) {
        bool missing = qn_error_last()->code == QN_ENOTFOUND;
        say(d, missing ? NOTE : BAD, "cuda plugin", "%s", qn_error_last()->text);
    } else {
        say(d, GOOD, "cuda plugin", "of Quern %s, %s", plugin->version, qn_str_text(&path));
        plugin->report(say_plugin, d);
        check_cuda_devices(d, backend);
    }
    qn_str_fini(&path);
}

static void check_cache(Doctor *d)
{
    char path[4096];
    if (qn_cache_path("kernels.json", path, sizeof path) != QN_OK)
        say(d, BAD, "tuning", "%s", qn_error_last()->text);
    else if (qn_file_exists(path))
        say(d, GOOD, "tuning", "kernel choices in %s", path);
    else
        say(d, NOTE, "tuning", "no measured kernel choices yet (%s); ranks decide", path);
}

static int run(QnArgs *a)
{
    Doctor d = { .args = a, .color = qn_term_color(stdout) };
    QnDevice *dev;
    if (qn_cli_device("cpu", 0, false, &dev) != QN_OK)
        return qn_cli_fail(a);
    check_build(&d);
    check_cpu(&d, dev);
    check_memory(&d);
    check_bandwidth(&d);
    check_step(&d, dev, "cpu");
    check_opencl(&d);
    check_cuda(&d);
    check_cache(&d);
    qn_device_close(dev);
    if (!a->json)
        printf("%d checks failed\n", d.n_bad);
    return d.n_bad ? QN_EXIT_FAILED : QN_EXIT_OK;
}

const QnCommand qn_cmd_doctor = {
    .name = "doctor",
    .summary = "Check this machine and this build, in seconds",
    .usage = "[--json]",
    .examples = "  quern doctor\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .run = run,
};
