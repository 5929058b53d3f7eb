#include "train/recipe.h"
#include "base/json.h"
#include "base/mem.h"
#include "quern/graph.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN(map, ...)                                                                            \
    qn_yaml_check_keys((map), (const char *const[]){ __VA_ARGS__ },                                \
                       QN_COUNT(((const char *const[]){ __VA_ARGS__ })))

static const char *const task_names[] = { "classify", "regress", "language" };
static const char *const format_names[] = { "idx", "folder", "csv", "text", "npy" };
static const char *const schedule_names[] = { "constant", "step", "cosine", "linear", "one_cycle" };
static const char *const rounding_names[] = { "nearest", "stochastic" };
static const char *const precision_names[] = { "fp32", "bf16", "fp16", "fp8", "auto" };
static const char *const determinism_names[] = { "run", "strict" };

enum { FOR_EVER = INT32_MAX };

/* Adam divides by one minus its decays. */
#define BELOW_1 0.999999

/* ---- data ---- */

static QnStatus read_path(QnRecipe *r, const QnYaml *map, const char *key, bool required,
                          const char **out)
{
    const char *path = NULL;
    QN_TRY(qn_yaml_string(map, key, required, &path));
    if (path && !(*out = qn_recipe_path(r, path)))
        return QN_ENOMEM;
    return QN_OK;
}

/* `train: path`, or for formats of two files `train: { images: …, labels: … }`. */
static QnStatus read_part(QnRecipe *r, const QnYaml *data, const char *key, bool required,
                          QnDataPart *part)
{
    const QnYaml *node = qn_yaml_find(data, key);
    if (!node || node->kind == QN_YAML_SCALAR)
        return read_path(r, data, key, required, &part->x);
    if (r->data.format == QN_DATA_IDX) {
        QN_TRY(KNOWN(node, "images", "labels"));
        QN_TRY(read_path(r, node, "images", true, &part->x));
        return read_path(r, node, "labels", true, &part->y);
    }
    QN_TRY(KNOWN(node, "x", "y"));
    QN_TRY(read_path(r, node, "x", true, &part->x));
    return read_path(r, node, "y", false, &part->y);
}

static QnStatus read_pair(const QnYaml *map, const char *key, int64_t *a, int64_t *b)
{
    int64_t v[2];
    int n = 0;
    QN_TRY(qn_yaml_ints(map, key, false, 1, 65536, v, 2, &n));
    if (n) {
        *a = v[0];
        *b = n == 2 ? v[1] : v[0];
    }
    return QN_OK;
}

static QnStatus read_augment(const QnYaml *data, QnAugment *a)
{
    QnYaml *map = NULL;
    double mean[QN_IMAGE_MAX_CHANNELS], std[QN_IMAGE_MAX_CHANNELS];
    int n_mean = 0, n_std = 0;
    QN_TRY(qn_yaml_map(data, "images", false, &map));
    QN_TRY(KNOWN(map, "resize", "pad", "crop", "random_crop", "flip", "cutout", "mean", "std"));
    QN_TRY(read_pair(map, "resize", &a->resize_height, &a->resize_width));
    QN_TRY(read_pair(map, "crop", &a->crop_height, &a->crop_width));
    QN_TRY(qn_yaml_int(map, "pad", false, 0, 4096, &a->pad));
    if (a->crop_height && a->resize_height &&
        (a->crop_height > a->resize_height + 2 * a->pad ||
         a->crop_width > a->resize_width + 2 * a->pad))
        return qn_yaml_fail(map,
                            "crop %lld x %lld is larger than resize %lld x %lld with pad %lld on "
                            "each side: crop less, or resize to more",
                            (long long)a->crop_height, (long long)a->crop_width,
                            (long long)a->resize_height, (long long)a->resize_width,
                            (long long)a->pad);
    QN_TRY(qn_yaml_bool(map, "random_crop", false, &a->random_crop));
    QN_TRY(qn_yaml_bool(map, "flip", false, &a->flip));
    QN_TRY(qn_yaml_int(map, "cutout", false, 0, 4096, &a->cutout));
    QN_TRY(qn_yaml_reals(map, "mean", false, -100, 100, mean, QN_IMAGE_MAX_CHANNELS, &n_mean));
    QN_TRY(qn_yaml_reals(map, "std", false, 1e-6, 100, std, QN_IMAGE_MAX_CHANNELS, &n_std));
    if (n_mean != n_std)
        return qn_yaml_fail(map, "mean has %d numbers, std %d; give one a channel in both", n_mean,
                            n_std);
    a->normalize_channels = n_mean;
    for (int i = 0; i < n_mean; i++) {
        a->mean[i] = (float)mean[i];
        a->std[i] = (float)std[i];
    }
    return QN_OK;
}

