/* Lists of layers in recipes: `layers: [{conv: {out: 32, kernel: 3}}, batch_norm, relu, …]`. */
#ifndef QN_TRAIN_LAYERS_H
#define QN_TRAIN_LAYERS_H

#include "train/model.h"

/* Applies the layers in order. Parameters are named by position and kind: "0.conv.weight". */
QnStatus qn_layers_build(QnNet *net, const QnYaml *list, const QnModelIo *io, QnValue *x,
                         QnValue **y);

/* An activation by name; `place` is where an error points. */
QnStatus qn_layers_activation(QnGraph *g, const QnYaml *place, const char *name, QnValue *x,
                              QnValue **y);

#endif
