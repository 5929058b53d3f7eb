/* Runs every kernel of the CPU that accepts a node, at each instruction set and several thread
 * counts, and compares with the operator's float64 reference. */
#ifndef QN_TEST_BACKEND_KERNEL_CHECK_H
#define QN_TEST_BACKEND_KERNEL_CHECK_H

#include "test.h"

#include "backend/cpu/cpu.h"
#include "base/isa_list.h"
#include "base/mem.h"
#include "ir/eval.h"
#include "ops/ops.h"

#include <math.h>

enum { CHECK_MAX = 40, GUARD = 64 };

typedef struct Check {
    const QnNode *n;
    double *in[CHECK_MAX], *want[QN_MAX_OUT]; /* row-major */
    double *terms;           /* of a convolution: the sum of its products' magnitudes */
    void *raw_in[CHECK_MAX]; /* as they lie in memory */
    double tol;
    const char *only; /* kernel name; NULL: all but the reference */
    int n_run;        /* kernels that accepted */
} Check;

static const char *const check_isas[] = {
#define QN_X(name) #name,
    QN_ISA_LIST(QN_X)
#undef QN_X
};

/* Which kernels this program has compared with the reference, by their place among the backend's
 * and by instruction set. */
enum { CHECK_MAX_KERNELS = 256 };
static bool check_seen[CHECK_MAX_KERNELS][QN_COUNT(check_isas)];

static QN_UNUSED uint64_t check_random(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return *s >> 11;
}

/* Between row-major order and the order in memory. */
static void check_permute(const QnType *t, const double *src, double *dst, bool to_memory)
{
    int64_t stride[QN_MAX_RANK], index[QN_MAX_RANK] = { 0 }, n = qn_shape_count(&t->shape);
    qn_type_strides(t, stride);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0;
        for (int d = 0; d < t->shape.rank; d++)
            at += index[d] * stride[d];
        dst[to_memory ? at : i] = src[to_memory ? i : at];
        for (int d = t->shape.rank - 1; d >= 0 && ++index[d] == t->shape.dim[d]; d--)
            index[d] = 0;
    }
}

static size_t check_bytes(const QnType *t)
{
    return (size_t)qn_type_bytes(t);
}

/* Memory of this type with a guard of 0xa5 behind it. */
static void *check_buffer(size_t bytes)
{
    char *p = aligned_alloc(64, (bytes + GUARD + 63) / 64 * 64);
    memset(p, 0xff, bytes);
    memset(p + bytes, 0xa5, GUARD);
    return p;
}

static void check_guard(const Check *c, const QnKernel *k, const void *p, size_t bytes,
                        const char *what)
{
    for (size_t i = 0; i < GUARD; i++) {
        if (((const unsigned char *)p)[bytes + i] != 0xa5)
            fail_msg("%s of %s: writes behind %s", k->name, c->n->op->name, what);
    }
}

static const char *check_describe(const Check *c, char buf[512])
{
    size_t used = (size_t)snprintf(buf, 512, "%s(", c->n->op->name);
    for (int i = 0; i < c->n->n_in && used < 400; i++) {
        char t[QN_TYPE_TEXT_BYTES];
        used += (size_t)snprintf(buf + used, 512 - used, "%s%s", i ? ", " : "",
                                 c->n->in[i] ? qn_type_text(&c->n->in[i]->type, t) : "-");
    }
    snprintf(buf + used, 512 - used, ")");
    return buf;
}

/* Winograd's sums are no sums of the products: where those cancel, its error stays what they are
 * worth. F(4x4,3x3) multiplies rounding errors by the norms of its three small maps; with the
 * library's points that is 12 units of 2^-24 at most on nets' shapes (the direct sum has up to 6),
 * so 16. */
static double check_allowed(const Check *c, const QnKernel *k, int64_t i, double want)
{
    if (c->terms && strstr(k->name, "winograd"))
        return 16 * 0x1p-24 * c->terms[i];
    return c->tol * (1 + fabs(want));
}

