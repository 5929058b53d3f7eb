/* Maps behind a product, for the kernel of its operator's text to run on each result while it is in
 * a register. Before the text stand the maps' functions and
 *   QN_BODY_OUT                     parameters for the outputs
 *   QN_BODY_IN                      parameters for the inputs behind the two operands
 *   QN_BODY_RUN(s, at, line, col)   stores what becomes of the product s, element `at` of the
 *                                   result, number `col` of its row number `line` */
#include "rt/devtext_impl.h"

#include <string.h>

enum { OPERANDS = 2 };

static bool flag(const QnNode *n, const char *name)
{
    const QnAttrField *f = qn_attr_find(n->op, name);
    return f && *(const bool *)((const char *)n->attr + f->offset);
}

/* Where an element of s lies that goes with element `at` of y; NULL: text cannot say. */
static const char *place(const QnShape *s, const QnShape *y)
{
    bool same = s->rank == y->rank, line = same, row = true, one = true;
    for (int k = 1; k <= s->rank; k++) {
        QnDim d = s->dim[s->rank - k], of_y = k <= y->rank ? y->dim[y->rank - k] : -1;
        one = one && d == 1;
        row = row && d == (k == 1 ? of_y : 1);
        line = line && d == (k == 1 ? 1 : of_y);
        same = same && d == of_y;
    }
    return same ? "at" : one ? "0" : row ? "col" : line ? "line" : NULL;
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

QnStatus qn_devtext_product(const QnNode *n, QnStr *text)
{
    static const char end[] = " \\\n";
    int first = OPERANDS + flag(n, "bias");
    const QnShape *y = &n->out[0].type.shape;
    const char *product = qn_dtype_name(n->in[0]->type.dtype);
    QnDevBody b;
    QN_TRY(read_body(n, first, &b));
    for (int i = OPERANDS; i < n->n_in; i++) {
        if (!place(&n->in[i]->type.shape, y))
            return qn_fail(QN_EUNSUPPORTED, "%s: device text broadcasts no such input",
                           n->op->name);
    }
    qn_devbody_functions(&b, text);
    print_parameters(n, text);
    qn_str_add(text, "#define QN_BODY_RUN(s, at, line, col)");
    qn_str_add(text, end);
    if (first > OPERANDS)
        qn_str_printf(text, "float v0 = s + qn_load_%s(x2, %s);", product,
                      place(&n->in[OPERANDS]->type.shape, y));
    else
        qn_str_add(text, "float v0 = s;");
    qn_str_add(text, end);
    for (int i = first; i < n->n_in; i++) {
        qn_devbody_load(&b, 1 + i - first, i, place(&n->in[i]->type.shape, y), text);
        qn_str_add(text, end);
    }
    qn_devbody_run(&b, end, text);
    if (n->n_out > 1)
        qn_str_printf(text, "qn_store_%s(y1, at, v0);", product);
    qn_str_printf(text, "qn_store_%s(y0, at, v%d);\n", qn_dtype_name(n->out[0].type.dtype),
                  b.n_in + qn_devbody_of(n)->out[0]);
    return text->st;
}
