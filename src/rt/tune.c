#include "rt/tune.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 5, FILE_LIMIT = 64 << 20 };

#define REFERENCE_MAX_FLOPS                                                                        \
    5e7                /* the float64 reference is some hundred times slower than kernels */
#define SUM_LEAST 1e-4 /* elementary functions are approximated, and differences cancel */
#define SLOT_NS   2e6  /* a round of one kernel lasts about this long */

/* ---- buffers ---- */

typedef struct Bench {
    QnDevice *d;
    const QnNode *n;
    const void **in;
    void **out;
    float **want; /* outputs of the kernel that the others are compared with */
} Bench;

/* Whole numbers below this are in range whatever input k means: an index into any axis of the
 * other operands and of the result. */
static int64_t index_bound(const QnNode *n, int k)
{
    int64_t bound = 127;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const QnValue *v = i < n->n_in ? n->in[i] : &n->out[i - n->n_in];
        if (i == k || !v)
            continue;
        for (int a = 0; a < v->type.shape.rank; a++)
            bound = QN_MIN(bound, v->type.shape.dim[a]);
    }
    return QN_MAX(bound, 1);
}

static void fill(void *p, const QnNode *node, int k)
{
    const QnType *t = &node->in[k]->type;
    int64_t n = qn_shape_count(&t->shape), bound = index_bound(node, k);
    uint32_t seed = 12345;
    if (t->dtype == QN_DTYPE_BOOL)
        bound = 2;
    for (int64_t i = 0; i < n && !qn_dtype_is_float(t->dtype); i++) {
        double x = (double)(i % bound);
        qn_dtype_from_f64(t->dtype, &x, (char *)p + (size_t)i * qn_dtype_bytes(t->dtype), 1);
    }
    for (int64_t i = 0; i < n && qn_dtype_is_float(t->dtype); i++) {
        seed = seed * 1664525u + 1013904223u;
        float x =
            (float)(seed >> 8) * 0x1p-24f + 0.25f; /* positive: a variance may be among them */
        qn_dtype_from_f32(t->dtype, &x, (char *)p + (size_t)i * qn_dtype_bytes(t->dtype), 1);
    }
}

/* At least one: an address. */
static size_t bytes_of(const QnValue *v)
{
    return (size_t)QN_MAX(qn_type_bytes(&v->type), 1);
}

/* Input i of the node in the device's memory, filled. */
static QnStatus new_input(QnDevice *d, const QnNode *n, int i, const void **out)
{
    size_t bytes = bytes_of(n->in[i]);
    void *host = qn_alloc_aligned(bytes), *p = host ? qn_device_alloc(d, bytes) : NULL;
    QnStatus st = p ? QN_OK : QN_ENOMEM;
    *out = p;
    if (st == QN_OK) {
        fill(host, n, i);
        st = d->backend->write(d, p, host, (size_t)qn_type_bytes(&n->in[i]->type));
    }
    if (host)
        qn_free_aligned(host, bytes);
    return st;
}

static void bench_fini(Bench *b)
{
    for (int i = 0; b->in && i < b->n->n_in; i++) {
        if (b->in[i])
            qn_device_free(b->d, (void *)(uintptr_t)b->in[i], bytes_of(b->n->in[i]));
    }
    for (int i = 0; i < b->n->n_out; i++) {
        if (b->out && b->out[i])
            qn_device_free(b->d, b->out[i], bytes_of(&b->n->out[i]));
        if (b->want)
            qn_free(b->want[i]);
    }
    qn_free(b->in);
    qn_free(b->out);
    qn_free(b->want);
}

static QnStatus bench_init(Bench *b, QnDevice *d, const QnNode *n)
{
    *b = (Bench){ .d = d, .n = n };
    b->in = qn_alloc_array((size_t)n->n_in + 1, sizeof *b->in);
    b->out = qn_alloc_array((size_t)n->n_out + 1, sizeof *b->out);
    b->want = qn_alloc_array((size_t)n->n_out + 1, sizeof *b->want);
    bool ok = b->in && b->out && b->want;
    for (int i = 0; ok && i < n->n_in; i++) {
        if (!n->in[i])
            continue;
        ok = new_input(d, n, i, &b->in[i]) == QN_OK;
    }
    for (int i = 0; ok && i < n->n_out; i++) {
        b->out[i] = qn_device_alloc(d, bytes_of(&n->out[i]));
        ok = b->out[i] != NULL;
    }
    if (ok)
        return QN_OK;
    bench_fini(b);
    return QN_ENOMEM;
}