static QnStatus read_classes(QnRecipe *r, const QnYaml *data)
{
    QnYaml *list = NULL;
    QN_TRY(qn_yaml_list(data, "classes", false, &list));
    if (!list)
        return QN_OK;
    const char **names = qn_arena_array(r->arena, (size_t)list->count + 1, sizeof *names);
    if (!names)
        return QN_ENOMEM;
    for (const QnYaml *n = list->first; n; n = n->next)
        QN_TRY(qn_yaml_as_string(n, &names[n->index]));
    r->data.classes = names;
    r->data.n_classes = list->count;
    return QN_OK;
}

/* A key that the format knows nothing of would go unheard. */
static QnStatus check_format_keys(const QnYaml *data, QnDataFormat format)
{
    enum {
        IDX = 1 << QN_DATA_IDX,
        FOLDER = 1 << QN_DATA_FOLDER,
        CSV = 1 << QN_DATA_CSV,
        TEXT = 1 << QN_DATA_TEXT,
        NPY = 1 << QN_DATA_NPY
    };
    static const struct {
        const char *key;
        int formats;
    } keys[] = {
        { "test", IDX | FOLDER | NPY },
        { "classes", IDX | FOLDER | NPY },
        { "images", IDX | FOLDER },
        { "cache", FOLDER },
        { "target", CSV },
        { "drop", CSV },
        { "standardize", CSV },
        { "standardize_target", CSV },
        { "fill_missing", CSV },
        { "window", TEXT },
        { "bytes", TEXT },
    };
    for (int i = 0; i < QN_COUNT(keys); i++) {
        const QnYaml *node = qn_yaml_find(data, keys[i].key);
        if (!node || (keys[i].formats & 1 << format))
            continue;
        if (i == 0)
            return qn_yaml_fail(node, "%s data are one file, cut by data.train_fraction",
                                format_names[format]);
        return qn_yaml_fail(node, "is of no use to data of format %s", format_names[format]);
    }
    return QN_OK;
}

static QnStatus read_data(QnRecipe *r, const QnYaml *root)
{
    QnRecipeData *d = &r->data;
    QnYaml *data;
    int format = 0;
    QN_TRY(qn_yaml_map(root, "data", true, &data));
    QN_TRY(KNOWN(data, "format", "train", "test", "train_fraction", "classes", "images", "target",
                 "drop", "standardize", "standardize_target", "fill_missing", "window", "bytes",
                 "cache", "stop_on_broken", "workers", "prefetch"));
    QN_TRY(qn_yaml_choice(data, "format", true, format_names, QN_COUNT(format_names), &format));
    d->format = (QnDataFormat)format;
    QN_TRY(check_format_keys(data, d->format));
    QN_TRY(read_part(r, data, "train", true, &d->train));
    QN_TRY(read_part(r, data, "test", false, &d->test));
    QN_TRY(qn_yaml_real(data, "train_fraction", false, 0.01, 1, &d->train_fraction));
    QN_TRY(read_classes(r, data));
    QN_TRY(read_augment(data, &d->augment));
    QN_TRY(qn_yaml_string(data, "target", false, &d->target));
    QN_TRY(qn_yaml_string(data, "drop", false, &d->drop));
    QN_TRY(qn_yaml_bool(data, "standardize", false, &d->standardize));
    QN_TRY(qn_yaml_bool(data, "standardize_target", false, &d->standardize_target));
    QN_TRY(qn_yaml_bool(data, "fill_missing", false, &d->fill_missing));
    QN_TRY(qn_yaml_int(data, "window", d->format == QN_DATA_TEXT, 1, 1 << 20, &d->window));
    QN_TRY(qn_yaml_bool(data, "bytes", false, &d->bytes));
    QN_TRY(qn_yaml_bool(data, "cache", false, &d->cache));
    QN_TRY(qn_yaml_bool(data, "stop_on_broken", false, &d->stop_on_broken));
    QN_TRY(qn_yaml_int(data, "workers", false, 1, 256, &d->workers));
    return qn_yaml_int(data, "prefetch", false, 1, 1024, &d->prefetch);
}

