/* Indexes of sharded weights (model.safetensors.index.json, pytorch_model.bin.index.json): JSON
 * that maps each tensor's name to the file that holds it. Files lie in the index's folder, also
 * after links are followed: an index from elsewhere must not make us open others. */
#ifndef QN_IO_SHARDS_H
#define QN_IO_SHARDS_H

#include "base/json.h"

typedef struct QnShard {
    const char *label; /* for messages: the folder as it was given, and the index's name for it */
    const char *path;  /* what to open: without links */
} QnShard;

/* All of it lives in the arena. */
typedef struct QnShards {
    const char *path; /* of the index, borrowed */
    const QnJson *map;
    QnShard *shards; /* by name, each once */
    int64_t n;
    int64_t *shard_of; /* of the tensor map->items[i] */
} QnShards;

/* JSON, and no safetensors file: that begins with a length, whose upper bytes are zeros. */
bool qn_shards_is_index(const void *data, size_t size);

/* Refused: names that lead out of the folder, by "..", as absolute ones or by links; files that are
 * not there; tensors that come twice. */
QnStatus qn_shards_parse(QnArena *arena, const char *path, const char *text, size_t size,
                         QnShards *out);
/* An error at tensor i of the index. */
QnStatus qn_shards_fail(const QnShards *s, int64_t i, const char *why);
/* A tensor that is in a shard, and not in the index as that shard's. */
QnStatus qn_shards_fail_extra(const QnShards *s, const char *name);

#endif