/* ---- one kernel ---- */

typedef struct Runner {
    QnPrepared prepared;
    QnDevice *d;
    void *workspace;
    bool is_ready;
} Runner;

static QnStatus runner_init(Runner *r, const Bench *b, const QnKernel *k)
{
    *r = (Runner){ .d = b->d, .prepared = { .kernel = k, .node = b->n, .env = &b->d->env } };
    if (k->prepare)
        QN_TRY(k->prepare(&r->prepared));
    r->is_ready = true;
    r->workspace = qn_device_alloc(r->d, r->prepared.workspace_bytes + 1);
    r->prepared.packed = qn_device_alloc(r->d, r->prepared.packed_bytes + 1);
    if (!r->workspace || !r->prepared.packed)
        return QN_ENOMEM;
    return r->prepared.packed_bytes ? k->pack(&r->prepared, b->in, r->prepared.packed) : QN_OK;
}

static void runner_fini(Runner *r)
{
    if (r->is_ready && r->prepared.kernel->fini)
        r->prepared.kernel->fini(&r->prepared);
    if (r->workspace)
        qn_device_free(r->d, r->workspace, r->prepared.workspace_bytes + 1);
    if (r->prepared.packed)
        qn_device_free(r->d, r->prepared.packed, r->prepared.packed_bytes + 1);
}

static QnStatus wait(QnDevice *d)
{
    return d->backend->sync ? d->backend->sync(d) : QN_OK;
}

static QnStatus run_once(Runner *r, const Bench *b)
{
    return r->prepared.kernel->run(&r->prepared, b->in, b->out, r->workspace);
}

/* How far from each other, in parts of the greatest element, two right results of an output may
 * be: a sum of k products is off by about sqrt(k) roundings, and a result is rounded once to its
 * dtype. Whole numbers must agree. */
static double tolerance(const QnNode *n, const QnType *t)
{
    double count = fmax(1, (double)qn_shape_count(&t->shape));
    double k = fmax(1, qn_cost_of(n).flops / 2 / count);
    double sum = fmax(SUM_LEAST, 8 * sqrt(k) * 0x1p-24);
    if (t->dtype == QN_DTYPE_BF16)
        return sum + 4 * 0x1p-8;
    if (t->dtype == QN_DTYPE_F16)
        return sum + 4 * 0x1p-11;
    return qn_dtype_is_float(t->dtype) ? sum : 0;
}

static QnStatus read_output(const Bench *b, int i, float *got)
{
    const QnType *t = &b->n->out[i].type;
    size_t bytes = bytes_of(&b->n->out[i]);
    void *host = qn_alloc_aligned(bytes);
    QnStatus st = host ? QN_OK : QN_ENOMEM;
    if (st == QN_OK)
        st = b->d->backend->read(b->d, host, b->out[i], (size_t)qn_type_bytes(t));
    if (st == QN_OK)
        qn_dtype_to_f32(t->dtype, host, got, qn_shape_count(&t->shape));
    if (host)
        qn_free_aligned(host, bytes);
    return st;
}