/* ---- training ---- */

static QnStatus read_schedule(QnRecipe *r, const QnYaml *train)
{
    QnSchedule *s = &r->schedule;
    QnYaml *map = NULL;
    int kind = 0;
    *s = (QnSchedule){ .gamma = 0.1, .rise = 0.3 };
    QN_TRY(qn_yaml_real(train, "lr", true, 0, 1e6, &s->lr));
    const QnYaml *node = qn_yaml_find(train, "schedule");
    if (node && node->kind == QN_YAML_SCALAR) {
        QN_TRY(qn_yaml_choice(train, "schedule", false, schedule_names, QN_COUNT(schedule_names),
                              &kind));
        s->kind = (QnScheduleKind)kind;
        return QN_OK;
    }
    QN_TRY(qn_yaml_map(train, "schedule", false, &map));
    QN_TRY(KNOWN(map, "kind", "warmup", "min_lr", "gamma", "marks", "rise"));
    QN_TRY(
        qn_yaml_choice(map, "kind", map != NULL, schedule_names, QN_COUNT(schedule_names), &kind));
    s->kind = (QnScheduleKind)kind;
    QN_TRY(qn_yaml_real(map, "warmup", false, 0, 1e12, &s->warmup));
    QN_TRY(qn_yaml_real(map, "min_lr", false, 0, 1e6, &s->min_lr));
    QN_TRY(qn_yaml_real(map, "gamma", false, 0, 1, &s->gamma));
    QN_TRY(qn_yaml_reals(map, "marks", s->kind == QN_SCHEDULE_STEP, 0, 1e9, s->marks,
                         QN_COUNT(s->marks), &s->n_marks));
    return qn_yaml_real(map, "rise", false, 0.01, 0.99, &s->rise);
}

/* A key of one optimizer that the chosen one does not have would be ignored in silence. */
static QnStatus check_optimizer_keys(const QnYaml *map, const char *name)
{
    static const struct {
        const char *key, *used_by;
    } keys[] = {
        { "momentum", " sgd rmsprop " },
        { "nesterov", " sgd " },
        { "beta1", " adam adamw lamb " },
        { "beta2", " adam adamw lamb " },
        { "eps", " adam adamw lamb adagrad rmsprop " },
    };
    static const char all[] = " sgd adam adamw lamb adagrad rmsprop "; /* others: an error later */
    char word[64];
    snprintf(word, sizeof word, " %.60s ", name);
    for (int i = 0; i < QN_COUNT(keys); i++) {
        const QnYaml *node = qn_yaml_find(map, keys[i].key);
        if (node && strstr(all, word) && !strstr(keys[i].used_by, word))
            return qn_yaml_fail(node, "%s does not use %s; it belongs to:%s", name, keys[i].key,
                                keys[i].used_by);
    }
    return QN_OK;
}

static QnStatus read_optimizer(QnRecipe *r, const QnYaml *train)
{
    QnRecipeOptimizer *o = &r->optimizer;
    QnYaml *map = NULL;
    *o = (QnRecipeOptimizer){ .name = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8 };
    const QnYaml *node = qn_yaml_find(train, "optimizer");
    if (node && node->kind == QN_YAML_SCALAR)
        return qn_yaml_string(train, "optimizer", false, &o->name);
    QN_TRY(qn_yaml_map(train, "optimizer", false, &map));
    QN_TRY(KNOWN(map, "name", "momentum", "nesterov", "beta1", "beta2", "eps", "weight_decay",
                 "clip_norm", "clip_value"));
    QN_TRY(qn_yaml_string(map, "name", map != NULL, &o->name));
    QN_TRY(check_optimizer_keys(map, o->name));
    QN_TRY(qn_yaml_real(map, "momentum", false, 0, 1, &o->momentum));
    QN_TRY(qn_yaml_bool(map, "nesterov", false, &o->nesterov));
    QN_TRY(qn_yaml_real(map, "beta1", false, 0, BELOW_1, &o->beta1));
    QN_TRY(qn_yaml_real(map, "beta2", false, 0, BELOW_1, &o->beta2));
    QN_TRY(qn_yaml_real(map, "eps", false, 0, 1, &o->eps));
    QN_TRY(qn_yaml_real(map, "weight_decay", false, 0, 1e3, &o->weight_decay));
    QN_TRY(qn_yaml_real(map, "clip_norm", false, 0, 1e9, &o->clip_norm));
    return qn_yaml_real(map, "clip_value", false, 0, 1e9, &o->clip_value);
}

