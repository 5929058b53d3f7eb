/* Every operator of the registry: its first sample checked against the reference, then the sample
 * made large and timed, against the device's copies or products, whichever binds it. */
#include "gpu.h"

#include "base/mem.h"
#include "base/rng.h"
#include "ir/eval.h"
#include "ops/ops.h"
#include "ops/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define QN_X(name) &qn_op_##name,
static const QnOp *const all_ops[] = { QN_OP_LIST(QN_X) };
#undef QN_X

enum { MAX_DIMS = 8 };
static const char *const input_names[QN_SAMPLE_IN] = { "x0", "x1", "x2", "x3", "x4",
                                                       "x5", "x6", "x7", "x8" };

static bool has_value(const QnOp *op)
{
    return op->map || op->ref || op->lower;
}

static void range_of(const QnSample *s, const QnSampleIn *in, double *lo, double *hi)
{
    bool own = in->lo != 0 || in->hi != 0, all = s->lo != 0 || s->hi != 0;
    bool sign = in->dtype != QN_DTYPE_BOOL && !qn_dtype_is_unsigned(in->dtype);
    *lo = own ? in->lo : all ? s->lo : sign ? -1 : 0;
    *hi = own ? in->hi : all ? s->hi : 1;
}

/* The sample's node, its inputs states or, to be checked, inputs. NULL: the operator refuses it. */
static QnNode *emit(Made *m, const QnOp *op, const QnSample *s, bool inputs)
{
    QnValue *in[QN_SAMPLE_IN] = { 0 };
    for (int i = 0; i < s->n_in; i++) {
        const QnSampleIn *x = &s->in[i];
        double lo, hi;
        if (x->dtype == QN_DTYPE_COUNT)
            continue;
        QnShape shape = qn_shape_make(x->rank, x->dim);
        range_of(s, x, &lo, &hi);
        in[i] = inputs ? qn_input(m->g, input_names[i], x->dtype, &shape)
                       : made_data(m, input_names[i], x->dtype, &shape, lo, hi);
    }
    QnNode *n = qn_emit(m->g, op, s->attr, in, s->n_in);
    for (int i = 0; n && i < n->n_out; i++) {
        char name[16];
        snprintf(name, sizeof name, "y%d", i);
        if (qn_graph_output(m->g, name, &n->out[i]) != QN_OK)
            return NULL;
    }
    return n;
}

/* ---- the check ---- */

typedef struct Data {
    double *x[QN_SAMPLE_IN], *want[QN_MAX_OUT];
} Data;

static void data_free(Data *d)
{
    for (int i = 0; i < QN_SAMPLE_IN; i++)
        qn_free(d->x[i]);
    for (int i = 0; i < QN_MAX_OUT; i++)
        qn_free(d->want[i]);
}

static QnStatus draw(Made *m, const QnSample *s, const QnNode *n, int i, QnRng *rng, Data *d)
{
    const QnType *t = &n->in[i]->type;
    int64_t count = qn_shape_count(&t->shape);
    size_t bytes = (size_t)qn_type_bytes(t);
    double lo, hi;
    void *raw = qn_alloc(bytes + 1);
    QnStatus st =
        raw && (d->x[i] = qn_alloc_array((size_t)count + 1, sizeof(double))) ? QN_OK : QN_ENOMEM;
    range_of(s, &s->in[i], &lo, &hi);
    for (int64_t k = 0; st == QN_OK && k < count; k++) {
        if (!qn_dtype_is_float(t->dtype))
            d->x[i][k] = lo + (double)qn_rng_below(rng, (uint64_t)(hi - lo) + 1);
        else if (s->in[i].distinct)
            d->x[i][k] = lo + (hi - lo) * (double)((k * 37) % (count + 1)) / (double)(count + 1);
        else
            d->x[i][k] = lo + (hi - lo) * (double)qn_rng_uniform(rng);
        double near = s->in[i].kink == 0 ? 0 : s->in[i].kink * rint(d->x[i][k] / s->in[i].kink);
        if (fabs(d->x[i][k] - near) < s->in[i].keep_off)
            d->x[i][k] = near + s->in[i].keep_off;
    }
    if (st == QN_OK) {
        qn_dtype_from_f64(t->dtype, d->x[i], raw, count);
        qn_dtype_to_f64(t->dtype, raw, d->x[i], count);
        st = qn_plan_write(m->plan, input_names[i], raw, bytes);
    }
    qn_free(raw);
    return st;
}

