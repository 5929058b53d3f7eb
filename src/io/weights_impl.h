/* What a format of weights brings: see the table in weights.c. */
#ifndef QN_IO_WEIGHTS_IMPL_H
#define QN_IO_WEIGHTS_IMPL_H

#include "base/mem.h"
#include "io/weights.h"

typedef struct QnWeightsFormat {
    const char *name;
    bool (*is)(const void *data, size_t size); /* by the file's content */
    /* Sets file, and adds tensors and texts. What it leaves in `file`, close frees. */
    QnStatus (*open)(QnWeights *w, const char *path);
    void (*close)(QnWeights *w); /* only if file is set */
    QnStatus (*read)(QnWeights *w, int64_t i, void *dst);
} QnWeightsFormat;

struct QnWeights {
    QnArena *arena;
    const QnWeightsFormat *format;
    const char *path;
    void *file;
    QnSafetensor *tensors;
    int64_t count, cap;
    const QnSafetensor **by_name;
    QnSafetensorsText *texts;
    int64_t n_texts, cap_texts;
    int64_t n_files;
};

/* Copies; the name may lie in `file` or in the arena. */
QnStatus qn_weights_add(QnWeights *w, const QnSafetensor *t);
QnStatus qn_weights_add_text(QnWeights *w, const char *key, const char *value);

QnStatus qn_weights_sort(QnWeights *w); /* makes qn_weights_find work */

extern const QnWeightsFormat qn_weights_safetensors, qn_weights_npy, qn_weights_npz,
    qn_weights_torch, qn_weights_torch_index;

#endif
