/* What the operators' ONNX mappings share: inputs, attributes, results of a node. */
#include "ops/onnx.h"
#include "ops/ops.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

QnStatus qn_onnx_refuse(const QnOnnxNode *n, const char *fmt, ...)
{
    char text[QN_ERROR_TEXT_BYTES / 2];
    (void)n; /* the importer says which node */
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return qn_fail(QN_EUNSUPPORTED, "%s", text);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

bool qn_onnx_has(const QnOnnxNode *n, int i)
{
    return i < n->n_in && n->in[i];
}

static QnValue *state_of(QnGraph *g, const QnItem *item)
{
    const QnType *t = &item->known->type;
    QnStateAttr a = {
        .name = item->name,
        .dtype = t->dtype,
        .dims = { .n = t->shape.rank },
        .trainable = !item->is_statistic && !item->is_frozen,
    };
    if (a.trainable && item->prefix &&
        !(a.name = qn_arena_printf(g->arena, "%s%s", item->prefix, item->name)))
        return qn_graph_poison(g);
    memcpy(a.dims.d, t->shape.dim, sizeof a.dims.d);
    return qn_state(g, &a);
}

QnValue *qn_item_value(QnGraph *g, int64_t epoch, QnItem *item)
{
    if (item->value && item->epoch == epoch)
        return item->value = qn_value_resolve(item->value);
    if (!item->known || item->known->text) {
        qn_fail(QN_EDTYPE, "'%s' is no tensor of numbers", item->name);
        return qn_graph_poison(g);
    }
    const QnType *t = &item->known->type;
    item->value = item->is_state   ? state_of(g, item)
                  : item->is_fed   ? qn_input(g, item->name, t->dtype, &t->shape)
                  : item->is_model ? qn_constant_lasting(g, t->dtype, &t->shape, item->known->data)
                                   : qn_constant(g, t->dtype, &t->shape, item->known->data);
    item->epoch = epoch;
    return item->value;
}

QnValue *qn_onnx_in(QnOnnxNode *n, int i)
{
    if (!qn_onnx_has(n, i)) {
        qn_fail(QN_EARG, "input %d is missing", i);
        return qn_graph_poison(n->g);
    }
    if (n->in[i]->kind != QN_ITEM_TENSOR) {
        qn_fail(QN_EDTYPE, "input %d, '%s', is no tensor", i, n->in[i]->name);
        return qn_graph_poison(n->g);
    }
    return qn_item_value(n->g, n->epoch, n->in[i]);
}

QnValue *qn_onnx_in_or(QnOnnxNode *n, int i, QnValue *otherwise)
{
    return qn_onnx_has(n, i) ? qn_onnx_in(n, i) : otherwise;
}

QnValue *qn_onnx_key(QnOnnxNode *n)
{
    for (QnNode *k = n->g->first; k; k = k->next)
        if (k->op == &qn_op_input && !strcmp(qn_node_label(k), "key"))
            return &k->out[0];
    return qn_input(n->g, "key", QN_DTYPE_I64, &QN_SHAPE(2));
}

const QnType *qn_onnx_type(const QnOnnxNode *n, int i)
{
    if (!qn_onnx_has(n, i) || n->in[i]->kind != QN_ITEM_TENSOR)
        return NULL;
    const QnItem *item = n->in[i];
    if (item->value && item->epoch == n->epoch)
        return &item->value->type;
    return item->known && !item->known->text ? &item->known->type : NULL;
}

int qn_onnx_rank(const QnOnnxNode *n, int i)
{
    const QnType *t = qn_onnx_type(n, i);
    return t ? t->shape.rank : -1;
}

const QnTensor *qn_onnx_known(QnOnnxNode *n, int i)
{
    if (!qn_onnx_has(n, i)) {
        qn_fail(QN_EARG, "input %d is missing", i);
        return NULL;
    }
    if (n->in[i]->kind != QN_ITEM_TENSOR) {
        qn_fail(QN_EDTYPE, "input %d, '%s', is no tensor", i, n->in[i]->name);
        return NULL;
    }
    if (!n->in[i]->known) {
        qn_error_clear();
        n->want |= UINT64_C(1) << QN_MIN(i, 63);
        return NULL;
    }
    return n->in[i]->known;
}

QnStatus qn_onnx_wait(void)
{
    QnStatus failed = qn_error_last()->code;
    return failed ? failed : QN_ENOTFOUND;
}

static int64_t int_at(const QnTensor *t, int64_t i)
{
    double v;
    switch (t->type.dtype) {
    case QN_DTYPE_I64: return ((const int64_t *)t->data)[i];
    case QN_DTYPE_I32: return ((const int32_t *)t->data)[i];
    default:
        qn_dtype_to_f64(t->type.dtype,
                        (const char *)t->data + (size_t)i * qn_dtype_bytes(t->type.dtype), &v, 1);
        return (int64_t)v;
    }
}

QnStatus qn_onnx_in_ints(QnOnnxNode *n, int i, QnInts *out)
{
    QN_ONNX_NEED(n, i);
    const QnTensor *t = n->in[i]->known;
    int64_t count = qn_shape_count(&t->type.shape);
    if (t->text || !(qn_dtype_is_int(t->type.dtype) || t->type.dtype == QN_DTYPE_BOOL))
        return qn_fail(QN_EDTYPE, "input %d, '%s', must hold integers", i, n->in[i]->name);
    if (count > (int64_t)QN_COUNT(out->v))
        return qn_onnx_refuse(n, "input %d, '%s', has %lld elements, at most %d are taken", i,
                              n->in[i]->name, (long long)count, (int)QN_COUNT(out->v));
    out->n = (int)count;
    for (int k = 0; k < out->n; k++)
        out->v[k] = int_at(t, k);
    return QN_OK;
}

QnStatus qn_onnx_in_int(QnOnnxNode *n, int i, int64_t *out)
{
    QnInts v = { 0 };
    QN_TRY(qn_onnx_in_ints(n, i, &v));
    if (v.n != 1)
        return qn_fail(QN_ESHAPE, "input %d, '%s', must be one number, it has %d", i,
                       n->in[i]->name, v.n);
    *out = v.v[0];
    return QN_OK;
}

QnStatus qn_onnx_in_double(QnOnnxNode *n, int i, double *out)
{
    QN_ONNX_NEED(n, i);
    const QnTensor *t = n->in[i]->known;
    if (t->text || qn_shape_count(&t->type.shape) != 1)
        return qn_fail(QN_ESHAPE, "input %d, '%s', must be one number", i, n->in[i]->name);
    qn_dtype_to_f64(t->type.dtype, t->data, out, 1);
    return QN_OK;
}

/* ---- attributes ------------------------------------------------------------------------------ */

const QnOnnxAttr *qn_onnx_attr(const QnOnnxNode *n, const char *name)
{
    for (int i = 0; i < n->n_attr; i++)
        if (!strcmp(n->attr[i].name, name))
            return &n->attr[i];
    return NULL;
}

int64_t qn_onnx_int(const QnOnnxNode *n, const char *name, int64_t otherwise)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, name);
    return a && a->kind == QN_ONNX_INT ? a->i : otherwise;
}

