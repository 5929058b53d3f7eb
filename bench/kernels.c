/* quern_bench_kernels [-t THREADS] [-i ISA] [WORD]: times every kernel of the CPU on the shapes of
 * typical networks, beside the machine's measured peak. WORD: only cases whose name contains it. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/gemm.h"
#include "base/clock.h"
#include "base/mem.h"
#include "ops/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Case {
    const char *name;
    QnValue *(*build)(QnGraph *g, const int64_t *d, QnLayout layout);
    int64_t dim[8];
    bool layouts; /* also in channels-last */
} Case;

static QnValue *input(QnGraph *g, const QnShape *s, QnLayout layout)
{
    char name[24];
    snprintf(name, sizeof name, "x%lld", (long long)g->n_nodes);
    QnValue *v = qn_input(g, name, QN_DTYPE_F32, s);
    if (s->rank >= 3)
        v->type.layout = layout;
    return v;
}

static QnValue *in_layout(QnValue *v, QnLayout layout)
{
    v->type.layout = layout;
    return v;
}

static QnValue *matmul(QnGraph *g, const int64_t *d, QnLayout layout)
{
    QnValue *a = input(g, &QN_SHAPE(d[0], d[2]), layout);
    QnValue *b = input(g, &QN_SHAPE(d[1], d[2]), layout);
    return qn_matmul(g, a, b, NULL, false, true);
}

/* d: N, C, H, M, kernel, stride; square images, padding half the kernel */
static QnConvAttr conv_attr(const int64_t *d)
{
    int64_t p = d[4] / 2;
    return (QnConvAttr){ .strides = { 2, { d[5], d[5] } }, .pads = { 4, { p, p, p, p } } };
}

static QnShape conv_y(const int64_t *d)
{
    int64_t o = (d[2] + 2 * (d[4] / 2) - d[4]) / d[5] + 1;
    return QN_SHAPE(d[0], d[3], o, o);
}

static QnValue *conv(QnGraph *g, const int64_t *d, QnLayout layout)
{
    QnConvAttr a = conv_attr(d);
    QnValue *x = input(g, &QN_SHAPE(d[0], d[1], d[2], d[2]), layout);
    QnValue *w = input(g, &QN_SHAPE(d[3], d[1], d[4], d[4]), QN_LAYOUT_PLAIN);
    return in_layout(qn_conv(g, x, w, NULL, &a), layout);
}

static QnValue *conv_dx(QnGraph *g, const int64_t *d, QnLayout layout)
{
    QnConvAttr a = conv_attr(d);
    QnShape y = conv_y(d);
    QnValue *dy = input(g, &y, layout);
    QnValue *w = input(g, &QN_SHAPE(d[3], d[1], d[4], d[4]), QN_LAYOUT_PLAIN);
    return in_layout(qn_conv_dx(g, dy, w, &a, &QN_SHAPE(d[0], d[1], d[2], d[2])), layout);
}

static QnValue *conv_dw(QnGraph *g, const int64_t *d, QnLayout layout)
{
    QnConvAttr a = conv_attr(d);
    QnShape y = conv_y(d);
    QnValue *dy = input(g, &y, layout);
    QnValue *x = input(g, &QN_SHAPE(d[0], d[1], d[2], d[2]), layout);
    return qn_conv_dw(g, dy, x, &a, &QN_SHAPE(d[3], d[1], d[4], d[4]));
}

static QnValue *images(QnGraph *g, const int64_t *d, QnLayout layout)
{
    return input(g, &QN_SHAPE(d[0], d[1], d[2], d[2]), layout);
}

static QnValue *channel(QnGraph *g, const int64_t *d)
{
    return input(g, &QN_SHAPE(d[1]), QN_LAYOUT_PLAIN);
}

/* d: N, C, H */
static QnValue *batch_norm(QnGraph *g, const int64_t *d, QnLayout layout)
{
    QnNode *n = qn_batch_norm(g, images(g, d, layout), channel(g, d), channel(g, d), 1e-5);
    return in_layout(qn_node_out(g, n, 0), layout);
}

