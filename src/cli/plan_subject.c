#include "cli/plan_subject.h"

#include "base/file.h"
#include "cli/onnx_plan.h"
#include "cli/plan_graph.h"
#include "cli/plan_options.h"
#include "train/form.h"

#include <stdio.h>
#include <string.h>

/* ---- recipes ---- */

static bool is_recipe(const char *name)
{
    static const char *const ends[] = { ".yaml", ".yml", ".json" };
    size_t n = strlen(name);
    for (int i = 0; i < QN_COUNT(ends); i++)
        if (n > strlen(ends[i]) && !strcmp(name + n - strlen(ends[i]), ends[i]))
            return true;
    return false;
}

/* A run's folder says what its data were. */
static bool spec_of_run(QnPlanSubject *s)
{
    QnForm form;
    char path[4096];
    snprintf(path, sizeof path, "%.4000s/data.json", s->recipe->folder);
    if (!qn_file_exists(path) || qn_form_read(path, &form) != QN_OK)
        return false;
    s->spec = form.spec;
    qn_form_fini(&form);
    return true;
}

static QnStatus ask_for(const QnPlanSubject *s, const char *option, const char *what)
{
    const QnArgs *a = s->args;
    bool sized = !a->command->options[QN_PLAN_SAMPLES].name || a->text[QN_PLAN_SAMPLES];
    return qn_fail(QN_EUSAGE, "%s: its data set is not here (%s): give %s, %s%s", s->recipe->path,
                   s->no_data, option, what,
                   sized ? "" : "; and --samples N for the time and cost of the run");
}

/* What the recipe says of data that are not here, and what options add to that. */
static QnStatus spec_of_recipe(QnPlanSubject *s, const QnPlanSubjectOptions *o)
{
    const QnRecipeData *d = &s->recipe->data;
    int64_t classes = o->classes ? o->classes : d->n_classes;
    if (d->format == QN_DATA_CSV || d->format == QN_DATA_NPY)
        return qn_fail(QN_ENOTFOUND, "%s: only the data set says how many features it has: %s",
                       s->recipe->path, s->no_data);
    if (d->format == QN_DATA_TEXT) {
        classes = classes ? classes : d->bytes ? 256 : 0;
        int64_t window = o->sequence ? o->sequence : d->window;
        s->spec =
            (QnSampleSpec){ QN_FEATURE_TOKENS, 1, { window }, QN_LABEL_TOKENS, window, classes };
        return classes ? QN_OK : ask_for(s, "--classes N", "the size of its vocabulary");
    }
    const QnAugment *a = &d->augment;
    int64_t h = o->image         ? o->image
                : a->crop_height ? a->crop_height
                                 : a->resize_height + 2 * a->pad,
            w = o->image        ? o->image
                : a->crop_width ? a->crop_width
                                : a->resize_width + 2 * a->pad;
    s->spec = (QnSampleSpec){ .x_kind = QN_FEATURE_F32,
                              .x_rank = 3,
                              .x_dims = { d->format == QN_DATA_IDX ? 1 : 3, h, w },
                              .y_kind = QN_LABEL_CLASS,
                              .y_count = 1,
                              .class_count = classes };
    if (!h || !w)
        return ask_for(s, "--image N", "the side of its images");
    return classes ? QN_OK : ask_for(s, "--classes N", "the number of its classes");
}

/* The data set itself, or what is known without it. */
static QnStatus open_data(QnPlanSubject *s, const QnPlanSubjectOptions *o)
{
    if (qn_data_open(s->recipe, &s->data) == QN_OK) {
        s->has_data = true;
        s->spec = *qn_dataset_spec(s->data.train);
        s->samples = (double)qn_dataset_count(s->data.train);
        return QN_OK;
    }
    QnStatus st = qn_error_last()->code;
    if (st == QN_ENOMEM || st == QN_EFORMAT) /* it is here, and broken */
        return st;
    s->no_data = qn_arena_strdup(s->arena, qn_error_last()->text);
    if (!s->no_data)
        return QN_ENOMEM;
    return spec_of_run(s) ? QN_OK : spec_of_recipe(s, o);
}

