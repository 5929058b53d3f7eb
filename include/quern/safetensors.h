/* safetensors files: an 8-byte length, a JSON header, then the tensors without gaps. */
#ifndef QUERN_SAFETENSORS_H
#define QUERN_SAFETENSORS_H

#include <quern/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { QN_SAFETENSORS_MAX_RANK = 8, QN_SAFETENSORS_HEADER_MAX = 100000000 };

typedef struct QnSafetensor {
    const char *name;
    QnDtype dtype;
    int rank;
    int64_t dims[QN_SAFETENSORS_MAX_RANK];
    int64_t count;    /* product of dims, 1 for rank 0 */
    const void *data; /* little-endian, inside the file; perhaps not aligned: copy it out */
    size_t bytes;
} QnSafetensor;

typedef struct QnSafetensors QnSafetensors;

/* Refused: a header over 100 MB or past the end, duplicate names, offsets past the end, overlaps,
 * holes, a length that dtype and shape do not give. `data` is borrowed until free; `name` is for
 * messages. */
QN_API QnStatus qn_safetensors_parse(const char *name, const void *data, size_t size,
                                     QnSafetensors **out);
/* The same from a file, which is mapped, not read. An index (model.safetensors.index.json) opens as
 * one set of all tensors of its shards: each must be where the index says, and each shard in the
 * index's folder, also after links are followed. */
QN_API QnStatus qn_safetensors_open(const char *path, QnSafetensors **out);
QN_API void qn_safetensors_free(QnSafetensors *st); /* NULL is fine */

QN_API int64_t qn_safetensors_count(const QnSafetensors *st);
/* In the order of their data in the file (of a set: shard by shard). */
QN_API const QnSafetensor *qn_safetensors_at(const QnSafetensors *st, int64_t i);
QN_API const QnSafetensor *qn_safetensors_find(const QnSafetensors *st,
                                               const char *name);   /* or NULL */
QN_API int64_t qn_safetensors_shard_count(const QnSafetensors *st); /* 1: a single file */

/* Metadata: texts by key. Of a set, those of its first shard. */
typedef struct QnSafetensorsText {
    const char *key, *value;
} QnSafetensorsText;
/* The text that __metadata__ holds under this key, or NULL. */
QN_API const char *qn_safetensors_metadata(const QnSafetensors *st, const char *key);
QN_API int64_t qn_safetensors_metadata_count(const QnSafetensors *st);
QN_API QnSafetensorsText qn_safetensors_metadata_at(const QnSafetensors *st, int64_t i);

/* A file in the making. Tensors are written in an order of its own (widest items first, then by
 * name), so that the same tensors always give the same bytes, and every item is aligned. */
typedef struct QnSafetensorsWriter QnSafetensorsWriter;

/* Writes the header; `tensors` (name, dtype, rank, dims; the rest is ignored) and `metadata` are
 * only read here. */
QN_API QnStatus qn_safetensors_create(const char *path, const QnSafetensor *tensors, int64_t count,
                                      const QnSafetensorsText *metadata, int metadata_count,
                                      QnSafetensorsWriter **out);
/* Index in `tensors` of the tensor whose bytes are wanted next; -1: all are written. */
QN_API int64_t qn_safetensors_next(const QnSafetensorsWriter *w);
/* Part of that tensor's bytes, little-endian; may be called many times for one tensor. */
QN_API QnStatus qn_safetensors_write(QnSafetensorsWriter *w, const void *data, size_t bytes);
/* Puts the file in place once all is written; frees the writer in any case. */
QN_API QnStatus qn_safetensors_commit(QnSafetensorsWriter *take_w);
QN_API void qn_safetensors_discard(QnSafetensorsWriter *take_w); /* NULL is fine */

/* All of it at once, from each tensor's data. */
QN_API QnStatus qn_safetensors_save(const char *path, const QnSafetensor *tensors, int64_t count,
                                    const QnSafetensorsText *metadata, int metadata_count);

/* The same, in shards where the tensors take more than shard_bytes: "model.safetensors" becomes
 * model-00001-of-00002.safetensors and so on, by the tensors' names, none over shard_bytes unless
 * by a single tensor, and model.safetensors.index.json, which appears last. An older file or index
 * of that name goes. At most 500 shards. */
QN_API QnStatus qn_safetensors_save_shards(const char *path, const QnSafetensor *tensors,
                                           int64_t count, const QnSafetensorsText *metadata,
                                           int metadata_count, uint64_t shard_bytes);

#ifdef __cplusplus
}
#endif

#endif
