/* What goes into a run and what comes out of it. */
#include "onnx/importer.h"

#include <stdio.h>
#include <string.h>

static const char *elem_name(int64_t elem)
{
    QnDtype dtype;
    return qn_onnx_dtype(elem, &dtype)    ? qn_dtype_name(dtype)
           : elem == QN_ONNX_DTYPE_STRING ? "strings"
           : elem                         ? "complex"
                                          : "";
}

const char *qn_onnx_declared_text(const QnOnnxType *t, char buf[QN_ONNX_DECLARED_TEXT_BYTES])
{
    size_t n = 0;
    const size_t most = QN_ONNX_DECLARED_TEXT_BYTES;
    n += (size_t)snprintf(buf, most, "%s[%s", elem_name(t->elem), t->rank < 0 ? "…" : "");
    for (int i = 0; i < t->rank && n < most - 64; i++) {
        const char *name = t->dim_name[i] && t->dim_name[i][0] ? t->dim_name[i] : "?";
        if (t->dim[i] < 0)
            n += (size_t)snprintf(buf + n, most - n, "%s%.40s", i ? "," : "", name);
        else
            n += (size_t)snprintf(buf + n, most - n, "%s%lld", i ? "," : "", (long long)t->dim[i]);
    }
    snprintf(buf + n, most - n, "]");
    return buf;
}

static bool is_number_of(const QnOnnxType *t, const QnTensor *known)
{
    QnDtype dtype;
    if (!t->elem)
        return true;
    if (t->elem == QN_ONNX_DTYPE_STRING)
        return known->text != NULL;
    return !known->text && qn_onnx_dtype(t->elem, &dtype) && dtype == known->type.dtype;
}

static QnStatus differs(QnStatus code, const QnOnnxInfo *info, const QnTensor *t)
{
    char given[QN_TYPE_TEXT_BYTES], taken[QN_ONNX_DECLARED_TEXT_BYTES];
    const char *text = qn_type_text(&t->type, given);
    const char *shape = strchr(text, '[');
    return qn_fail(code, "input '%s' is %s%s, the model takes %s", info->name,
                   t->text ? "strings" : "", t->text && shape ? shape : text,
                   qn_onnx_declared_text(info->type, taken));
}

QnStatus qn_onnx_check_tensor(const QnOnnxInfo *info, const QnTensor *t)
{
    const QnOnnxType *to = info->type;
    bool fits = to->rank < 0 || to->rank == t->type.shape.rank;
    for (int k = 0; fits && k < to->rank; k++)
        fits = to->dim[k] < 0 || to->dim[k] == t->type.shape.dim[k];
    if (!fits)
        return differs(QN_ESHAPE, info, t);
    return is_number_of(to, t) ? QN_OK : differs(QN_EDTYPE, info, t);
}

/* Dims are not compared: in ONNX's own cases not even their number is always the declared one, and
 * what is computed follows from those given. */
static QnStatus check_tensor(const char *name, const QnOnnxType *t, const QnTensor *known)
{
    const QnOnnxInfo info = { name, t };
    return is_number_of(t, known) ? QN_OK : differs(QN_EDTYPE, &info, known);
}

QnStatus qn_importer_check_input(const char *name, const QnOnnxType *t, const QnItem *item)
{
    static const char *const kinds[] = { "a tensor", "a sequence", "an optional" };
    bool optional = t->kind == QN_ONNX_TYPE_OPTIONAL;
    if (t->kind == QN_ONNX_TYPE_NONE)
        return QN_OK;
    if (optional && item->kind == QN_ITEM_OPTIONAL)
        return item->n && t->of ? qn_importer_check_input(name, t->of, item->item[0]) : QN_OK;
    if (optional) /* given as what it would hold */
        return t->of ? qn_importer_check_input(name, t->of, item) : QN_OK;
    if (t->kind == QN_ONNX_TYPE_SEQUENCE && item->kind == QN_ITEM_SEQUENCE) {
        for (int64_t i = 0; t->of && i < item->n; i++)
            QN_TRY(qn_importer_check_input(name, t->of, item->item[i]));
        return QN_OK;
    }
    if (t->kind == QN_ONNX_TYPE_TENSOR && item->kind == QN_ITEM_TENSOR && item->known)
        return check_tensor(name, t, item->known);
    return qn_fail(QN_EDTYPE, "input '%s' is %s, which the model does not take there", name,
                   kinds[item->kind]);
}

static QnTensor *copy_tensor(QnArena *to, const QnTensor *t)
{
    QnTensor *copy = qn_arena_copy(to, t, sizeof *t);
    size_t n = (size_t)qn_shape_count(&t->type.shape);
    if (!copy)
        return NULL;
    if (!t->text) {
        copy->data = qn_arena_copy(to, t->data, n * qn_dtype_bytes(t->type.dtype));
        return copy->data ? copy : NULL;
    }
    QnText *text = qn_arena_copy(to, t->text, n * sizeof *text);
    for (size_t i = 0; text && i < n; i++)
        if (!(text[i].s = qn_arena_copy(to, text[i].s, text[i].n)))
            return NULL;
    copy->text = text;
    return text ? copy : NULL;
}

QnStatus qn_importer_take(QnArena *to, const QnItem *from, QnItem **out)
{
    QnItem *item = from ? qn_arena_copy(to, from, sizeof *from) : NULL;
    if (!from) {
        *out = NULL;
        return QN_OK;
    }
    QnItem **list = qn_arena_array(to, (size_t)from->n + 1, sizeof(QnItem *));
    if (!item || !list || !(item->name = qn_arena_strdup(to, from->name)))
        return QN_ENOMEM;
    item->value = NULL;
    item->epoch = -1;
    item->round = 0;
    item->is_fed = false;
    item->item = list;
    for (int64_t i = 0; i < from->n; i++)
        QN_TRY(qn_importer_take(to, from->item[i], &list[i]));
    if (from->known && !(item->known = copy_tensor(to, from->known)))
        return QN_ENOMEM;
    *out = item;
    return QN_OK;
}
