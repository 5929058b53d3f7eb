#include "cli/onnx_plan.h"

#include "cli/model_dims.h"
#include "cli/model_values.h"
#include "pass/pipeline.h"

#include <string.h>

bool qn_cli_is_onnx(const char *path)
{
    size_t n = strlen(path);
    return n > 5 && !strcmp(path + n - 5, ".onnx");
}

static QnStatus import(const QnArgs *a, const QnOnnxPlanOptions *o, QnOnnxPlan *p)
{
    QnCliDims dims;
    QnOnnxImportOptions i = { 0 };
    const QnTensor **given;
    const char *open;
    QnItem **in = qn_arena_array(p->arena, (size_t)p->model->graph->n_inputs + 1, sizeof *in);
    QN_TRY(in ? QN_OK : QN_ENOMEM);
    QN_TRY(qn_cli_dims(a, o->dim_option, p->model, &dims));
    QN_TRY(qn_cli_some_inputs(a, o->input_option, p->model, p->arena, in));
    QN_TRY(qn_cli_dims_types(p->model, in, &dims, o->batch, p->arena, &given, &open));
    if (open[0])
        return qn_fail(QN_EUSAGE,
                       "%s: an open dim, '%s', has no number; --dim NAME=N, --input NAME=FILE or, "
                       "for first dims, --batch N give it one",
                       p->model->path, open);
    i.given = given;
    return qn_onnx_import(p->model, p->host, &i, &p->graph, &p->problems);
}

static QnStatus open_all(const QnArgs *a, const QnOnnxPlanOptions *o, QnOnnxPlan *p)
{
    QN_TRY(p->arena ? QN_OK : QN_ENOMEM);
    QN_TRY(qn_onnx_read(a->positional[0], &p->model));
    QN_TRY(qn_cli_device(NULL, o->threads, false, &p->host));
    QN_TRY(qn_cli_open_device(&(QnDeviceWish){ .name = o->device, .log = &a->log }, o->threads,
                              false, &p->device));
    QN_TRY(qn_cli_choices(&p->choices));
    QN_TRY(import(a, o, p));
    QnPipelineOptions passes = qn_device_passes(p->device);
    passes.keep_inputs = true;
    QN_TRY(qn_pipeline_run(p->graph, &passes));
    return qn_plan_new(p->graph, p->device, NULL, &(QnPlanOptions){ .choices = p->choices },
                       &p->plan);
}

QnStatus qn_onnx_plan_open(const QnArgs *a, const QnOnnxPlanOptions *o, QnOnnxPlan *out)
{
    *out = (QnOnnxPlan){ .arena = qn_arena_new() };
    return open_all(a, o, out);
}

void qn_onnx_plan_close(QnOnnxPlan *p)
{
    qn_plan_free(p->plan);
    qn_graph_free(p->graph);
    qn_choices_free(p->choices);
    qn_device_close(p->device);
    qn_device_close(p->host);
    qn_onnx_free(p->model);
    qn_str_fini(&p->problems.text);
    qn_arena_free(p->arena);
}