double qn_onnx_float(const QnOnnxNode *n, const char *name, double otherwise)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, name);
    return a && a->kind == QN_ONNX_FLOAT ? (double)a->f : otherwise;
}

bool qn_onnx_is(const QnOnnxNode *n, const char *name, const char *text, const char *otherwise)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, name);
    if (!a || a->kind != QN_ONNX_STRING)
        return !strcmp(text, otherwise);
    return a->s.n == strlen(text) && !memcmp(a->s.s, text, a->s.n);
}

bool qn_onnx_ints(const QnOnnxNode *n, const char *name, QnInts *out)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, name);
    *out = (QnInts){ 0 };
    if (!a || a->kind != QN_ONNX_INTS || a->n > (int64_t)QN_COUNT(out->v))
        return false;
    out->n = (int)a->n;
    for (int i = 0; i < out->n; i++)
        out->v[i] = a->ints[i];
    return true;
}

/* TensorProto.DataType by number; "" where we have no such type. */
static const char *const dtype_names[] = {
    "",     "f32",      "u8",         "i8",     "u16",        "i16", "i32", "i64",
    "",     "bool",     "f16",        "f64",    "u32",        "u64", "",    "",
    "bf16", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "u4",  "i4",  "f4e2m1",
};

bool qn_onnx_dtype(int64_t number, QnDtype *out)
{
    return number > 0 && number < (int64_t)QN_COUNT(dtype_names) &&
           qn_dtype_find(dtype_names[number], out);
}

