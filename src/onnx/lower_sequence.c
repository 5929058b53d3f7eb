/* Sequences and optionals. They live while a model is imported; no operator of ours sees them. */
#include "onnx/importer.h"
#include "onnx/mapping.h"
#include "ops/ops.h"

#include <string.h>

static QnItem *new_list(QnOnnxNode *n, QnItemKind kind, int64_t most)
{
    QnItem *item = qn_importer_item(n->importer, n->name, NULL);
    if (!item)
        return NULL;
    item->kind = kind;
    if (most > INT64_MAX / 16) {
        qn_fail(QN_ENOMEM, "a sequence of %lld items", (long long)most);
        return NULL;
    }
    item->item = qn_onnx_room(n, ((size_t)most + 1) * sizeof *item->item);
    return item->item ? item : NULL;
}

static QnStatus give(QnOnnxNode *n, QnItem *item)
{
    return item ? qn_onnx_out_item(n, 0, item) : QN_ENOMEM;
}

static QnStatus sequence_of(const QnOnnxNode *n, int i, QnItem **out)
{
    if (!qn_onnx_has(n, i) || n->in[i]->kind != QN_ITEM_SEQUENCE)
        return qn_fail(QN_EDTYPE, "input %d must be a sequence", i);
    *out = n->in[i];
    return QN_OK;
}

/* A position in 0..n-1 (for insertion ..n), negative from the end. */
static QnStatus position(QnOnnxNode *n, int i, int64_t count, bool insert, int64_t *out)
{
    QN_TRY(qn_onnx_in_int(n, i, out));
    int64_t most = insert ? count : count - 1;
    if (*out < -count || *out > most)
        return qn_fail(QN_EARG, "position %lld in a sequence of %lld", (long long)*out,
                       (long long)count);
    if (*out < 0)
        *out += count;
    return QN_OK;
}

/* As ONNX has it; and lists in lists could double with each node. */
static QnStatus must_be_tensor(const QnOnnxNode *n, int i)
{
    return qn_onnx_has(n, i) && n->in[i]->kind == QN_ITEM_TENSOR
               ? QN_OK
               : qn_fail(QN_EDTYPE, "input %d must be a tensor", i);
}

static QnStatus import_construct(QnOnnxNode *n)
{
    for (int i = 0; i < n->n_in; i++)
        QN_TRY(must_be_tensor(n, i));
    QnItem *s = new_list(n, QN_ITEM_SEQUENCE, n->n_in);
    for (int i = 0; s && i < n->n_in; i++)
        s->item[s->n++] = n->in[i];
    return give(n, s);
}

static QnStatus import_empty(QnOnnxNode *n)
{
    return give(n, new_list(n, QN_ITEM_SEQUENCE, 0));
}

static QnStatus import_at(QnOnnxNode *n)
{
    QnItem *s = NULL;
    int64_t at;
    QN_TRY(sequence_of(n, 0, &s));
    QN_TRY(position(n, 1, s->n, false, &at));
    return qn_onnx_out_item(n, 0, s->item[at]);
}

static QnStatus import_insert(QnOnnxNode *n)
{
    QnItem *s = NULL;
    QN_TRY(sequence_of(n, 0, &s));
    QN_TRY(must_be_tensor(n, 1));
    int64_t at = s->n;
    if (qn_onnx_has(n, 2))
        QN_TRY(position(n, 2, s->n, true, &at));
    QnItem *out = new_list(n, QN_ITEM_SEQUENCE, s->n + 1);
    if (!out)
        return QN_ENOMEM;
    for (int64_t i = 0; i <= s->n; i++)
        out->item[out->n++] = i == at ? n->in[1] : s->item[i - (i > at)];
    return give(n, out);
}

static QnStatus import_erase(QnOnnxNode *n)
{
    QnItem *s = NULL;
    QN_TRY(sequence_of(n, 0, &s));
    int64_t at = s->n - 1;
    if (qn_onnx_has(n, 1))
        QN_TRY(position(n, 1, s->n, false, &at));
    if (at < 0)
        return qn_fail(QN_EARG, "the sequence is empty");
    QnItem *out = new_list(n, QN_ITEM_SEQUENCE, s->n);
    if (!out)
        return QN_ENOMEM;
    for (int64_t i = 0; i < s->n; i++)
        if (i != at)
            out->item[out->n++] = s->item[i];
    return give(n, out);
}

static QnStatus import_length(QnOnnxNode *n)
{
    QnItem *s = NULL;
    QnTensor *t = qn_onnx_tensor(n, QN_DTYPE_I64, &(QnShape){ 0 });
    QN_TRY(sequence_of(n, 0, &s));
    if (t)
        *(int64_t *)t->data = s->n;
    return qn_onnx_out_known(n, 0, t);
}

static QnStatus import_concat(QnOnnxNode *n)
{
    QnItem *s = NULL;
    int64_t axis = qn_onnx_int(n, "axis", 0);
    QN_TRY(sequence_of(n, 0, &s));
    if (s->n < 1 || s->n > QN_MAX_IN)
        return qn_onnx_refuse(n, "a sequence of %lld tensors; 1 to %d are joined", (long long)s->n,
                              QN_MAX_IN);
    QnValue **v = qn_arena_array(n->arena, (size_t)s->n, sizeof(QnValue *));
    if (!v)
        return QN_ENOMEM;
    for (int64_t i = 0; i < s->n; i++)
        v[i] = qn_item_value(n->g, n->epoch, s->item[i]);
    return qn_onnx_out0(n, qn_onnx_int(n, "new_axis", 0) ? qn_stack(n->g, v, (int)s->n, axis)
                                                         : qn_concat(n->g, v, (int)s->n, axis));
}

