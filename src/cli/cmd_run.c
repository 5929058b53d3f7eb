/* Runs an ONNX model on given inputs, or checks it against given outputs. */
#include "cli/cli.h"
#include "cli/model_dims.h"
#include "cli/model_values.h"
#include "cli/run_each.h"

#include "base/clock.h"
#include "base/file.h"
#include "onnx/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT, OUTPUT, ALL, EACH, FEED, DATA, CHECK, RTOL, ATOL, DIM, DEVICE, THREADS, JSON };

static const QnOption options[] = {
    [INPUT] = { "--input", 'i', QN_OPTION_MANY, "NAME=FILE",
                "a .npy file or a .pb tensor for an "
                "input",
                0, 0 },
    [OUTPUT] = { "--output", 'o', QN_OPTION_TEXT, "DIR", "write each output there as NAME.npy", 0,
                 0 },
    [ALL] = { "--all", 0, QN_OPTION_FLAG, NULL,
              "with --output: every value between the nodes too, as each node computes it alone", 0,
              0 },
    [EACH] = { "--each", 0, QN_OPTION_TEXT, "NAMES",
               "run once for each row of these inputs; outputs are stacked", 0, 0 },
    [FEED] = { "--feed", 0, QN_OPTION_TEXT, "IN=OUT,…",
               "with --each: IN takes what OUT was in the run before", 0, 0 },
    [DATA] = { "--data", 0, QN_OPTION_TEXT, "DIR",
               "inputs from input_0.pb, input_1.pb …; --input goes before them", 0, 0 },
    [CHECK] = { "--check", 0, QN_OPTION_FLAG, NULL,
                "compare with --data's output_0.pb …; exit "
                "code 3 where they differ",
                0, 0 },
    [RTOL] = { "--rtol", 0, QN_OPTION_TEXT, "R", "relative tolerance; default 1e-3", 0, 0 },
    [ATOL] = { "--atol", 0, QN_OPTION_TEXT, "A", "absolute tolerance; default 1e-7", 0, 0 },
    [DIM] = QN_CLI_DIM_OPTION,
    [DEVICE] = { "--device", 0, QN_OPTION_TEXT, "NAME", QN_DEVICE_HELP, 0, 0 },
    [THREADS] = { "--threads", 0, QN_OPTION_INT, "N", "threads; default: all cores", 1, 1024 },
    [JSON] = { "--json", 0, QN_OPTION_FLAG, NULL, "one JSON object an output, then a summary", 0,
               0 },
};

typedef struct Run {
    const QnArgs *a;
    QnOnnxModel *model;
    QnOnnxExposed all;
    const QnOnnxModel *shown; /* model, or all */
    QnChoices *choices;
    QnDevice *device;
    QnArena *arena;
    QnItem **in, **out;
    QnOnnxProblems problems;
} Run;

/* ---- outputs --------------------------------------------------------------------------------- */

static void describe(const QnTensor *t, char *out, size_t bytes)
{
    double least = 0, most = 0, sum = 0, v;
    int64_t n = qn_shape_count(&t->type.shape);
    char type[QN_TYPE_TEXT_BYTES];
    for (int64_t i = 0; i < n && !t->text; i++) {
        qn_dtype_to_f64(t->type.dtype,
                        (const char *)t->data + (size_t)i * qn_dtype_bytes(t->type.dtype), &v, 1);
        least = i == 0 || v < least ? v : least;
        most = i == 0 || v > most ? v : most;
        sum += v;
    }
    if (t->text)
        snprintf(out, bytes, "%lld strings", (long long)n);
    else
        snprintf(out, bytes, "%s, least %.6g, mean %.6g, most %.6g", qn_type_text(&t->type, type),
                 least, n ? sum / (double)n : 0, most);
}

static QnStatus put_output(const char *name, const QnItem *item)
{
    char type[QN_TYPE_TEXT_BYTES];
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "output", name);
    if (item->kind == QN_ITEM_TENSOR)
        qn_json_put_string(&w, "type",
                           item->known->text ? "strings" : qn_type_text(&item->known->type, type));
    else
        qn_json_put_int(&w, "items", item->n);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}

