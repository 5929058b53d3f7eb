/* What the parts of the ONNX reader share. Only files that know protobuf-c's structs include it. */
#ifndef QN_IO_ONNX_READ_H
#define QN_IO_ONNX_READ_H

#include "io/onnx.h"
#include "io/onnx_file.h"
#include "io/onnx_order.h"
#include "io/onnx.pb-c.h"

typedef struct QnOnnxReader {
    QnArena *arena;
    const char *file;         /* for errors */
    const char *folder;       /* where external tensors may lie; NULL: nowhere */
    struct QnOnnxFile *owner; /* keeps mapped external files; NULL: external tensors are refused */
    size_t bytes;             /* of the file */
} QnOnnxReader;

/* Refuses bytes that protobuf-c must not see: nesting over QN_ONNX_DEPTH messages, lengths past the
 * end, messages that would have to be merged, or so many empty ones that they would take far more
 * memory than the file; and names that are no printable UTF-8. The error says at which byte. */
enum { QN_ONNX_DEPTH = 64 };
QnStatus qn_onnx_scan(const ProtobufCMessageDescriptor *d, const unsigned char *data, size_t bytes,
                      const char *file);
/* The library's own memory, so that failures can be injected. */
ProtobufCAllocator qn_onnx_allocator(void);
/* Scans and unpacks; NULL on failure. */
ProtobufCMessage *qn_onnx_unpack(const ProtobufCMessageDescriptor *d, const void *data,
                                 size_t bytes, const char *file);

QnStatus qn_onnx_read_tensor(QnOnnxReader *r, const Onnx__TensorProto *p, const char *what,
                             const QnTensor **out);
QnStatus qn_onnx_read_sparse(QnOnnxReader *r, const Onnx__SparseTensorProto *p, const char *what,
                             const QnTensor **out);
QnStatus qn_onnx_read_graph(QnOnnxReader *r, const Onnx__GraphProto *p, QnOnnxGraph **out);
QnStatus qn_onnx_read_nodes(QnOnnxReader *r, Onnx__NodeProto *const *p, size_t n, QnOnnxGraph *g);
QnStatus qn_onnx_read_attrs(QnOnnxReader *r, Onnx__AttributeProto *const *p, size_t n,
                            const char *node, const QnOnnxAttr **out);
QnStatus qn_onnx_read_type(QnOnnxReader *r, const Onnx__TypeProto *p, const QnOnnxType **out);

/* Functions: sorts them by name, and refuses those given twice, those that call themselves, chains
 * of calls over QN_ONNX_DEPTH long, and calls that multiply to over QN_ONNX_EXPANDED nodes. */
enum { QN_ONNX_EXPANDED = 1 << 24 };
QnStatus qn_onnx_check_calls(QnArena *arena, const char *file, QnOnnxModel *m,
                             QnOnnxFunction *function);

/* Memory that stands for more bytes than it was read from (dense copies of sparse tensors, aligned
 * copies of external ones): together bounded by the files' sizes. */
QnStatus qn_onnx_may_grow(QnOnnxReader *r, const char *what, uint64_t bytes);

/* Bytes [offset, offset + length) of a file of the model's folder. */
QnStatus qn_onnx_external(QnOnnxReader *r, const char *location, uint64_t offset, uint64_t length,
                          const unsigned char **data, uint64_t *bytes);

#endif