/* Keeps the outputs as what others must give, or measures how far they are from that. */
static QnStatus compare(Bench *b, double *error, bool *is_right)
{
    *error = 0;
    *is_right = true;
    for (int i = 0; i < b->n->n_out; i++) {
        const QnType *t = &b->n->out[i].type;
        int64_t n = qn_shape_count(&t->shape);
        float *got = qn_alloc_array((size_t)n + 1, sizeof *got);
        if (!got)
            return QN_ENOMEM;
        if (read_output(b, i, got) != QN_OK) {
            qn_free(got);
            return QN_EDEVICE;
        }
        if (!b->want[i]) {
            b->want[i] = got;
            continue;
        }
        double scale = 1e-6, off = 0;
        for (int64_t k = 0; k < n; k++) {
            double w = b->want[i][k], g = got[k];
            if (isnan(w) && isnan(g))
                continue;
            scale = fmax(scale, fabs(w));
            off = isfinite(g - w) || g == w ? fmax(off, g == w ? 0 : fabs(g - w)) : INFINITY;
        }
        *error = fmax(*error, off / scale);
        *is_right &= off / scale <= tolerance(b->n, t);
        qn_free(got);
    }
    return QN_OK;
}

/* The fastest of some runs; the number of runs a round is set by the first. */
static QnStatus time_kernel(Runner *r, const Bench *b, double *ns)
{
    int64_t start = qn_clock_ns();
    QN_TRY(run_once(r, b));
    QN_TRY(wait(b->d));
    double one = (double)(qn_clock_ns() - start);
    int runs = one > SLOT_NS ? 1 : (int)fmin(1000, SLOT_NS / fmax(one, 100));
    start = qn_clock_ns();
    for (int i = 0; i < runs; i++)
        QN_TRY(run_once(r, b));
    QN_TRY(wait(b->d));
    one = (double)(qn_clock_ns() - start) / runs;
    *ns = *ns > 0 ? fmin(*ns, one) : one;
    return QN_OK;
}

/* ---- a node ---- */

static int by_rank(const QnDevice *d, const QnNode *n, QnTuneResult *rows)
{
    int count = 0;
    for (int i = 0; i < d->backend->n_kernels && count < QN_TUNE_MAX_KERNELS; i++) {
        const QnKernel *k = d->backend->kernels[i];
        if ((k->op && k->op != n->op) || qn_select_reason(d, k, n))
            continue;
        int at = count++;
        for (; at > 0 && rows[at - 1].kernel->rank < k->rank; at--)
            rows[at] = rows[at - 1];
        rows[at] = (QnTuneResult){ .kernel = k };
    }
    return count;
}

static bool is_contender(const QnTuneResult *row, int n)
{
    return row->kernel->rank > 0 || n == 1;
}

/* Results first: the lowest rank (the reference, if it is asked) says what is right. *agree: no
 * kernel that ran was found wrong. */
static QnStatus check_all(Bench *b, Runner *runners, QnTuneResult *rows, int n, bool ask_reference,
                          bool *agree)
{
    *agree = true;
    for (int i = n - 1; i >= 0; i--) {
        bool is_right;
        if (rows[i].kernel->rank == 0 && !ask_reference) {
            rows[i].refused = "the reference is too slow to ask";
            continue;
        }
        if (runner_init(&runners[i], b, rows[i].kernel) != QN_OK ||
            run_once(&runners[i], b) != QN_OK) {
            rows[i].refused = "it failed";
            continue;
        }
        QN_TRY(compare(b, &rows[i].error, &is_right));
        *agree &= is_right;
        if (!is_right)
            rows[i].refused = "its result is wrong";
        else if (!is_contender(&rows[i], n))
            rows[i].refused = "the reference runs only where nothing else can";
    }
    return QN_OK;
}

static void forget_checks(Bench *b, Runner *runners, QnTuneResult *rows, int n)
{
    for (int i = 0; i < n; i++) {
        runner_fini(&runners[i]);
        runners[i] = (Runner){ 0 };
        rows[i] = (QnTuneResult){ .kernel = rows[i].kernel };
    }
    for (int i = 0; i < b->n->n_out; i++) {
        qn_free(b->want[i]);
        b->want[i] = NULL;
    }
}

/* Where the reference would take long, kernels are held against each other; only when they do not
 * agree is it worth asking which of them is right. */
static QnStatus check(Bench *b, Runner *runners, QnTuneResult *rows, int n)
{
    bool slow = qn_cost_of(b->n).flops > REFERENCE_MAX_FLOPS, agree;
    QN_TRY(check_all(b, runners, rows, n, !slow, &agree));
    if (agree || !slow)
        return QN_OK;
    forget_checks(b, runners, rows, n);
    return check_all(b, runners, rows, n, true, &agree);
}