static QnStatus show_outputs(Run *r)
{
    char text[300];
    const QnOnnxGraph *g = r->shown->graph;
    if (r->a->text[OUTPUT])
        QN_TRY(qn_file_make_dirs(r->a->text[OUTPUT]));
    for (int64_t i = 0; i < g->n_outputs; i++) {
        const char *name = g->output[i].name;
        const QnItem *item = r->out[i];
        if (!item)
            continue;
        if (r->a->text[OUTPUT])
            QN_TRY(qn_cli_write_item(r->a->text[OUTPUT], name, item));
        if (r->a->json) {
            QN_TRY(put_output(name, item));
        } else if (item->kind == QN_ITEM_TENSOR) {
            describe(item->known, text, sizeof text);
            printf("%s: %s\n", name, text);
        } else {
            printf("%s: %lld items\n", name, (long long)item->n);
        }
    }
    return QN_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

static QnStatus put_summary(const QnDifference *d, double seconds)
{
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    if (d) {
        qn_json_put_bool(&w, "equal", d->is_equal);
        qn_json_put_double(&w, "largest_error", d->largest);
        qn_json_put_int(&w, "different_elements", d->n_different);
        qn_json_put_int(&w, "elements", d->n_compared);
        if (!d->is_equal)
            qn_json_put_string(&w, "first", d->text);
    }
    qn_json_put_double(&w, "seconds", seconds);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}

static QnStatus check_options(const Run *r)
{
    const QnArgs *a = r->a;
    if (!a->text[DATA])
        return qn_fail(QN_EUSAGE,
                       "--check compares with the outputs of --data DIR, which is missing");
    if (a->n_many || a->text[OUTPUT] || a->text[ALL])
        return qn_fail(QN_EUSAGE,
                       "--check takes all from --data, and goes without --input, --dim, --output "
                       "and --all");
    QN_TRY(qn_cli_check_folder(a->text[DATA], "output", r->model->graph->n_outputs));
    return QN_OK;
}

static int check(Run *r)
{
    QnTolerance tol;
    QnDifference d;
    int64_t start = qn_clock_ns();
    QnStatus st = check_options(r);
    if (st == QN_OK)
        st = qn_cli_number(r->a, RTOL, 1e-3, &tol.rtol);
    if (st == QN_OK)
        st = qn_cli_number(r->a, ATOL, 1e-7, &tol.atol);
    if (st == QN_OK)
        st = qn_case_check(r->model, r->a->text[DATA], r->device, &tol, &d, &r->problems);
    if (st != QN_OK)
        return -1;
    if (r->a->json)
        put_summary(&d, (double)(qn_clock_ns() - start) * 1e-9);
    else if (d.is_equal)
        printf("equal; largest error %.3g\n", d.largest);
    else if (!d.n_different) /* another type: no elements to compare */
        printf("%s\n", d.text);
    else
        printf("%s\n%lld of %lld elements differ; largest error %.3g\n", d.text,
               (long long)d.n_different, (long long)d.n_compared, d.largest);
    return d.is_equal ? QN_EXIT_OK : QN_EXIT_DIFFERENT;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Two names that would be one file's ("a/b" and "a_b") are no results, but a trap. */
static QnStatus check_paths(const Run *r)
{
    char path[4096];
    const QnOnnxGraph *g = r->shown->graph;
    const char **paths = qn_arena_array(r->arena, (size_t)g->n_outputs + 1, sizeof *paths);
    if (!paths)
        return QN_ENOMEM;
    for (int64_t i = 0; i < g->n_outputs; i++) {
        QN_TRY(qn_cli_output_path(r->a->text[OUTPUT], g->output[i].name, -1, "npy", path,
                                  sizeof path));
        paths[i] = qn_arena_strdup(r->arena, path);
        if (!paths[i])
            return QN_ENOMEM;
    }
    qsort(paths, (size_t)g->n_outputs, sizeof *paths, by_text);
    for (int64_t i = 1; i < g->n_outputs; i++)
        if (!strcmp(paths[i - 1], paths[i]))
            return qn_fail(QN_EUSAGE,
                           "%s would hold two values: their names differ only in what "
                           "no file name has",
                           paths[i]);
    return QN_OK;
}

static QnStatus take_inputs(Run *r)
{
    QnCliDims dims;
    const QnOnnxGraph *g = r->shown->graph;
    r->in = qn_arena_array(r->arena, (size_t)g->n_inputs + 1, sizeof *r->in);
    r->out = qn_arena_array(r->arena, (size_t)g->n_outputs + 1, sizeof *r->out);
    if (!r->in || !r->out)
        return QN_ENOMEM;
    QN_TRY(qn_cli_dims(r->a, DIM, r->model, &dims));
    QN_TRY(qn_cli_model_inputs(r->a, INPUT, r->model, r->a->text[DATA], r->arena, r->in));
    QN_TRY(qn_cli_dims_check(r->model, r->in, &dims));
    for (int64_t i = 0; i < g->n_inputs; i++)
        if (g->input[i].type->kind == QN_ONNX_TYPE_TENSOR && r->in[i] &&
            r->in[i]->kind == QN_ITEM_TENSOR &&
            qn_onnx_check_tensor(&g->input[i], r->in[i]->known) != QN_OK)
            return qn_fail_prefix("%s", r->model->path);
    return QN_OK;
}

static int run_once(Run *r)
{
    int64_t start = qn_clock_ns();
    bool all = r->a->text[ALL] != NULL;
    QnStatus st = QN_OK;
    r->shown = all ? &r->all.model : r->model;
    if (all && !r->a->text[OUTPUT])
        st = qn_fail(QN_EUSAGE, "--all writes all values to files: --output DIR is missing");
    else if (all)
        st = qn_onnx_expose(r->model, r->arena, &r->all);
    if (st == QN_OK && r->a->text[OUTPUT])
        st = check_paths(r);
    if (st == QN_OK)
        st = take_inputs(r);
    if (st == QN_OK)
        st = qn_cli_choices(&r->choices);
    QnOnnxRunOptions o = { .choices = r->choices, .plain = all };
    if (st == QN_OK)
        st = qn_onnx_run_with(r->shown, r->device, r->in, r->arena, r->out, &r->problems, &o);
    if (st == QN_OK)
        st = show_outputs(r);
    if (st == QN_OK && r->a->json)
        st = put_summary(NULL, (double)(qn_clock_ns() - start) * 1e-9);
    return st == QN_OK ? QN_EXIT_OK : -1;
}

static int run_stream(Run *r)
{
    QnRunEach o = { .each = r->a->text[EACH],
                    .feed = r->a->text[FEED],
                    .output = r->a->text[OUTPUT] };
    if (r->a->text[ALL] || r->a->text[DIM] || r->a->text[DATA]) {
        qn_fail(QN_EUSAGE, "--each goes without --all, --data and --dim");
        return -1;
    }
    QnStatus st = qn_cli_choices(&r->choices);
    o.choices = r->choices;
    return st == QN_OK && qn_run_each(r->a, r->device, &o) == QN_OK ? QN_EXIT_OK : -1;
}

static int run(QnArgs *a)
{
    Run r = { .a = a, .arena = qn_arena_new() };
    int code = -1;
    QnStatus st = r.arena ? QN_OK : QN_ENOMEM;
    if (st == QN_OK)
        st = qn_onnx_read(a->positional[0], &r.model);
    if (st == QN_OK)
        st = qn_cli_open_device(&(QnDeviceWish){ .name = a->text[DEVICE], .log = &a->log },
                                a->number[THREADS], false, &r.device);
    if (st == QN_OK)
        st = qn_cli_check_computes(r.device);
    if (st == QN_OK && a->text[FEED] && !a->text[EACH])
        st = qn_fail(QN_EUSAGE, "--feed carries values from run to run: --each NAMES is missing");
    if (st == QN_OK)
        code = a->text[EACH] ? run_stream(&r) : a->text[CHECK] ? check(&r) : run_once(&r);
    if (code < 0)
        code = qn_cli_fail_model(a, &r.problems);
    qn_str_fini(&r.problems.text);
    qn_choices_free(r.choices);
    qn_device_close(r.device);
    qn_onnx_free(r.model);
    qn_arena_free(r.arena);
    return code;
}

const QnCommand qn_cmd_run = {
    .name = "run",
    .summary = "Run an ONNX model, or check it against expected outputs",
    .usage = "MODEL.onnx [options]",
    .examples = "  quern run model.onnx --input image=photo.npy --output results\n"
                "  quern run model.onnx --data test_data_set_0 --check --rtol 1e-4\n"
                "  quern run vad.onnx -i x=frames.npy h=zeros.npy --each x --feed h=hn -o out\n"
                "  quern run model.onnx --data set_0 --all -o values --device opencl:0\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
