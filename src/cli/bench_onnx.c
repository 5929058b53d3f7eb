/* Times ONNX models. */
#include "cli/bench.h"

#include "base/clock.h"
#include "base/rng.h"
#include "onnx/onnx.h"
#include "ops/ops.h"
#include "pass/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MAX_RUNS = 100000, WARM_UP = 2, LEAST_RUNS = 5 };
#define ENOUGH_NS INT64_C(2000000000)

typedef struct Bench {
    QnOnnxModel *model;
    QnDevice *device;
    QnGraph *graph;
    QnPlan *plan;
    double first_s, median_ns, best_ns;
    int64_t runs;
    double flops; /* of a run */
} Bench;

static QnStatus compile(Bench *b, const QnBenchOnnx *o)
{
    QnOnnxImportOptions i = { .batch = o->batch };
    QnPlanOptions p = { .profile = o->profile };
    QN_TRY(qn_onnx_import(b->model, b->device, &i, &b->graph, NULL));
    QnPipelineOptions passes = { .level = QN_O2,
                                 .keep = qn_device_has_kernel,
                                 .keep_ctx = b->device,
                                 .tuned = qn_device_is_tuned,
                                 .tuned_ctx = b->device,
                                 .keep_inputs = true };
    QN_TRY(qn_pipeline_run(b->graph, &passes));
    QN_GRAPH_EACH(b->graph, n)
    b->flops += n->op->traits & QN_LEAF ? 0 : qn_cost_of(n).flops;
    return qn_plan_new(b->graph, b->device, NULL, &p, &b->plan);
}

/* Floats are normal, everything else zero: a model's integers are indices, and 0 is one. */
static QnStatus fill_inputs(const Bench *b)
{
    QN_GRAPH_EACH(b->graph, n)
    {
        if (!(n->op->traits & QN_INPUT))
            continue;
        const char *name = qn_node_label(n);
        const QnType *t = &n->out[0].type;
        int64_t count = qn_shape_count(&t->shape);
        float *v = qn_alloc_array((size_t)count + 1, sizeof *v);
        void *data = qn_alloc((size_t)qn_type_bytes(t) + 1);
        QnRng rng;
        qn_rng_init(&rng, 1, 0);
        for (int64_t i = 0; v && qn_dtype_is_float(t->dtype) && i < count; i++)
            v[i] = qn_rng_normal(&rng);
        QnStatus st = v && data ? QN_OK : QN_ENOMEM;
        if (st == QN_OK) {
            qn_dtype_from_f32(t->dtype, v, data, count);
            st = qn_plan_write(b->plan, name, data, (size_t)qn_type_bytes(t));
        }
        qn_free(v);
        qn_free(data);
        QN_TRY(st);
    }
    return QN_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static QnStatus time_runs(Bench *b, const QnArgs *a, const QnBenchOnnx *o)
{
    double *ns = qn_alloc_array(MAX_RUNS, sizeof *ns);
    QnStatus st = ns ? fill_inputs(b) : QN_ENOMEM;
    int64_t most = o->runs ? QN_MIN(o->runs, (int64_t)MAX_RUNS) : MAX_RUNS, start = 0;
    for (int64_t i = -WARM_UP; st == QN_OK && i < most; i++) {
        st = fill_inputs(b); /* an input's memory is the plan's again after a run */
        int64_t t0 = qn_clock_ns();
        start = i == 0 ? t0 : start;
        if (st == QN_OK)
            st = qn_plan_run(b->plan);
        int64_t t1 = qn_clock_ns();
        if (i == -WARM_UP)
            b->first_s = (double)(t1 - a->start_ns) * 1e-9;
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

static QnStatus print(const QnArgs *a, const Bench *b)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double peak = (double)usage.ru_maxrss * 1024;
    if (!a->json) {
        char median[QN_STR_NUMBER], best[QN_STR_NUMBER], flops[QN_STR_NUMBER], mem[QN_STR_NUMBER];
        printf("%s: %s a run (best %s, %lld runs), %s, first answer after %.3f s, %s at most\n",
               b->model->path, qn_str_duration(median, (int64_t)b->median_ns),
               qn_str_duration(best, (int64_t)b->best_ns), (long long)b->runs,
               qn_str_unit(flops, b->flops / (b->median_ns * 1e-9), "FLOP/s"), b->first_s,
               qn_str_bytes(mem, (uint64_t)peak));
        return QN_OK;
    }
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "model", b->model->path);
    qn_json_put_int(&w, "threads", b->device->env.n_threads);
    qn_json_put_double(&w, "run_ns", b->median_ns);
    qn_json_put_double(&w, "best_run_ns", b->best_ns);
    qn_json_put_int(&w, "runs", b->runs);
    qn_json_put_double(&w, "flops", b->flops);
    qn_json_put_double(&w, "first_answer_seconds", b->first_s);
    qn_json_put_double(&w, "peak_rss_bytes", peak);
    qn_json_put_int(&w, "planned_peak_bytes", qn_plan_memory(b->plan).planned_peak_bytes);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}

QnStatus qn_bench_onnx(const QnArgs *a, const QnBenchOnnx *o)
{
    Bench b = { 0 };
    QnStatus st = qn_onnx_read(a->positional[0], &b.model);
    if (st == QN_OK)
        st = qn_cli_device(NULL, o->threads, false, &b.device);
    if (st == QN_OK)
        st = compile(&b, o);
    if (st == QN_OK)
        st = time_runs(&b, a, o);
    if (st == QN_OK)
        st = print(a, &b);
    if (st == QN_OK && o->profile && !a->json)
        st = qn_bench_profile(b.plan, &b.device->env);
    qn_plan_free(b.plan);
    qn_graph_free(b.graph);
    qn_device_close(b.device);
    qn_onnx_free(b.model);
    return st;
}
