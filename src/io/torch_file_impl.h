/* Shared by torch_file.c (the archive, storages, reading) and torch_walk.c (the pickle). */
#ifndef QN_IO_TORCH_FILE_IMPL_H
#define QN_IO_TORCH_FILE_IMPL_H

#include "base/str.h"
#include "io/pickle.h"
#include "io/torch_file.h"
#include "io/zip.h"

typedef struct QnTorchTensor {
    const QnZipEntry *storage;
    int64_t strides[QN_SAFETENSORS_MAX_RANK], offset; /* in elements */
} QnTorchTensor;

struct QnTorchFile {
    QnArena *arena;
    QnFileMap map; /* all zeros: the data are the caller's */
    QnZip *zip;
    const char *path, *root; /* root: "archive/" */
    QnSafetensor *tensors;
    QnTorchTensor *views; /* of tensors[i] */
    int64_t count, cap, cap_views;
    QnSafetensorsText *texts;
    int64_t n_texts, cap_texts;
    bool *checked;            /* by the entry's place in the archive */
    const QnZipEntry *cached; /* the deflated storage that was read last */
    uint8_t *cache;
};

extern const QnPickleGlobal qn_torch_globals[];
extern const int qn_torch_n_globals;

/* Gathers tensors and texts from the pickle's value; pickle_bytes bounds the work. */
QnStatus qn_torch_walk(QnTorchFile *f, const QnPickle *root, size_t pickle_bytes);

#endif
