#include "cli/diff.h"

#include "cli/model_values.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_SHOWN = 8 };

static QnStatus add_name(QnDiff *d, QnDiffNames *list, const char *name)
{
    if (list->n == list->cap) {
        int64_t cap = list->cap ? 2 * list->cap : 16;
        const char **more = qn_arena_array(d->arena, (size_t)cap, sizeof *more);
        QN_TRY(more ? QN_OK : QN_ENOMEM);
        if (list->n)
            memcpy(more, list->name, (size_t)list->n * sizeof *more);
        list->name = more;
        list->cap = cap;
    }
    list->name[list->n++] = name;
    return QN_OK;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* The reference of value i, NULL where there is none. Files are read into `scratch`. */
static QnStatus find_reference(const QnDiff *d, int64_t i, QnArena *scratch, QnItem **out)
{
    const char *name = d->a.all.graph.output[i].name;
    const QnOnnxGraph *g = &d->b.all.graph;
    *out = NULL;
    if (d->folder)
        return qn_cli_read_item(d->folder, name, d->a.out[i], scratch, out);
    for (int64_t k = 0; k < g->n_outputs && !*out; k++)
        if (!strcmp(g->output[k].name, name))
            *out = d->b.out[k];
    return QN_OK;
}

static QnStatus compare_value(QnDiff *d, int64_t i, QnArena *scratch)
{
    QnItem *want;
    QnDifference one = { .is_equal = true };
    const char *name = d->a.all.graph.output[i].name;
    if (!d->a.out[i])
        return QN_OK;
    QN_TRY(find_reference(d, i, scratch, &want));
    if (!want)
        return add_name(d, &d->without, name);
    qn_item_compare(d->a.out[i], want, &d->tolerance, name, &one);
    d->n_compared++;
    if (one.is_equal)
        return QN_OK;
    d->n_different++;
    if (d->bad < 0) {
        d->bad = i;
        d->difference = one;
    }
    return QN_OK;
}

/* Outputs of a node stand side by side. */
static QnStatus compare_all(QnDiff *d)
{
    const int64_t *node = d->a.all.node;
    int64_t n = d->a.all.graph.n_outputs, compared = 0;
    for (int64_t i = 0; i < n; i++) {
        QnArena *scratch = qn_arena_new();
        int64_t before = d->n_compared;
        QnStatus st = scratch ? compare_value(d, i, scratch) : QN_ENOMEM;
        qn_arena_free(scratch);
        QN_TRY(st);
        compared += d->n_compared - before;
        bool is_last = i + 1 == n || node[i + 1] != node[i];
        d->n_agreed += is_last && compared && d->bad < 0 && node[i] >= 0;
        compared = is_last ? 0 : compared;
    }
    return QN_OK;
}

/* ---- names ----------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static QnStatus add_file(QnDiff *d, QnDiffNames *list, const char *name)
{
    char path[4096];
    QN_TRY(qn_cli_output_path(".", name, -1, "npy", path, sizeof path));
    path[strlen(path) - strlen(".npy")] = '\0';
    char *copy = qn_arena_strdup(d->arena, path + strlen("./"));
    return copy ? add_name(d, list, copy) : QN_ENOMEM;
}

/* Names as they stand in files, sorted: values, inputs and initialisers. */
static QnStatus list_files(QnDiff *d, QnDiffNames *list)
{
    const QnOnnxGraph *g = &d->a.all.graph;
    for (int64_t i = 0; i < g->n_outputs; i++)
        QN_TRY(add_file(d, list, g->output[i].name));
    for (int64_t i = 0; i < g->n_inputs; i++)
        QN_TRY(add_file(d, list, g->input[i].name));
    for (int64_t i = 0; i < g->n_inits; i++)
        QN_TRY(add_file(d, list, g->init[i].name));
    if (list->n)
        qsort(list->name, (size_t)list->n, sizeof *list->name, by_text);
    return QN_OK;
}

static bool is_listed(const QnDiffNames *list, const char *name)
{
    return list->n &&
           bsearch(&name, list->name, (size_t)list->n, sizeof *list->name, by_text) != NULL;
}

static QnStatus check_file(QnDiff *d, const QnDiffNames *known, const char *file)
{
    char stem[256];
    const char *dot = strrchr(file, '.');
    if (!dot || (strcmp(dot, ".npy") && strcmp(dot, ".pb")))
        return QN_OK;
    snprintf(stem, sizeof stem, "%.*s", (int)(dot - file), file);
    if (is_listed(known, stem))
        return QN_OK;
    char *number = strrchr(stem, '.'); /* of a sequence's item */
    if (number && number[1] && strspn(number + 1, "0123456789") == strlen(number + 1)) {
        *number = '\0';
        if (is_listed(known, stem))
            return QN_OK;
    }
    char *copy = qn_arena_strdup(d->arena, file);
    for (unsigned char *p = (unsigned char *)copy; p && *p; p++)
        if (*p < 32 || *p == 127) /* the terminal's */
            *p = '?';
    return copy ? add_name(d, &d->unknown, copy) : QN_ENOMEM;
}

static QnStatus find_unknown_files(QnDiff *d)
{
    QnDiffNames known = { 0 };
    struct dirent **files = NULL;
    QN_TRY(list_files(d, &known));
    int n = scandir(d->folder, &files, NULL, alphasort);
    QnStatus st = n < 0 ? qn_fail(QN_EIO, "%s: cannot be listed", d->folder) : QN_OK;
    for (int i = 0; i < n; i++) {
        if (st == QN_OK)
            st = check_file(d, &known, files[i]->d_name);
        free(files[i]);
    }
    free(files);
    return st;
}

static QnStatus find_unknown_values(QnDiff *d)
{
    QnDiffNames known = { 0 };
    const QnOnnxGraph *a = &d->a.all.graph, *b = &d->b.all.graph;
    for (int64_t i = 0; i < a->n_outputs; i++)
        QN_TRY(add_name(d, &known, a->output[i].name));
    if (known.n)
        qsort(known.name, (size_t)known.n, sizeof *known.name, by_text);
    for (int64_t i = 0; i < b->n_outputs; i++)
        if (!is_listed(&known, b->output[i].name))
            QN_TRY(add_name(d, &d->unknown, b->output[i].name));
    return QN_OK;
}

QnStatus qn_diff_compare(QnDiff *d)
{
    char path[4096] = "";
    const QnOnnxGraph *g = &d->a.all.graph;
    QN_TRY(compare_all(d));
    QN_TRY(d->folder ? find_unknown_files(d) : find_unknown_values(d));
    if (d->n_compared)
        return QN_OK;
    if (d->folder && g->n_outputs)
        QN_TRY(qn_cli_output_path(d->folder, g->output[0].name, -1, "npy", path, sizeof path));
    return d->folder ? qn_fail(QN_ENOTFOUND,
                               "%s has no file for any value of the model; the first would be %s",
                               d->folder, path)
                     : qn_fail(QN_ENOTFOUND, "%s and %s have no value of the same name",
                               d->a.model->path, d->b.model->path);
}

/* ---- the report ------------------------------------------------------------------------------ */

/* What `name` was in this run; NULL: nothing is known of it. */
static const QnTensor *find_tensor(const QnDiffSide *s, const char *name)
{
    const QnOnnxGraph *g = &s->all.graph;
    const QnItem *item = NULL;
    for (int64_t i = 0; i < g->n_outputs && !item; i++)
        if (!strcmp(g->output[i].name, name))
            item = s->out[i];
    for (int64_t i = 0; i < g->n_inputs && !item; i++)
        if (!strcmp(g->input[i].name, name))
            item = s->in[i];
    for (int64_t i = 0; i < g->n_inits && !item; i++)
        if (!strcmp(g->init[i].name, name))
            return g->init[i].tensor;
    return item && item->kind == QN_ITEM_TENSOR ? item->known : NULL;
}

static const char *type_text(const QnDiffSide *s, const char *name, char buf[QN_TYPE_TEXT_BYTES])
{
    const QnTensor *t = find_tensor(s, name);
    return !t ? "no tensor" : t->text ? "strings" : qn_type_text(&t->type, buf);
}

static void print_names(const char *head, const QnDiffNames *list)
{
    if (!list->n)
        return;
    printf("%s: ", head);
    for (int64_t i = 0; i < list->n && i < NAMES_SHOWN; i++)
        printf("%s%s", i ? ", " : "", list->name[i]);
    if (list->n > NAMES_SHOWN)
        printf(" and %lld more", (long long)(list->n - NAMES_SHOWN));
    printf("\n");
}

static void print_bad(const QnDiff *d)
{
    char type[QN_TYPE_TEXT_BYTES];
    const QnDifference *one = &d->difference;
    const char *name = d->a.all.graph.output[d->bad].name;
    int64_t at = d->a.all.node[d->bad];
    const QnOnnxDef *n = at >= 0 ? &d->a.all.graph.node[at] : NULL;
    if (n)
        printf("first difference: node '%s' (%s), number %lld\n", n->name, n->op, (long long)at);
    else
        printf("first difference: output '%s', which no node makes\n", name);
    for (int i = 0; n && i < n->n_in; i++)
        if (n->in[i][0])
            printf("  reads %s: %s\n", n->in[i], type_text(&d->a, n->in[i], type));
    printf("  makes %s: %s\n", name, type_text(&d->a, name, type));
    printf("  %s\n", one->text);
    if (one->worst.at[0])
        printf("  largest error %.6g at %s: is %.9g, expected %.9g; %lld elements differ\n",
               one->worst.error, one->worst.at, one->worst.got, one->worst.want,
               (long long)one->n_different);
    printf("  %lld nodes before it agree; %lld of %lld values differ in all\n",
           (long long)d->n_agreed, (long long)d->n_different, (long long)d->n_compared);
    if (qn_case_is_random(d->a.model->graph))
        printf("  the model draws random numbers, which are not those of another run\n");
}

QnStatus qn_diff_print(const QnDiff *d)
{
    if (d->bad < 0)
        printf("equal: %lld values of %lld nodes\n", (long long)d->n_compared,
               (long long)d->n_agreed);
    else
        print_bad(d);
    print_names("without a reference", &d->without);
    print_names("references that are no value of the model", &d->unknown);
    return QN_OK;
}

static void put_names(QnJsonWriter *w, const char *key, const QnDiffNames *list)
{
    qn_json_key(w, key);
    qn_json_open_array(w);
    for (int64_t i = 0; i < list->n; i++)
        qn_json_add_string(w, list->name[i]);
    qn_json_close(w);
}

static void put_bad(QnJsonWriter *w, const QnDiff *d)
{
    char type[QN_TYPE_TEXT_BYTES];
    const QnDifference *one = &d->difference;
    const char *name = d->a.all.graph.output[d->bad].name;
    int64_t at = d->a.all.node[d->bad];
    const QnOnnxDef *n = at >= 0 ? &d->a.all.graph.node[at] : NULL;
    qn_json_put_int(w, "node_number", at);
    qn_json_put_string(w, "node", n ? n->name : "");
    qn_json_put_string(w, "op", n ? n->op : "");
    qn_json_put_string(w, "value", name);
    qn_json_put_string(w, "type", type_text(&d->a, name, type));
    qn_json_key(w, "inputs");
    qn_json_open_object(w);
    for (int i = 0; n && i < n->n_in; i++) {
        bool again = !n->in[i][0]; /* absent, or named before */
        for (int k = 0; k < i && !again; k++)
            again = !strcmp(n->in[k], n->in[i]);
        if (!again)
            qn_json_put_string(w, n->in[i], type_text(&d->a, n->in[i], type));
    }
    qn_json_close(w);
    qn_json_put_string(w, "first", one->text);
    if (one->worst.at[0]) {
        qn_json_put_double(w, "largest_error", one->worst.error);
        qn_json_put_string(w, "at", one->worst.at);
        qn_json_put_double(w, "got", one->worst.got);
        qn_json_put_double(w, "want", one->worst.want);
    }
    qn_json_put_int(w, "different_elements", one->n_different);
}

QnStatus qn_diff_print_json(const QnDiff *d)
{
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_bool(&w, "equal", d->bad < 0);
    qn_json_put_int(&w, "values", d->n_compared);
    qn_json_put_int(&w, "different_values", d->n_different);
    qn_json_put_int(&w, "nodes_agreed", d->n_agreed);
    if (d->bad >= 0)
        put_bad(&w, d);
    put_names(&w, "without_reference", &d->without);
    put_names(&w, "unknown_references", &d->unknown);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}
