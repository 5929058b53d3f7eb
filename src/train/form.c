#include "train/form.h"

#include "base/file.h"
#include "base/json.h"
#include "io/csv.h"

#include <stdio.h>
#include <string.h>

enum { FILE_LIMIT = 64 << 20, MOST = 1 << 24 };

static const char *const x_kinds[] = { "f32", "tokens" };
static const char *const y_kinds[] = { "none", "class", "vector", "tokens" };

static QnStatus make_arrays(QnForm *f, bool named)
{
    size_t classes = (size_t)f->spec.class_count + 1, columns = (size_t)f->n_features + 1;
    size_t targets = (size_t)f->spec.y_count + 1;
    f->class_names = named ? qn_arena_array(f->arena, classes, sizeof *f->class_names) : NULL;
    f->feature_names = qn_arena_array(f->arena, columns, sizeof *f->feature_names);
    f->mean = qn_arena_array(f->arena, columns, sizeof *f->mean);
    f->deviation = qn_arena_array(f->arena, columns, sizeof *f->deviation);
    f->target_mean = qn_arena_array(f->arena, targets, sizeof *f->target_mean);
    f->target_deviation = qn_arena_array(f->arena, targets, sizeof *f->target_deviation);
    return (named && !f->class_names) || !f->feature_names || !f->mean || !f->deviation ||
                   !f->target_mean || !f->target_deviation
               ? QN_ENOMEM
               : QN_OK;
}

static QnStatus copy_all(const QnTrainData *data, QnForm *f)
{
    const QnDataset *ds = data->train;
    bool named = qn_dataset_class_name(ds, 0) != NULL;
    f->spec = *qn_dataset_spec(ds);
    if (qn_csv_feature_name(ds, 0))
        f->n_features = f->spec.x_dims[0];
    QN_TRY(make_arrays(f, named));
    for (int64_t i = 0; named && i < f->spec.class_count; i++) {
        if (!(f->class_names[i] = qn_arena_strdup(f->arena, qn_dataset_class_name(ds, i))))
            return QN_ENOMEM;
    }
    for (int64_t i = 0; i < f->n_features; i++) {
        if (!(f->feature_names[i] = qn_arena_strdup(f->arena, qn_csv_feature_name(ds, i))))
            return QN_ENOMEM;
        qn_csv_feature_scale(ds, i, &f->mean[i], &f->deviation[i]);
    }
    for (int64_t i = 0; i < f->spec.y_count; i++) {
        f->target_deviation[i] = 1;
        if (f->n_features && f->spec.y_kind == QN_LABEL_VECTOR)
            qn_csv_target_scale(ds, i, &f->target_mean[i], &f->target_deviation[i]);
    }
    return QN_OK;
}

QnStatus qn_form_of(const QnTrainData *data, QnForm *out)
{
    *out = (QnForm){ .arena = qn_arena_new() };
    QnStatus st = out->arena ? copy_all(data, out) : QN_ENOMEM;
    if (st != QN_OK)
        qn_form_fini(out);
    return st;
}

void qn_form_fini(QnForm *f)
{
    qn_arena_free(f->arena);
    *f = (QnForm){ 0 };
}

const char *qn_form_class(const QnForm *f, int64_t k, char number[24])
{
    if (f->class_names)
        return f->class_names[k];
    snprintf(number, 24, "%lld", (long long)k);
    return number;
}

/* ---- data that are not those of the training ---- */

QnStatus qn_form_check_features(const QnForm *f, const QnDataset *table)
{
    for (int64_t i = 0; i < f->n_features; i++) {
        const char *name = qn_csv_feature_name(table, i);
        if (!name)
            return qn_fail(QN_ESHAPE, "%s: feature %lld of the model, '%s', is not there",
                           table->name, (long long)i, f->feature_names[i]);
        /* "column 3": a table without a header, whose columns are known by their order alone */
        if (!strncmp(name, "column ", 7) || !strncmp(f->feature_names[i], "column ", 7))
            continue;
        if (strcmp(name, f->feature_names[i]))
            return qn_fail(QN_ESHAPE,
                           "%s: feature %lld is '%s', the model was trained with '%s' there: put "
                           "the columns in the order of the training table",
                           table->name, (long long)i, name, f->feature_names[i]);
    }
    return QN_OK;
}

