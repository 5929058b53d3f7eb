/* A node as a product of cuBLASLt: what it multiplies, and what its epilogue is for. */
#ifndef QN_BACKEND_CUDA_FORM_H
#define QN_BACKEND_CUDA_FORM_H

#include "backend/cuda/product.h"

/* Numbers of inputs and outputs; -1: there is none. */
typedef struct QnCudaForm {
    QnCudaProduct product;
    int bias_in, aux_in, sum_in; /* sum_in is added to the product, as the library's matrix C */
    int scale_a_in, scale_b_in;  /* of 8-bit operands */
    int aux_out, bias_out;
} QnCudaForm;

/* Whether the node's operator is a product that the library may compute. */
bool qn_cuda_form_is_product(const QnNode *n);
/* NULL, or why the library does not compute it. */
const char *qn_cuda_form_of(const QnNode *n, QnCudaForm *f);

#endif
