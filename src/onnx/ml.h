/* What models of ai.onnx.ml share: labels, and what is done to scores at the end. */
#ifndef QN_ONNX_ML_H
#define QN_ONNX_ML_H

#include "ops/onnx.h"

#define QN_ML "ai.onnx.ml"

typedef enum QnMlAfter { QN_ML_NONE, QN_ML_SOFTMAX, QN_ML_LOGISTIC, QN_ML_SOFTMAX_ZERO } QnMlAfter;

/* The attribute "post_transform", a word. */
QnStatus qn_ml_after(const QnOnnxNode *n, QnMlAfter *out);
/* Scores are (N,classes). SOFTMAX_ZERO leaves zeros as they are. */
QnValue *qn_ml_transform(QnGraph *g, QnValue *scores, QnMlAfter after);

typedef struct QnMlLabels { /* integers or strings */
    const int64_t *number;
    const QnText *text;
    int64_t n;
} QnMlLabels;
QnStatus qn_ml_labels(const QnOnnxNode *n, const char *ints, const char *strings, QnMlLabels *out);
/* Outputs 0 and 1: the label of each row's greatest score, and the scores. Strings as labels need
 * the elements of the scores: the graph so far is run. */
QnStatus qn_ml_classify(QnOnnxNode *n, const QnMlLabels *labels, QnValue *scores);

#endif
