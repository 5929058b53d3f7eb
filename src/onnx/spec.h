/* The names that the ONNX specification has, supported or not. */
#ifndef QN_ONNX_SPEC_H
#define QN_ONNX_SPEC_H

typedef struct QnOnnxDomain {
    const char *domain;      /* "" for the default one */
    const char *const *name; /* in alphabetical order; ends with NULL */
} QnOnnxDomain;

extern const QnOnnxDomain qn_onnx_spec[]; /* ends with an empty row */

#endif
