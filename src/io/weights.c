#include "base/file.h"
#include "base/json.h"
#include "io/weights_impl.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { INDEX_MAX_BYTES = 1 << 20 };

/* The first whose `is` says so reads the file: PyTorch's are ZIP archives, as NumPy's are, and an
 * index is PyTorch's or one of safetensors files. */
static const QnWeightsFormat *const formats[] = {
    &qn_weights_torch_index, &qn_weights_safetensors, &qn_weights_npy,
    &qn_weights_torch,       &qn_weights_npz,
};

const char *qn_weights_help(void)
{
    return "safetensors (a file or an index), NumPy .npz or .npy, PyTorch .pt";
}

QnStatus qn_weights_add(QnWeights *w, const QnSafetensor *t)
{
    QN_TRY(QN_GROW(w->tensors, w->cap, w->count));
    w->tensors[w->count++] = *t;
    return QN_OK;
}

QnStatus qn_weights_add_text(QnWeights *w, const char *key, const char *value)
{
    QN_TRY(QN_GROW(w->texts, w->cap_texts, w->n_texts));
    w->texts[w->n_texts++] = (QnSafetensorsText){ key, value };
    return QN_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* The one file in a folder whose name ends so; *n: how many there are. */
static QnStatus find_in_folder(QnWeights *w, const char *folder, const char *end, const char **out,
                               int *n)
{
    DIR *d = opendir(folder);
    *n = 0;
    if (!d)
        return qn_fail(QN_EIO, "cannot list %s: %s", folder, strerror(errno));
    QnStatus st = QN_OK;
    for (struct dirent *e; st == QN_OK && (e = readdir(d));)
        if (ends_with(e->d_name, end) && e->d_name[0] != '.' && ++*n == 1) {
            *out = qn_arena_printf(w->arena, "%s/%s", folder, e->d_name);
            st = *out ? QN_OK : QN_ENOMEM;
        }
    closedir(d);
    return st;
}

static QnStatus file_of_folder(QnWeights *w, const char *folder)
{
    static const char *const ends[] = { ".safetensors.index.json", ".safetensors",
                                        "pytorch_model.bin.index.json", "pytorch_model.bin" };
    for (int i = 0; i < QN_COUNT(ends); i++) {
        int n;
        QN_TRY(find_in_folder(w, folder, ends[i], &w->path, &n));
        if (n == 1)
            return QN_OK;
        if (n > 1)
            return qn_fail(QN_EARG, "%s: holds %d files *%s: name one of them", folder, n, ends[i]);
    }
    return qn_fail(QN_ENOTFOUND,
                   "%s: holds no weights: no *.safetensors, no index of shards, no "
                   "pytorch_model.bin",
                   folder);
}

/* What a Quern checkpoint's index says of where the run stood. */
static QnStatus add_checkpoint(QnWeights *w, const char *folder)
{
    static const char *const keys[] = { "update", "epoch", "samples", "seed" };
    char *path = qn_arena_printf(w->arena, "%s/index.json", folder), *text;
    const QnJson *o, *v;
    size_t bytes;
    if (!path)
        return QN_ENOMEM;
    if (!qn_file_exists(path) || qn_file_read(path, INDEX_MAX_BYTES, &text, &bytes) != QN_OK)
        return QN_OK;
    QnStatus st = qn_json_parse(w->arena, text, bytes, &o);
    qn_free(text);
    v = st == QN_OK ? qn_json_find(o, "format") : NULL;
    if (!v || v->type != QN_JSON_STRING || strcmp(v->string, "quern checkpoint"))
        return st == QN_ENOMEM ? st : QN_OK; /* somebody else's index.json */
    for (int i = 0; i < QN_COUNT(keys); i++) {
        v = qn_json_find(o, keys[i]);
        if (!v || v->type != QN_JSON_INT)
            continue;
        char *number = qn_arena_printf(w->arena, "%" PRId64, v->integer);
        QN_TRY(number ? qn_weights_add_text(w, keys[i], number) : QN_ENOMEM);
    }
    return QN_OK;
}

static QnStatus find_format(QnWeights *w)
{
    QnFileMap map = { 0 };
    QN_TRY(qn_file_map(w->path, &map));
    for (int i = 0; i < QN_COUNT(formats) && !w->format; i++)
        if (formats[i]->is(map.data, map.bytes))
            w->format = formats[i];
    qn_file_unmap(&map);
    if (w->format)
        return QN_OK;
    return qn_fail(QN_EFORMAT, "%s: no file of weights that is known: %s", w->path,
                   qn_weights_help());
}

static int compare_names(const void *a, const void *b)
{
    const QnSafetensor *x = *(const QnSafetensor *const *)a, *y = *(const QnSafetensor *const *)b;
    return strcmp(x->name, y->name);
}

QnStatus qn_weights_sort(QnWeights *w)
{
    w->by_name = qn_arena_array(w->arena, (size_t)w->count, sizeof *w->by_name);
    if (!w->by_name)
        return QN_ENOMEM;
    for (int64_t i = 0; i < w->count; i++)
        w->by_name[i] = &w->tensors[i];
    if (w->count)
        qsort(w->by_name, (size_t)w->count, sizeof *w->by_name, compare_names);
    return QN_OK;
}

static QnStatus open_all(QnWeights *w, const char *path)
{
    struct stat info;
    w->path = qn_arena_strdup(w->arena, path);
    if (!w->path)
        return QN_ENOMEM;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        QN_TRY(file_of_folder(w, path));
        QN_TRY(add_checkpoint(w, path));
    }
    QN_TRY(find_format(w));
    QN_TRY(w->format->open(w, w->path));
    return qn_weights_sort(w);
}

