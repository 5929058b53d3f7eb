#include "ops/onnx_put.h"

#include "base/str.h"
#include "ops/util.h"

#include <stdio.h>
#include <string.h>

static bool is_lost(const QnOnnxPut *p)
{
    return p->st != QN_OK;
}

QnStatus qn_put_fail(QnOnnxPut *p, QnStatus st)
{
    if (p->st == QN_OK)
        p->st = st;
    return st;
}

QnStatus qn_put_status(const QnOnnxPut *p)
{
    return p->st;
}

int64_t qn_put_opset(const QnOnnxPut *p)
{
    return p->opset;
}

const char *qn_put_value(QnOnnxPut *p, const QnValue *v)
{
    if (!v || v->id >= p->n_names)
        return "";
    if (!p->name[v->id])
        p->name[v->id] = qn_put_fresh(p, v->node->op->name);
    return p->name[v->id] ? p->name[v->id] : "";
}

const char *qn_put_fresh(QnOnnxPut *p, const char *what)
{
    const char *name = qn_arena_printf(p->arena, "%s_%lld", what, (long long)++p->n_fresh);
    if (!name)
        qn_put_fail(p, QN_ENOMEM);
    return name ? name : "";
}

/* ---- initialisers ---------------------------------------------------------------------------- */

const char *qn_put_tensor(QnOnnxPut *p, const char *name, const QnTensor *t)
{
    if (is_lost(p))
        return "";
    QnStatus st = QN_GROW(p->init, p->cap_init, p->n_init);
    if (st != QN_OK || !t) {
        qn_put_fail(p, QN_ENOMEM);
        return "";
    }
    p->init[p->n_init++] = (QnOnnxInit){ name, t };
    return name;
}

static const char *put_constant(QnOnnxPut *p, QnDtype dtype, const QnShape *s, const void *data)
{
    QnTensor *t = qn_arena_alloc(p->arena, sizeof *t);
    QnType type = { .dtype = dtype, .shape = *s };
    if (t) {
        t->type = type;
        t->data = qn_arena_copy(p->arena, data, (size_t)QN_MAX(qn_type_bytes(&type), 1));
    }
    return qn_put_tensor(p, qn_put_fresh(p, "constant"), t && t->data ? t : NULL);
}

const char *qn_put_ints(QnOnnxPut *p, const int64_t *v, int n)
{
    static const int64_t none;
    return put_constant(p, QN_DTYPE_I64, &QN_SHAPE(n), n ? v : &none);
}

const char *qn_put_int(QnOnnxPut *p, int64_t v)
{
    return put_constant(p, QN_DTYPE_I64, &(QnShape){ 0 }, &v);
}

const char *qn_put_number(QnOnnxPut *p, QnDtype dtype, double v)
{
    char bytes[8];
    qn_dtype_from_f64(dtype, &v, bytes, 1);
    return put_constant(p, dtype, &(QnShape){ 0 }, bytes);
}