static QnStatus read_intervals(QnRecipe *r, const QnYaml *train)
{
    QnYaml *eval = NULL, *checkpoint = NULL;
    QN_TRY(qn_yaml_map(train, "eval", false, &eval));
    QN_TRY(KNOWN(eval, "batch", "every"));
    QN_TRY(qn_yaml_int(eval, "batch", false, 1, 1 << 24, &r->eval_batch));
    QN_TRY(qn_yaml_int(eval, "every", false, 1, FOR_EVER, &r->eval_every));
    QN_TRY(qn_yaml_map(train, "checkpoint", false, &checkpoint));
    QN_TRY(KNOWN(checkpoint, "every", "keep"));
    QN_TRY(qn_yaml_int(checkpoint, "every", false, 1, FOR_EVER, &r->checkpoint_every));
    r->checkpoint_keep = 2;
    return qn_yaml_int(checkpoint, "keep", false, 1, 1000, &r->checkpoint_keep);
}

static QnStatus read_precision_auto(QnRecipe *r, const QnYaml *train)
{
    static const char *const words[] = { "false", "faster", "always", "true" }; /* as always */
    QnYaml *map = NULL;
    int fp8 = QN_F8_NEVER;
    r->precision_auto = (QnRecipeAuto){ .every = 200, .hold = 3 };
    QN_TRY(qn_yaml_map(train, "precision_auto", false, &map));
    QN_TRY(KNOWN(map, "every", "hold", "fp8"));
    QN_TRY(qn_yaml_int(map, "every", false, 1, FOR_EVER, &r->precision_auto.every));
    QN_TRY(qn_yaml_int(map, "hold", false, 1, 1000, &r->precision_auto.hold));
    QN_TRY(qn_yaml_choice(map, "fp8", false, words, QN_COUNT(words), &fp8));
    r->precision_auto.fp8 = (QnRecipeF8)QN_MIN(fp8, QN_F8_ALWAYS);
    if (map && r->precision != QN_PRECISION_AUTO)
        return qn_yaml_fail(qn_yaml_find(train, "precision_auto"),
                            "it belongs to train.precision auto");
    return QN_OK;
}

static QnStatus read_f8(QnRecipe *r, const QnYaml *train)
{
    static const char *const words[] = { "faster", "always" };
    int fp8 = 1;
    QN_TRY(qn_yaml_choice(train, "fp8", false, words, QN_COUNT(words), &fp8));
    r->fp8 = (QnRecipeF8)(QN_F8_FASTER + fp8);
    if (qn_yaml_find(train, "fp8") && r->precision != QN_PRECISION_FP8)
        return qn_yaml_fail(qn_yaml_find(train, "fp8"), "it belongs to train.precision fp8");
    return QN_OK;
}