static void check_output(const Check *c, const QnKernel *k, int o, const void *raw, const char *how)
{
    const QnType *t = &c->n->out[o].type;
    int64_t n = qn_shape_count(&t->shape);
    double *wide = malloc(((size_t)n + 1) * 2 * sizeof *wide), *got = wide + n;
    char text[512];
    qn_dtype_to_f64(t->dtype, raw, wide, n);
    check_permute(t, wide, got, false);
    for (int64_t i = 0; i < n; i++) {
        double want = c->want[o][i];
        if (qn_dtype_is_storage(t->dtype)) { /* rounding is all that the node does */
            uint64_t cell;
            qn_dtype_from_f64(t->dtype, &want, &cell, 1);
            qn_dtype_to_f64(t->dtype, &cell, &want, 1);
        }
        bool same = got[i] == want || (isnan(got[i]) && isnan(want)) ||
                    fabs(got[i] - want) <= check_allowed(c, k, i, want);
        if (!same)
            fail_msg("%s %s: %s: output %d at %lld is %.9g, not %.9g", k->name, how,
                     check_describe(c, text), o, (long long)i, got[i], want);
    }
    free(wide);
}

static QN_UNUSED void check_kernel(Check *c, const QnKernel *k, const char *isa)
{
    static const int threads[] = { 1, 2, 3, 5 };
    void *first[QN_MAX_OUT] = { 0 };
    for (int t = 0; t < QN_COUNT(threads); t++) {
        QnKernelEnv env = { .n_threads = threads[t], .isa = isa };
        char how[64], text[512];
        if (k->accepts && k->accepts(c->n, &env))
            continue;
        snprintf(how, sizeof how, "(%s, %d threads)", isa, threads[t]);
        QnPrepared p = { .kernel = k, .node = c->n, .env = &env };
        assert_ok(k->prepare ? k->prepare(&p) : QN_OK);
        char *work = check_buffer(p.workspace_bytes);
        void *out[QN_MAX_OUT];
        for (int o = 0; o < c->n->n_out; o++)
            out[o] = check_buffer(check_bytes(&c->n->out[o].type));
        for (int run = 0; run < 2; run++) { /* the second finds used memory */
            uint64_t before = qn_alloc_count();
            if (k->run(&p, (const void *const *)c->raw_in, out, work) != QN_OK)
                fail_msg("%s %s: %s: %s", k->name, how, check_describe(c, text),
                         qn_error_last()->text);
            if (qn_alloc_count() != before)
                fail_msg("%s %s: %s: run allocates", k->name, how, check_describe(c, text));
        }
        check_guard(c, k, work, p.workspace_bytes, "the workspace");
        for (int o = 0; o < c->n->n_out; o++) {
            size_t bytes = check_bytes(&c->n->out[o].type);
            check_guard(c, k, out[o], bytes, "an output");
            check_output(c, k, o, out[o], how);
            if (!first[o])
                first[o] = out[o];
            else {
                if ((k->flags & QN_KERNEL_ANY_THREADS) && memcmp(first[o], out[o], bytes))
                    fail_msg("%s %s: %s: promises the same bits for any thread count", k->name, how,
                             check_describe(c, text));
                free(out[o]);
            }
        }
        c->n_run += t == 0;
        free(work);
        if (k->fini)
            k->fini(&p);
    }
    for (int o = 0; o < c->n->n_out; o++)
        free(first[o]);
}

/* The node on the magnitudes of its inputs, for what is linear in each (or has a ReLU after it); at
 * least the mean, since a tile's error is spread over its outputs, also over those at an edge,
 * which have few products. */
static double *check_terms(const Check *c)
{
    const QnNode *n = c->n;
    double *in[CHECK_MAX] = { 0 }, *out[QN_MAX_OUT] = { 0 };
    if (n->op != &qn_op_conv && n->op != &qn_op_conv_dx && n->op != &qn_op_conv_dw &&
        n->op != &qn_op_conv_map)
        return NULL;
    for (int i = 0; i < n->n_in; i++) {
        int64_t count = n->in[i] ? qn_shape_count(&n->in[i]->type.shape) : 0;
        in[i] = n->in[i] ? malloc(((size_t)count + 1) * sizeof(double)) : NULL;
        for (int64_t k = 0; k < count; k++)
            in[i][k] = fabs(c->in[i][k]);
    }
    out[0] = malloc(((size_t)qn_shape_count(&n->out[0].type.shape) + 1) * sizeof(double));
    assert_ok(qn_eval_node(n, (const double *const *)in, out, false));
    for (int i = 0; i < n->n_in; i++)
        free(in[i]);
    int64_t count = qn_shape_count(&n->out[0].type.shape);
    double mean = 0;
    for (int64_t i = 0; i < count; i++)
        mean += out[0][i] / (double)count;
    for (int64_t i = 0; i < count; i++)
        out[0][i] = fmax(out[0][i], mean);
    return out[0];
}

