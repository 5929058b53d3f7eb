/* Files of weights, whatever wrote them, as one set of named tensors. What a file is, its content
 * says, not its name. weights.c has the table of formats: a new one is a row there. */
#ifndef QN_IO_WEIGHTS_H
#define QN_IO_WEIGHTS_H

#include "io/safetensors.h"

typedef struct QnWeights QnWeights;

/* A file; or a folder that holds one: model.safetensors or its index, or pytorch_model.bin or its
 * index, as a Quern checkpoint and the folders of Hugging Face do. Reads what is in it, not the
 * tensors. */
QnStatus qn_weights_open(const char *path, QnWeights **out);
void qn_weights_close(QnWeights *w); /* NULL is fine */

const char *qn_weights_format(const QnWeights *w); /* "safetensors" */
const char *qn_weights_path(const QnWeights *w);   /* the file, also where a folder was named */
int64_t qn_weights_file_count(const QnWeights *w); /* more than 1: shards */

int64_t qn_weights_count(const QnWeights *w);
/* In the order of the file; data is NULL where the tensor does not lie in it as it is. */
const QnSafetensor *qn_weights_at(const QnWeights *w, int64_t i);
int64_t qn_weights_find(const QnWeights *w, const char *name); /* -1: none of that name */
/* Tensor i row-major into dst, which takes its bytes. */
QnStatus qn_weights_read(QnWeights *w, int64_t i, void *dst);

/* What the file says beside its tensors. */
int64_t qn_weights_text_count(const QnWeights *w);
QnSafetensorsText qn_weights_text_at(const QnWeights *w, int64_t i);

/* "safetensors, NumPy .npz, …", for help and errors. */
const char *qn_weights_help(void);

#endif