static QnStatus compare(Made *m, const QnOp *op, const char *name, const QnType *t,
                        const double *want)
{
    int64_t count = qn_shape_count(&t->shape);
    size_t bytes = (size_t)qn_type_bytes(t);
    double tol = op->tol.f32 > 0 ? op->tol.f32 : 1e-5;
    void *raw = qn_alloc(bytes + 1);
    double *got = qn_alloc_array((size_t)count + 1, sizeof *got);
    QnStatus st = raw && got ? qn_plan_read(m->plan, name, raw, bytes) : QN_ENOMEM;
    if (st == QN_OK)
        qn_dtype_to_f64(t->dtype, raw, got, count);
    for (int64_t k = 0; st == QN_OK && k < count; k++) {
        bool same = got[k] == want[k] || (isnan(got[k]) && isnan(want[k])) ||
                    fabs(got[k] - want[k]) <= tol * (1 + fabs(want[k]));
        if (!same)
            st = qn_fail(QN_EINTERNAL, "%s: element %lld of %s is %.9g, should be %.9g", op->name,
                         (long long)k, name, got[k], want[k]);
    }
    qn_free(got);
    qn_free(raw);
    return st;
}

/* The graph after its passes is another: its node, and what it computes, come from `ref`. */
static QnStatus run_check(Bench *b, Made *m, const QnSample *s, const QnNode *ref, Data *d)
{
    QnRng rng;
    QnStatus st = QN_OK;
    qn_rng_init(&rng, 3, 0);
    QN_TRY(made_plan(b, m, true));
    for (int i = 0; i < ref->n_in; i++) {
        if (ref->in[i])
            QN_TRY(draw(m, s, ref, i, &rng, d));
    }
    for (int i = 0; i < ref->n_out; i++) {
        int64_t count = qn_shape_count(&ref->out[i].type.shape);
        if (!(d->want[i] = qn_alloc_array((size_t)count + 1, sizeof(double))))
            return QN_ENOMEM;
    }
    QN_TRY(qn_eval_node(ref, (const double *const *)d->x, d->want, false));
    QN_TRY(qn_plan_run(m->plan));
    QN_TRY(bench_wait(b));
    for (int i = 0; st == QN_OK && i < ref->n_out && !b->device->backend->only_counts; i++) {
        char name[16];
        const QnType *t = &ref->out[i].type;
        void *raw = qn_alloc((size_t)qn_type_bytes(t) + 1);
        snprintf(name, sizeof name, "y%d", i);
        if (!raw)
            return QN_ENOMEM;
        qn_dtype_from_f64(t->dtype, d->want[i], raw, qn_shape_count(&t->shape));
        qn_dtype_to_f64(t->dtype, raw, d->want[i], qn_shape_count(&t->shape));
        qn_free(raw);
        st = compare(m, ref->op, name, t, d->want[i]);
    }
    return st;
}

/* *on_host: the first sample's plan has steps that run by the reference. */
static QnStatus check(Bench *b, const QnOp *op, bool *on_host)
{
    Made m = { 0 }, ref = { 0 };
    Data d = { 0 };
    const QnSample *s = &op->samples[0];
    QnStatus st = made_begin(&m);
    if (st == QN_OK)
        st = made_begin(&ref);
    const QnNode *n = st == QN_OK && emit(&m, op, s, true) ? emit(&ref, op, s, true) : NULL;
    if (st == QN_OK)
        st = n ? run_check(b, &m, s, n, &d) : qn_graph_check(m.g);
    for (int64_t i = 0; st == QN_OK && i < qn_plan_n_steps(m.plan); i++)
        *on_host |= qn_plan_step(m.plan, i).kernel->rank == 0 && !b->device->backend->only_counts;
    data_free(&d);
    made_free(&ref);
    made_free(&m);
    return st;
}

/* ---- the large sample ---- */

static int dims_of(const QnSample *s, int64_t dims[MAX_DIMS])
{
    int n = 0;
    for (int i = 0; i < s->n_in; i++) {
        for (int d = 0; d < s->in[i].rank; d++) {
            bool seen = s->in[i].dim[d] < 2 || n == MAX_DIMS;
            for (int k = 0; k < n; k++)
                seen |= dims[k] == s->in[i].dim[d];
            if (!seen)
                dims[n++] = s->in[i].dim[d];
        }
    }
    return n;
}

/* A dim becomes another wherever it stands, and indices reach as far as they did. */
static void replace(QnSample *s, int64_t from, int64_t to)
{
    for (int i = 0; i < s->n_in; i++) {
        QnSampleIn *in = &s->in[i];
        for (int d = 0; d < in->rank; d++)
            in->dim[d] = in->dim[d] == from ? to : in->dim[d];
        if (in->dtype != QN_DTYPE_I32 && in->dtype != QN_DTYPE_I64)
            continue;
        in->hi = in->hi == (double)(from - 1) ? (double)(to - 1) : in->hi;
        in->lo = in->lo == (double)-from ? (double)-to : in->lo;
    }
}

