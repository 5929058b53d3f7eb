/* Device text of maps and fused groups of maps: one kernel, printed from the scalar functions of
 * their operator files. */
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

#endif
