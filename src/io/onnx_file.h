/* What an opened ONNX model holds on to. */
#ifndef QN_IO_ONNX_FILE_H
#define QN_IO_ONNX_FILE_H

#include <stddef.h>
#include <stdint.h>

typedef struct QnOnnxMapped { /* a file of external tensors */
    const char *location;
    const unsigned char *data; /* NULL: empty */
    size_t bytes;
} QnOnnxMapped;

typedef struct QnOnnxFile {
    void *message; /* protobuf-c's */
    QnOnnxMapped *mapped;
    int64_t n_mapped, cap_mapped;
    void **extra; /* messages unpacked by themselves */
    int64_t n_extra, cap_extra;
    uint64_t grown_bytes; /* counted by qn_onnx_may_grow */
} QnOnnxFile;

#endif
