/* Sets of safetensors files: an index maps each tensor's name to the file that holds it. */
#include "base/mem.h"
#include "io/safetensors_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct Index {
    QnSafetensors *s;
    const QnJson *map; /* weight_map */
    char *folder;      /* without links; malloc's */
    int64_t cap;
} Index;

bool qn_safetensors_is_index(const void *data, size_t size)
{
    const char *p = data;
    if (size < 2 || memchr(p, 0, QN_MIN(size, (size_t)8)))
        return false;
    size_t i = 0;
    while (i < size && (p[i] == ' ' || p[i] == '\t' || p[i] == '\r' || p[i] == '\n'))
        i++;
    return i < size && p[i] == '{';
}

static QnStatus entry_fail(const Index *x, const QnJson *j, const char *why)
{
    return qn_fail(QN_EFORMAT, "%s: byte %zu: tensor '%.200s': %s", x->s->path, j->offset, j->key,
                   why);
}

/* A name below the index's folder: an index from elsewhere must not make us open other files. */
static QnStatus check_shard_name(const Index *x, const QnJson *j)
{
    if (j->type != QN_JSON_STRING || !j->n)
        return entry_fail(x, j, "its file is not a text");
    if (strlen(j->string) != (size_t)j->n)
        return entry_fail(x, j, "a zero byte in the name of its file");
    if (j->string[0] == '/' || strchr(j->string, '\\'))
        return entry_fail(x, j, "its file must be named relative to the index's folder");
    for (const char *p = j->string; p; p = strchr(p, '/')) {
        p += *p == '/';
        size_t n = strcspn(p, "/");
        if (n == 2 && !memcmp(p, "..", 2))
            return entry_fail(x, j, "the name of its file leads out of the index's folder");
    }
    return QN_OK;
}

static QnStatus resolve(const char *path, char **out)
{
    *out = realpath(path, NULL);
    if (*out)
        return QN_OK;
    return qn_fail(errno == ENOENT ? QN_ENOTFOUND : QN_EIO, "%s: %s", path, strerror(errno));
}

static QnStatus open_shard(Index *x, const QnJson *j, QnSafetensors **out)
{
    char *real = NULL;
    const char *path = qn_arena_printf(x->s->arena, "%s/%s", x->folder, j->string);
    if (!path)
        return QN_ENOMEM;
    QnStatus st = resolve(path, &real);
    size_t n = strlen(x->folder);
    if (st == QN_OK && (strncmp(real, x->folder, n) || (n > 1 && real[n] != '/')))
        st = entry_fail(x, j,
                        "its file is a link that leads out of the index's folder: put the file "
                        "itself there (cp -L)");
    if (st == QN_OK) {
        QnFileMap map = { 0 };
        st = qn_file_map(real, &map);
        if (st == QN_OK)
            st = qn_safetensors_parse(path, map.data, map.bytes, out);
        if (st == QN_OK)
            (*out)->map = map;
        else
            qn_file_unmap(&map);
    } else if (st == QN_ENOTFOUND) {
        st = qn_fail(QN_ENOTFOUND, "%s: names the shard '%.200s', which is not there: fetch it",
                     x->s->path, j->string);
    }
    free(real);
    return st;
}

static int compare_shards(const void *a, const void *b)
{
    return strcmp((*(QnSafetensors *const *)a)->path, (*(QnSafetensors *const *)b)->path);
}

/* Tensor's position in the concatenation of all shards. */
static int64_t place_of(const Index *x, const QnJson *j)
{
    int64_t base = 0;
    size_t n = strlen(x->folder) + 1;
    for (int64_t i = 0; i < x->s->n_shards; i++) {
        const QnSafetensors *shard = x->s->shards[i];
        if (!strcmp(shard->path + n, j->string)) {
            const QnSafetensor *t = qn_safetensors_find(shard, j->key);
            return t ? base + (t - shard->tensors) : -1;
        }
        base += shard->count;
    }
    return -1;
}

