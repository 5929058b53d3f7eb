/* Runs an ONNX model on given inputs, or checks it against given outputs. */
#include "cli/cli.h"
#include "cli/run_each.h"

#include "base/clock.h"
#include "base/file.h"
#include "io/npy.h"
#include "onnx/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT, OUTPUT, EACH, FEED, DATA, CHECK, RTOL, ATOL, DEVICE, THREADS, JSON };

static const QnOption options[] = {
    [INPUT] = { "--input", 'i', QN_OPTION_MANY, "NAME=FILE",
                "a .npy file or a .pb tensor for an "
                "input",
                0, 0 },
    [OUTPUT] = { "--output", 'o', QN_OPTION_TEXT, "DIR", "write each output there as NAME.npy", 0,
                 0 },
    [EACH] = { "--each", 0, QN_OPTION_TEXT, "NAMES",
               "run once for each row of these inputs; outputs are stacked", 0, 0 },
    [FEED] = { "--feed", 0, QN_OPTION_TEXT, "IN=OUT,…",
               "with --each: IN takes what OUT was in the run before", 0, 0 },
    [DATA] = { "--data", 0, QN_OPTION_TEXT, "DIR", "inputs from input_0.pb, input_1.pb …", 0, 0 },
    [CHECK] = { "--check", 0, QN_OPTION_FLAG, NULL,
                "compare with --data's output_0.pb …; exit "
                "code 3 where they differ",
                0, 0 },
    [RTOL] = { "--rtol", 0, QN_OPTION_TEXT, "R", "relative tolerance; default 1e-3", 0, 0 },
    [ATOL] = { "--atol", 0, QN_OPTION_TEXT, "A", "absolute tolerance; default 1e-7", 0, 0 },
    [DEVICE] = { "--device", 0, QN_OPTION_TEXT, "NAME", "cpu (default) or opencl:0 …", 0, 0 },
    [THREADS] = { "--threads", 0, QN_OPTION_INT, "N", "threads; default: all cores", 1, 1024 },
    [JSON] = { "--json", 0, QN_OPTION_FLAG, NULL, "one JSON object an output, then a summary", 0,
               0 },
};

typedef struct Run {
    const QnArgs *a;
    QnOnnxModel *model;
    QnDevice *device;
    QnArena *arena;
    QnItem **in, **out;
    QnOnnxProblems problems;
} Run;

static QnItem *new_item(Run *r, const char *name, const QnTensor *t)
{
    QnItem *item = qn_arena_alloc(r->arena, sizeof *item);
    if (item)
        *item = (QnItem){ .kind = QN_ITEM_TENSOR, .epoch = -1, .known = t, .name = name };
    return item;
}

static QnStatus read_npy(Run *r, const char *path, QnItem **out)
{
    QnNpy npy;
    QN_TRY(qn_npy_read(path, &npy));
    QnTensor *t = qn_arena_alloc(r->arena, sizeof *t);
    QnStatus st = t ? QN_OK : QN_ENOMEM;
    if (t) {
        t->type = (QnType){ .dtype = npy.dtype, .shape = qn_shape_make(npy.rank, npy.dims) };
        int64_t bytes = qn_type_bytes(&t->type);
        t->data = qn_arena_alloc(r->arena, (size_t)QN_MAX(bytes, 1));
        if (t->data && bytes > 0)
            memcpy((void *)t->data, npy.data, (size_t)bytes);
        st = t->data && (*out = new_item(r, path, t)) ? QN_OK : QN_ENOMEM;
    }
    qn_npy_fini(&npy);
    return st;
}

static QnStatus list_inputs(const Run *r, const char *what)
{
    QnStr names = { 0 };
    for (int64_t i = 0; i < r->model->graph->n_inputs; i++)
        qn_str_printf(&names, "%s%s", i ? ", " : "", r->model->graph->input[i].name);
    QnStatus st = qn_fail(QN_EUSAGE, "%s; the model's inputs: %s", what, qn_str_text(&names));
    qn_str_fini(&names);
    return st;
}

