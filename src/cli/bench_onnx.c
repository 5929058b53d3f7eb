/* Times ONNX models. */
#include "cli/bench.h"
#include "cli/model_dims.h"

#include "backend/cpu/limits.h"
#include "base/clock.h"
#include "base/rng.h"
#include "io/npy.h"
#include "onnx/session.h"
#include "rt/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MAX_RUNS = 100000, WARM_UP = 2, LEAST_RUNS = 5 };
#define ENOUGH_NS INT64_C(2000000000)

typedef struct Input {
    const char *name;
    QnType type;
    void *data;
} Input;

typedef struct Bench {
    QnDevice *device;
    QnModel *model;
    QnChoices *choices;
    Input *in;
    int64_t n_in;
    double open_s;  /* reading the file */
    double first_s; /* that, compiling and one run */
    double median_ns, best_ns;
    int64_t runs;
    double peak_bytes; /* resident, before the limits are measured */
    double flops;      /* of a run */
    double limit_ns;   /* the least that the machine's measured limits allow for it */
} Bench;

/* Floats are normal, everything else zero: a model's integers are indices, and 0 is one. */
static QnStatus fill(Input *in)
{
    int64_t count = qn_shape_count(&in->type.shape);
    float *v = qn_alloc_array((size_t)count + 1, sizeof *v);
    QnRng rng;
    in->data = qn_alloc((size_t)qn_type_bytes(&in->type) + 1);
    qn_rng_init(&rng, 1, 0);
    for (int64_t i = 0; v && qn_dtype_is_float(in->type.dtype) && i < count; i++)
        v[i] = qn_rng_normal(&rng);
    if (v && in->data)
        qn_dtype_from_f32(in->type.dtype, v, in->data, count);
    qn_free(v);
    return v && in->data ? QN_OK : QN_ENOMEM;
}

static QnStatus read_file(Input *in, const char *path)
{
    QnNpy npy;
    QN_TRY(qn_npy_read(path, &npy));
    in->type = (QnType){ .dtype = npy.dtype, .shape = qn_shape_make(npy.rank, npy.dims) };
    in->data = npy.data;
    return QN_OK;
}

/* The file that --input gives for the name; NULL: none. */
static const char *given_file(const QnArgs *a, int dim_option, const char *name)
{
    for (int i = 0; i < a->n_many; i++) {
        if (a->many_of[i] == dim_option)
            continue;
        size_t n = strcspn(a->many[i], "=");
        if (strlen(name) == n && !strncmp(name, a->many[i], n))
            return a->many[i] + n + 1;
    }
    return NULL;
}

static QnStatus unknown_input(const Bench *b, const char *setting)
{
    QnStr names = { 0 };
    for (int64_t i = 0; i < b->n_in; i++)
        qn_str_printf(&names, "%s%s", i ? ", " : "", qn_model_input_name(b->model, i));
    QnStatus st = qn_fail(QN_EUSAGE, "--set: the model has no input '%.*s'; its inputs: %s",
                          (int)QN_MIN(strcspn(setting, "="), 200), setting, qn_str_text(&names));
    qn_str_fini(&names);
    return st;
}

static QnStatus check_names(const Bench *b, const QnArgs *a, int dim_option)
{
    for (int i = 0; i < a->n_many; i++) {
        size_t n = strcspn(a->many[i], "=");
        bool found = a->many_of[i] == dim_option;
        for (int64_t k = 0; k < b->n_in && !found; k++) {
            const char *name = qn_model_input_name(b->model, k);
            found = strlen(name) == n && !strncmp(name, a->many[i], n);
        }
        if (!found)
            return unknown_input(b, a->many[i]);
    }
    return QN_OK;
}

static void note_zeros(const QnArgs *a, const Input *in)
{
    char text[QN_TYPE_TEXT_BYTES];
    if (!qn_dtype_is_float(in->type.dtype))
        qn_log_at(&a->log, QN_LOG_WARN,
                  "input '%s', %s, is not given: it is all zeros; --set %s=FILE.npy gives others",
                  in->name, qn_type_text(&in->type, text), in->name);
}

