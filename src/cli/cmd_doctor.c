#include "cli/cli.h"

#include "api/plugin.h"
#include "backend/cpu/cpu.h"
#include "backend/opencl/opencl.h"
#include "base/cache.h"
#include "base/file.h"
#include "base/isa_list.h"
#include "base/term.h"
#include "api/libraries.h"
#include "api/self_test.h"
#include "plan/rates.h"
#include "quern/quern.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { QUICK, JSON };

static const QnOption options[] = {
    [QUICK] = { .name = "--quick", .kind = QN_OPTION_FLAG, .help = "measure nothing" },
    [JSON] = { .name = "--json", .kind = QN_OPTION_FLAG, .help = "one JSON object a check" },
};

typedef enum Verdict { GOOD, NOTE, BAD } Verdict;

typedef struct Doctor {
    const QnArgs *args;
    bool color;
    bool is_quick;
    int n_bad;
    const QnDeviceRates *rates; /* what is said is of them; NULL: of something else */
} Doctor;

static void put_rates(QnJsonWriter *w, const QnDeviceRates *r)
{
    qn_json_put_double(w, "copy_bytes_per_second", r->copy);
    qn_json_put_double(w, "to_device_bytes_per_second", r->to);
    qn_json_put_double(w, "from_device_bytes_per_second", r->from);
    qn_json_put_double(w, "matmul_flops", r->multiply);
    qn_json_put_string(w, "matmul_kernel", r->multiplies);
}

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
        if (d->rates)
            put_rates(&w, d->rates);
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

static void check_libraries(Doctor *d)
{
    QnLibrary all[QN_LIBRARIES];
    qn_libraries(all);
    say(d, GOOD, "quern", "version %s", qn_version());
    for (int i = 0; i < QN_LIBRARIES; i++) {
        const QnLibrary *l = &all[i];
        if (!l->is_there)
            say(d, NOTE, "library", "%s (%s): built without it", l->name, l->use);
        else
            say(d, GOOD, "library", "%s%s%s (%s), %s", l->name, l->version[0] ? " " : "",
                l->version, l->use, l->path[0] ? l->path : "part of the program");
    }
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

static void check_rates(Doctor *d, QnDevice *dev, const char *name)
{
    QnDeviceRates r;
    char copy[QN_STR_NUMBER], to[QN_STR_NUMBER], from[QN_STR_NUMBER], flops[QN_STR_NUMBER];
    if (d->is_quick)
        return;
    if (qn_device_measure(dev, &r) != QN_OK) {
        say(d, BAD, "rates", "%s: %s", name, qn_error_last()->text);
        return;
    }
    d->rates = &r;
    qn_str_si(copy, r.copy);
    qn_str_si(flops, r.multiply);
    if (dev->backend->is_host)
        say(d, GOOD, "rates", "%s: a thread copies %sB/s; products of f32 %sFLOP/s by %s", name,
            copy, flops, r.multiplies);
    else
        say(d, GOOD, "rates",
            "%s: copies %sB/s within, %sB/s to it, %sB/s from it; products of f32 %sFLOP/s by %s",
            name, copy, qn_str_si(to, r.to), qn_str_si(from, r.from), flops, r.multiplies);
    d->rates = NULL;
}

static void check_kernels(Doctor *d, QnDevice *dev, const char *name)
{
    QnSelfTest t;
    QnStatus st = qn_self_test(dev, &t);
    if (st != QN_OK)
        say(d, BAD, "self-test", "%s: %s", name, qn_error_last()->text);
    else if (t.n_bad)
        say(d, BAD, "self-test", "%s: %d of %d kernels are wrong: %s", name, t.n_bad, t.n_cases,
            qn_str_text(&t.bad));
    else
        say(d, GOOD, "self-test", "%s: %d kernels differ from float64 by at most %.1e (%s)", name,
            t.n_cases, t.worst, t.worst_case);
    if (st == QN_OK && t.on_host.n)
        say(d, NOTE, "self-test", "%s: on the host run %s", name, qn_str_text(&t.on_host));
    qn_self_test_fini(&t);
}

static void check_device(Doctor *d, QnDevice *dev, const char *name)
{
    check_kernels(d, dev, name);
    check_rates(d, dev, name);
}

/* The line of a device that opens. */
static void describe(Doctor *d, QnDevice *dev, const char *what, const char *name,
                     const char *label)
{
    QnDeviceInfo i;
    char bytes[QN_STR_NUMBER];
    if (qn_device_info(dev, &i) != QN_OK) {
        say(d, BAD, what, "%s: %s", name, qn_error_last()->text);
        return;
    }
    say(d, GOOD, what, "%s %s: %lld units at %.2f GHz, %s%s%s; more lies in %s", name,
        label ? label : i.name, (long long)i.units, 1e-9 * i.clock_hz,
        qn_str_bytes(bytes, (uint64_t)i.memory_bytes), i.memory ? " of " : "",
        i.memory ? i.memory : "", i.far ? i.far : "no other memory");
    if (i.lacks)
        say(d, NOTE, what, "%s: %s", name, i.lacks);
}

static void check_opencl(Doctor *d)
{
#ifdef QN_HAVE_OPENCL
    int n = qn_opencl_count();
    if (n == 0)
        say(d, NOTE, "opencl",
            "no device; a driver's ICD, or pocl-opencl-icd for the CPU, is needed: files *.icd in "
            "/etc/OpenCL/vendors (or $OCL_ICD_VENDORS) name the drivers");
    for (int i = 0; i < n; i++) {
        char label[300], name[32];
        QnDevice *dev;
        if (qn_opencl_name(i, label, sizeof label) != QN_OK)
            continue;
        if (qn_device_open(&qn_backend_opencl, &(QnDeviceOptions){ .index = i }, &dev) != QN_OK) {
            say(d, NOTE, "opencl", "opencl:%d %s cannot be used: %s", i, label,
                qn_error_last()->text);
            continue;
        }
        snprintf(name, sizeof name, "opencl:%d", i);
        describe(d, dev, "opencl", name, label);
        check_device(d, dev, name);
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

/* Every device of the backend that opens, and why others do not; what keeps all of them from it, as
 * an old driver does, is said once. */
static void check_cuda_devices(Doctor *d, const QnBackend *backend)
{
    enum { MOST = 64 };
    char said[QN_ERROR_TEXT_BYTES] = "";
    for (int i = 0; i < MOST; i++) {
        char name[32];
        QnDevice *dev;
        QnStatus st = qn_device_open(backend, &(QnDeviceOptions){ .index = i }, &dev);
        if (st == QN_ENOTFOUND) /* there are no more */
            break;
        if (st != QN_OK) {
            if (strcmp(said, qn_error_last()->text))
                say(d, NOTE, "cuda", "cuda:%d cannot be used: %s", i, qn_error_last()->text);
            snprintf(said, sizeof said, "%s", qn_error_last()->text);
            continue;
        }
        snprintf(name, sizeof name, "cuda:%d", i);
        describe(d, dev, "cuda", name, NULL);
        check_device(d, dev, name);
        qn_device_close(dev);
    }
    qn_error_clear();
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
    Doctor d = { .args = a, .color = qn_term_color(stdout), .is_quick = a->text[QUICK] != NULL };
    QnDevice *dev;
    if (qn_cli_device("cpu", 0, false, &dev) != QN_OK)
        return qn_cli_fail(a);
    check_libraries(&d);
    check_cpu(&d, dev);
    check_memory(&d);
    check_device(&d, dev, "cpu");
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
    .usage = "[--quick] [--json]",
    .examples = "  quern doctor\n"
                "  quern doctor --quick --json\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .run = run,
};
