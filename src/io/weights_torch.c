/* PyTorch's files as weights: one, or several by an index (pytorch_model.bin.index.json). */
#include "io/shards.h"
#include "io/torch_file.h"
#include "io/weights_impl.h"

#include <string.h>

/* Tensor i of the weights is `tensor` of `file`. */
typedef struct Place {
    QnTorchFile *file;
    int64_t tensor;
} Place;

typedef struct TorchSet {
    QnTorchFile **files;
    int64_t n;
    Place *places; /* in the weights' arena */
} TorchSet;

static TorchSet *new_set(QnWeights *w, int64_t n_files)
{
    TorchSet *s = qn_alloc(sizeof *s);
    w->file = s;
    if (s)
        s->files = qn_alloc_array((size_t)n_files, sizeof *s->files);
    return s && s->files ? s : NULL;
}

static QnStatus add_texts(QnWeights *w, const QnTorchFile *f)
{
    for (int64_t i = 0; i < qn_torch_file_text_count(f); i++) {
        QnSafetensorsText t = qn_torch_file_text_at(f, i);
        QN_TRY(qn_weights_add_text(w, t.key, t.value));
    }
    return QN_OK;
}

/* All tensors of all files. */
static QnStatus add_tensors(QnWeights *w)
{
    TorchSet *s = w->file;
    int64_t total = 0;
    for (int64_t i = 0; i < s->n; i++)
        total += qn_torch_file_count(s->files[i]);
    s->places = qn_arena_array(w->arena, (size_t)total, sizeof *s->places);
    if (!s->places)
        return QN_ENOMEM;
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t k = 0; k < qn_torch_file_count(s->files[i]); k++) {
            s->places[w->count] = (Place){ s->files[i], k };
            QN_TRY(qn_weights_add(w, qn_torch_file_at(s->files[i], k)));
        }
        QN_TRY(add_texts(w, s->files[i]));
    }
    return QN_OK;
}

static QnStatus torch_open(QnWeights *w, const char *path)
{
    TorchSet *s = new_set(w, 1);
    if (!s)
        return QN_ENOMEM;
    QN_TRY(qn_torch_file_open(path, &s->files[0]));
    s->n = 1;
    return add_tensors(w);
}

static void torch_close(QnWeights *w)
{
    TorchSet *s = w->file;
    for (int64_t i = 0; s->files && i < s->n; i++)
        qn_torch_file_close(s->files[i]);
    qn_free(s->files);
    qn_free(s);
}

static QnStatus torch_read(QnWeights *w, int64_t i, void *dst)
{
    const Place *p = &((TorchSet *)w->file)->places[i];
    return qn_torch_file_read(p->file, p->tensor, dst);
}

const QnWeightsFormat qn_weights_torch = { .name = "PyTorch",
                                           .is = qn_torch_file_is,
                                           .open = torch_open,
                                           .close = torch_close,
                                           .read = torch_read };

/* ---- several by an index ---- */

/* Its files' names say whose index it is. */
static bool torch_index_is(const void *data, size_t size)
{
    static const char end[] = ".bin\"";
    const char *p = data;
    if (!qn_shards_is_index(data, size))
        return false;
    for (size_t i = 0; i + sizeof end - 1 <= size; i++)
        if (p[i] == '.' && !memcmp(p + i, end, sizeof end - 1))
            return true;
    return false;
}

/* What the index places is what the shards hold. */
static QnStatus check_index(const QnWeights *w, const QnShards *x)
{
    const TorchSet *s = w->file;
    int64_t found = 0;
    for (int64_t i = 0; i < x->map->n; i++) {
        int64_t at = qn_weights_find(w, x->map->items[i].key);
        if (at < 0 || s->places[at].file != s->files[x->shard_of[i]])
            return qn_shards_fail(x, i, "the file that the index names lacks it");
        found++;
    }
    for (int64_t i = 0; found < w->count && i < w->count; i++)
        if (!qn_json_find(x->map, w->tensors[i].name) ||
            qn_weights_find(w, w->tensors[i].name) != i)
            return qn_shards_fail_extra(x, w->tensors[i].name);
    return QN_OK;
}

static QnStatus torch_index_open(QnWeights *w, const char *path)
{
    QnFileMap map = { 0 };
    QnShards x = { 0 };
    QN_TRY(qn_file_map(path, &map));
    QnStatus st = qn_shards_parse(w->arena, w->path, (const char *)map.data, map.bytes, &x);
    qn_file_unmap(&map);
    QN_TRY(st);
    TorchSet *s = new_set(w, x.n);
    if (!s)
        return QN_ENOMEM;
    for (; s->n < x.n; s->n++)
        QN_TRY(qn_torch_file_open(x.shards[s->n].path, &s->files[s->n]));
    w->n_files = s->n;
    QN_TRY(add_tensors(w));
    QN_TRY(qn_weights_sort(w));
    return check_index(w, &x);
}

const QnWeightsFormat qn_weights_torch_index = { .name = "PyTorch",
                                                 .is = torch_index_is,
                                                 .open = torch_index_open,
                                                 .close = torch_close,
                                                 .read = torch_read };
