/* Layers beyond linear and convolution: quern/nn.h. */
#ifndef QN_NN_LAYERS_H
#define QN_NN_LAYERS_H

#include "nn/net.h"

#endif
