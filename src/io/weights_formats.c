/* safetensors and NumPy's files as weights. */
#include "io/npz.h"
#include "io/shards.h"
#include "io/weights_impl.h"
#include "io/zip.h"

#include <string.h>

/* ---- safetensors, one file or several by an index ---- */

static bool safetensors_is(const void *data, size_t size)
{
    const uint8_t *p = data;
    static const char lfs[] = "version https://git-lfs"; /* refused with advice */
    bool pointer = size >= sizeof lfs - 1 && !memcmp(p, lfs, sizeof lfs - 1);
    bool header = size > 8 && p[8] == '{' && !p[5] && !p[6] && !p[7];
    return pointer || header || qn_shards_is_index(data, size);
}

static QnStatus safetensors_open(QnWeights *w, const char *path)
{
    QnSafetensors *s;
    QN_TRY(qn_safetensors_open(path, &s));
    w->file = s;
    w->n_files = qn_safetensors_shard_count(s);
    for (int64_t i = 0; i < qn_safetensors_count(s); i++)
        QN_TRY(qn_weights_add(w, qn_safetensors_at(s, i)));
    for (int64_t i = 0; i < qn_safetensors_metadata_count(s); i++) {
        QnSafetensorsText t = qn_safetensors_metadata_at(s, i);
        QN_TRY(qn_weights_add_text(w, t.key, t.value));
    }
    return QN_OK;
}

static void safetensors_close(QnWeights *w)
{
    qn_safetensors_free(w->file);
}

static QnStatus safetensors_read(QnWeights *w, int64_t i, void *dst)
{
    const QnSafetensor *t = &w->tensors[i];
    if (t->bytes)
        memcpy(dst, t->data, t->bytes);
    return QN_OK;
}

const QnWeightsFormat qn_weights_safetensors = { .name = "safetensors",
                                                 .is = safetensors_is,
                                                 .open = safetensors_open,
                                                 .close = safetensors_close,
                                                 .read = safetensors_read };

/* ---- NumPy ---- */

static QnSafetensor of_array(const char *name, const QnNpy *a)
{
    QnSafetensor t = { .name = name, .dtype = a->dtype, .rank = a->rank, .count = a->count };
    memcpy(t.dims, a->dims, sizeof t.dims);
    t.bytes = (size_t)a->count * qn_dtype_bytes(a->dtype);
    return t;
}

static bool npy_is(const void *data, size_t size)
{
    return size >= 6 && !memcmp(data, "\x93NUMPY", 6);
}

/* One array, which the file's name names. */
static QnStatus npy_open(QnWeights *w, const char *path)
{
    QnNpy *a = qn_arena_alloc(w->arena, sizeof *a);
    const char *slash = strrchr(path, '/');
    char *stem = qn_arena_strdup(w->arena, slash ? slash + 1 : path);
    if (!a || !stem)
        return QN_ENOMEM;
    size_t n = strlen(stem);
    if (n > 4 && !strcmp(stem + n - 4, ".npy"))
        stem[n - 4] = '\0';
    QN_TRY(qn_npy_read(path, a));
    w->file = a;
    QnSafetensor t = of_array(stem, a);
    t.data = a->data;
    return qn_weights_add(w, &t);
}

static void npy_close(QnWeights *w)
{
    qn_npy_fini(w->file);
}

const QnWeightsFormat qn_weights_npy = { .name = "NumPy .npy",
                                         .is = npy_is,
                                         .open = npy_open,
                                         .close = npy_close,
                                         .read = safetensors_read };

static QnStatus npz_open(QnWeights *w, const char *path)
{
    QnNpz *z;
    QN_TRY(qn_npz_open(path, &z));
    w->file = z;
    for (int64_t i = 0; i < qn_npz_count(z); i++) {
        QnSafetensor t = of_array(qn_npz_name(z, i), qn_npz_type(z, i));
        QN_TRY(qn_weights_add(w, &t));
    }
    return qn_npz_is_compressed(z) ? qn_weights_add_text(w, "compression", "deflate") : QN_OK;
}

static void npz_close(QnWeights *w)
{
    qn_npz_close(w->file);
}

static QnStatus npz_read(QnWeights *w, int64_t i, void *dst)
{
    return qn_npz_read_into(w->file, i, dst);
}

const QnWeightsFormat qn_weights_npz = {
    .name = "NumPy .npz", .is = qn_zip_is, .open = npz_open, .close = npz_close, .read = npz_read
};