/* c->in must be filled (and rounded to the inputs' dtypes). Frees them. */
static QN_UNUSED void check_run(Check *c)
{
    const QnNode *n = c->n;
    char text[512];
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i])
            continue;
        const QnType *t = &n->in[i]->type;
        int64_t count = qn_shape_count(&t->shape);
        double *moved = malloc(((size_t)count + 1) * sizeof *moved);
        check_permute(t, c->in[i], moved, true);
        c->raw_in[i] = check_buffer(check_bytes(t));
        qn_dtype_from_f64(t->dtype, moved, c->raw_in[i], count);
        free(moved);
    }
    for (int o = 0; o < n->n_out; o++)
        c->want[o] = malloc(((size_t)qn_shape_count(&n->out[o].type.shape) + 1) * sizeof(double));
    if (qn_eval_node(n, (const double *const *)c->in, c->want, false) != QN_OK)
        fail_msg("reference of %s: %s", check_describe(c, text), qn_error_last()->text);
    c->terms = check_terms(c);
    for (int i = 0; i < qn_backend_cpu.n_kernels; i++) {
        const QnKernel *k = qn_backend_cpu.kernels[i];
        if ((k->op && k->op != n->op) || (c->only ? strcmp(k->name, c->only) : k->rank == 0))
            continue;
        for (int j = 0; j < QN_COUNT(check_isas); j++) {
            int before = c->n_run;
            if (qn_cpu_isa_is_usable(check_isas[j]))
                check_kernel(c, k, check_isas[j]);
            check_seen[i][j] |= c->n_run > before;
        }
    }
    for (int i = 0; i < n->n_in; i++) {
        free(c->in[i]);
        free(c->raw_in[i]);
    }
    for (int o = 0; o < n->n_out; o++)
        free(c->want[o]);
    free(c->terms);
}

/* Random elements of a type, rounded to it. */
static QN_UNUSED double *check_fill(const QnType *t, double lo, double hi, bool distinct,
                                    uint64_t *seed)
{
    int64_t n = qn_shape_count(&t->shape);
    double *x = malloc(((size_t)n + 1) * sizeof *x);
    bool whole = !qn_dtype_is_float(t->dtype);
    for (int64_t i = 0; i < n; i++) {
        double u = (double)check_random(seed) * 0x1p-53;
        x[i] = whole ? floor(lo + u * (hi - lo + 1)) : lo + u * (hi - lo);
        if (distinct)
            x[i] = (double)i * 0x1p-5;
    }
    for (int64_t i = n - 1; distinct && i > 0; i--) {
        int64_t j = (int64_t)(check_random(seed) % (uint64_t)(i + 1));
        double swap = x[i];
        x[i] = x[j];
        x[j] = swap;
    }
    void *narrow = malloc((size_t)n * 8 + 8);
    qn_dtype_from_f64(t->dtype, x, narrow, n);
    qn_dtype_to_f64(t->dtype, narrow, x, n);
    free(narrow);
    return x;
}

static QN_UNUSED double check_tolerance(QnDtype d)
{
    return d == QN_DTYPE_BF16 ? 1.6e-2 : d == QN_DTYPE_F16 ? 2e-3 : 2e-5;
}

/* Input of the graph, in a layout. */
static QN_UNUSED QnValue *check_input(QnGraph *g, QnDtype d, const QnShape *s, QnLayout layout)
{
    char name[32];
    snprintf(name, sizeof name, "x%lld", (long long)g->n_nodes);
    QnValue *v = qn_input(g, name, d, s);
    if (s->rank >= 3)
        v->type.layout = layout;
    return v;
}

/* Random inputs in lo..hi for the node that computes y, then every kernel. Returns how many ran. */
static QN_UNUSED int check_node(QnGraph *g, QnValue *y, double lo, double hi, double tol)
{
    uint64_t seed = 7;
    assert_ok(qn_graph_check(g));
    Check c = { .n = y->node, .tol = tol };
    for (int i = 0; i < y->node->n_in; i++) {
        if (y->node->in[i])
            c.in[i] = check_fill(&y->node->in[i]->type, lo, hi, false, &seed);
    }
    check_run(&c);
    return c.n_run;
}

#endif
