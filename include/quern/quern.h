/* Quern: deep learning in C. One graph, every technique a pass over it, every device a backend that
 * runs it. This header is the whole public interface; each of those below can also be included
 * alone. docs/c-api.md is a tour. */
#ifndef QUERN_QUERN_H
#define QUERN_QUERN_H

#include <quern/base.h>        /* errors, conventions */
#include <quern/types.h>       /* element types, shapes */
#include <quern/graph.h>       /* graphs, text, gradients, passes */
#include <quern/ops.h>         /* a function for each operator */
#include <quern/nn.h>          /* layers, models, optimizers */
#include <quern/plan.h>        /* devices, stores, plans */
#include <quern/onnx.h>        /* ONNX models */
#include <quern/safetensors.h> /* files of weights */
#include <quern/npy.h>         /* files of arrays */

#define QN_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs, which may be newer than the QN_VERSION compiled against.
 * Static storage. */
QN_API const char *qn_version(void);

#ifdef __cplusplus
}
#endif

#endif
