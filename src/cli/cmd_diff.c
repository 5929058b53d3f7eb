/* Where a model's values first depart from those of another runtime, or of another model. */
#include "cli/diff.h"

#include "cli/model_values.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { AGAINST, INPUT, DATA, RTOL, ATOL, DEVICE, THREADS, JSON };

static const QnOption options[] = {
    [AGAINST] = { "--against", 0, QN_OPTION_TEXT, "DIR|B.onnx",
                  "values by name: files NAME.npy or NAME.pb, or another model's", 0, 0 },
    [INPUT] = { "--input", 'i', QN_OPTION_MANY, "NAME=FILE",
                "a .npy file or a .pb tensor for an input", 0, 0 },
    [DATA] = { "--data", 0, QN_OPTION_TEXT, "DIR", "inputs from input_0.pb, input_1.pb …", 0, 0 },
    [RTOL] = { "--rtol", 0, QN_OPTION_TEXT, "R", "relative tolerance; default 1e-3", 0, 0 },
    [ATOL] = { "--atol", 0, QN_OPTION_TEXT, "A", "absolute tolerance; default 1e-5", 0, 0 },
    [DEVICE] = { "--device", 0, QN_OPTION_TEXT, "NAME", QN_DEVICE_HELP, 0, 0 },
    [THREADS] = { "--threads", 0, QN_OPTION_INT, "N", "threads; default: all cores", 1, 1024 },
    [JSON] = { "--json", 0, QN_OPTION_FLAG, NULL, "one JSON object", 0, 0 },
};

/* ---- running --------------------------------------------------------------------------------- */

static QnStatus run_side(QnDiff *d, QnDiffSide *s)
{
    QnOnnxRunOptions o = { .plain = true };
    s->out = qn_arena_array(d->arena, (size_t)s->all.graph.n_outputs + 1, sizeof *s->out);
    return s->out ? qn_onnx_run_with(&s->all.model, d->device, s->in, d->arena, s->out,
                                     &d->problems, &o)
                  : QN_ENOMEM;
}

static QnStatus open_side(QnDiff *d, const char *path, QnDiffSide *s)
{
    QN_TRY(qn_onnx_read(path, &s->model));
    s->in = qn_arena_array(d->arena, (size_t)s->model->graph->n_inputs + 1, sizeof *s->in);
    QN_TRY(s->in ? QN_OK : QN_ENOMEM);
    return qn_onnx_expose(s->model, d->arena, &s->all);
}

/* The other model gets what this one got under the same names. */
static QnStatus share_inputs(const QnDiffSide *a, QnDiffSide *b)
{
    const QnOnnxGraph *ga = a->model->graph, *gb = b->model->graph;
    for (int64_t i = 0; i < gb->n_inputs; i++) {
        const char *name = gb->input[i].name;
        for (int64_t k = 0; k < ga->n_inputs && !b->in[i]; k++)
            if (!strcmp(ga->input[k].name, name))
                b->in[i] = a->in[k];
        if (!b->in[i] && gb->input[i].type->kind != QN_ONNX_TYPE_OPTIONAL &&
            !qn_onnx_find_init(gb, name))
            return qn_fail(QN_EUSAGE, "%s: its input '%s' is none of %s", b->model->path, name,
                           a->model->path);
    }
    return QN_OK;
}

static QnStatus open_against(QnDiff *d, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return qn_fail(QN_ENOTFOUND, "--against %s: there is no such folder or model", path);
    if (S_ISDIR(info.st_mode)) {
        d->folder = path;
        return QN_OK;
    }
    QN_TRY(open_side(d, path, &d->b));
    QN_TRY(share_inputs(&d->a, &d->b));
    return run_side(d, &d->b);
}

static QnStatus diff(const QnArgs *a, QnDiff *d)
{
    if (!a->text[AGAINST])
        return qn_fail(QN_EUSAGE, "diff compares with --against DIR or B.onnx, which is missing");
    QN_TRY(qn_cli_number(a, RTOL, 1e-3, &d->tolerance.rtol));
    QN_TRY(qn_cli_number(a, ATOL, 1e-5, &d->tolerance.atol));
    QN_TRY(qn_cli_open_device(&(QnDeviceWish){ .name = a->text[DEVICE], .log = &a->log },
                              a->number[THREADS], false, &d->device));
    QN_TRY(qn_cli_check_computes(d->device));
    QN_TRY(open_side(d, a->positional[0], &d->a));
    QN_TRY(qn_cli_model_inputs(a, INPUT, d->a.model, a->text[DATA], d->arena, d->a.in));
    QN_TRY(open_against(d, a->text[AGAINST]));
    QN_TRY(run_side(d, &d->a));
    QN_TRY(qn_diff_compare(d));
    return a->json ? qn_diff_print_json(d) : qn_diff_print(d);
}

static int run(QnArgs *a)
{
    QnDiff d = { .arena = qn_arena_new(), .bad = -1 };
    QnStatus st = d.arena ? diff(a, &d) : QN_ENOMEM;
    int code = st != QN_OK ? qn_cli_fail_model(a, &d.problems)
               : d.bad < 0 ? QN_EXIT_OK
                           : QN_EXIT_DIFFERENT;
    qn_str_fini(&d.problems.text);
    qn_device_close(d.device);
    qn_onnx_free(d.a.model);
    qn_onnx_free(d.b.model);
    qn_arena_free(d.arena);
    return code;
}

const QnCommand qn_cmd_diff = {
    .name = "diff",
    .summary = "Find the first node of an ONNX model whose values differ from given ones",
    .usage = "MODEL.onnx --against DIR|B.onnx [options]",
    .examples = "  quern diff model.onnx --against values --data test_data_set_0\n"
                "  quern diff model.onnx --against simplified.onnx -i image=photo.npy\n"
                "  quern run model.onnx -i x=x.npy --all -o values --device opencl:0\n"
                "  quern diff model.onnx -i x=x.npy --against values --rtol 1e-4\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
