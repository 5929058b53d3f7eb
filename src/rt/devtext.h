/* Device text of nodes. That of maps and fused groups of maps is one kernel, printed from the
 * scalar functions of their operator files; other operators have kernels in their files. */
#ifndef QN_RT_DEVTEXT_H
#define QN_RT_DEVTEXT_H

#include "base/str.h"
#include "ir/graph.h"

/* Adds to `text` what follows the dialect (ops/dialect.h with QN_DEVICE defined) in a program whose
 * kernel is "qn_map", and fills the launch. The kernel's arguments are outputs, inputs, then the
 * call's scalars: it takes any sizes, so that the text depends only on operators, attributes,
 * dtypes, layouts and on which axes are broadcast. Types must be concrete. An error says why the
 * node cannot run from text. */
QnStatus qn_devtext_map(const QnNode *n, QnStr *text, QnDeviceCall *call);

/* Why no device text runs the node; NULL: some does. Types must be concrete. */
const char *qn_devtext_refuses(const QnNode *n);

/* As qn_devtext_map, for any node that qn_devtext_refuses does not: the program's text after the
 * dialect, the launch, and the type of QN_T to compile it for. */
QnStatus qn_devtext_node(const QnNode *n, QnStr *text, QnDeviceCall *call, QnDtype *storage);

#endif
