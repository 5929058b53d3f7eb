/* Maps behind a matrix product or a convolution, for the kernel of its operator's text to run on
 * each result while it is in a register. Before the text stand the maps' functions and
 *   QN_BODY_OUT                         parameters for the outputs
 *   QN_BODY_IN                          parameters for the inputs behind the two operands
 *   QN_BODY_RUN(s, i, j, k, nj, nk)     stores what becomes of the sum s, element (i, j, k) of the
 *                                       result, seen as an array of (., nj, nk): batch, row and
 *                                       column, or image, channel and place */
#include "rt/devtext_impl.h"

#include <string.h>

enum { OPERANDS = 2 };

static bool flag(const QnNode *n, const char *name)
{
    const QnAttrField *f = qn_attr_find(n->op, name);
    return f && *(const bool *)((const char *)n->attr + f->offset);
}

/* Where the element of s lies that goes with element (i, j, k) of y, s ending at axis `last` of y;
 * NULL: text cannot say, for s has a part of the axes of a run. */
static const char *place(const QnShape *s, const QnShape *y, int last, const int run[2])
{
    static const char *const places[] = {
        "0", "(k)", "(j)", "(j) * (nk) + (k)", "(i)", "(i) * (nk) + (k)", "(i) * (nj) + (j)", "at"
    };
    int reads = 0, lead = last + 1 - s->rank;
    if (qn_shape_is_equal(s, y))
        return places[7];
    for (int r = 0; r < 3 && lead >= 0; r++) {
        bool all = true, none = true;
        for (int d = r ? run[r - 1] : 0; d < (r < 2 ? run[r] : y->rank); d++) {
            QnDim n = d >= lead && d <= last ? s->dim[d - lead] : 1;
            all = all && n == y->dim[d];
            none = none && n == 1;
        }
        if (!all && !none)
            return NULL;
        reads = 2 * reads + !none;
    }
    return lead < 0 ? NULL : places[reads];
}

/* Of the node's input i. */
static const char *place_of(const QnNode *n, int i, const QnDeviceCall *c)
{
    const QnShape *y = &n->out[0].type.shape;
    bool bias = i == OPERANDS && flag(n, "bias");
    return place(&n->in[i]->type.shape, y, bias ? c->bias_axis : y->rank - 1, c->run);
}

/* The body's operands: the product, in the type of what is multiplied, then inputs. */
static QnStatus read_body(const QnNode *n, int first, QnDevBody *b)
{
    const QnBody *body = qn_devbody_of(n);
    if (n->n_in - first + 1 > QN_DEVTEXT_MAX_IN)
        return qn_fail(QN_EUNSUPPORTED, "%s: %d inputs, device text takes %d", n->op->name, n->n_in,
                       QN_DEVTEXT_MAX_IN);
    *b = (QnDevBody){ .n_in = n->n_in - first + 1,
                      .instr = body->instr,
                      .n_instr = body->n_instr,
                      .in = { n->in[0]->type.dtype } };
    for (int i = first; i < n->n_in; i++)
        b->in[1 + i - first] = n->in[i]->type.dtype;
    return qn_devbody_check(b);
}

static void print_parameters(const QnNode *n, QnStr *s)
{
    qn_str_add(s, "#define QN_BODY_OUT ");
    for (int i = 0; i < n->n_out; i++)
        qn_str_printf(s, "%sQN_GLOBAL qn_%s *y%d", i ? ", " : "",
                      qn_dtype_name(n->out[i].type.dtype), i);
    qn_str_add(s, "\n#define QN_BODY_IN");
    for (int i = OPERANDS; i < n->n_in; i++)
        qn_str_printf(s, " QN_GLOBAL const qn_%s *x%d,", qn_dtype_name(n->in[i]->type.dtype), i);
    qn_str_add(s, "\n");
}

/* Where the product is stored as well, maps take it as it is stored: whoever reads it and computes
 * them again (recompute) gets the same bits. Else it keeps the sum's. */
static void print_product(const QnNode *n, int first, const QnDeviceCall *c, QnStr *s)
{
    const char *product = qn_dtype_name(n->in[0]->type.dtype);
    bool stored = n->n_out > 1;
    qn_str_add(s, "float v0 = ");
    if (stored)
        qn_str_printf(s, "qn_round_%s(", product);
    qn_str_add(s, "s");
    if (first > OPERANDS)
        qn_str_printf(s, " + qn_load_%s(x2, %s)", product, place_of(n, OPERANDS, c));
    qn_str_add(s, stored ? ");" : ";");
}

QnStatus qn_devtext_product(const QnNode *n, QnStr *text)
{
    static const char end[] = " \\\n";
    int first = OPERANDS + flag(n, "bias");
    const char *product = qn_dtype_name(n->in[0]->type.dtype);
    QnDevBody b;
    QnDeviceCall call;
    QN_TRY(n->op->call(n, &call));
    QN_TRY(read_body(n, first, &b));
    for (int i = OPERANDS; i < n->n_in; i++) {
        if (!place_of(n, i, &call))
            return qn_fail(QN_EUNSUPPORTED, "%s: device text broadcasts no such input",
                           n->op->name);
    }
    qn_devbody_functions(&b, text);
    print_parameters(n, text);
    qn_str_add(text, "#define QN_BODY_RUN(s, i, j, k, nj, nk)");
    qn_str_add(text, end);
    qn_str_add(text, "const qn_long at = ((i) * (nj) + (j)) * (nk) + (k);");
    qn_str_add(text, end);
    print_product(n, first, &call, text);
    qn_str_add(text, end);
    for (int i = first; i < n->n_in; i++) {
        qn_devbody_load(&b, 1 + i - first, i, place_of(n, i, &call), text);
        qn_str_add(text, end);
    }
    qn_devbody_run(&b, end, text);
    if (n->n_out > 1)
        qn_str_printf(text, "qn_store_%s(y1, at, v0);", product);
    qn_str_printf(text, "qn_store_%s(y0, at, v%d);\n", qn_dtype_name(n->out[0].type.dtype),
                  b.n_in + qn_devbody_of(n)->out[0]);
    return text->st;
}
