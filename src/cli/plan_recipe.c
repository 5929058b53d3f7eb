#include "cli/plan_recipe.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what recipes say of an offer ---- */

static const char *recipe_precision(QnNumbers p)
{
    return p == QN_NUMBERS_FP16_AMP ? "fp16" : p == QN_NUMBERS_BF16_AMP ? "bf16" : "fp32";
}

/* What they cannot say. */
static void add_comments(QnStr *s, const QnPlanTable *t, const QnOffer *o)
{
    char name[QN_PLAN_NAME], rate[QN_STR_NUMBER];
    qn_str_printf(s, "# %s on %s in %s: %s %s a second by quern plan.\n", t->job.model->name,
                  qn_plan_name(o, name), qn_numbers_name(o->numbers), qn_str_si(rate, o->items_s),
                  o->count->tokens > 0                                ? "tokens"
                  : t->job.model->family->image && !t->subject.recipe ? "images"
                                                                      : "examples");
    if (o->numbers == QN_NUMBERS_TF32)
        qn_str_add(
            s, "# Products in TF32: quern train has no such precision, fp32 is what follows.\n");
    if (o->n_cards > 1)
        qn_str_printf(s,
                      "# %s over %d devices, %lld examples an update in all: one device is what "
                      "follows.\n",
                      o->shard ? "Data parallel, weights, gradients and optimizer spread"
                               : "Data parallel",
                      o->n_cards, (long long)(o->n_cards * o->batch * o->accumulate));
    if (o->offload)
        qn_str_add(s,
                   "# The optimizer in the host's memory: quern train keeps it on the device.\n");
}

/* What a host has, it alone knows: the speed above is that of the recipe's threads. */
static void add_workers(QnStr *s, const QnPlanTable *t, const QnOffer *o)
{
    int64_t workers = qn_plan_workers_needed(t, o);
    if (workers)
        qn_str_printf(s, "# The loader limits it: data.workers: %lld would keep the device busy.\n",
                      (long long)workers);
}

static int64_t budget_mib(const QnOffer *o)
{
    return QN_MAX((int64_t)ceil(o->count->activations / 1048576), 1);
}

int64_t qn_plan_workers_needed(const QnPlanTable *t, const QnOffer *o)
{
    const QnFeed *f = &t->job.feed;
    if (!(f->workers > 0) || !(f->rate > 0))
        return 0;
    double examples = (double)(o->batch * o->accumulate * QN_MIN(o->n_cards, 8));
    double needed = o->busy_s > 0 ? ceil(examples / (o->busy_s * f->rate)) : 0;
    return needed > f->workers ? (int64_t)QN_MIN(needed, 1e6) : 0;
}

/* ---- a recipe that was given ---- */

static QnStatus set_absolute_model(const QnRecipe *r, char **text)
{
    char path[PATH_MAX], setting[PATH_MAX + 32];
    QnYamlDoc *doc;
    if (!r->onnx || !realpath(r->onnx, path))
        return QN_OK;
    QN_TRY(qn_yaml_parse(r->path, *text, strlen(*text), &doc));
    bool is_path = r->model->kind == QN_YAML_SCALAR;
    snprintf(setting, sizeof setting, "model%s=\"%s\"", is_path ? "" : ".onnx", path);
    char *with = NULL;
    QnStatus st = qn_yaml_set(doc, setting);
    if (st == QN_OK)
        st = qn_yaml_print(qn_yaml_root(doc), &with);
    qn_yaml_free(doc);
    if (st == QN_OK) {
        qn_free(*text);
        *text = with;
    }
    return st;
}

int qn_plan_recipe_settings(const QnOffer *o, char out[QN_PLAN_SETTINGS][QN_PLAN_SETTING])
{
    int n = 0;
    snprintf(out[n++], QN_PLAN_SETTING, "train.batch=%lld", (long long)o->batch);
    snprintf(out[n++], QN_PLAN_SETTING, "train.accumulate=%lld", (long long)o->accumulate);
    snprintf(out[n++], QN_PLAN_SETTING, "train.precision=%s", recipe_precision(o->numbers));
    if (o->recompute)
        snprintf(out[n++], QN_PLAN_SETTING, "compile.memory_budget_mib=%lld",
                 (long long)budget_mib(o));
    return n;
}

