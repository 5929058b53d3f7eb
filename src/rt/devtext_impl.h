/* Bodies of maps in device text: what every kernel that is printed around one shares. */
#ifndef QN_RT_DEVTEXT_IMPL_H
#define QN_RT_DEVTEXT_IMPL_H

#include "rt/devtext.h"

enum { QN_DEVTEXT_MAX_IN = 32 };

/* A map is a body of one. Operand k is v<k> in the text. */
typedef struct QnDevBody {
    QnDtype in[QN_DEVTEXT_MAX_IN];
    int n_in;
    const QnBodyInstr *instr;
    int n_instr;
} QnDevBody;

/* The node's body attribute; NULL: it has none. */
const QnBody *qn_devbody_of(const QnNode *n);
/* Integers and bools are qn_long in the text, floats float. */
bool qn_devbody_is_whole(QnDtype d);
/* Whether the text of the operator has tensors of this dtype. */
bool qn_devbody_has(const QnOp *op, QnDtype d);
/* An error says what of it text cannot do. */
QnStatus qn_devbody_check(const QnDevBody *b);
/* Every operator's text once: it holds the scalar function. */
void qn_devbody_functions(const QnDevBody *b, QnStr *s);
/* v<n_in> and on, from those before. `end` follows each line: "\n", or in a macro " \\\n". */
void qn_devbody_run(const QnDevBody *b, const char *end, QnStr *s);
/* "float v3 = qn_load_bf16(x2, at);" without an end: operand k is x<x> at this place. */
void qn_devbody_load(const QnDevBody *b, int k, int x, const char *at, QnStr *s);

/* As qn_devtext_map, for products with a body: what stands before the text of their operator. */
QnStatus qn_devtext_product(const QnNode *n, QnStr *text);

#endif
