/* Published models as graph builders: quern/nn.h. */
#ifndef QN_NN_MODELS_H
#define QN_NN_MODELS_H

#include "nn/layers.h"

#endif
