/* Models as recipes describe them: a named one, or a list of layers. */
#ifndef QN_TRAIN_MODEL_H
#define QN_TRAIN_MODEL_H

#include "io/yaml.h"
#include "nn/names.h"
#include "nn/net.h"

/* What the data asks of the model. */
typedef struct QnModelIo {
    int64_t outputs; /* classes, regression targets, or size of the vocabulary */
    int64_t window;  /* tokens; language models */
} QnModelIo;

/* Builds the recipe's model on x: (N, features), (N,C,H,W), or tokens (N,T) i64. *y is (N,
 * outputs), or (N*T, outputs) for language models. An error names the recipe's line. */
QnStatus qn_model_build(QnNet *net, const QnYaml *model, const QnModelIo *io, QnValue *x,
                        QnValue **y);

/* What other programs call the tensors of a named model; NULL: nothing is known of it. */
const QnNameMap *qn_model_names(const QnYaml *model);

/* The graph's first error, if there is one, as a complaint about `place`. */
QnStatus qn_model_check(QnGraph *g, const QnYaml *place);

/* Names that `name:` takes, one a line with a description, for help. */
const char *qn_model_help(void);

#endif
