/* Which operator stands for an ONNX node. */
#ifndef QN_ONNX_MAPPING_H
#define QN_ONNX_MAPPING_H

#include "ops/onnx.h"

typedef struct QnMapping {
    const QnOp *op; /* NULL: a composition of several, in src/onnx */
    const QnOnnxMap *map;
} QnMapping;

/* false: there is no row for this operator and opset. *nearest (may be NULL) is then a row of the
 * same name for other opsets, its map NULL where there is none. */
bool qn_mapping_find(const char *domain, const char *op, int64_t opset, QnMapping *out,
                     QnMapping *nearest);
/* All rows, those of the operators first; false after the last. *i begins at 0. */
bool qn_mapping_next(int64_t *i, QnMapping *out);
/* The name that is nearest to one that no row has; NULL: none is near. */
const char *qn_mapping_nearest(const char *op);

/* Emits what a row without .import says. */
QnStatus qn_mapping_plain(const QnMapping *m, QnOnnxNode *n);

/* Compositions: tables in src/onnx/lower_*.c, each ends with an empty row. */
/* clang-format off */
#define QN_ONNX_TABLES(X) \
    X(attention) \
    X(boxes) \
    X(control) \
    X(folds) \
    X(label) \
    X(legacy) \
    X(linear_attention) \
    X(loss) \
    X(ml) \
    X(norm) \
    X(random) \
    X(recent) \
    X(recurrent) \
    X(regex) \
    X(resize) \
    X(select) \
    X(sequence) \
    X(shape) \
    X(text) \
    X(tfidf) \
    X(training) \
    X(trees) \
    X(unique) \
    X(windows)
/* clang-format on */
#define QN_X(name) extern const QnOnnxMap qn_onnx_##name[];
QN_ONNX_TABLES(QN_X)
#undef QN_X

#endif
