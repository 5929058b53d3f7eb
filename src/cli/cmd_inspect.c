/* What is in a file: tensors, types, sizes, metadata. */
#include "cli/inspect_onnx.h"
#include "cli/model_dims.h"

#include "base/file.h"
#include "base/mem.h"
#include "io/weights.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { STATS, BATCH, DIM, INPUT, ALL, JSON };

static const QnOption options[] = {
    [STATS] = { "--stats", 0, QN_OPTION_FLAG, NULL,
                "smallest, largest, mean, deviation; counts of NaN and infinities", 0, 0 },
    [BATCH] = { "--batch", 0, QN_OPTION_INT, "N", "ONNX models: first dim of every input", 1,
                1 << 24 },
    [DIM] = QN_CLI_DIM_OPTION,
    [INPUT] = { "--input", 'i', QN_OPTION_MANY, "NAME=FILE",
                "ONNX models: an input that decides shapes or branches, .npy or .pb", 0, 0 },
    [ALL] = { "--all", 0, QN_OPTION_FLAG, NULL,
              "ONNX models: nodes too that are computed while the model is read", 0, 0 },
    [JSON] = { "--json", 0, QN_OPTION_FLAG, NULL, "one JSON object on stdout", 0, 0 },
};

/* A kind of file that has a view of its own. */
typedef struct Inspector {
    /* by the content or, where that does not tell, the name; NULL: whatever is left */
    bool (*is)(const char *path, const void *data, size_t size);
    QnStatus (*inspect)(const QnArgs *a, const char *path, int *code); /* code: 0 unless set */
} Inspector;

/* ---- figures ---- */

typedef struct Stats {
    double min, max, mean, deviation; /* of the finite elements; NaN: there are none */
    int64_t nan, inf;
} Stats;

enum { BLOCK = 1024 };

/* One pass over the elements in f64: sums up what `add` makes of the finite ones. */
static double sum(const QnSafetensor *t, const char *data, double mean, bool squares, Stats *s,
                  int64_t *n)
{
    double x[BLOCK], total = 0;
    size_t item = qn_dtype_bytes(t->dtype);
    *n = 0;
    for (int64_t i = 0; i < t->count; i += BLOCK) {
        int64_t k = QN_MIN(t->count - i, (int64_t)BLOCK);
        double part = 0;
        qn_dtype_to_f64(t->dtype, data + (size_t)i * item, x, k);
        for (int64_t j = 0; j < k; j++) {
            if (!isfinite(x[j])) {
                s->nan += !squares && isnan(x[j]);
                s->inf += !squares && !isnan(x[j]);
                continue;
            }
            s->min = isnan(s->min) ? x[j] : fmin(s->min, x[j]);
            s->max = isnan(s->max) ? x[j] : fmax(s->max, x[j]);
            part += squares ? (x[j] - mean) * (x[j] - mean) : x[j];
            ++*n;
        }
        total += part;
    }
    return total;
}

static QnStatus measure(QnWeights *w, int64_t i, Stats *s)
{
    const QnSafetensor *t = qn_weights_at(w, i);
    char *data = qn_alloc(t->bytes + 1);
    int64_t n;
    *s = (Stats){ .min = NAN, .max = NAN, .mean = NAN, .deviation = NAN };
    QnStatus st = data ? qn_weights_read(w, i, data) : QN_ENOMEM;
    if (st == QN_OK) {
        double total = sum(t, data, 0, false, s, &n);
        if (n) {
            s->mean = total / (double)n;
            s->deviation = sqrt(sum(t, data, s->mean, true, s, &n) / (double)n);
        }
    }
    qn_free(data);
    return st;
}

/* ---- sets of tensors ---- */

typedef struct View {
    const QnArgs *args;
    QnWeights *w;
    QnArena *arena;
    int64_t count, parameters, bytes;
    int64_t optimizer; /* elements that are the optimizer's, in a checkpoint */
} View;

static void total(View *v)
{
    v->count = qn_weights_count(v->w);
    for (int64_t i = 0; i < v->count; i++) {
        const QnSafetensor *t = qn_weights_at(v->w, i);
        v->parameters += t->count;
        v->bytes += (int64_t)t->bytes;
        if (!strncmp(t->name, "optim.", 6) || !strncmp(t->name, "grad.", 5))
            v->optimizer += t->count;
    }
}

/* Text from a stranger's file, without what would move a terminal's cursor; shortened. */
static const char *plain(QnArena *arena, const char *text, size_t most)
{
    size_t n = strlen(text);
    char *copy = qn_arena_printf(arena, "%.*s%s", (int)QN_MIN(n, most), text, n > most ? "…" : "");
    for (unsigned char *p = (unsigned char *)copy; p && *p; p++)
        if (*p < 32 || *p == 127)
            *p = ' ';
    return copy;
}