QnStatus qn_weights_open(const char *path, QnWeights **out)
{
    QnWeights *w = qn_alloc(sizeof *w);
    if (!w)
        return QN_ENOMEM;
    w->n_files = 1;
    w->arena = qn_arena_new();
    QnStatus st = w->arena ? open_all(w, path) : QN_ENOMEM;
    if (st == QN_OK)
        *out = w;
    else
        qn_weights_close(w);
    return st;
}

void qn_weights_close(QnWeights *w)
{
    if (!w)
        return;
    if (w->file)
        w->format->close(w);
    qn_free(w->tensors);
    qn_free(w->texts);
    qn_arena_free(w->arena);
    qn_free(w);
}

const char *qn_weights_format(const QnWeights *w)
{
    return w->format->name;
}

const char *qn_weights_path(const QnWeights *w)
{
    return w->path;
}

int64_t qn_weights_file_count(const QnWeights *w)
{
    return w->n_files;
}

int64_t qn_weights_count(const QnWeights *w)
{
    return w->count;
}

const QnSafetensor *qn_weights_at(const QnWeights *w, int64_t i)
{
    return &w->tensors[i];
}

int64_t qn_weights_find(const QnWeights *w, const char *name)
{
    QnSafetensor key = { .name = name };
    const QnSafetensor *p = &key;
    const QnSafetensor **found =
        w->count ? bsearch(&p, w->by_name, (size_t)w->count, sizeof *w->by_name, compare_names)
                 : NULL;
    return found ? *found - w->tensors : -1;
}

QnStatus qn_weights_read(QnWeights *w, int64_t i, void *dst)
{
    const QnSafetensor *t = &w->tensors[i];
    QN_TRY(w->format->read(w, i, dst));
    if (t->dtype == QN_DTYPE_BOOL) /* any other value would be undefined as a bool */
        for (size_t k = 0; k < t->bytes; k++)
            ((uint8_t *)dst)[k] = ((uint8_t *)dst)[k] != 0;
    return QN_OK;
}

int64_t qn_weights_text_count(const QnWeights *w)
{
    return w->n_texts;
}

QnSafetensorsText qn_weights_text_at(const QnWeights *w, int64_t i)
{
    return w->texts[i];
}
