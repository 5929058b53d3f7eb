#include "onnx/mapping.h"

#include "base/str.h"
#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>

static const QnOnnxMap *const tables[] = {
#define QN_X(name) qn_onnx_##name,
    QN_ONNX_TABLES(QN_X)
#undef QN_X
};

bool qn_mapping_next(int64_t *i, QnMapping *out)
{
    int n_ops;
    const QnOp *const *ops = qn_op_all(&n_ops);
    int64_t k = (*i)++;
    for (int o = 0; o < n_ops; o++) {
        if (k < ops[o]->n_onnx) {
            *out = (QnMapping){ ops[o], &ops[o]->onnx[k] };
            return true;
        }
        k -= ops[o]->n_onnx;
    }
    for (int t = 0; t < (int)QN_COUNT(tables); t++)
        for (const QnOnnxMap *m = tables[t]; m->name; m++)
            if (k-- == 0) {
                *out = (QnMapping){ NULL, m };
                return true;
            }
    return false;
}

static bool is_for(const QnOnnxMap *m, const char *domain, const char *op)
{
    return !strcmp(m->name, op) && !strcmp(m->domain ? m->domain : "", domain);
}

bool qn_mapping_find(const char *domain, const char *op, int64_t opset, QnMapping *out,
                     QnMapping *nearest)
{
    QnMapping m;
    if (nearest)
        *nearest = (QnMapping){ 0 };
    for (int64_t i = 0; qn_mapping_next(&i, &m);) {
        if (!is_for(m.map, domain, op))
            continue;
        if (opset >= m.map->since && (!m.map->until || opset <= m.map->until)) {
            *out = m;
            return true;
        }
        if (nearest)
            *nearest = m;
    }
    return false;
}

const char *qn_mapping_nearest(const char *op)
{
    const char *names[1024];
    int n = 0;
    QnMapping m;
    for (int64_t i = 0; qn_mapping_next(&i, &m) && n < (int)QN_COUNT(names);)
        names[n++] = m.map->name;
    return qn_str_nearest(op, names, n);
}

/* ---- rows without a function ----------------------------------------------------------------- */

/* The field's name for an ONNX attribute: `rename` says "onnx=field,…". */
static const QnAttrField *field_of(const QnMapping *m, const char *onnx)
{
    size_t n = strlen(onnx);
    for (const char *p = m->map->rename; p && *p; p += strcspn(p, ","), p += *p == ',') {
        if (strncmp(p, onnx, n) || p[n] != '=')
            continue;
        char name[64] = "";
        size_t len = strcspn(p + n + 1, ",");
        if (len < sizeof name)
            memcpy(name, p + n + 1, len);
        return qn_attr_find(m->op, name);
    }
    return qn_attr_find(m->op, onnx);
}

static QnStatus wrong_kind(const QnOnnxNode *n, const QnOnnxAttr *a)
{
    return qn_onnx_refuse(n, "attribute '%s' is of kind %d, which is not expected", a->name,
                          (int)a->kind);
}

static QnStatus set_enum(const QnOnnxNode *n, const QnAttrField *f, const QnOnnxAttr *a, int *out)
{
    char text[64] = "";
    if (a->kind != QN_ONNX_STRING || a->s.n >= sizeof text)
        return wrong_kind(n, a);
    memcpy(text, a->s.s, a->s.n);
    for (int i = 0; f->names[i]; i++)
        if (!strcmp(f->names[i], text)) {
            *out = i;
            return QN_OK;
        }
    return qn_onnx_refuse(n, "attribute '%s' is '%s'", a->name, text);
}

static QnStatus set_field(const QnOnnxNode *n, const QnAttrField *f, const QnOnnxAttr *a, void *to)
{
    QnInts *ints = to;
    switch (f->kind) {
    case QN_ATTR_INT:
        *(int64_t *)to = a->i;
        return a->kind == QN_ONNX_INT ? QN_OK : wrong_kind(n, a);
    case QN_ATTR_BOOL:
        *(bool *)to = a->i != 0;
        return a->kind == QN_ONNX_INT ? QN_OK : wrong_kind(n, a);
    case QN_ATTR_FLOAT:
        *(double *)to = (double)a->f;
        return a->kind == QN_ONNX_FLOAT ? QN_OK : wrong_kind(n, a);
    case QN_ATTR_ENUM: return set_enum(n, f, a, to);
    case QN_ATTR_DTYPE:
        if (a->kind != QN_ONNX_INT || !qn_onnx_dtype(a->i, to))
            return qn_onnx_refuse(n, "attribute '%s': element type %lld", a->name, (long long)a->i);
        return QN_OK;
    case QN_ATTR_INTS:
        if (a->kind != QN_ONNX_INTS || a->n > (int64_t)QN_COUNT(ints->v))
            return wrong_kind(n, a);
        ints->n = (int)a->n;
        memcpy(ints->v, a->ints, (size_t)a->n * sizeof *a->ints);
        return QN_OK;
    default: return wrong_kind(n, a);
    }
}

/* Maps compute with floats, some with integers too; what they refuse goes through f32, integers
 * through f64, and a result of floats comes back. */
static QnDtype computing_dtype(const QnOp *op, QnDtype dtype)
{
    if (!(op->traits & QN_MAP) || op->traits & QN_ANY_DTYPE)
        return dtype;
    if (qn_dtype_is_float(dtype))
        return qn_dtype_is_storage(dtype) ? QN_DTYPE_F32 : dtype;
    return op->traits & QN_FLOAT_ONLY ? QN_DTYPE_F64 : dtype;
}

QnStatus qn_mapping_plain(const QnMapping *m, QnOnnxNode *n)
{
    const QnOp *op = m->op;
    QnValue *in[QN_MAX_IN];
    int n_in = n->n_in;
    void *attr = qn_arena_alloc(n->arena, QN_MAX(op->attr_bytes, 1));
    if (!attr)
        return QN_ENOMEM;
    qn_attr_defaults(op, attr);
    for (int i = 0; i < n->n_attr; i++) {
        if (!strcmp(n->attr[i].name, "consumed_inputs")) /* of opsets 1 to 5: a hint */
            continue;
        const QnAttrField *f = field_of(m, n->attr[i].name);
        if (!f)
            return qn_onnx_refuse(n, "attribute '%s' is not supported", n->attr[i].name);
        QN_TRY(set_field(n, f, &n->attr[i], (char *)attr + f->offset));
    }
    while (n_in > 0 && !n->in[n_in - 1])
        n_in--;
    QnDtype given = QN_DTYPE_COUNT, used = QN_DTYPE_COUNT;
    for (int i = 0; i < n_in; i++) {
        in[i] = qn_onnx_in(n, i);
        if (i == 0 && !qn_value_is_poison(in[0])) {
            given = in[0]->type.dtype;
            used = computing_dtype(op, given);
        }
        if (used != given && in[i]->type.dtype == given)
            in[i] = qn_cast(n->g, in[i], used);
    }
    QnNode *node = qn_emit(n->g, op, attr, in, n_in);
    if (!node)
        return qn_graph_check(n->g);
    for (int i = 0; i < n->n_out && i < node->n_out; i++) {
        QnValue *y = &node->out[i];
        if (used != given && y->type.dtype == used)
            y = qn_cast(n->g, y, given);
        QN_TRY(qn_onnx_out(n, i, y));
    }
    return QN_OK;
}
