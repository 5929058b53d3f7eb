/* Cases: from a line of text to a node with its buffers. */
#include "kernels.h"

#include "ir/parse_text.h"
#include "ops/ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN = 4099, ATTR_BYTES = 4096 };

bool case_has_images(const char *text)
{
    return strchr(text, '*') != NULL;
}

bool case_is_plain(const char *text)
{
    return text[0] != '!';
}

/* ---- reading ---- */

/* "f32[2,3]", perhaps with + or <100 behind it. */
static QnStatus read_type(Case *c, QnParser *r, int i, QnType *t)
{
    char word[QN_PARSER_WORD];
    QnDims dims;
    QN_TRY(qn_parser_word(r, "a data type", word));
    if (!qn_dtype_find(word, &t->dtype))
        return qn_parser_fail(r, r->p, "no data type '%s'", word);
    QN_TRY(qn_parser_dims(r, &dims));
    t->shape = qn_shape_make(dims.n, dims.d);
    c->positive[i] = qn_parser_take(r, '+');
    return qn_parser_take(r, '<') ? qn_parser_int(r, &c->below[i]) : QN_OK;
}

static QnStatus read_inputs(Case *c, QnParser *r, QnLayout layout, QnValue **in, int *n_in)
{
    for (*n_in = 0; qn_parser_skip(r), *r->p && *r->p != '{' && strcmp(r->p, "*") != 0; ++*n_in) {
        if (*n_in == CASE_IN)
            return qn_parser_fail(r, r->p, "more than %d inputs", CASE_IN);
        if (qn_parser_take(r, '_')) {
            in[*n_in] = NULL;
            continue;
        }
        char name[24];
        QnType t = { .layout = QN_LAYOUT_PLAIN };
        bool image = qn_parser_take(r, '*');
        QN_TRY(read_type(c, r, *n_in, &t));
        snprintf(name, sizeof name, "x%d", *n_in);
        in[*n_in] = qn_input(c->graph, name, t.dtype, &t.shape);
        if (image && !qn_value_is_poison(in[*n_in]))
            in[*n_in]->type.layout = layout;
    }
    return QN_OK;
}

static QnStatus read_case(Case *c, QnParser *r, QnLayout layout)
{
    union {
        char bytes[ATTR_BYTES];
        double align;
    } attr = { { 0 } };
    QnValue *in[CASE_IN];
    const QnOp *op;
    int n_in;
    QN_TRY(qn_parser_op(r, &op));
    if (op->attr_bytes > sizeof attr)
        return qn_parser_fail(r, r->p, "%s has %zu bytes of attributes", op->name, op->attr_bytes);
    QN_TRY(read_inputs(c, r, layout, in, &n_in));
    QN_TRY(qn_parser_attr(r, op, op->attr_bytes ? attr.bytes : NULL));
    QnNode *n = qn_emit(c->graph, op, op->attr_bytes ? attr.bytes : NULL, in, n_in);
    QN_TRY(qn_graph_check(c->graph));
    bool images = qn_parser_take(r, '*');
    for (int i = 0; images && i < n->n_out; i++) {
        if (n->out[i].type.shape.rank >= 3)
            n->out[i].type.layout = layout;
    }
    qn_parser_skip(r);
    c->node = n;
    return *r->p ? qn_parser_fail(r, r->p, "expected the end of the case") : QN_OK;
}

/* The text without marks and without bodies, which are long. */
static void name_case(Case *c, const char *text, QnLayout layout)
{
    size_t n = 0;
    const char *end = strstr(text, "body=");
    for (const char *p = text; *p && p != end && n < CASE_NAME - 20; p++) {
        if (*p != '*' && *p != '!')
            c->name[n++] = *p;
    }
    while (n && strchr(" {,", c->name[n - 1]))
        n--;
    if (end && memchr(c->name, '{', n))
        c->name[n++] = '}';
    strcpy(c->name + n, layout == QN_LAYOUT_PLAIN ? "" : ", channels-last");
}

QnStatus case_open(Case *c, const char *text, QnLayout layout)
{
    *c = (Case){ .graph = qn_graph_new() };
    QnParser r = { .graph = c->graph, .find = qn_op_find, .text = text, .p = text };
    name_case(c, text, layout);
    if (!c->graph)
        return QN_ENOMEM;
    r.p += *r.p == '!';
    return read_case(c, &r, layout);
}

void case_close(Case *c)
{
    qn_graph_free(c->graph);
    *c = (Case){ 0 };
}

/* ---- buffers ---- */

static double element(const Case *c, int i, QnDtype dtype, int64_t k)
{
    int64_t mixed = (k + 1) * 2654435761 % 1048573;
    if (qn_dtype_is_float(dtype) || qn_dtype_is_storage(dtype)) {
        double x = (double)(mixed % 2048) / 1024 - 1;
        return c->positive[i] ? fabs(x) + 0.1 : x;
    }
    return dtype == QN_DTYPE_BOOL
               ? (double)(mixed & 1)
               : (double)(mixed % (c->below[i] ? c->below[i] : 100) + (c->below[i] ? 0 : 1));
}

/* The pattern once, then copies of it. */
static void *filled(const Case *c, int i, const QnType *t)
{
    size_t bytes = (size_t)qn_type_bytes(t), item = qn_dtype_bytes(t->dtype);
    int64_t n = QN_MIN((int64_t)PATTERN, qn_shape_count(&t->shape));
    char *p = qn_alloc_aligned(bytes + 64);
    double *x = qn_alloc(PATTERN * sizeof *x);
    if (p && x) {
        memset(p, 0, bytes + 64);
        for (int64_t k = 0; k < n; k++)
            x[k] = element(c, i, t->dtype, k);
        qn_dtype_from_f64(t->dtype, x, p, n);
        for (size_t at = (size_t)n * item; at < bytes; at += (size_t)n * item)
            memcpy(p + at, p, QN_MIN((size_t)n * item, bytes - at));
    } else {
        qn_free_aligned(p, bytes + 64);
        p = NULL;
    }
    qn_free(x);
    return p;
}

static const QnType *type_of(const Case *c, int i)
{
    const QnNode *n = c->node;
    return i >= n->n_in ? &n->out[i - n->n_in].type : n->in[i] ? &n->in[i]->type : NULL;
}

void **case_buffers(const Case *c)
{
    int n = c->node->n_in + c->node->n_out;
    void **buffers = qn_alloc((size_t)n * sizeof *buffers);
    for (int i = 0; buffers && i < n; i++) {
        const QnType *t = type_of(c, i);
        int input = i < c->node->n_in ? i : CASE_IN - 1;
        buffers[i] = t ? filled(c, input, t) : NULL;
        if (t && !buffers[i]) {
            memset(buffers + i, 0, (size_t)(n - i) * sizeof *buffers);
            case_buffers_free(c, buffers);
            return NULL;
        }
    }
    return buffers;
}

void case_buffers_free(const Case *c, void **buffers)
{
    int n = c->node->n_in + c->node->n_out;
    for (int i = 0; buffers && i < n; i++) {
        const QnType *t = type_of(c, i);
        if (t && buffers[i])
            qn_free_aligned(buffers[i], (size_t)qn_type_bytes(t) + 64);
    }
    qn_free(buffers);
}

/* ---- kernels ---- */

bool kernel_is_own(const QnKernel *k)
{
    return k->rank > 0 && !(k->flags & QN_KERNEL_LIBRARY);
}

bool kernel_takes(const QnKernel *k, const QnNode *n, const QnKernelEnv *env)
{
    return (!k->op || k->op == n->op) && k->rank > 0 && !k->accepts(n, env);
}
