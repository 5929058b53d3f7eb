/* ONNX models: run, checked, and turned into our graphs. */
#ifndef QN_ONNX_ONNX_H
#define QN_ONNX_ONNX_H

#include "base/str.h"
#include "io/onnx.h"
#include "rt/device.h"

/* Nodes that no mapping covers, before anything is run. */
typedef struct QnOnnxProblems {
    QnStr text; /* a line each: node, operator, opset, and what would be near */
    int64_t n;
} QnOnnxProblems;
QnStatus qn_onnx_survey(const QnOnnxModel *m, QnOnnxProblems *out);

/* Runs the model: in[i] goes to input i of its graph, NULL where an initialiser serves; out[i] gets
 * output i, with all elements known, in the arena. EUNSUPPORTED: `problems` (may be NULL) lists all
 * that is not supported. */
QnStatus qn_onnx_run(const QnOnnxModel *m, QnDevice *d, QnItem *const *in, QnArena *arena,
                     QnItem **out, QnOnnxProblems *problems);

/* One graph for given types of the inputs (type[i] of graph input i; NULL: that of the file, which
 * must then be concrete). Its inputs and outputs have the model's names. */
typedef struct QnOnnxImportOptions {
    const QnType *const *type;
    bool training;
} QnOnnxImportOptions;
QnStatus qn_onnx_import(const QnOnnxModel *m, QnDevice *d, const QnOnnxImportOptions *o,
                        QnGraph **out, QnOnnxProblems *problems);

#endif
