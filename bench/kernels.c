/* quern_bench_kernels [-t THREADS] [-i ISA] [-s SECONDS] [--json] [--check] [WORD | CASE]
 *
 * Times every kernel of the CPU on the shapes of typical networks, beside the least time that the
 * operator's cost takes at the machine's measured peaks. -s: the most that a kernel is timed in a
 * case, three runs at least; WORD: only cases whose text contains it; CASE: this one, written as
 * bench/kernels/kernels.h says ("matmul f32[64,784] f32[784,512]"); --json: an object a line;
 * --check: times nothing, and fails if an own kernel has no case. */
#include "kernels/kernels.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cli/spinning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Options {
    QnKernelEnv env;
    QnLimits limits;
    double seconds;
    const char *word;
    bool json, check;
} Options;

static const CaseList *const lists[] = {
    &cases_of_products, &cases_of_convolutions, &cases_of_rows,
    &cases_of_images,   &cases_of_elements,     &cases_of_moves
};

/* ---- timing ---- */

/* With one thread the time that it ran, so that a busy machine disturbs less. */
static int64_t now_ns(int n_threads)
{
    struct timespec t;
    if (n_threads > 1)
        return qn_clock_ns();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The best run, in nanoseconds. */
static QnStatus best_of(const Options *o, const QnPrepared *p, void *const *buffers, void *work,
                        int64_t *best)
{
    const void *const *in = (const void *const *)buffers;
    void *const *out = buffers + p->node->n_in;
    int64_t begin = qn_clock_ns(), most = (int64_t)(o->seconds * 1e9);
    *best = INT64_MAX;
    for (int i = 0; i < 3 || (qn_clock_ns() - begin < most && i < 200); i++) {
        int64_t t = now_ns(p->env->n_threads);
        QN_TRY(p->kernel->run(p, in, out, work));
        *best = QN_MIN(*best, now_ns(p->env->n_threads) - t);
    }
    *best = QN_MAX(*best, 1);
    return QN_OK;
}

static void print_result(const Options *o, const Case *c, const QnPrepared *p, int64_t ns)
{
    const QnKernel *k = p->kernel;
    QnCost cost = p->node->op->cost ? p->node->op->cost(p->node) : qn_cost_of(p->node);
    double bytes = cost.bytes_read + cost.bytes_written;
    double limit = qn_cpu_limit_ns(&o->limits, p->node, &cost);
    if (o->json)
        printf("{\"case\": \"%s\", \"kernel\": \"%s\", \"own\": %s, \"threads\": %d, \"us\": %.4g, "
               "\"gflops\": %.4g, \"gbs\": %.4g, \"limit_us\": %.4g, \"share\": %.4g}\n",
               c->name, k->name, kernel_is_own(k) ? "true" : "false", o->env.n_threads,
               (double)ns * 1e-3, cost.flops / (double)ns, bytes / (double)ns, limit * 1e-3,
               limit / (double)ns);
    else
        printf("  %-28s %9.1f us %8.1f GFLOP/s %7.1f GB/s %4.0f %% of limit %8.2f MB scratch\n",
               k->name, (double)ns * 1e-3, cost.flops / (double)ns, bytes / (double)ns,
               100 * limit / (double)ns, (double)p->workspace_bytes * 1e-6);
    fflush(stdout);
}

static QnStatus time_kernel(const Options *o, const Case *c, const QnKernel *k,
                            void *const *buffers)
{
    QnPrepared p = { .kernel = k, .node = c->node, .env = &o->env };
    int64_t ns = 0;
    if (k->prepare)
        QN_TRY(k->prepare(&p));
    void *work = qn_alloc_aligned(p.workspace_bytes + 64);
    QnStatus st = work ? best_of(o, &p, buffers, work, &ns) : QN_ENOMEM;
    if (st == QN_OK)
        print_result(o, c, &p, ns);
    qn_free_aligned(work, p.workspace_bytes + 64);
    if (k->fini)
        k->fini(&p);
    return st;
}

/* ---- cases ---- */

static int time_case(const Options *o, const Case *c)
{
    void **buffers = case_buffers(c);
    int failed = buffers ? 0 : 1;
    if (!o->json)
        printf("%s\n", c->name);
    for (int i = 0; buffers && i < qn_backend_cpu.n_kernels; i++) {
        const QnKernel *k = qn_backend_cpu.kernels[i];
        if (kernel_takes(k, c->node, &o->env) && time_kernel(o, c, k, buffers) != QN_OK) {
            fprintf(stderr, "%s: %s: %s\n", c->name, k->name, qn_error_last()->text);
            failed++;
        }
    }
    case_buffers_free(c, buffers);
    return failed;
}

/* It has all that the kernel asks for but the instruction set, which is asked for last. */
static bool lacks_isa(const QnKernel *k, const QnNode *n, const QnKernelEnv *env)
{
    const char *why = k->op == n->op && k->accepts ? k->accepts(n, env) : NULL;
    return why && !strcmp(why, "no such instruction set");
}

/* Marks the kernels that take it, here or on another CPU. */
static int check_case(const Options *o, const Case *c, bool *known)
{
    int takers = 0;
    for (int i = 0; i < qn_backend_cpu.n_kernels; i++) {
        const QnKernel *k = qn_backend_cpu.kernels[i];
        bool takes = kernel_takes(k, c->node, &o->env);
        known[i] = known[i] || takes || lacks_isa(k, c->node, &o->env);
        takers += takes;
    }
    if (!takers)
        fprintf(stderr, "%s: no kernel but the reference takes it\n", c->name);
    return takers == 0;
}

static int run_case(const Options *o, const char *text, QnLayout layout, bool *known)
{
    Case c;
    int failed = 1;
    if (case_open(&c, text, layout) != QN_OK)
        fprintf(stderr, "%s: %s\n", text, qn_error_last()->text);
    else
        failed = o->check ? check_case(o, &c, known) : time_case(o, &c);
    case_close(&c);
    return failed;
}

static int run_text(const Options *o, const char *text, bool *known)
{
    int failed = 0;
    if (case_is_plain(text))
        failed += run_case(o, text, QN_LAYOUT_PLAIN, known);
    if (case_has_images(text))
        failed += run_case(o, text, QN_LAYOUT_CHANNELS_LAST, known);
    return failed;
}

static int run_cases(const Options *o, bool *known)
{
    int failed = 0, n = 0;
    for (int i = 0; i < QN_COUNT(lists); i++) {
        for (int k = 0; k < lists[i]->n; k++) {
            const char *text = lists[i]->text[k];
            if (!strstr(text, o->word))
                continue;
            failed += run_text(o, text, known);
            n++;
        }
    }
    return !n && strchr(o->word, '[') ? run_text(o, o->word, known) : failed;
}

static int report_forgotten(const bool *known)
{
    int forgotten = 0, own = 0;
    for (int i = 0; i < qn_backend_cpu.n_kernels; i++) {
        const QnKernel *k = qn_backend_cpu.kernels[i];
        if (!kernel_is_own(k))
            continue;
        own++;
        if (!known[i]) {
            fprintf(stderr, "%s has no case: add one to bench/kernels/\n", k->name);
            forgotten++;
        }
    }
    printf("%d own kernels, %d without a case\n", own, forgotten);
    return forgotten;
}

/* ---- the program ---- */

static bool read_options(Options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-t") && i + 1 < argc)
            o->env.n_threads = (int)strtol(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "-i") && i + 1 < argc)
            o->env.isa = argv[++i];
        else if (!strcmp(argv[i], "-s") && i + 1 < argc)
            o->seconds = strtod(argv[++i], NULL);
        else if (!strcmp(argv[i], "--json"))
            o->json = true;
        else if (!strcmp(argv[i], "--check"))
            o->check = true;
        else if (argv[i][0] == '-')
            return false; /* --help, or what it does not know */
        else
            o->word = argv[i];
    }
    return o->env.n_threads >= 1 && o->env.n_threads <= 1024 && o->seconds >= 0 &&
           qn_cpu_isa_is_usable(o->env.isa);
}

int main(int argc, char **argv)
{
    qn_cli_bound_spinning(argv);
    Options o = { .env = { .n_threads = 2, .isa = qn_cpu_isa_best() }, .seconds = 0.2, .word = "" };
    if (!read_options(&o, argc, argv)) {
        fprintf(stderr, "usage: quern_bench_kernels [-t THREADS] [-i ISA] [-s SECONDS] [--json] "
                        "[--check] [WORD | CASE]\n");
        return 2;
    }
    bool *known = qn_alloc((size_t)qn_backend_cpu.n_kernels * sizeof *known);
    if (!known || (!o.check && qn_cpu_limits(&o.env, &o.limits) != QN_OK)) {
        fprintf(stderr, "out of memory\n");
        qn_free(known);
        return 1;
    }
    if (!o.json && !o.check)
        printf("%s, %d threads: %.1f GFLOP/s of multiply-adds, %.1f GB/s\n", o.env.isa,
               o.env.n_threads, o.limits.flops_per_s * 1e-9, o.limits.bytes_per_s * 1e-9);
    int failed = run_cases(&o, known);
    if (o.check)
        failed += report_forgotten(known);
    qn_free(known);
    return failed ? 1 : 0;
}