static QnValue *batch_norm_grad(QnGraph *g, const int64_t *d, QnLayout layout)
{
    QnValue *in[] = { images(g, d, layout), images(g, d, layout), channel(g, d), channel(g, d),
                      channel(g, d) };
    return in_layout(qn_emitn(g, &qn_op_batch_norm_grad, NULL, in, 5), layout);
}

/* d: N, C, H, kernel, stride */
static QnPoolAttr pool_attr(const int64_t *d)
{
    int64_t p = (d[3] - 1) / 2;
    return (QnPoolAttr){ .kernel = { 2, { d[3], d[3] } },
                         .strides = { 2, { d[4], d[4] } },
                         .pads = { 4, { p, p, p, p } } };
}

static QnValue *max_pool(QnGraph *g, const int64_t *d, QnLayout layout)
{
    QnPoolAttr a = pool_attr(d);
    return in_layout(qn_max_pool(g, images(g, d, layout), &a), layout);
}

static QnValue *max_pool_grad(QnGraph *g, const int64_t *d, QnLayout layout)
{
    QnPoolAttr a = pool_attr(d);
    QnValue *x = images(g, d, layout);
    QnShape y = qn_max_pool(g, x, &a)->type.shape;
    return in_layout(qn_max_pool_grad(g, input(g, &y, layout), x, &a), layout);
}

static QnValue *avg_pool(QnGraph *g, const int64_t *d, QnLayout layout)
{
    QnPoolAttr a = pool_attr(d);
    return in_layout(qn_avg_pool(g, images(g, d, layout), &a), layout);
}

/* d: B, H, T, D; causal */
static QnValue *attention(QnGraph *g, const int64_t *d, QnLayout layout)
{
    QnShape s = QN_SHAPE(d[0], d[1], d[2], d[3]);
    QnValue *x = input(g, &s, layout);
    return qn_attention(g, x, x, x, NULL, true, 0);
}

static QnValue *attention_grad(QnGraph *g, const int64_t *d, QnLayout layout)
{
    QnShape s = QN_SHAPE(d[0], d[1], d[2], d[3]), rows = QN_SHAPE(d[0], d[1], d[2]);
    QnValue *x = input(g, &s, layout), *r = input(g, &rows, layout);
    return qn_node_out(g, qn_attention_grad(g, x, x, x, x, r, r, NULL, true, 0), 0);
}

/* d: rows, columns */
static QnValue *softmax(QnGraph *g, const int64_t *d, QnLayout layout)
{
    return qn_softmax(g, input(g, &QN_SHAPE(d[0], d[1]), layout), -1);
}

static QnValue *layer_norm(QnGraph *g, const int64_t *d, QnLayout layout)
{
    QnValue *x = input(g, &QN_SHAPE(d[0], d[1]), layout), *c = input(g, &QN_SHAPE(d[1]), layout);
    return qn_layer_norm(g, x, c, c, -1, 1e-5);
}

static QnValue *relu(QnGraph *g, const int64_t *d, QnLayout layout)
{
    return qn_relu(g, input(g, &QN_SHAPE(d[0]), layout));
}

static QnValue *gelu_tanh(QnGraph *g, const int64_t *d, QnLayout layout)
{
    return qn_gelu_tanh(g, input(g, &QN_SHAPE(d[0]), layout));
}

static QnValue *gelu(QnGraph *g, const int64_t *d, QnLayout layout)
{
    return qn_gelu(g, input(g, &QN_SHAPE(d[0]), layout));
}

static QnValue *silu(QnGraph *g, const int64_t *d, QnLayout layout)
{
    return qn_silu(g, input(g, &QN_SHAPE(d[0]), layout));
}

#define CONVS(...)                                                                                 \
    { "conv", conv, { __VA_ARGS__ }, true }, { "conv_dx", conv_dx, { __VA_ARGS__ }, true },        \
    {                                                                                              \
        "conv_dw", conv_dw, { __VA_ARGS__ }, true                                                  \
    }