static QnStatus check_classes(const QnForm *f, const QnDataset *ds)
{
    int64_t n = f->spec.class_count;
    if (qn_dataset_spec(ds)->class_count != n)
        return qn_fail(QN_ESHAPE, "%s: %lld classes, the model was trained with %lld", ds->name,
                       (long long)qn_dataset_spec(ds)->class_count, (long long)n);
    for (int64_t i = 0; f->class_names && i < n; i++) {
        const char *name = qn_dataset_class_name(ds, i);
        if (name && strcmp(name, f->class_names[i]))
            return qn_fail(QN_ESHAPE,
                           "%s: class %lld is '%s', the model was trained with '%s' there: give "
                           "the data it knows, or train anew",
                           ds->name, (long long)i, name, f->class_names[i]);
    }
    return QN_OK;
}

QnStatus qn_form_check(const QnForm *f, const QnTrainData *data)
{
    const QnSampleSpec *now = qn_dataset_spec(data->train);
    if (now->x_kind != f->spec.x_kind || now->y_kind != f->spec.y_kind)
        return qn_fail(QN_ESHAPE, "%s: %s and %s, the model was trained with %s and %s",
                       data->train->name, x_kinds[now->x_kind], y_kinds[now->y_kind],
                       x_kinds[f->spec.x_kind], y_kinds[f->spec.y_kind]);
    QN_TRY(qn_form_check_features(f, data->train));
    return check_classes(f, data->train);
}

/* ---- the file ---- */

static void put_doubles(QnJsonWriter *w, const char *key, const double *x, int64_t n)
{
    qn_json_key(w, key);
    qn_json_open_array(w);
    for (int64_t i = 0; i < n; i++)
        qn_json_add_double(w, x[i]);
    qn_json_close(w);
}

static void put_strings(QnJsonWriter *w, const char *key, const char *const *x, int64_t n)
{
    qn_json_key(w, key);
    qn_json_open_array(w);
    for (int64_t i = 0; x && i < n; i++)
        qn_json_add_string(w, x[i]);
    qn_json_close(w);
}

QnStatus qn_form_write(const QnForm *f, const char *path)
{
    QnStr text = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &text, 1);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "x", x_kinds[f->spec.x_kind]);
    qn_json_key(&w, "x_dims");
    qn_json_open_array(&w);
    for (int i = 0; i < f->spec.x_rank; i++)
        qn_json_add_int(&w, f->spec.x_dims[i]);
    qn_json_close(&w);
    qn_json_put_string(&w, "y", y_kinds[f->spec.y_kind]);
    qn_json_put_int(&w, "y_count", f->spec.y_count);
    qn_json_put_int(&w, "classes", f->spec.class_count);
    put_strings(&w, "class_names", f->class_names, f->spec.class_count);
    put_strings(&w, "features", f->feature_names, f->n_features);
    put_doubles(&w, "mean", f->mean, f->n_features);
    put_doubles(&w, "deviation", f->deviation, f->n_features);
    put_doubles(&w, "target_mean", f->target_mean, f->spec.y_count);
    put_doubles(&w, "target_deviation", f->target_deviation, f->spec.y_count);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        st = qn_file_write_atomic(path, qn_str_text(&text), text.n);
    qn_str_fini(&text);
    return st;
}

static QnStatus need_kind(const QnJson *o, const char *key, const char *const *names, int n,
                          int *out)
{
    const QnJson *v;
    QN_TRY(qn_json_need(o, key, QN_JSON_STRING, &v));
    for (int i = 0; i < n; i++) {
        if (!strcmp(names[i], v->string)) {
            *out = i;
            return QN_OK;
        }
    }
    return qn_fail(QN_EFORMAT, "offset %zu: %s is '%s'", v->offset, key, v->string);
}

static QnStatus need_count(const QnJson *o, const char *key, int64_t *out)
{
    const QnJson *v;
    QN_TRY(qn_json_need(o, key, QN_JSON_INT, &v));
    if (v->integer < 0 || v->integer > MOST)
        return qn_fail(QN_EFORMAT, "offset %zu: %s is %lld", v->offset, key, (long long)v->integer);
    *out = v->integer;
    return QN_OK;
}

