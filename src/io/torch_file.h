/* What torch.save writes (.pt, .pth, pytorch_model.bin): a ZIP archive of a pickle and the storages
 * that it names. Read as data: see io/pickle.h. Tensors in nested dicts and lists get dotted names;
 * several may be views of one storage. */
#ifndef QN_IO_TORCH_FILE_H
#define QN_IO_TORCH_FILE_H

#include "io/safetensors.h"

typedef struct QnTorchFile QnTorchFile;

/* Whether these are a file of PyTorch's, of a kind that parse reads or refuses by name. */
bool qn_torch_file_is(const void *data, size_t size);

/* Refused: globals that are not tensors or plain data, storages that are missing or of another
 * size, views that leave their storage or are larger than it, big-endian files, TorchScript, and
 * the formats before PyTorch 1.6. `data` is borrowed until close; `name` is for messages. */
QnStatus qn_torch_file_parse(const char *name, const void *data, size_t size, QnTorchFile **out);
QnStatus qn_torch_file_open(const char *path, QnTorchFile **out);
void qn_torch_file_close(QnTorchFile *f); /* NULL is fine */

int64_t qn_torch_file_count(const QnTorchFile *f);
const QnSafetensor *qn_torch_file_at(const QnTorchFile *f, int64_t i); /* data: NULL */
/* Tensor i row-major into dst. The checksum of its storage is compared the first time. */
QnStatus qn_torch_file_read(QnTorchFile *f, int64_t i, void *dst);
/* As the file has it: strides in elements of tensor i, and where in the storage it begins. */
const int64_t *qn_torch_file_strides(const QnTorchFile *f, int64_t i, int64_t *offset);

/* Numbers and texts beside the tensors ("epoch"), as texts. */
int64_t qn_torch_file_text_count(const QnTorchFile *f);
QnSafetensorsText qn_torch_file_text_at(const QnTorchFile *f, int64_t i);

#endif
