/* Shared by safetensors.c (one file), safetensors_index.c and safetensors_shards.c (sets). */
#ifndef QN_IO_SAFETENSORS_IMPL_H
#define QN_IO_SAFETENSORS_IMPL_H

#include "base/json.h"
#include "io/safetensors.h"

struct QnSafetensors {
    QnArena *arena;
    const char *path;
    QnFileMap map; /* all zeros: the data are the caller's, or the shards' */
    QnSafetensor *tensors;
    const QnSafetensor **by_name;
    int64_t count;
    const QnJson *metadata; /* or NULL */
    QnSafetensors **shards; /* of a set, by name; their tensors are in `tensors`, in this order */
    int64_t n_shards;
};

/* Opens the shards that an index (its text) names, which lie in the folder of `path`. */
QnStatus qn_safetensors_open_index(const char *path, const char *text, size_t size,
                                   QnSafetensors **out);
/* Fills by_name. */
QnStatus qn_safetensors_sort(QnSafetensors *s);

#endif