/* Lengths of the parts: one for all (the last may be shorter), or each. */
static QnStatus part_lengths(QnOnnxNode *n, int64_t length, int64_t **out, int64_t *count)
{
    int64_t one = 1, sum = 0;
    *out = NULL;
    if (qn_onnx_has(n, 1)) {
        QN_ONNX_NEED(n, 1);
        const QnTensor *t = n->in[1]->known;
        if (t->text)
            return qn_fail(QN_EDTYPE, "input 1 must hold integers");
        if (t->type.shape.rank == 1) {
            *count = t->type.shape.dim[0];
            *out = qn_arena_array(n->arena, (size_t)*count + 1, sizeof **out);
            if (!*out)
                return QN_ENOMEM;
            for (int64_t i = 0; i < *count; i++) {
                double v;
                size_t size = qn_dtype_bytes(t->type.dtype);
                qn_dtype_to_f64(t->type.dtype, (const char *)t->data + (size_t)i * size, &v, 1);
                if (!(v >= 0 && v <= (double)(length - sum)))
                    return qn_fail(QN_ESHAPE, "part %lld has length %g, of %lld", (long long)i, v,
                                   (long long)length);
                (*out)[i] = (int64_t)v;
                sum += (*out)[i];
            }
            return sum == length ? QN_OK
                                 : qn_fail(QN_ESHAPE, "parts of %lld together, of %lld",
                                           (long long)sum, (long long)length);
        }
        QN_TRY(qn_onnx_in_int(n, 1, &one));
    }
    if (one < 1)
        return qn_fail(QN_EARG, "parts of length %lld", (long long)one);
    *count = length / one + (length % one != 0);
    *out = qn_arena_array(n->arena, (size_t)*count + 1, sizeof **out);
    for (int64_t i = 0; *out && i < *count; i++)
        (*out)[i] = QN_MIN(one, length - i * one);
    return *out ? QN_OK : QN_ENOMEM;
}

static QnStatus import_split(QnOnnxNode *n)
{
    const QnType *t = qn_onnx_type(n, 0);
    int axis;
    int64_t *length = NULL, count = 0, at = 0;
    if (!t)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor of numbers");
    QN_TRY(qn_onnx_axis(qn_onnx_int(n, "axis", 0), t->shape.rank, &axis));
    QN_TRY(part_lengths(n, t->shape.dim[axis], &length, &count));
    bool keep = qn_onnx_has(n, 1) || qn_onnx_int(n, "keepdims", 1);
    QnValue *x = qn_onnx_in(n, 0);
    QnItem *out = new_list(n, QN_ITEM_SEQUENCE, count);
    for (int64_t i = 0; out && i < count; i++, at += length[i - 1]) {
        QnItem *part = qn_importer_item(n->importer, n->name, NULL);
        if (!part)
            return QN_ENOMEM;
        part->value = qn_slice_axis(n->g, x, axis, at, at + length[i]);
        if (!keep)
            part->value = qn_squeeze(n->g, part->value, axis);
        part->epoch = n->epoch;
        out->item[out->n++] = part;
    }
    QN_TRY(qn_graph_check(n->g));
    return give(n, out);
}

static QnStatus import_optional(QnOnnxNode *n)
{
    if (qn_onnx_has(n, 0) && n->in[0]->kind == QN_ITEM_OPTIONAL)
        return qn_fail(QN_EDTYPE, "input 0 is an optional already");
    QnItem *o = new_list(n, QN_ITEM_OPTIONAL, 1);
    if (o && qn_onnx_has(n, 0))
        o->item[o->n++] = n->in[0];
    return give(n, o);
}

static QnStatus import_get(QnOnnxNode *n)
{
    if (!qn_onnx_has(n, 0))
        return qn_fail(QN_EARG, "the optional is empty");
    if (n->in[0]->kind != QN_ITEM_OPTIONAL)
        return qn_onnx_out_item(n, 0, n->in[0]);
    if (n->in[0]->n == 0)
        return qn_fail(QN_EARG, "the optional '%s' is empty", n->in[0]->name);
    return qn_onnx_out_item(n, 0, n->in[0]->item[0]);
}

static QnStatus import_has(QnOnnxNode *n)
{
    bool full = qn_onnx_has(n, 0) && (n->in[0]->kind != QN_ITEM_OPTIONAL || n->in[0]->n > 0);
    QnTensor *t = qn_onnx_tensor(n, QN_DTYPE_BOOL, &(QnShape){ 0 });
    if (t)
        *(bool *)t->data = full;
    return qn_onnx_out_known(n, 0, t);
}

const QnOnnxMap qn_onnx_sequence[] = {
    { "SequenceConstruct", NULL, 11, 0, import_construct, NULL },
    { "SequenceEmpty", NULL, 11, 0, import_empty, NULL },
    { "SequenceAt", NULL, 11, 0, import_at, NULL },
    { "SequenceInsert", NULL, 11, 0, import_insert, NULL },
    { "SequenceErase", NULL, 11, 0, import_erase, NULL },
    { "SequenceLength", NULL, 11, 0, import_length, NULL },
    { "ConcatFromSequence", NULL, 11, 0, import_concat, NULL },
    { "SplitToSequence", NULL, 11, 0, import_split, NULL },
    { "Optional", NULL, 15, 0, import_optional, NULL },
    { "OptionalGetElement", NULL, 15, 0, import_get, NULL },
    { "OptionalHasElement", NULL, 15, 0, import_has, NULL },
    { 0 },
};