/* The set's tensors are those of the shards, and the same as those of the index. */
static QnStatus gather(Index *x)
{
    QnSafetensors *s = x->s;
    for (int64_t i = 0; i < s->n_shards; i++)
        s->count += s->shards[i]->count;
    s->tensors = qn_arena_array(s->arena, (size_t)s->count, sizeof *s->tensors);
    bool *seen = qn_arena_array(s->arena, (size_t)s->count, sizeof *seen);
    if (!s->tensors || !seen)
        return QN_ENOMEM;
    int64_t n = 0;
    for (int64_t i = 0; i < s->n_shards; i++)
        for (int64_t k = 0; k < s->shards[i]->count; k++)
            s->tensors[n++] = s->shards[i]->tensors[k];
    for (int64_t i = 0; i < x->map->n; i++) {
        int64_t at = place_of(x, &x->map->items[i]);
        if (at < 0)
            return entry_fail(x, &x->map->items[i], "the file that the index names lacks it");
        seen[at] = true;
    }
    for (int64_t i = 0; i < n; i++)
        if (!seen[i])
            return qn_fail(QN_EFORMAT,
                           "%s: tensor '%.200s' is in a shard, but the index does not place it "
                           "there: index and shards do not belong together",
                           s->path, s->tensors[i].name);
    return qn_safetensors_sort(s);
}

static QnStatus open_shards(Index *x)
{
    QnSafetensors *s = x->s;
    size_t n = strlen(x->folder) + 1;
    for (int64_t i = 0; i < x->map->n; i++) {
        const QnJson *j = &x->map->items[i];
        if (!j->key_n || strlen(j->key) != j->key_n)
            return entry_fail(x, j, "its name is empty or holds a zero byte");
        QN_TRY(check_shard_name(x, j));
        int64_t k = s->n_shards - 1;
        while (k >= 0 && strcmp(s->shards[k]->path + n, j->string))
            k--;
        if (k >= 0)
            continue;
        QN_TRY(QN_GROW(s->shards, x->cap, s->n_shards));
        QN_TRY(open_shard(x, j, &s->shards[s->n_shards]));
        s->n_shards++;
    }
    qsort(s->shards, (size_t)s->n_shards, sizeof *s->shards, compare_shards);
    s->metadata = s->shards[0]->metadata;
    return gather(x);
}

static QnStatus read_index(Index *x, const char *text, size_t size)
{
    const QnJson *root;
    QnSafetensors *s = x->s;
    if (size > QN_SAFETENSORS_HEADER_MAX)
        return qn_fail(QN_EFORMAT, "%s: an index of %zu bytes is over the limit of %d", s->path,
                       size, QN_SAFETENSORS_HEADER_MAX);
    if (qn_json_parse(s->arena, text, size, &root) != QN_OK)
        return qn_fail_prefix("%s", s->path);
    x->map = qn_json_find(root, "weight_map");
    if (!x->map || x->map->type != QN_JSON_OBJECT || !x->map->n)
        return qn_fail(QN_EFORMAT,
                       "%s: byte %zu: no weight_map that places tensors: not the index of a "
                       "sharded safetensors file",
                       s->path, x->map ? x->map->offset : root->offset);
    char *cut = qn_arena_strdup(s->arena, s->path);
    if (!cut)
        return QN_ENOMEM;
    char *slash = strrchr(cut, '/');
    if (slash)
        slash[slash == cut] = '\0'; /* "/" stays */
    QN_TRY(resolve(slash ? cut : ".", &x->folder));
    return open_shards(x);
}

QnStatus qn_safetensors_open_index(const char *path, const char *text, size_t size,
                                   QnSafetensors **out)
{
    Index x = { .s = qn_alloc(sizeof *x.s) };
    if (!x.s)
        return QN_ENOMEM;
    QnStatus st = QN_OK;
    x.s->arena = qn_arena_new();
    x.s->path = x.s->arena ? qn_arena_strdup(x.s->arena, path) : NULL;
    QN_TRY_DONE(x.s->path ? QN_OK : QN_ENOMEM);
    QN_TRY_DONE(read_index(&x, text, size));
    *out = x.s;
    x.s = NULL;
done:
    free(x.folder);
    qn_safetensors_free(x.s);
    return st;
}