int qn_onnx_dtype_number(QnDtype dtype)
{
    for (int i = 0; i < (int)QN_COUNT(dtype_names); i++)
        if (!strcmp(dtype_names[i], qn_dtype_name(dtype)))
            return i;
    return 0;
}

bool qn_onnx_is_packed(QnDtype dtype)
{
    return dtype == QN_DTYPE_I4 || dtype == QN_DTYPE_U4 || dtype == QN_DTYPE_F4E2M1;
}

QnStatus qn_onnx_axis(int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank)
        return qn_fail(QN_ESHAPE, "axis %lld is not one of a tensor of rank %d", (long long)axis,
                       rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return QN_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

QnStatus qn_onnx_out_item(QnOnnxNode *n, int i, QnItem *item)
{
    if (i < n->n_out)
        n->out[i] = item;
    return QN_OK;
}

static QnItem *new_item(QnOnnxNode *n)
{
    QnItem *item = qn_arena_alloc(n->arena, sizeof *item);
    if (item)
        *item = (QnItem){ .kind = QN_ITEM_TENSOR, .epoch = n->epoch, .name = n->name };
    return item;
}

QnStatus qn_onnx_out(QnOnnxNode *n, int i, QnValue *v)
{
    if (!v || qn_value_is_poison(v))
        return qn_graph_check(n->g);
    if (i >= n->n_out)
        return QN_OK;
    QnItem *item = new_item(n);
    if (!item)
        return QN_ENOMEM;
    item->value = v;
    n->out[i] = item;
    return QN_OK;
}

QnStatus qn_onnx_out0(QnOnnxNode *n, QnValue *v)
{
    return qn_onnx_out(n, 0, v);
}

QnStatus qn_onnx_out_known(QnOnnxNode *n, int i, const QnTensor *t)
{
    if (!t)
        return QN_ENOMEM;
    if (i >= n->n_out)
        return QN_OK;
    QnItem *item = new_item(n);
    if (!item)
        return QN_ENOMEM;
    item->known = t;
    n->out[i] = item;
    return QN_OK;
}

void *qn_onnx_room(QnOnnxNode *n, size_t bytes)
{
    return n->blocks ? qn_onnx_blocks_take(n->blocks, bytes) : qn_arena_alloc(n->arena, bytes);
}

QnTensor *qn_onnx_tensor(QnOnnxNode *n, QnDtype dtype, const QnShape *shape)
{
    QnTensor *t = qn_arena_alloc(n->arena, sizeof *t);
    if (!t)
        return NULL;
    t->type = (QnType){ .dtype = dtype, .shape = *shape };
    int64_t bytes = qn_type_bytes(&t->type);
    if (bytes < 0) {
        qn_fail(QN_ESHAPE, "a tensor of this shape has more elements than can be counted");
        return NULL;
    }
    t->data = qn_onnx_room(n, (size_t)QN_MAX(bytes, 1));
    return t->data ? t : NULL;
}

QnTensor *qn_onnx_tensor_text(QnOnnxNode *n, const QnShape *shape)
{
    QnTensor *t = qn_arena_alloc(n->arena, sizeof *t);
    int64_t count = qn_shape_count(shape);
    if (!t || count < 0 || count > (int64_t)(SIZE_MAX / 2 / sizeof *t->text)) {
        if (t)
            qn_fail(QN_ESHAPE, "a tensor of this shape has more elements than can be counted");
        return NULL;
    }
    t->type = (QnType){ .shape = *shape };
    t->text = qn_onnx_room(n, (size_t)QN_MAX(count, 1) * sizeof *t->text);
    return t->text ? t : NULL;
}

QnStatus qn_onnx_out_ints(QnOnnxNode *n, int i, const int64_t *v, int count)
{
    QnTensor *t = qn_onnx_tensor(n, QN_DTYPE_I64, &QN_SHAPE(count));
    if (t && count)
        memcpy((void *)t->data, v, (size_t)count * sizeof *v);
    return qn_onnx_out_known(n, i, t);
}