/* Alternating, so that noise hits all kernels alike. */
static void time_all(Bench *b, Runner *runners, QnTuneResult *rows, int n)
{
    for (int i = 0; i < n * ROUNDS; i++) {
        QnTuneResult *row = &rows[i % n];
        if (!row->refused && time_kernel(&runners[i % n], b, &row->ns) != QN_OK)
            row->refused = "it failed";
    }
}

QnStatus qn_tune_node(QnDevice *d, const QnNode *node, QnChoices *choices, QnTuneResult *results,
                      int *n_results)
{
    QnTuneResult rows[QN_TUNE_MAX_KERNELS];
    Runner runners[QN_TUNE_MAX_KERNELS] = { 0 };
    Bench b;
    int n = by_rank(d, node, rows), contenders = 0;
    for (int i = 0; i < n; i++)
        contenders += rows[i].kernel->rank > 0;
    if (n_results)
        *n_results = 0;
    if (contenders < 2)
        return QN_OK;
    QN_TRY(bench_init(&b, d, node));
    QnStatus st = check(&b, runners, rows, n);
    if (st == QN_OK)
        time_all(&b, runners, rows, n);
    int best = -1;
    for (int i = 0; i < n; i++) {
        if (!rows[i].refused && (best < 0 || rows[i].ns < rows[best].ns))
            best = i;
        runner_fini(&runners[i]);
    }
    bench_fini(&b);
    if (st == QN_OK && best >= 0) {
        char key[QN_SELECT_KEY_BYTES];
        st = qn_choices_set(choices, qn_select_key(d, node, key), rows[best].kernel->name,
                            rows[best].ns);
    }
    if (st == QN_OK && results) {
        memcpy(results, rows, (size_t)n * sizeof *rows);
        *n_results = n;
    }
    return st;
}

/* ---- the file ---- */

QnStatus qn_choices_write(const QnChoices *c, const char *path)
{
    QnStr text = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &text, 1);
    qn_json_open_object(&w);
    for (int64_t i = 0; i < c->n; i++) {
        qn_json_key(&w, c->items[i].key);
        qn_json_open_object(&w);
        qn_json_put_string(&w, "kernel", c->items[i].kernel);
        qn_json_put_double(&w, "ns", c->items[i].ns);
        qn_json_close(&w);
    }
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        st = qn_file_write_atomic(path, qn_str_text(&text), text.n);
    qn_str_fini(&text);
    return st;
}

static QnStatus read_choices(QnChoices *c, const QnJson *o)
{
    if (o->type != QN_JSON_OBJECT)
        return qn_fail(QN_EFORMAT, "expected an object of node keys");
    for (int64_t i = 0; i < o->n; i++) {
        const QnJson *kernel, *ns;
        QN_TRY(qn_json_need(&o->items[i], "kernel", QN_JSON_STRING, &kernel));
        QN_TRY(qn_json_need(&o->items[i], "ns", QN_JSON_DOUBLE, &ns));
        QN_TRY(qn_choices_set(c, o->items[i].key, kernel->string, qn_json_double(ns)));
    }
    return QN_OK;
}

QnStatus qn_choices_read(const char *path, QnChoices **out)
{
    QnChoices *c = qn_choices_new();
    if (!c)
        return QN_ENOMEM;
    char *text = NULL;
    size_t bytes;
    QnStatus st = QN_OK;
    if (qn_file_exists(path)) {
        QnArena *arena = qn_arena_new();
        const QnJson *o;
        st = arena ? qn_file_read(path, FILE_LIMIT, &text, &bytes) : QN_ENOMEM;
        if (st == QN_OK && (st = qn_json_parse(arena, text, bytes, &o)) == QN_OK)
            st = read_choices(c, o);
        if (st != QN_OK)
            qn_fail_prefix("%s", path);
        qn_free(text);
        qn_arena_free(arena);
    }
    if (st != QN_OK)
        qn_choices_free(c);
    else
        *out = c;
    return st;
}