static QnStatus read_train(QnRecipe *r, const QnYaml *root)
{
    QnYaml *train;
    int determinism = 0, precision = 0, rounding = 0;
    QN_TRY(qn_yaml_map(root, "train", true, &train));
    QN_TRY(KNOWN(train, "epochs", "steps", "batch", "accumulate", "lr", "schedule", "optimizer",
                 "label_smoothing", "ema", "early_stop", "keep_best", "seed", "determinism",
                 "precision", "precision_auto", "fp8", "rounding", "eval", "checkpoint",
                 "threads"));
    QN_TRY(qn_yaml_int(train, "epochs", false, 1, FOR_EVER, &r->epochs));
    QN_TRY(qn_yaml_int(train, "steps", false, 1, FOR_EVER, &r->steps));
    if (!r->epochs == !r->steps)
        return qn_yaml_fail(train, "give either epochs or steps");
    r->accumulate = 1;
    QN_TRY(qn_yaml_int(train, "batch", true, 1, 1 << 24, &r->batch));
    QN_TRY(qn_yaml_int(train, "accumulate", false, 1, 1 << 20, &r->accumulate));
    QN_TRY(read_schedule(r, train));
    QN_TRY(read_optimizer(r, train));
    QN_TRY(qn_yaml_real(train, "label_smoothing", false, 0, 0.999, &r->label_smoothing));
    QN_TRY(qn_yaml_real(train, "ema", false, 0, 0.999999, &r->ema));
    QN_TRY(qn_yaml_int(train, "early_stop", false, 0, FOR_EVER, &r->early_stop));
    QN_TRY(qn_yaml_bool(train, "keep_best", false, &r->keep_best));
    QN_TRY(qn_yaml_int(train, "seed", false, 0, INT64_MAX, &r->seed));
    QN_TRY(qn_yaml_int(train, "threads", false, 0, 1024, &r->threads));
    QN_TRY(qn_yaml_choice(train, "determinism", false, determinism_names,
                          QN_COUNT(determinism_names), &determinism));
    r->determinism = (QnDeterminism)determinism;
    QN_TRY(qn_yaml_choice(train, "precision", false, precision_names, QN_COUNT(precision_names),
                          &precision));
    r->precision = (QnPrecision)precision;
    QN_TRY(read_precision_auto(r, train));
    QN_TRY(read_f8(r, train));
    QN_TRY(qn_yaml_choice(train, "rounding", false, rounding_names, QN_COUNT(rounding_names),
                          &rounding));
    r->rounding = (QnRounding)rounding;
    if (r->rounding && r->precision == QN_PRECISION_FP32)
        return qn_yaml_fail(qn_yaml_find(train, "rounding"),
                            "fp32 rounds no weights; it belongs to another train.precision");
    return read_intervals(r, train);
}

static QnStatus read_compile(QnRecipe *r, const QnYaml *root)
{
    QnYaml *map = NULL;
    int64_t mib = 0;
    QN_TRY(qn_yaml_map(root, "compile", false, &map));
    QN_TRY(KNOWN(map, "level", "off", "memory_budget_mib", "recompute", "check_finite"));
    QN_TRY(qn_yaml_int(map, "level", false, 0, 2, &r->level));
    QN_TRY(qn_yaml_string(map, "off", false, &r->passes_off));
    QN_TRY(qn_yaml_real(map, "recompute", false, 0, 1, &r->recompute));
    QN_TRY(qn_yaml_bool(map, "check_finite", false, &r->check_finite));
    QN_TRY(qn_yaml_int(map, "memory_budget_mib", false, 1, 1 << 30, &mib));
    r->memory_budget_bytes = mib << 20;
    return QN_OK;
}

/* The name is a folder below runs/, and stays below it. */
static QnStatus check_name(const QnYaml *root, const char *name)
{
    QnYaml *node = qn_yaml_find(root, "name");
    for (const char *part = name;; part++) {
        size_t n = strcspn(part, "/");
        if (!n || (n == 2 && part[0] == '.' && part[1] == '.'))
            return qn_yaml_fail(node ? node : root,
                                "expected the name of a folder below runs/, without '..', found "
                                "'%s'; to write elsewhere give -o",
                                name);
        if (!*(part += n))
            return QN_OK;
    }
}

static bool is_onnx(const QnYaml *node)
{
    size_t n = node && node->kind == QN_YAML_SCALAR ? strlen(node->text) : 0;
    return n > 5 && !strcmp(node->text + n - 5, ".onnx");
}

/* `model: {…}`, or a path that ends in .onnx. */
static QnStatus read_model(QnRecipe *r, const QnYaml *root)
{
    QnYaml *node = qn_yaml_find(root, "model");
    r->model = node;
    if (is_onnx(node))
        return read_path(r, root, "model", true, &r->onnx);
    QN_TRY(qn_yaml_map(root, "model", true, &node));
    return qn_yaml_find(node, "onnx") ? read_path(r, node, "onnx", true, &r->onnx) : QN_OK;
}

static QnStatus read_recipe(QnRecipe *r)
{
    const QnYaml *root = qn_yaml_root(r->doc);
    int task = 0;
    r->level = 2;
    r->recompute = QN_RECOMPUTE_SHARE;
    if (root->kind != QN_YAML_MAP)
        return qn_yaml_fail(root, "expected a map with the keys task, data, model and train");
    QN_TRY(KNOWN(root, "name", "task", "data", "model", "train", "compile"));
    r->name = "run";
    QN_TRY(qn_yaml_string(root, "name", false, &r->name));
    QN_TRY(check_name(root, r->name));
    QN_TRY(qn_yaml_choice(root, "task", true, task_names, QN_COUNT(task_names), &task));
    r->task = (QnTask)task;
    QN_TRY(read_data(r, root));
    QN_TRY(read_model(r, root));
    QN_TRY(read_compile(r, root));
    return read_train(r, root);
}