static QnStatus make_inputs(Bench *b, const QnArgs *a, const QnBenchOnnx *o)
{
    QnCliDims dims;
    QN_TRY(qn_cli_dims(a, o->dim_option, qn_model_file(b->model), &dims));
    QnOnnxImportOptions open = {
        .batch = o->batch, .dim = dims.name, .length = dims.length, .n_dim = dims.n
    };
    while (qn_model_input_name(b->model, b->n_in))
        b->n_in++;
    b->in = qn_alloc_array((size_t)b->n_in + 1, sizeof *b->in);
    QN_TRY(b->in ? check_names(b, a, o->dim_option) : QN_ENOMEM);
    for (int64_t i = 0; i < b->n_in; i++) {
        Input *in = &b->in[i];
        in->name = qn_model_input_name(b->model, i);
        const char *path = given_file(a, o->dim_option, in->name);
        if (path) {
            QN_TRY(read_file(in, path));
        } else {
            QN_TRY(qn_model_input_type_with(b->model, i, &open, &in->type));
            QN_TRY(fill(in));
            note_zeros(a, in);
        }
        QN_TRY(qn_model_set(b->model, in->name, &in->type, in->data));
    }
    return QN_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static QnStatus time_runs(Bench *b, const QnBenchOnnx *o)
{
    double *ns = qn_alloc_array(MAX_RUNS, sizeof *ns);
    QnStatus st = ns ? QN_OK : QN_ENOMEM;
    int64_t most = o->runs ? QN_MIN(o->runs, (int64_t)MAX_RUNS) : MAX_RUNS, start = 0;
    for (int64_t i = -WARM_UP; st == QN_OK && i < most; i++) {
        int64_t t0 = qn_clock_ns();
        start = i == 0 ? t0 : start;
        st = qn_model_run(b->model);
        int64_t t1 = qn_clock_ns();
        if (i == -WARM_UP)
            b->first_s = b->open_s + (double)(t1 - t0) * 1e-9;
        if (i >= 0)
            ns[b->runs++] = (double)(t1 - t0);
        if (!o->runs && i >= LEAST_RUNS && t1 - start > ENOUGH_NS)
            break;
    }
    if (st == QN_OK) {
        qsort(ns, (size_t)b->runs, sizeof *ns, by_value);
        b->median_ns = ns[b->runs / 2];
        b->best_ns = ns[0];
    }
    qn_free(ns);
    return st;
}

static QnStatus print(const QnArgs *a, const Bench *b, const QnPlan *p)
{
    if (!a->json) {
        char median[QN_STR_NUMBER], best[QN_STR_NUMBER], limit[QN_STR_NUMBER], flops[QN_STR_NUMBER],
            mem[QN_STR_NUMBER];
        printf("%s: %s a run (best %s, %lld runs; the machine's limits allow %s), %s, first answer "
               "after %.3f s, %s at most\n",
               a->positional[0], qn_str_duration(median, (int64_t)b->median_ns),
               qn_str_duration(best, (int64_t)b->best_ns), (long long)b->runs,
               qn_str_duration(limit, (int64_t)b->limit_ns),
               qn_str_unit(flops, b->flops / (b->median_ns * 1e-9), "FLOP/s"), b->first_s,
               qn_str_bytes(mem, (uint64_t)b->peak_bytes));
        return QN_OK;
    }
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "model", a->positional[0]);
    qn_json_put_int(&w, "threads", b->device->env.n_threads);
    qn_json_put_double(&w, "run_ns", b->median_ns);
    qn_json_put_double(&w, "best_run_ns", b->best_ns);
    qn_json_put_int(&w, "runs", b->runs);
    qn_json_put_double(&w, "limit_ns", b->limit_ns);
    qn_json_put_double(&w, "flops", b->flops);
    qn_json_put_double(&w, "first_answer_seconds", b->first_s);
    qn_json_put_double(&w, "peak_rss_bytes", b->peak_bytes);
    if (p)
        qn_json_put_int(&w, "planned_peak_bytes", qn_plan_memory(p).planned_peak_bytes);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}

static QnStatus add_costs(Bench *b, const QnPlan *p)
{
    QnLimits limits;
    QN_TRY(qn_cpu_limits(&b->device->env, &limits));
    for (int64_t i = 0; p && i < qn_plan_n_steps(p); i++) {
        QnPlanStep s = qn_plan_step(p, i);
        b->flops += s.cost.flops;
        b->limit_ns += qn_cpu_limit_ns(&limits, s.node, &s.cost);
    }
    return QN_OK;
}

QnStatus qn_bench_onnx(const QnArgs *a, const QnBenchOnnx *o)
{
    Bench b = { 0 };
    struct rusage usage;
    QnStatus st = qn_cli_device(NULL, o->threads, false, &b.device);
    int64_t start = qn_clock_ns();
    if (st == QN_OK)
        st = qn_cli_choices(&b.choices);
    QnModelOptions options = { .profile = o->profile, .choices = b.choices };
    if (st == QN_OK)
        st = qn_model_open_with(a->positional[0], b.device, &options, &b.model);
    b.open_s = (double)(qn_clock_ns() - start) * 1e-9;
    if (st == QN_OK)
        st = make_inputs(&b, a, o);
    if (st == QN_OK)
        st = time_runs(&b, o);
    const QnPlan *p = st == QN_OK ? qn_model_plan(b.model) : NULL;
    getrusage(RUSAGE_SELF, &usage);
    b.peak_bytes = (double)usage.ru_maxrss * 1024;
    if (st == QN_OK)
        st = add_costs(&b, p);
    if (st == QN_OK)
        st = print(a, &b, p);
    if (st == QN_OK && o->profile && p)
        st = qn_bench_profile(p, &b.device->env, a->json);
    for (int64_t i = 0; b.in && i < b.n_in; i++)
        qn_free(b.in[i].data);
    qn_free(b.in);
    qn_model_close(b.model);
    qn_choices_free(b.choices);
    qn_device_close(b.device);
    return st;
}