static const char *shape_of(QnArena *arena, const QnSafetensor *t)
{
    QnShape s = qn_shape_make(t->rank, t->dims);
    char text[QN_TYPE_TEXT_BYTES];
    return qn_arena_strdup(arena, qn_shape_text(&s, text));
}

static const char *figure(QnArena *arena, double x)
{
    return isnan(x) ? "-" : qn_arena_printf(arena, "%.5g", x);
}

/* One row; NULL cells: no memory. */
static QnStatus fill_row(const View *v, int64_t i, const char **cell, bool stats)
{
    const QnSafetensor *t = qn_weights_at(v->w, i);
    char number[QN_STR_NUMBER], bytes[QN_STR_NUMBER];
    int n = 0;
    cell[n++] = plain(v->arena, t->name, 200);
    cell[n++] = qn_dtype_name(t->dtype);
    cell[n++] = shape_of(v->arena, t);
    cell[n++] = qn_arena_strdup(v->arena, qn_str_count(number, t->count));
    cell[n++] = qn_arena_strdup(v->arena, qn_str_bytes(bytes, t->bytes));
    if (stats) {
        Stats s;
        QN_TRY(measure(v->w, i, &s));
        cell[n++] = figure(v->arena, s.min);
        cell[n++] = figure(v->arena, s.max);
        cell[n++] = figure(v->arena, s.mean);
        cell[n++] = figure(v->arena, s.deviation);
        cell[n++] = qn_arena_strdup(v->arena, qn_str_count(number, s.nan));
        cell[n++] = qn_arena_strdup(v->arena, qn_str_count(number, s.inf));
    }
    for (int k = 0; k < n; k++)
        if (!cell[k])
            return QN_ENOMEM;
    return QN_OK;
}

static QnStatus print_table(const View *v)
{
    static const char *const head[] = { "tensor", "type", "shape", "elements", "bytes", "min",
                                        "max",    "mean", "std",   "NaN",      "Inf" };
    bool stats = v->args->text[STATS] != NULL;
    int columns = stats ? 11 : 5;
    if (v->count > INT32_MAX / 16)
        return qn_fail(QN_EUNSUPPORTED, "%" PRId64 " tensors are more than a table shows",
                       v->count);
    const char **cells =
        qn_arena_array(v->arena, (size_t)(v->count + 1) * (size_t)columns, sizeof *cells);
    if (!cells)
        return QN_ENOMEM;
    for (int k = 0; k < columns; k++)
        cells[k] = head[k];
    for (int64_t i = 0; i < v->count; i++)
        QN_TRY(fill_row(v, i, cells + (i + 1) * columns, stats));
    qn_cli_table(stdout, cells, columns, (int)v->count + 1, "lllrrrrrrrr");
    return QN_OK;
}

static QnStatus print_view(const View *v)
{
    char number[QN_STR_NUMBER], bytes[QN_STR_NUMBER];
    printf("%s: %s", qn_weights_path(v->w), qn_weights_format(v->w));
    if (qn_weights_file_count(v->w) > 1)
        printf(" in %" PRId64 " shards", qn_weights_file_count(v->w));
    putchar('\n');
    for (int64_t i = 0; i < qn_weights_text_count(v->w); i++) {
        QnSafetensorsText t = qn_weights_text_at(v->w, i);
        const char *key = plain(v->arena, t.key, 80), *value = plain(v->arena, t.value, 100);
        if (!key || !value)
            return QN_ENOMEM;
        printf("  %s: %s\n", key, value);
    }
    putchar('\n');
    QN_TRY(print_table(v));
    printf("\n%" PRId64 " tensor%s, %s elements, %s\n", v->count, v->count == 1 ? "" : "s",
           qn_str_count(number, v->parameters), qn_str_bytes(bytes, (uint64_t)v->bytes));
    for (int d = 0; d < QN_DTYPE_COUNT; d++) {
        int64_t n = 0, elements = 0;
        for (int64_t i = 0; i < v->count; i++) {
            const QnSafetensor *t = qn_weights_at(v->w, i);
            n += t->dtype == (QnDtype)d;
            elements += t->dtype == (QnDtype)d ? t->count : 0;
        }
        if (n && n < v->count)
            printf("  %s: %" PRId64 " tensor%s, %s elements\n", qn_dtype_name((QnDtype)d), n,
                   n == 1 ? "" : "s", qn_str_count(number, elements));
    }
    if (v->optimizer)
        printf("  the model's: %s elements; the optimizer's: %s\n",
               qn_str_count(number, v->parameters - v->optimizer),
               qn_str_count(bytes, v->optimizer));
    return QN_OK;
}

