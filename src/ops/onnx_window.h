/* Windows of ONNX's convolutions and pools: strides, dilations, pads and auto_pad as our lists. */
#ifndef QN_OPS_ONNX_WINDOW_H
#define QN_OPS_ONNX_WINDOW_H

#include "ops/attrs.h"
#include "ops/onnx.h"

/* x (N,C,spatial...) and w (M,C/groups,window...). */
QnStatus qn_onnx_window_conv(const QnOnnxNode *n, const QnShape *x, const QnShape *w,
                             QnConvAttr *out);
/* Strides default to 1, as ONNX has it, never to the kernel's size. */
QnStatus qn_onnx_window_pool(const QnOnnxNode *n, const QnShape *x, QnPoolAttr *out);
/* Input 0 of a convolution or a pool: (N,C,spatial...) of one to three spatial axes. */
QnStatus qn_onnx_window_input(const QnOnnxNode *n, const QnShape **x);

#endif