static QnStatus read_input(Run *r, const char *setting)
{
    char what[300];
    const QnOnnxGraph *g = r->model->graph;
    const char *path = strchr(setting, '=') + 1;
    size_t n = (size_t)(path - 1 - setting), len = strlen(path);
    for (int64_t i = 0; i < g->n_inputs; i++) {
        if (strlen(g->input[i].name) != n || strncmp(g->input[i].name, setting, n))
            continue;
        if (len > 3 && !strcmp(path + len - 3, ".pb"))
            return qn_onnx_read_value(path, g->input[i].type, r->arena, &r->in[i]);
        return read_npy(r, path, &r->in[i]);
    }
    snprintf(what, sizeof what, "the model has no input '%.*s'", (int)QN_MIN(n, 200), setting);
    return list_inputs(r, what);
}

static QnStatus read_data(Run *r, const char *folder)
{
    char path[4096];
    const QnOnnxGraph *g = r->model->graph;
    for (int64_t i = 0; i < g->n_inputs; i++) {
        snprintf(path, sizeof path, "%s/input_%lld.pb", folder, (long long)i);
        if (qn_file_exists(path))
            QN_TRY(qn_onnx_read_value(path, g->input[i].type, r->arena, &r->in[i]));
    }
    return QN_OK;
}

static bool has_initialiser(const QnOnnxGraph *g, const char *name)
{
    for (int64_t i = 0; i < g->n_inits; i++)
        if (!strcmp(g->init[i].name, name))
            return true;
    return false;
}

static QnStatus check_inputs(const Run *r)
{
    char what[300];
    const QnOnnxGraph *g = r->model->graph;
    for (int64_t i = 0; i < g->n_inputs; i++)
        if (!r->in[i] && g->input[i].type->kind != QN_ONNX_TYPE_OPTIONAL &&
            !has_initialiser(g, g->input[i].name)) {
            snprintf(what, sizeof what, "input '%.200s' is missing: --input %.40s=FILE.npy",
                     g->input[i].name, g->input[i].name);
            return list_inputs(r, what);
        }
    return QN_OK;
}

/* ---- outputs --------------------------------------------------------------------------------- */

QnStatus qn_cli_output_path(const char *folder, const char *name, int64_t number, char *out,
                            size_t bytes)
{
    char file[200];
    size_t n = 0;
    for (const char *p = name; *p && n < sizeof file - 24; p++) {
        bool odd = *p == '/' || *p == '\\' || (n == 0 && *p == '.');
        file[n++] = odd ? '_' : *p;
    }
    snprintf(file + n, sizeof file - n, number >= 0 ? ".%lld" : "", (long long)number);
    int length = snprintf(out, bytes, "%s/%s.npy", folder, file);
    return length > 0 && (size_t)length < bytes
               ? QN_OK
               : qn_fail(QN_EUSAGE, "%s: the path is too long", folder);
}