/* An array of exactly n items. */
static QnStatus need_array(const QnJson *o, const char *key, int64_t n, const QnJson **out)
{
    QN_TRY(qn_json_need(o, key, QN_JSON_ARRAY, out));
    if ((*out)->n != n)
        return qn_fail(QN_EFORMAT, "offset %zu: %s has %lld items, should have %lld",
                       (*out)->offset, key, (long long)(*out)->n, (long long)n);
    return QN_OK;
}

static QnStatus get_doubles(const QnJson *o, const char *key, int64_t n, double *out)
{
    const QnJson *v;
    QN_TRY(need_array(o, key, n, &v));
    for (int64_t i = 0; i < n; i++) {
        if (v->items[i].type != QN_JSON_INT && v->items[i].type != QN_JSON_DOUBLE)
            return qn_fail(QN_EFORMAT, "offset %zu: expected a number", v->items[i].offset);
        out[i] = qn_json_double(&v->items[i]);
    }
    return QN_OK;
}

static QnStatus get_strings(QnArena *arena, const QnJson *o, const char *key, int64_t n,
                            const char **out)
{
    const QnJson *v;
    QN_TRY(need_array(o, key, n, &v));
    for (int64_t i = 0; i < n; i++) {
        if (v->items[i].type != QN_JSON_STRING)
            return qn_fail(QN_EFORMAT, "offset %zu: expected a string", v->items[i].offset);
        if (!(out[i] = qn_arena_strdup(arena, v->items[i].string)))
            return QN_ENOMEM;
    }
    return QN_OK;
}

static QnStatus parse_form(const QnJson *o, QnForm *f)
{
    const QnJson *v;
    int x = 0, y = 0;
    QN_TRY(need_kind(o, "x", x_kinds, QN_COUNT(x_kinds), &x));
    QN_TRY(need_kind(o, "y", y_kinds, QN_COUNT(y_kinds), &y));
    f->spec.x_kind = (QnFeatureKind)x;
    f->spec.y_kind = (QnLabelKind)y;
    QN_TRY(qn_json_need(o, "x_dims", QN_JSON_ARRAY, &v));
    if (v->n < 1 || v->n > QN_SAMPLE_MAX_RANK)
        return qn_fail(QN_EFORMAT, "offset %zu: x_dims has %lld items", v->offset, (long long)v->n);
    f->spec.x_rank = (int)v->n;
    for (int64_t i = 0; i < v->n; i++) {
        if (v->items[i].type != QN_JSON_INT || v->items[i].integer < 1 ||
            v->items[i].integer > MOST)
            return qn_fail(QN_EFORMAT, "offset %zu: expected a length", v->items[i].offset);
        f->spec.x_dims[i] = v->items[i].integer;
    }
    QN_TRY(need_count(o, "y_count", &f->spec.y_count));
    QN_TRY(need_count(o, "classes", &f->spec.class_count));
    QN_TRY(qn_json_need(o, "features", QN_JSON_ARRAY, &v));
    f->n_features = v->n;
    QN_TRY(qn_json_need(o, "class_names", QN_JSON_ARRAY, &v));
    QN_TRY(make_arrays(f, v->n > 0));
    if (f->class_names)
        QN_TRY(get_strings(f->arena, o, "class_names", f->spec.class_count, f->class_names));
    QN_TRY(get_strings(f->arena, o, "features", f->n_features, f->feature_names));
    QN_TRY(get_doubles(o, "mean", f->n_features, f->mean));
    QN_TRY(get_doubles(o, "deviation", f->n_features, f->deviation));
    QN_TRY(get_doubles(o, "target_mean", f->spec.y_count, f->target_mean));
    return get_doubles(o, "target_deviation", f->spec.y_count, f->target_deviation);
}

QnStatus qn_form_read(const char *path, QnForm *out)
{
    char *text = NULL;
    size_t bytes;
    const QnJson *o;
    *out = (QnForm){ .arena = qn_arena_new() };
    QnStatus st = out->arena ? qn_file_read(path, FILE_LIMIT, &text, &bytes) : QN_ENOMEM;
    if (st == QN_OK) {
        st = qn_json_parse(out->arena, text, bytes, &o);
        if (st == QN_OK)
            st = parse_form(o, out);
        if (st != QN_OK)
            qn_fail_prefix("%s", path);
    }
    qn_free(text);
    if (st != QN_OK)
        qn_form_fini(out);
    return st;
}
