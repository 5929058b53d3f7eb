#include "backend/cpu/conv.h"
#include "ops/ops.h"

#include <string.h>

const QnConvFns *qn_conv_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return &qn_conv_fns_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}

QnConvTypes qn_conv_types(const QnNode *n)
{
    const QnType *a = &n->in[0]->type, *b = &n->in[1]->type, *o = &n->out[0].type;
    if (n->op == &qn_op_conv_dx)
        return (QnConvTypes){ o, b, a };
    if (n->op == &qn_op_conv_dw)
        return (QnConvTypes){ b, o, a };
    return (QnConvTypes){ a, b, o };
}