static QnStatus add_tensor(const View *v, int64_t i, QnJsonWriter *w)
{
    const QnSafetensor *t = qn_weights_at(v->w, i);
    qn_json_open_object(w);
    qn_json_put_string(w, "name", t->name);
    qn_json_put_string(w, "dtype", qn_dtype_name(t->dtype));
    qn_json_key(w, "shape");
    qn_json_open_array(w);
    for (int d = 0; d < t->rank; d++)
        qn_json_add_int(w, t->dims[d]);
    qn_json_close(w);
    qn_json_put_int(w, "elements", t->count);
    qn_json_put_int(w, "bytes", (int64_t)t->bytes);
    if (v->args->text[STATS]) {
        Stats s;
        QN_TRY(measure(v->w, i, &s));
        qn_json_put_double(w, "min", s.min); /* null: no element is finite */
        qn_json_put_double(w, "max", s.max);
        qn_json_put_double(w, "mean", s.mean);
        qn_json_put_double(w, "std", s.deviation);
        qn_json_put_int(w, "nan", s.nan);
        qn_json_put_int(w, "inf", s.inf);
    }
    qn_json_close(w);
    return QN_OK;
}

static QnStatus print_json(const View *v)
{
    QnStr line = { 0 };
    QnJsonWriter w;
    QnStatus st = QN_OK;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "path", qn_weights_path(v->w));
    qn_json_put_string(&w, "format", qn_weights_format(v->w));
    qn_json_put_int(&w, "files", qn_weights_file_count(v->w));
    qn_json_key(&w, "metadata");
    qn_json_open_object(&w);
    for (int64_t i = 0; i < qn_weights_text_count(v->w); i++) {
        QnSafetensorsText t = qn_weights_text_at(v->w, i);
        qn_json_put_string(&w, t.key, t.value);
    }
    qn_json_close(&w);
    qn_json_key(&w, "tensors");
    qn_json_open_array(&w);
    for (int64_t i = 0; st == QN_OK && i < v->count; i++)
        st = add_tensor(v, i, &w);
    if (st == QN_OK) {
        qn_json_close(&w);
        qn_json_put_int(&w, "count", v->count);
        qn_json_put_int(&w, "elements", v->parameters);
        qn_json_put_int(&w, "optimizer_elements", v->optimizer);
        qn_json_put_int(&w, "bytes", v->bytes);
        qn_json_close(&w);
        st = qn_json_end(&w);
    }
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}

/* Weights of any kind, and the folders that hold them. */
static QnStatus inspect_weights(const QnArgs *a, const char *path, int *code)
{
    (void)code;
    if (a->text[BATCH] || a->text[DIM] || a->text[INPUT] || a->text[ALL])
        return qn_fail(QN_EUSAGE,
                       "%s is no ONNX model: --batch, --dim, --input and --all are for those",
                       path);
    char folder[QN_RUN_PATH_BYTES];
    View v = { .args = a };
    QN_TRY(qn_run_folder_weights(path, folder));
    QN_TRY(qn_checkpoint_verify(folder));
    QN_TRY(qn_weights_open(folder, &v.w));
    v.arena = qn_arena_new();
    QnStatus st = v.arena ? QN_OK : QN_ENOMEM;
    if (st == QN_OK) {
        total(&v);
        st = a->json ? print_json(&v) : print_view(&v);
    }
    qn_arena_free(v.arena);
    qn_weights_close(v.w);
    return st;
}

/* ---- the command ---- */

static QnStatus inspect_onnx(const QnArgs *a, const char *path, int *code)
{
    QnInspectOnnxOptions o = { .batch = a->text[BATCH] ? a->number[BATCH] : 0,
                               .dim_option = DIM,
                               .input_option = INPUT,
                               .all = a->text[ALL] != NULL };
    return a->text[STATS] ? qn_fail(QN_EUSAGE, "--stats is for files of weights")
                          : qn_inspect_onnx(a, path, &o, code);
}

/* The first that knows the file shows it. Formats that are more than a set of tensors (graphs) have
 * their row here, before the last. */
static const Inspector inspectors[] = {
    { qn_inspect_is_onnx, inspect_onnx },
    { NULL, inspect_weights },
};

static QnStatus inspect(const QnArgs *a, const char *path, int *code)
{
    struct stat info;
    QnFileMap map = { 0 };
    const Inspector *found = NULL;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        QN_TRY(qn_file_map(path, &map));
    for (int i = 0; i < QN_COUNT(inspectors) && !found; i++)
        if (!inspectors[i].is || (map.data && inspectors[i].is(path, map.data, map.bytes)))
            found = &inspectors[i];
    qn_file_unmap(&map);
    return found->inspect(a, path, code);
}

static int run(QnArgs *a)
{
    int code = QN_EXIT_OK;
    return inspect(a, a->positional[0], &code) == QN_OK ? code : qn_cli_fail(a);
}

const QnCommand qn_cmd_inspect = {
    .name = "inspect",
    .summary = "Show what is in a file of weights, a checkpoint, a run or an ONNX model",
    .usage = "PATH [options]",
    .examples = "  quern inspect runs/fashion-mnist-demo\n"
                "  quern inspect model.safetensors.index.json\n"
                "  quern inspect pytorch_model.bin --stats\n"
                "  quern inspect model.onnx --batch 8 --dim seq=128\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
