/* Operators of two inputs as opsets 1 to 6 had them: the second is repeated only where the
 * attribute `broadcast` says so, and its axes are those of the first from `axis` on. */
#include "onnx/mapping.h"
#include "ops/ops.h"

#include <string.h>

typedef struct Pair {
    const char *name;
    QnValue *(*build)(QnGraph *g, QnValue *a, QnValue *b);
} Pair;

static const Pair pairs[] = {
    { "Add", qn_add },         { "Sub", qn_sub },         { "Mul", qn_mul },
    { "Div", qn_div },         { "Pow", qn_pow },         { "And", qn_logical_and },
    { "Or", qn_logical_or },   { "Xor", qn_logical_xor }, { "Equal", qn_equal },
    { "Greater", qn_greater }, { "Less", qn_less },
};

static QnStatus import_pair(QnOnnxNode *n)
{
    const QnType *t = qn_onnx_type(n, 0), *u = qn_onnx_type(n, 1);
    const Pair *p = pairs;
    while (strcmp(p->name, n->op))
        p++;
    if (!t || !u)
        return qn_fail(QN_EDTYPE, "both inputs must be tensors of numbers");
    QnShape a = t->shape, b = u->shape;
    int64_t axis = qn_onnx_int(n, "axis", a.rank - b.rank);
    axis += axis < 0 ? a.rank : 0;
    if (!qn_onnx_int(n, "broadcast", 0) && !qn_shape_is_equal(&a, &b)) {
        char x[QN_TYPE_TEXT_BYTES], y[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "shapes %s and %s differ, and 'broadcast' is 0",
                       qn_shape_text(&a, x), qn_shape_text(&b, y));
    }
    if (axis < 0 || axis + b.rank > a.rank)
        return qn_fail(QN_ESHAPE, "axis %lld leaves no room for %d of %d axes", (long long)axis,
                       b.rank, a.rank);
    for (; axis + b.rank < a.rank; b.rank++)
        b.dim[b.rank] = 1;
    QnValue *second = qn_reshape(n->g, qn_onnx_in(n, 1), &b);
    return qn_onnx_out0(n, p->build(n->g, qn_onnx_in(n, 0), second));
}

const QnOnnxMap qn_onnx_legacy[] = {
    { "Add", NULL, 1, 6, import_pair, NULL },     { "Sub", NULL, 1, 6, import_pair, NULL },
    { "Mul", NULL, 1, 6, import_pair, NULL },     { "Div", NULL, 1, 6, import_pair, NULL },
    { "Pow", NULL, 1, 6, import_pair, NULL },     { "And", NULL, 1, 6, import_pair, NULL },
    { "Or", NULL, 1, 6, import_pair, NULL },      { "Xor", NULL, 1, 6, import_pair, NULL },
    { "Equal", NULL, 1, 6, import_pair, NULL },   { "Less", NULL, 1, 6, import_pair, NULL },
    { "Greater", NULL, 1, 6, import_pair, NULL }, { 0 },
};