static const Case cases[] = {
    { "matmul", matmul, { 1024, 1024, 1024 }, false },
    { "matmul", matmul, { 128, 128, 576 }, false },
    { "matmul", matmul, { 128, 10, 576 }, false },
    { "matmul", matmul, { 256, 512, 128 }, false },
    { "matmul", matmul, { 1, 4096, 1024 }, false },
    { "matmul", matmul, { 4, 4096, 1024 }, false },
    { "matmul", matmul, { 8, 4096, 1024 }, false },
    { "matmul", matmul, { 8, 256, 256 }, false },
    CONVS(128, 1, 28, 32, 3, 1),
    CONVS(128, 32, 28, 32, 3, 1),
    CONVS(128, 32, 14, 64, 3, 1),
    CONVS(128, 64, 7, 64, 3, 1),
    CONVS(32, 64, 32, 128, 3, 2),
    CONVS(16, 256, 14, 64, 1, 1),
    { "batch_norm", batch_norm, { 128, 16, 28 }, true },
    { "batch_norm_grad", batch_norm_grad, { 128, 16, 28 }, true },
    { "batch_norm", batch_norm, { 128, 32, 28 }, true },
    { "batch_norm_grad", batch_norm_grad, { 128, 32, 28 }, true },
    { "max_pool", max_pool, { 128, 32, 28, 2, 2 }, true },
    { "max_pool_grad", max_pool_grad, { 128, 32, 28, 2, 2 }, true },
    { "max_pool", max_pool, { 16, 64, 56, 3, 2 }, true },
    { "max_pool_grad", max_pool_grad, { 16, 64, 56, 3, 2 }, true },
    { "attention", attention, { 12, 4, 64, 32 }, false },
    { "attention_grad", attention_grad, { 12, 4, 64, 32 }, false },
    { "attention", attention, { 2, 8, 1024, 64 }, false },
    { "attention_grad", attention_grad, { 2, 8, 1024, 64 }, false },
    { "softmax", softmax, { 4096, 1000 }, false },
    { "layer_norm", layer_norm, { 8192, 512 }, false },
    { "relu", relu, { 1 << 20 }, false },
    { "gelu_tanh", gelu_tanh, { 1 << 20 }, false },
    { "gelu", gelu, { 1 << 20 }, false },
    { "silu", silu, { 1 << 20 }, false },
    { "avg_pool", avg_pool, { 128, 64, 8, 8, 8 }, true },
};

