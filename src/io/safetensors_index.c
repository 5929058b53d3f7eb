/* Sets of safetensors files: an index maps each tensor's name to the file that holds it. */
#include "base/mem.h"
#include "io/safetensors_impl.h"
#include "io/shards.h"

#include <string.h>

static QnStatus open_shard(const QnShard *shard, QnSafetensors **out)
{
    QnFileMap map = { 0 };
    QN_TRY(qn_file_map(shard->path, &map));
    QnStatus st = qn_safetensors_parse(shard->label, map.data, map.bytes, out);
    if (st == QN_OK)
        (*out)->map = map;
    else
        qn_file_unmap(&map);
    return st;
}

/* The set's tensors are those of the shards, and the same as those of the index. */
static QnStatus gather(QnSafetensors *s, const QnShards *x)
{
    for (int64_t i = 0; i < s->n_shards; i++)
        s->count += s->shards[i]->count;
    s->tensors = qn_arena_array(s->arena, (size_t)s->count, sizeof *s->tensors);
    bool *seen = qn_arena_array(s->arena, (size_t)s->count, sizeof *seen);
    int64_t *base = qn_arena_array(s->arena, (size_t)s->n_shards, sizeof *base), n = 0;
    if (!s->tensors || !seen || !base)
        return QN_ENOMEM;
    for (int64_t i = 0; i < s->n_shards; i++) {
        base[i] = n;
        for (int64_t k = 0; k < s->shards[i]->count; k++)
            s->tensors[n++] = s->shards[i]->tensors[k];
    }
    for (int64_t i = 0; i < x->map->n; i++) {
        const QnSafetensors *shard = s->shards[x->shard_of[i]];
        const QnSafetensor *t = qn_safetensors_find(shard, x->map->items[i].key);
        if (!t)
            return qn_shards_fail(x, i, "the file that the index names lacks it");
        seen[base[x->shard_of[i]] + (t - shard->tensors)] = true;
    }
    for (int64_t i = 0; i < n; i++)
        if (!seen[i])
            return qn_shards_fail_extra(x, s->tensors[i].name);
    return qn_safetensors_sort(s);
}

static QnStatus open_shards(QnSafetensors *s, const char *text, size_t size)
{
    QnShards x;
    QN_TRY(qn_shards_parse(s->arena, s->path, text, size, &x));
    s->shards = qn_alloc_array((size_t)x.n, sizeof *s->shards);
    if (!s->shards)
        return QN_ENOMEM;
    for (; s->n_shards < x.n; s->n_shards++)
        QN_TRY(open_shard(&x.shards[s->n_shards], &s->shards[s->n_shards]));
    s->metadata = s->shards[0]->metadata;
    return gather(s, &x);
}

QnStatus qn_safetensors_open_index(const char *path, const char *text, size_t size,
                                   QnSafetensors **out)
{
    QnSafetensors *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    QnStatus st = QN_OK;
    s->arena = qn_arena_new();
    s->path = s->arena ? qn_arena_strdup(s->arena, path) : NULL;
    QN_TRY_DONE(s->path ? QN_OK : QN_ENOMEM);
    QN_TRY_DONE(open_shards(s, text, size));
    *out = s;
    s = NULL;
done:
    qn_safetensors_free(s);
    return st;
}