static QnStatus change_recipe(const QnPlanTable *t, const QnOffer *o, QnStr *s)
{
    char settings[QN_PLAN_SETTINGS][QN_PLAN_SETTING];
    const char *list[QN_PLAN_SETTINGS];
    int n = qn_plan_recipe_settings(o, settings);
    QnRecipe *r;
    char *text;
    for (int i = 0; i < n; i++)
        list[i] = settings[i];
    QN_TRY(qn_recipe_open(t->subject.recipe->path, list, n, &r));
    QnStatus st = qn_recipe_print(r, &text);
    if (st == QN_OK) {
        st = set_absolute_model(r, &text);
        qn_str_add(s, text);
        qn_free(text);
    }
    qn_recipe_free(r);
    return st;
}

/* ---- a model by name ---- */

typedef struct Known {
    const char *name, *model; /* of the planner, of recipes */
    bool adam;
} Known;

static const Known known[] = {
    { "resnet18", "{name: resnet, depth: 18, small: false}", false },
    { "resnet34", "{name: resnet, depth: 34, small: false}", false },
    { "resnet50", "{name: resnet, depth: 50, small: false}", false },
    { "resnet101", "{name: resnet, depth: 101, small: false}", false },
    { "resnet152", "{name: resnet, depth: 152, small: false}", false },
    { "vgg11", "{name: vgg, depth: 11, batch_norm: false, small: false}", false },
    { "vgg13", "{name: vgg, depth: 13, batch_norm: false, small: false}", false },
    { "vgg16", "{name: vgg, depth: 16, batch_norm: false, small: false}", false },
    { "vgg19", "{name: vgg, depth: 19, batch_norm: false, small: false}", false },
    { "vgg11_bn", "{name: vgg, depth: 11, small: false}", false },
    { "vgg13_bn", "{name: vgg, depth: 13, small: false}", false },
    { "vgg16_bn", "{name: vgg, depth: 16, small: false}", false },
    { "vgg19_bn", "{name: vgg, depth: 19, small: false}", false },
    { "gpt2", "{name: gpt2, size: small}", true },
    { "gpt2_124m", "{name: gpt2, size: small}", true },
    { "gpt2_medium", "{name: gpt2, size: medium}", true },
    { "gpt2_large", "{name: gpt2, size: large}", true },
    { "gpt2_xl", "{name: gpt2, size: xl}", true },
    { "gpt2_1558m", "{name: gpt2, size: xl}", true },
};

static const Known *find_known(const char *name)
{
    for (int i = 0; i < QN_COUNT(known); i++)
        if (!strcmp(known[i].name, name))
            return &known[i];
    return NULL;
}

static void add_data(QnStr *s, const QnArgs *a, const QnPlanTable *t, const Known *k)
{
    const char *data = a->text[QN_PLAN_DATA];
    const QnJob *job = &t->job;
    const QnFamily *f = job->model->family;
    if (!data)
        qn_str_printf(s, "# Put %s there, or name another place by --data.\n",
                      k->adam ? "a text" : "a folder of pictures a class");
    if (k->adam) {
        qn_str_printf(s, "data:\n  format: text\n  train: \"%s\"\n  window: %lld\n  bytes: true\n",
                      data ? data : "data/train.txt",
                      (long long)(job->sequence ? job->sequence : f->sequence));
        return;
    }
    long long side = job->image ? job->image : f->image;
    qn_str_printf(s,
                  "data:\n  format: folder\n  train: \"%s\"\n  images: {resize: %lld, crop: %lld, "
                  "random_crop: true, flip: true, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, "
                  "0.225]}\n",
                  data ? data : "data/train", side * 8 / 7, side);
}