/* With one thread the time that it ran, so that a busy machine disturbs less. */
static int64_t now_ns(int n_threads)
{
    struct timespec t;
    if (n_threads > 1)
        return qn_clock_ns();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double seconds_of(const QnPrepared *p, const void *const *in, void *const *out, void *work)
{
    double best = 1e30;
    int64_t begin = qn_clock_ns();
    for (int i = 0; i < 3 || (qn_clock_ns() - begin < 200000000 && i < 200); i++) {
        int64_t t = now_ns(p->env->n_threads);
        if (p->kernel->run(p, in, out, work) != QN_OK)
            return 0;
        double s = (double)(now_ns(p->env->n_threads) - t) * 1e-9;
        best = s < best ? s : best;
    }
    return best;
}

static float *filled(size_t bytes)
{
    float *x = qn_alloc_aligned(bytes + 64);
    for (size_t i = 0; x && i < bytes / sizeof *x; i++)
        x[i] = (float)(i * 2654435761u % 1024) / 512 - 1;
    return x;
}

static void time_kernel(const QnKernel *k, const QnNode *n, const QnKernelEnv *env,
                        const void *const *in, void *const *out)
{
    QnPrepared p = { .kernel = k, .node = n, .env = env };
    if (k->prepare && k->prepare(&p) != QN_OK) {
        printf("  %-24s %s\n", k->name, qn_error_last()->text);
        return;
    }
    void *work = qn_alloc_aligned(p.workspace_bytes + 64);
    double s = seconds_of(&p, in, out, work);
    QnCost c = n->op->cost ? n->op->cost(n) : qn_cost_of(n);
    printf("  %-24s %9.1f us %8.1f GFLOP/s %7.1f GB/s %8.2f MB scratch\n", k->name, s * 1e6,
           c.flops / s * 1e-9, (c.bytes_read + c.bytes_written) / s * 1e-9,
           (double)p.workspace_bytes * 1e-6);
    qn_free_aligned(work, p.workspace_bytes + 64);
    if (k->fini)
        k->fini(&p);
}

static void run_case(const Case *c, QnLayout layout, const QnKernelEnv *env)
{
    QnGraph *g = qn_graph_new();
    QnValue *y = c->build(g, c->dim, layout);
    if (qn_graph_check(g) != QN_OK) {
        printf("%s: %s\n", c->name, qn_error_last()->text);
        qn_graph_free(g);
        return;
    }
    const QnNode *n = y->node;
    void *in[8] = { 0 }, *out[8] = { 0 };
    printf("%s", c->name);
    for (int i = 0; i < n->n_in; i++) {
        char t[QN_TYPE_TEXT_BYTES];
        printf(" %s", qn_type_text(&n->in[i]->type, t));
        in[i] = filled((size_t)qn_type_bytes(&n->in[i]->type));
    }
    printf("\n");
    for (int i = 0; i < n->n_out; i++)
        out[i] = filled((size_t)qn_type_bytes(&n->out[i].type));
    for (int i = 0; i < qn_backend_cpu.n_kernels; i++) {
        const QnKernel *k = qn_backend_cpu.kernels[i];
        if ((!k->op || k->op == n->op) && k->rank > 0 && !k->accepts(n, env))
            time_kernel(k, n, env, (const void *const *)in, out);
    }
    for (int i = 0; i < n->n_in; i++)
        qn_free_aligned(in[i], (size_t)qn_type_bytes(&n->in[i]->type) + 64);
    for (int i = 0; i < n->n_out; i++)
        qn_free_aligned(out[i], (size_t)qn_type_bytes(&n->out[i].type) + 64);
    qn_graph_free(g);
}

static void peak_part(void *ctx, int64_t part)
{
    float keep[3] = { 0.999f, 0.001f, (float)part };
    ((QnPeakFn *)ctx)(4000000, keep);
}

/* The most of several tries: the machine may be busy. */
static void print_peaks(const QnKernelEnv *env)
{
    float keep[3] = { 0.999f, 0.001f, 0 };
    double flops = qn_gemm_peak_find(env->isa)(4000000, keep), peak = 0, copy = 0;
    size_t bytes = (size_t)64 << 20;
    char *a = qn_alloc_aligned(bytes), *b = qn_alloc_aligned(bytes);
    for (int i = 0; a && b && i < 5; i++) {
        int64_t t = now_ns(env->n_threads);
        qn_cpu_parallel(env->n_threads, env->n_threads, peak_part,
                        (void *)qn_gemm_peak_find(env->isa));
        double s = (double)(now_ns(env->n_threads) - t) * 1e-9;
        peak = QN_MAX(peak, flops * env->n_threads / s);
        memset(a, i, bytes);
        t = now_ns(1);
        memcpy(b, a, bytes);
        copy = QN_MAX(copy, 2 * (double)bytes / (double)(now_ns(1) - t));
    }
    qn_free_aligned(a, bytes);
    qn_free_aligned(b, bytes);
    printf("%s, %d threads: %.1f GFLOP/s of multiply-adds; one thread copies %.1f GB/s\n", env->isa,
           env->n_threads, peak * 1e-9, copy);
}

int main(int argc, char **argv)
{
    QnKernelEnv env = { .n_threads = 2, .isa = qn_cpu_isa_best() };
    const char *word = "";
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-t") && i + 1 < argc)
            env.n_threads = (int)strtol(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "-i") && i + 1 < argc)
            env.isa = argv[++i];
        else if (argv[i][0] == '-')
            env.n_threads = 0; /* --help, or what it does not know */
        else
            word = argv[i];
    }
    if (env.n_threads < 1 || !qn_cpu_isa_is_usable(env.isa)) {
        fprintf(stderr, "usage: quern_bench_kernels [-t THREADS] [-i ISA] [WORD]\n");
        return 2;
    }
    print_peaks(&env);
    for (int i = 0; i < QN_COUNT(cases); i++) {
        if (!strstr(cases[i].name, word))
            continue;
        run_case(&cases[i], QN_LAYOUT_PLAIN, &env);
        if (cases[i].layouts)
            run_case(&cases[i], QN_LAYOUT_CHANNELS_LAST, &env);
    }
    return 0;
}