static QnStatus write_output(const Run *r, const char *name, const QnItem *item, int64_t number)
{
    char path[4096];
    for (int64_t i = 0; i < item->n; i++)
        QN_TRY(write_output(r, name, item->item[i], i));
    if (item->kind != QN_ITEM_TENSOR)
        return QN_OK;
    if (item->known->text)
        return qn_fail(QN_EUNSUPPORTED, "output '%s' holds strings, which .npy has not", name);
    const QnType *t = &item->known->type;
    QN_TRY(qn_cli_output_path(r->a->text[OUTPUT], name, number, path, sizeof path));
    return qn_npy_write(path, t->dtype, t->shape.rank, t->shape.dim, item->known->data);
}

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
    const QnOnnxGraph *g = r->model->graph;
    if (r->a->text[OUTPUT])
        QN_TRY(qn_file_make_dirs(r->a->text[OUTPUT]));
    for (int64_t i = 0; i < g->n_outputs; i++) {
        const char *name = g->output[i].name;
        const QnItem *item = r->out[i];
        if (!item)
            continue;
        if (r->a->text[OUTPUT])
            QN_TRY(write_output(r, name, item, -1));
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

static QnStatus number(const QnArgs *a, int option, double otherwise, double *out)
{
    char *end;
    *out = otherwise;
    if (!a->text[option])
        return QN_OK;
    *out = strtod(a->text[option], &end);
    return *end || end == a->text[option] || !(*out >= 0)
               ? qn_fail(QN_EUSAGE, "%s: expected a number of at least 0, found '%s'",
                         options[option].name, a->text[option])
               : QN_OK;
}

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

static int check(Run *r)
{
    QnTolerance tol;
    QnDifference d;
    int64_t start = qn_clock_ns();
    QnStatus st = r->a->text[DATA] ? QN_OK
                                   : qn_fail(QN_EUSAGE, "--check compares with the outputs of "
                                                        "--data DIR, which is missing");
    if (st == QN_OK)
        st = number(r->a, RTOL, 1e-3, &tol.rtol);
    if (st == QN_OK)
        st = number(r->a, ATOL, 1e-7, &tol.atol);
    if (st == QN_OK)
        st = qn_case_check(r->model, r->a->text[DATA], r->device, &tol, &d, &r->problems);
    if (st != QN_OK)
        return -1;
    if (r->a->json)
        put_summary(&d, (double)(qn_clock_ns() - start) * 1e-9);
    else if (d.is_equal)
        printf("equal; largest error %.3g\n", d.largest);
    else
        printf("%s\n%lld elements differ; largest error %.3g\n", d.text, (long long)d.n_different,
               d.largest);
    return d.is_equal ? QN_EXIT_OK : QN_EXIT_DIFFERENT;
}

static int run_once(Run *r)
{
    const QnOnnxGraph *g = r->model->graph;
    int64_t start = qn_clock_ns();
    r->in = qn_arena_array(r->arena, (size_t)g->n_inputs + 1, sizeof *r->in);
    r->out = qn_arena_array(r->arena, (size_t)g->n_outputs + 1, sizeof *r->out);
    QnStatus st = r->in && r->out ? QN_OK : QN_ENOMEM;
    if (st == QN_OK && r->a->text[DATA])
        st = read_data(r, r->a->text[DATA]);
    for (int i = 0; st == QN_OK && i < r->a->n_many; i++)
        st = read_input(r, r->a->many[i]);
    if (st == QN_OK)
        st = check_inputs(r);
    if (st == QN_OK)
        st = qn_onnx_run(r->model, r->device, r->in, r->arena, r->out, &r->problems);
    if (st == QN_OK)
        st = show_outputs(r);
    if (st == QN_OK && r->a->json)
        st = put_summary(NULL, (double)(qn_clock_ns() - start) * 1e-9);
    return st == QN_OK ? QN_EXIT_OK : -1;
}

static int run(QnArgs *a)
{
    Run r = { .a = a, .arena = qn_arena_new() };
    int code = -1;
    QnStatus st = r.arena ? QN_OK : QN_ENOMEM;
    if (st == QN_OK)
        st = qn_onnx_read(a->positional[0], &r.model);
    if (st == QN_OK)
        st = qn_cli_device(a->text[DEVICE], a->number[THREADS], false, &r.device);
    if (st == QN_OK && a->text[EACH]) {
        QnRunEach o = { a->text[EACH], a->text[FEED], a->text[OUTPUT] };
        code = qn_run_each(a, r.device, &o) == QN_OK ? QN_EXIT_OK : -1;
    } else if (st == QN_OK)
        code = a->text[CHECK] ? check(&r) : run_once(&r);
    if (r.problems.n)
        fputs(qn_str_text(&r.problems.text), stderr);
    if (code < 0) {
        bool unsupported = qn_error_last()->code == QN_EUNSUPPORTED;
        code = qn_cli_fail(a);
        code = unsupported ? QN_EXIT_UNSUPPORTED : code;
    }
    qn_str_fini(&r.problems.text);
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
                "  quern run vad.onnx -i x=frames.npy h=zeros.npy --each x --feed h=hn -o out\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
