#include "io/shards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX_MAX_BYTES = 100000000 };

bool qn_shards_is_index(const void *data, size_t size)
{
    const char *p = data;
    if (size < 2 || memchr(p, 0, QN_MIN(size, (size_t)8)))
        return false;
    size_t i = 0;
    while (i < size && (p[i] == ' ' || p[i] == '\t' || p[i] == '\r' || p[i] == '\n'))
        i++;
    return i < size && p[i] == '{';
}

static QnStatus entry_fail(const QnShards *s, const QnJson *j, const char *why)
{
    return qn_fail(QN_EFORMAT, "%s: byte %zu: tensor '%.200s': %s", s->path, j->offset, j->key,
                   why);
}

QnStatus qn_shards_fail(const QnShards *s, int64_t i, const char *why)
{
    return entry_fail(s, &s->map->items[i], why);
}

QnStatus qn_shards_fail_extra(const QnShards *s, const char *name)
{
    return qn_fail(QN_EFORMAT,
                   "%s: tensor '%.200s' is in a shard, but the index does not place it there: "
                   "index and shards do not belong together",
                   s->path, name);
}

static QnStatus check_name(const QnShards *s, const QnJson *j)
{
    if (!j->key_n || strlen(j->key) != j->key_n)
        return entry_fail(s, j, "its name is empty or holds a zero byte");
    if (j->type != QN_JSON_STRING || !j->n)
        return entry_fail(s, j, "its file is not a text");
    if (strlen(j->string) != (size_t)j->n)
        return entry_fail(s, j, "a zero byte in the name of its file");
    if (j->string[0] == '/' || strchr(j->string, '\\'))
        return entry_fail(s, j, "its file must be named relative to the index's folder");
    for (const char *p = j->string; p; p = strchr(p, '/')) {
        p += *p == '/';
        size_t n = strcspn(p, "/");
        if (n == 2 && !memcmp(p, "..", 2))
            return entry_fail(s, j, "the name of its file leads out of the index's folder");
    }
    return QN_OK;
}

/* A path without links, from the arena. */
static QnStatus resolve(QnArena *arena, const char *path, const char **out)
{
    char *real = realpath(path, NULL);
    if (!real)
        return qn_fail(errno == ENOENT ? QN_ENOTFOUND : QN_EIO, "%s: %s", path, strerror(errno));
    *out = qn_arena_strdup(arena, real);
    free(real);
    return *out ? QN_OK : QN_ENOMEM;
}

static QnStatus locate(QnArena *arena, const QnShards *s, const QnJson *j, const char *folder,
                       const char *real_folder, QnShard *out)
{
    out->label = qn_arena_printf(arena, "%s/%s", folder, j->string);
    if (!out->label)
        return QN_ENOMEM;
    QnStatus st = resolve(arena, out->label, &out->path);
    size_t n = strlen(real_folder);
    if (st == QN_ENOTFOUND)
        return qn_fail(QN_ENOTFOUND, "%s: names the shard '%.200s', which is not there: fetch it",
                       s->path, j->string);
    if (st == QN_OK && (strncmp(out->path, real_folder, n) || (n > 1 && out->path[n] != '/')))
        return entry_fail(s, j,
                          "its file is a link that leads out of the index's folder: put the file "
                          "itself there (cp -L)");
    return st;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp((*(const QnJson *const *)a)->string, (*(const QnJson *const *)b)->string);
}

/* The distinct files of the index, by name. */
static QnStatus collect(QnArena *arena, QnShards *s)
{
    int64_t count = s->map->n;
    const QnJson **by_file = qn_arena_array(arena, (size_t)count, sizeof *by_file);
    s->shard_of = qn_arena_array(arena, (size_t)count, sizeof *s->shard_of);
    s->shards = qn_arena_array(arena, (size_t)count, sizeof *s->shards);
    char *folder = qn_arena_strdup(arena, s->path);
    if (!by_file || !s->shard_of || !s->shards || !folder)
        return QN_ENOMEM;
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0'; /* "/" stays */
    const char *given = slash ? folder : ".", *real = NULL;
    QN_TRY(resolve(arena, given, &real));
    for (int64_t i = 0; i < count; i++) {
        by_file[i] = &s->map->items[i];
        QN_TRY(check_name(s, by_file[i]));
    }
    qsort(by_file, (size_t)count, sizeof *by_file, compare_files);
    for (int64_t i = 0; i < count; i++) {
        if (!i || compare_files(&by_file[i - 1], &by_file[i])) {
            QN_TRY(locate(arena, s, by_file[i], given, real, &s->shards[s->n]));
            s->n++;
        }
        s->shard_of[by_file[i] - s->map->items] = s->n - 1;
    }
    return QN_OK;
}

QnStatus qn_shards_parse(QnArena *arena, const char *path, const char *text, size_t size,
                         QnShards *out)
{
    QnShards s = { .path = path };
    const QnJson *root;
    if (size > INDEX_MAX_BYTES)
        return qn_fail(QN_EFORMAT, "%s: an index of %zu bytes is over the limit of %d", path, size,
                       INDEX_MAX_BYTES);
    if (qn_json_parse(arena, text, size, &root) != QN_OK)
        return qn_fail_prefix("%s", path);
    s.map = qn_json_find(root, "weight_map");
    if (!s.map || s.map->type != QN_JSON_OBJECT || !s.map->n)
        return qn_fail(QN_EFORMAT,
                       "%s: byte %zu: no weight_map that places tensors: not the index of sharded "
                       "weights",
                       path, s.map ? s.map->offset : root->offset);
    QN_TRY(collect(arena, &s));
    *out = s;
    return QN_OK;
}