QnStatus qn_recipe_open(const char *path, const char *const *settings, int n_settings,
                        QnRecipe **out)
{
    QnRecipe *r = qn_alloc(sizeof *r);
    if (!r)
        return QN_ENOMEM;
    QnStatus st = QN_OK;
    r->arena = qn_arena_new();
    r->path = r->arena ? qn_arena_strdup(r->arena, path) : NULL;
    char *folder = r->path ? qn_arena_strdup(r->arena, path) : NULL;
    if (!folder)
        QN_TRY_DONE(QN_ENOMEM);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    r->folder = slash ? (slash == folder ? "/" : folder) : ".";
    QN_TRY_DONE(qn_yaml_open(path, &r->doc));
    for (int i = 0; i < n_settings; i++)
        QN_TRY_DONE(qn_yaml_set(r->doc, settings[i]));
    QN_TRY_DONE(read_recipe(r));
    *out = r;
    r = NULL;
done:
    qn_recipe_free(r);
    return st;
}

void qn_recipe_free(QnRecipe *r)
{
    if (!r)
        return;
    qn_yaml_free(r->doc);
    qn_arena_free(r->arena);
    qn_free(r);
}

/* Sets the value at `key`, if it is a path that is relative, to the same from `folder`. */
static QnStatus make_absolute(QnYamlDoc *doc, const char *folder, const char *key)
{
    const QnYaml *node = qn_yaml_find(qn_yaml_root(doc), key);
    if (!node || node->kind != QN_YAML_SCALAR || node->text[0] == '/')
        return QN_OK;
    QnStr path = { 0 }, setting = { 0 };
    QnJsonWriter w; /* a JSON string is a YAML one */
    qn_str_printf(&path, "%s/%s", folder, node->text);
    qn_str_printf(&setting, "%s=", key);
    qn_json_begin(&w, &setting, 0);
    qn_json_add_string(&w, qn_str_text(&path));
    QnStatus st = path.st ? path.st : qn_json_end(&w);
    if (st == QN_OK)
        st = qn_yaml_set(doc, qn_str_text(&setting));
    qn_str_fini(&path);
    qn_str_fini(&setting);
    return st;
}

static QnStatus name_model(QnYamlDoc *doc)
{
    bool is_path = is_onnx(qn_yaml_find(qn_yaml_root(doc), "model"));
    return qn_yaml_set(doc, is_path ? "model=" QN_RUN_MODEL : "model.onnx=" QN_RUN_MODEL);
}

/* Without libyaml only JSON, which is YAML too, could be read again. */
static QnStatus print_tree(QnYamlDoc *doc, char **text)
{
#ifdef QN_HAVE_YAML
    return qn_yaml_print(qn_yaml_root(doc), text);
#else
    return qn_yaml_print_json(qn_yaml_root(doc), text);
#endif
}

QnStatus qn_recipe_print(const QnRecipe *r, char **text)
{
    static const char *const keys[] = {
        "data.train", "data.train.images", "data.train.labels", "data.train.x", "data.train.y",
        "data.test",  "data.test.images",  "data.test.labels",  "data.test.x",  "data.test.y"
    };
    char folder[PATH_MAX], *as_it_ran;
    QnYamlDoc *doc = NULL;
    if (!realpath(r->folder, folder))
        return qn_fail(QN_EIO, "%s: cannot find its folder: %s", r->path, strerror(errno));
    QN_TRY(print_tree(r->doc, &as_it_ran));
    QnStatus st = qn_yaml_parse(r->path, as_it_ran, strlen(as_it_ran), &doc);
    for (int i = 0; st == QN_OK && i < QN_COUNT(keys); i++)
        st = make_absolute(doc, folder, keys[i]);
    if (st == QN_OK && r->onnx)
        st = name_model(doc);
    if (st == QN_OK)
        st = print_tree(doc, text);
    qn_yaml_free(doc);
    qn_free(as_it_ran);
    return st;
}

const char *qn_recipe_path(QnRecipe *r, const char *path)
{
    if (path[0] == '/')
        return path;
    return qn_arena_printf(r->arena, "%s/%s", r->folder, path);
}