const char *qn_put_shape(QnOnnxPut *p, const QnShape *s)
{
    int64_t dim[QN_MAX_RANK];
    int open = 0;
    char text[QN_TYPE_TEXT_BYTES];
    for (int i = 0; i < s->rank; i++) {
        open += s->dim[i] < 0;
        dim[i] = s->dim[i] < 0 ? -1 : s->dim[i];
    }
    if (open > 1)
        qn_put_fail(p, qn_fail(QN_EUNSUPPORTED, "shape %s has several symbolic dims",
                               qn_shape_text(s, text)));
    return qn_put_ints(p, dim, s->rank);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static const char *const *copy_names(QnOnnxPut *p, const char *const *names, int n)
{
    const char **out = qn_arena_array(p->arena, (size_t)QN_MAX(n, 1), sizeof *out);
    for (int i = 0; out && i < n; i++)
        out[i] = names[i] ? names[i] : "";
    return out;
}

QnOnnxDef *qn_put_node(QnOnnxPut *p, const char *op, const char *const *in, int n_in,
                       const char *const *out, int n_out)
{
    if (is_lost(p))
        return NULL;
    if (p->writes && !qn_str_is_listed(p->writes, op)) {
        qn_put_fail(p, qn_fail(QN_EINTERNAL, "%s is written, but its operator lists only %s", op,
                               p->writes));
        return NULL;
    }
    QnOnnxDef *d = qn_arena_alloc(p->arena, sizeof *d);
    QnStatus st = QN_GROW(p->node, p->cap_node, p->n_node);
    if (!d || st != QN_OK) {
        qn_put_fail(p, QN_ENOMEM);
        return NULL;
    }
    while (n_in > 0 && !in[n_in - 1])
        n_in--;
    *d = (QnOnnxDef){ .op = op,
                      .domain = "",
                      .n_in = n_in,
                      .n_out = n_out,
                      .in = copy_names(p, in, n_in),
                      .out = copy_names(p, out, n_out) };
    d->name = n_out ? out[0] : op;
    if (!d->in || !d->out)
        qn_put_fail(p, QN_ENOMEM);
    p->node[p->n_node++] = d;
    return d;
}

enum { ATTR_MOST = 16 };

static QnOnnxAttr *new_attr(QnOnnxPut *p, QnOnnxDef *d, const char *name, QnOnnxAttrKind kind)
{
    if (!d || is_lost(p))
        return NULL;
    if (!d->attr)
        d->attr = qn_arena_array(p->arena, ATTR_MOST, sizeof *d->attr);
    if (!d->attr || d->n_attr == ATTR_MOST) {
        qn_put_fail(p, QN_ENOMEM);
        return NULL;
    }
    QnOnnxAttr *a = (QnOnnxAttr *)&d->attr[d->n_attr++];
    *a = (QnOnnxAttr){ .name = name, .kind = kind };
    return a;
}

void qn_put_attr_int(QnOnnxPut *p, QnOnnxDef *d, const char *name, int64_t v)
{
    QnOnnxAttr *a = new_attr(p, d, name, QN_ONNX_INT);
    if (a)
        a->i = v;
}

void qn_put_attr_float(QnOnnxPut *p, QnOnnxDef *d, const char *name, double v)
{
    QnOnnxAttr *a = new_attr(p, d, name, QN_ONNX_FLOAT);
    if (a)
        a->f = (float)v;
}

void qn_put_attr_text(QnOnnxPut *p, QnOnnxDef *d, const char *name, const char *v)
{
    QnOnnxAttr *a = new_attr(p, d, name, QN_ONNX_STRING);
    const char *copy = a ? qn_arena_strdup(p->arena, v) : NULL;
    if (copy)
        a->s = (QnText){ copy, strlen(copy) };
    else
        qn_put_fail(p, QN_ENOMEM);
}

void qn_put_attr_ints(QnOnnxPut *p, QnOnnxDef *d, const char *name, const int64_t *v, int n)
{
    QnOnnxAttr *a = new_attr(p, d, name, QN_ONNX_INTS);
    int64_t *copy = a ? qn_arena_array(p->arena, (size_t)QN_MAX(n, 1), sizeof *copy) : NULL;
    if (!copy) {
        qn_put_fail(p, QN_ENOMEM);
        return;
    }
    if (n)
        memcpy(copy, v, (size_t)n * sizeof *v);
    a->ints = copy;
    a->n = n;
}

const char *qn_put_1(QnOnnxPut *p, const char *op, const char *const *in, int n_in)
{
    const char *out = qn_put_fresh(p, op);
    qn_put_node(p, op, in, n_in, &out, 1);
    return out;
}

QnOnnxDef *qn_put_as(QnOnnxPut *p, const QnValue *v, const char *op, const char *const *in,
                     int n_in)
{
    const char *out = qn_put_value(p, v);
    return qn_put_node(p, op, in, n_in, &out, 1);
}

QnOnnxDef *qn_put_same(QnOnnxPut *p, const QnNode *n, const char *op)
{
    const char **in = qn_arena_array(p->arena, (size_t)n->n_in + 1, sizeof *in);
    const char **out = qn_arena_array(p->arena, (size_t)n->n_out + 1, sizeof *out);
    if (!in || !out) {
        qn_put_fail(p, QN_ENOMEM);
        return NULL;
    }
    for (int i = 0; i < n->n_in; i++)
        in[i] = n->in[i] ? qn_put_value(p, n->in[i]) : NULL;
    for (int i = 0; i < n->n_out; i++)
        out[i] = qn_put_value(p, &n->out[i]);
    return qn_put_node(p, op, in, n->n_in, out, n->n_out);
}

void qn_put_reduce(QnOnnxPut *p, const QnNode *n, const char *op, int64_t axes_in)
{
    const QnReduceAttr *a = n->attr;
    const char *in[] = { qn_put_value(p, n->in[0]), NULL };
    bool is_input = p->opset >= axes_in;
    if (a->axes.n && is_input)
        in[1] = qn_put_ints(p, a->axes.v, a->axes.n);
    QnOnnxDef *d = qn_put_as(p, &n->out[0], op, in, 2);
    if (a->axes.n && !is_input)
        qn_put_attr_ints(p, d, "axes", a->axes.v, a->axes.n);
    qn_put_attr_int(p, d, "keepdims", a->keepdims);
}
