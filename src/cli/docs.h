/* Documentation printed from the tables that the program itself runs by. */
#ifndef QN_CLI_DOCS_H
#define QN_CLI_DOCS_H

#include "cli/cli.h"

/* docs/operators.md, from the operators' descriptors. */
void qn_docs_operators(FILE *out);
/* docs/onnx.md, from the mappings of ONNX operators. */
void qn_docs_onnx(FILE *out);
/* docs/quern.1, from the commands' tables. */
void qn_docs_manual(FILE *out);

#endif
