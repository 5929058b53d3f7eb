/* Writing a set of safetensors files with an index. All shards are written beside what is there
 * and put in place at the end. The old index goes before the first of them and the new one comes
 * after the last: whoever is killed in between leaves no index rather than one of two minds. */
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/safetensors_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHARDS_MAX = 500, PATH_MAX_BYTES = 4096 }; /* each shard keeps a file open */

typedef struct Shard {
    char path[PATH_MAX_BYTES];
    int64_t first, count;
    QnSafetensorsWriter *w;
} Shard;

typedef struct Set {
    const char *path;
    char index[PATH_MAX_BYTES];
    QnSafetensor *tensors; /* by name */
    int64_t count;
    uint64_t bytes;
    Shard *shards;
    int64_t n, cap;
} Set;

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const QnSafetensor *)a)->name, ((const QnSafetensor *)b)->name);
}

static uint64_t bytes_of(const QnSafetensor *t)
{
    uint64_t n = qn_dtype_bytes(t->dtype);
    for (int i = 0; i < t->rank; i++)
        n *= (uint64_t)t->dims[i];
    return n;
}

/* "model.safetensors": 5 */
static int stem_of(const char *path)
{
    size_t n = strlen(path), m = strlen(".safetensors");
    return (int)(n > m && !strcmp(path + n - m, ".safetensors") ? n - m : n);
}

/* Fills shards in the order of names until the next tensor would make them too large. */
static QnStatus cut(Set *s, uint64_t shard_bytes)
{
    uint64_t used = 0;
    for (int64_t i = 0; i < s->count; i++) {
        uint64_t bytes = bytes_of(&s->tensors[i]);
        if (!s->n || (used && bytes > shard_bytes - QN_MIN(used, shard_bytes))) {
            if (s->n == SHARDS_MAX)
                return qn_fail(QN_EARG,
                               "%s: more than %d shards of %" PRIu64 " bytes: make them larger",
                               s->path, SHARDS_MAX, shard_bytes);
            QN_TRY(QN_GROW(s->shards, s->cap, s->n));
            s->shards[s->n++] = (Shard){ .first = i };
            used = 0;
        }
        s->shards[s->n - 1].count++;
        used += bytes;
        s->bytes += bytes;
    }
    for (int64_t i = 0; i < s->n; i++)
        snprintf(s->shards[i].path, PATH_MAX_BYTES, "%.*s-%05d-of-%05d.safetensors",
                 stem_of(s->path), s->path, (int)i + 1, (int)s->n);
    return QN_OK;
}

static QnStatus write_shard(const Set *s, Shard *shard, const QnSafetensorsText *metadata, int n)
{
    const QnSafetensor *t = s->tensors + shard->first;
    QN_TRY(qn_safetensors_create(shard->path, t, shard->count, metadata, n, &shard->w));
    for (int64_t i; (i = qn_safetensors_next(shard->w)) >= 0;)
        QN_TRY(qn_safetensors_write(shard->w, t[i].data, (size_t)bytes_of(&t[i])));
    return QN_OK;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static QnStatus write_index(const Set *s)
{
    QnStr text = { 0 };
    QnJsonWriter j;
    qn_json_begin(&j, &text, 2);
    qn_json_open_object(&j);
    qn_json_key(&j, "metadata");
    qn_json_open_object(&j);
    qn_json_put_int(&j, "total_size", (int64_t)s->bytes);
    qn_json_close(&j);
    qn_json_key(&j, "weight_map");
    qn_json_open_object(&j);
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t k = 0; k < s->shards[i].count; k++)
            qn_json_put_string(&j, s->tensors[s->shards[i].first + k].name,
                               base_of(s->shards[i].path));
    qn_json_close(&j);
    qn_json_close(&j);
    QnStatus st = qn_json_end(&j);
    if (st == QN_OK)
        st = qn_file_write_atomic(s->index, qn_str_text(&text), text.n);
    qn_str_fini(&text);
    return st;
}

static QnStatus write_set(Set *s, const QnSafetensorsText *metadata, int metadata_count,
                          uint64_t shard_bytes)
{
    QN_TRY(cut(s, shard_bytes));
    for (int64_t i = 0; i < s->n; i++)
        QN_TRY(write_shard(s, &s->shards[i], metadata, metadata_count));
    unlink(s->index);
    for (int64_t i = 0; i < s->n; i++) {
        QnSafetensorsWriter *w = s->shards[i].w;
        s->shards[i].w = NULL;
        QN_TRY(qn_safetensors_commit(w));
    }
    QN_TRY(write_index(s));
    unlink(s->path); /* it would be taken for the newer one */
    return QN_OK;
}

/* What the writer of a single file checks is checked there; sizes are needed here before. */
static QnStatus check(const QnSafetensor *tensors, int64_t count, uint64_t *total)
{
    *total = 0;
    for (int64_t i = 0; i < count; i++) {
        const QnSafetensor *t = &tensors[i];
        uint64_t n = t->name && t->rank >= 0 && t->rank <= QN_SAFETENSORS_MAX_RANK
                         ? qn_dtype_bytes(t->dtype)
                         : 0;
        bool bad = !n || (i && !strcmp(tensors[i - 1].name, t->name));
        for (int d = 0; !bad && d < t->rank; d++)
            bad = t->dims[d] < 0 || qn_mul_overflow(n, (uint64_t)t->dims[d], &n);
        if (bad || qn_add_overflow(*total, n, total))
            return qn_fail(QN_EARG, "tensor '%s' is given twice, or its type cannot be written",
                           t->name ? t->name : "(no name)");
    }
    return QN_OK;
}

QnStatus qn_safetensors_save_shards(const char *path, const QnSafetensor *tensors, int64_t count,
                                    const QnSafetensorsText *metadata, int metadata_count,
                                    uint64_t shard_bytes)
{
    Set s = { .path = path, .count = count };
    uint64_t total;
    for (int64_t i = 0; i < count; i++)
        if (!tensors[i].name)
            return qn_fail(QN_EARG, "%s: tensor %" PRId64 " has no name", path, i);
    if (strlen(path) + 40 > PATH_MAX_BYTES)
        return qn_fail(QN_EARG, "%.100s…: the path is too long", path);
    snprintf(s.index, sizeof s.index, "%.*s.safetensors.index.json", stem_of(path), path);
    s.tensors = qn_alloc_array((size_t)count + 1, sizeof *s.tensors);
    QnStatus st = s.tensors ? QN_OK : QN_ENOMEM;
    if (st != QN_OK)
        return st;
    if (count)
        memcpy(s.tensors, tensors, (size_t)count * sizeof *tensors);
    qsort(s.tensors, (size_t)count, sizeof *s.tensors, compare_names);
    QN_TRY_DONE(check(s.tensors, count, &total));
    if (total <= shard_bytes) {
        QN_TRY_DONE(qn_safetensors_save(path, tensors, count, metadata, metadata_count));
        unlink(s.index); /* of an older, larger set */
    } else {
        st = write_set(&s, metadata, metadata_count, shard_bytes);
    }
done:
    for (int64_t i = 0; i < s.n; i++)
        qn_safetensors_discard(s.shards[i].w);
    qn_free(s.shards);
    qn_free(s.tensors);
    return st;
}