static QnStatus open_recipe(QnPlanSubject *s, const char *path, const QnPlanSubjectOptions *o)
{
    QN_TRY(qn_recipe_open(path, NULL, 0, &s->recipe));
    QN_TRY(open_data(s, o));
    s->own.name = s->recipe->name;
    s->family.name = "recipe";
    s->family.graph = qn_plan_graph_recipe;
    if (s->spec.x_kind == QN_FEATURE_TOKENS)
        s->family.sequence = s->spec.x_dims[0];
    else if (s->spec.x_rank == 3)
        s->family.image = s->spec.x_dims[1];
    s->family.adam = strncmp(s->recipe->optimizer.name, "sgd", 3) != 0;
    return QN_OK;
}

/* ---- ONNX files ---- */

/* Images are tensors (N,C,H,W); all else is counted by examples. */
static void read_input(QnPlanSubject *s)
{
    const QnOnnxGraph *g = s->onnx->graph;
    for (int64_t i = 0; i < g->n_inputs && !s->family.image; i++) {
        const QnOnnxType *t = g->input[i].type;
        if (qn_onnx_find_init(g, g->input[i].name) || t->kind != QN_ONNX_TYPE_TENSOR)
            continue;
        if (!s->batch && t->rank > 0)
            s->batch = QN_MAX(t->dim[0], 0);
        if (t->rank == 4 && t->dim[2] > 0) {
            s->family.image = t->dim[2];
            s->family.channels = QN_MAX(t->dim[1], 0);
            s->family.width = QN_MAX(t->dim[3], 0);
        }
    }
}

static QnStatus open_onnx(QnPlanSubject *s, const char *path, const QnPlanSubjectOptions *o)
{
    int64_t made;
    QN_TRY(qn_onnx_read(path, &s->onnx));
    QN_TRY(qn_onnx_randomize(s->onnx, 0, &made)); /* weights that the file left out */
    s->own.name = path;
    s->family.name = "onnx";
    s->family.wide = true;
    s->dim_option = o->dim_option;
    read_input(s);
    s->file_batch = s->batch ? s->batch : 1;
    if (o->train || qn_plan_graph_is_plain(s->onnx)) {
        s->family.step = qn_plan_step_onnx;
        s->batch = 0;
    } else {
        s->family.graph = qn_plan_graph_onnx;
    }
    return QN_OK;
}

/* ---- all ---- */

/* Commands stand where models do: a slip of one is not taken for a model. */
static QnStatus find_model(const QnArgs *a, const char *name, const QnModel **out)
{
    const char *subs[32];
    int n = 0;
    QnStatus st = qn_model_find(name, out);
    for (; st == QN_ENOTFOUND && a->command->subs && a->command->subs[n] && n < 32; n++)
        subs[n] = strrchr(a->command->subs[n]->name, ' ') + 1;
    const char *near = qn_str_nearest(name, subs, n);
    if (near)
        return qn_fail(QN_ENOTFOUND, "no model '%s'; did you mean 'quern plan %s'?", name, near);
    return st;
}

QnStatus qn_plan_subject_open(QnPlanSubject *s, const QnArgs *a, const char *name,
                              const QnPlanSubjectOptions *o)
{
    *s = (QnPlanSubject){ .args = a, .arena = qn_arena_new() };
    if (!s->arena)
        return QN_ENOMEM;
    bool onnx = qn_cli_is_onnx(name);
    if (!onnx && !is_recipe(name))
        return find_model(a, name, &s->model);
    s->own.family = &s->family;
    s->model = &s->own;
    QN_TRY(qn_cli_device(NULL, 0, false, &s->host));
    return onnx ? open_onnx(s, name, o) : open_recipe(s, name, o);
}

void qn_plan_subject_close(QnPlanSubject *s)
{
    qn_data_close(&s->data);
    qn_recipe_free(s->recipe);
    qn_onnx_free(s->onnx);
    qn_device_close(s->host);
    qn_arena_free(s->arena);
    *s = (QnPlanSubject){ 0 };
}

double qn_plan_subject_bytes(const QnPlanSubject *s, int64_t image, int64_t sequence)
{
    const QnFamily *f = s->model->family;
    if (s->recipe && !image && !sequence)
        return (double)qn_sample_x_bytes(&s->spec);
    double side = (double)(image ? image : s->model->image ? s->model->image : f->image);
    double channels = s->recipe ? (double)s->spec.x_dims[0] : f->channels ? (double)f->channels : 3;
    return f->image ? 4 * channels * side * (f->width && !image ? (double)f->width : side)
                    : 8 * (double)(sequence ? sequence : f->sequence);
}