static void add_train(QnStr *s, const QnPlanTable *t, const QnOffer *o, const Known *k)
{
    const QnJob *job = &t->job;
    double an_update = (double)(o->batch * o->accumulate);
    double tokens = o->count->tokens / (double)o->batch;
    qn_str_printf(s, "model: %s\ntrain:\n", k->model);
    if (job->epochs > 0)
        qn_str_printf(s, "  epochs: %.0f\n", QN_MAX(1, ceil(job->epochs)));
    else if (job->items > 0)
        qn_str_printf(s, "  steps: %.0f\n",
                      QN_MAX(1, ceil(job->items / (an_update * QN_MAX(tokens, 1)))));
    else
        qn_str_add(s, "  epochs: 1\n");
    qn_str_printf(s, "  batch: %lld\n  accumulate: %lld\n  precision: %s\n", (long long)o->batch,
                  (long long)o->accumulate, recipe_precision(o->numbers));
    if (k->adam)
        qn_str_add(s, "  lr: 0.0006\n  schedule: {kind: cosine, warmup: 0.02}\n  optimizer: {name: "
                      "adamw, beta2: 0.95, weight_decay: 0.1, clip_norm: 1}\n");
    else
        qn_str_printf(s,
                      "  lr: %.4g\n  schedule: one_cycle\n  optimizer: {name: sgd, momentum: 0.9, "
                      "weight_decay: 0.0001}\n",
                      0.1 * an_update / 256);
    if (o->recompute)
        qn_str_printf(s, "compile: {memory_budget_mib: %lld}\n", (long long)budget_mib(o));
}

static QnStatus make_recipe(const QnArgs *a, const QnPlanTable *t, const QnOffer *o, QnStr *s)
{
    const char *name = t->job.model->name;
    const Known *k = find_known(name);
    if (t->subject.onnx)
        return qn_fail(QN_EUSAGE,
                       "--write-recipe: of an ONNX file a recipe is needed that says what its data "
                       "are: model: %s in a recipe, and plan for that",
                       name);
    if (!k)
        return qn_fail(QN_EUSAGE,
                       "--write-recipe: recipes have no model '%s' by name; they have resnet18 to "
                       "152, vgg11 to 19 and gpt2 of all sizes, and layers and ONNX files",
                       name);
    qn_str_printf(s, "name: %s\ntask: %s\n", name, k->adam ? "language" : "classify");
    add_data(s, a, t, k);
    add_train(s, t, o, k);
    return QN_OK;
}

/* ---- all ---- */

QnStatus qn_plan_recipe_print(const QnArgs *a, const QnPlanTable *t, const QnOffer *o, char **text)
{
    QnStr s = { 0 };
    QnStatus st;
    add_comments(&s, t, o);
    add_workers(&s, t, o);
    st = t->subject.recipe ? change_recipe(t, o, &s) : make_recipe(a, t, o, &s);
    if (st == QN_OK)
        st = s.st;
    if (st == QN_OK)
        st = qn_str_take(&s, text);
    qn_str_fini(&s);
    return st;
}

QnStatus qn_plan_recipe_write(const QnArgs *a, const QnPlanTable *t)
{
    const char *path = a->text[QN_PLAN_WRITE_RECIPE];
    const QnOffer *o = qn_plan_best(t);
    /* where nothing fits as asked, the first remedy that a recipe can say */
    for (int i = 0; i < t->n_remedies && !o; i++)
        if (!t->remedies[i].offer.offload && !t->remedies[i].offer.shard)
            o = &t->remedies[i].offer;
    QnRecipe *check;
    char *text;
    if (!t->job.train)
        return qn_fail(QN_EUSAGE, "--write-recipe: recipes are for training, not for --task infer");
    if (!o)
        return qn_fail(
            QN_EUSAGE,
            "--write-recipe: nothing fits that a recipe could say, so nothing is written");
    QN_TRY(qn_plan_recipe_print(a, t, o, &text));
    QnStatus st = qn_plan_write_file(path, text, strlen(text));
    qn_free(text);
    QN_TRY(st);
    QN_TRY(qn_recipe_open(path, NULL, 0, &check)); /* as quern train will */
    qn_recipe_free(check);
    qn_log_at(&a->log, QN_LOG_INFO, "wrote %s: quern train %s", path, path);
    return QN_OK;
}