/* What the node moves; 0 where the operator refuses the sample, or it is too much. */
static double bytes_of(const Bench *b, const QnOp *op, const QnSample *s)
{
    const double most_bytes = b->o.quick ? 4e6 : 400e6, most_flops = b->o.quick ? 2e7 : 1e12;
    Made m;
    double bytes = 0;
    if (made_begin(&m) != QN_OK)
        return 0;
    QnNode *n = emit(&m, op, s, false);
    if (n) {
        QnCost c = qn_cost_of(n);
        double elements = 0;
        for (int i = 0; i < n->n_in + n->n_out; i++) {
            const QnValue *v = i < n->n_in ? n->in[i] : &n->out[i - n->n_in];
            elements += v ? (double)qn_shape_count(&v->type.shape) : 0;
        }
        bytes = c.bytes_read + c.bytes_written;
        if (bytes > most_bytes || c.flops > most_flops || elements * 4 > most_bytes)
            bytes = 0;
    }
    made_free(&m);
    return bytes;
}

/* Two of the sample's dims, or one, replaced such that most is moved. */
static QnSample enlarge(const Bench *b, const QnOp *op)
{
    static const int64_t longs[] = { 64, 256, 1024, 4096 };
    const QnSample *s = &op->samples[0];
    QnSample best = *s;
    int64_t dims[MAX_DIMS];
    double most = bytes_of(b, op, s);
    int n = dims_of(s, dims);
    for (int i = 0; i < n; i++) {
        for (int j = i; j < n; j++) {
            for (int k = 0; k < QN_COUNT(longs) * QN_COUNT(longs); k++) {
                QnSample t = *s;
                int64_t first = longs[k / QN_COUNT(longs)] - 1; /* no other dim is it */
                replace(&t, dims[i], first);
                if (j != i)
                    replace(&t, dims[j], longs[k % QN_COUNT(longs)]);
                replace(&t, first, first + 1);
                double bytes = bytes_of(b, op, &t);
                best = bytes > most ? t : best;
                most = fmax(most, bytes);
            }
        }
    }
    return best;
}

/* ---- rows ---- */

static void describe(const QnSample *s, char name[64], const QnOp *op)
{
    char shape[QN_TYPE_TEXT_BYTES] = "";
    QnShape x = qn_shape_make(s->n_in ? s->in[0].rank : 0, s->in[0].dim);
    snprintf(name, 64, "%s %s", op->name, s->n_in ? qn_shape_text(&x, shape) : "");
}

static QnStatus time_large(Bench *b, const QnOp *op)
{
    QnSample s = enlarge(b, op);
    char name[64];
    double ns, host;
    Made m;
    describe(&s, name, op);
    QnStatus st = made_begin(&m);
    if (st == QN_OK && !emit(&m, op, &s, false))
        st = qn_graph_check(m.g);
    if (st == QN_OK)
        st = made_finish(b, &m, false);
    if (st == QN_OK)
        st = made_time(b, &m, b->o.seconds / 3, &ns, &host);
    if (st == QN_OK) {
        QnCost c = made_cost(&m, false);
        double bytes = (c.bytes_read + c.bytes_written) / (ns * 1e-9),
               flops = c.flops / (ns * 1e-9);
        double of_copy = b->copy > 0 ? bytes / b->copy : NAN;
        double of_product = b->product[0] > 0 ? flops / b->product[0] : NAN;
        bool computes = made_cost(&m, true).flops > 0 && of_product > of_copy;
        Result r = bench_result("operators", name);
        r.ns = ns;
        r.unit = computes ? "FLOP/s" : "B/s";
        r.rate = computes ? flops : bytes;
        r.share = computes ? of_product : of_copy;
        r.first_s = m.first_s;
        int64_t n = qn_plan_n_steps(m.plan);
        snprintf(r.note, sizeof r.note, "of %s; %.60s%s", computes ? "the product" : "copies",
                 n ? qn_plan_step(m.plan, 0).kernel->name : "folded", n > 1 ? " and others" : "");
        snprintf(r.goal, sizeof r.goal, "%s", computes ? "" : "90 %");
        st = bench_report(b, &r);
    }
    made_free(&m);
    return st;
}

static QnStatus run_operator(Bench *b, const QnOp *op)
{
    bool on_host = false;
    QN_TRY(check(b, op, &on_host));
    if (!on_host)
        return time_large(b, op);
    Result r = bench_result("operators", op->name);
    snprintf(r.note, sizeof r.note, "on the host: no kernel of the device takes it");
    return bench_report(b, &r);
}

QnStatus bench_operators(Bench *b)
{
    bench_heading("operators");
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        const QnOp *op = all_ops[o];
        if (!has_value(op) || !op->n_samples || (op->traits & (QN_LEAF | QN_EFFECT)) ||
            !bench_wants(b, op->name))
            continue;
        if (run_operator(b, op) != QN_OK)
            QN_TRY(bench_report_failure(b, "operators", op->name));
    }
    return QN_OK;
}
