/* Files of single values: tensors, sequences, optionals. */
#include "io/onnx.h"

#include "base/file.h"

#ifdef QN_HAVE_ONNX
#include "io/onnx_read.h"
#include "io/onnx_value.pb-c.h"

#include <string.h>

static QnItem *new_item(QnOnnxReader *r, QnItemKind kind, size_t n)
{
    QnItem *item = qn_arena_alloc(r->arena, sizeof *item);
    if (!item)
        return NULL;
    *item = (QnItem){ .kind = kind, .name = r->file, .n = (int64_t)n, .epoch = -1 };
    item->item = qn_arena_array(r->arena, QN_MAX(n, 1), sizeof *item->item);
    return item->item ? item : NULL;
}

/* Elements are copied: the file's message is gone when the caller reads them. */
static QnStatus take_tensor(QnOnnxReader *r, const Onnx__TensorProto *p, QnItem **out)
{
    const QnTensor *t;
    QnItem *item = new_item(r, QN_ITEM_TENSOR, 0);
    QN_TRY(item ? QN_OK : QN_ENOMEM);
    QN_TRY(qn_onnx_read_tensor(r, p, p->name ? p->name : "", &t));
    QnTensor *copy = qn_arena_copy(r->arena, t, sizeof *t);
    if (!copy)
        return QN_ENOMEM;
    int64_t n = qn_shape_count(&t->type.shape);
    if (t->text) {
        QnText *text = qn_arena_copy(r->arena, t->text, (size_t)QN_MAX(n, 1) * sizeof *text);
        for (int64_t i = 0; text && i < n; i++)
            if (text[i].n && !(text[i].s = qn_arena_copy(r->arena, text[i].s, text[i].n)))
                return QN_ENOMEM;
        copy->text = text;
        QN_TRY(text ? QN_OK : QN_ENOMEM);
    } else if (n) {
        copy->data = qn_arena_copy(r->arena, t->data, (size_t)qn_type_bytes(&t->type));
        QN_TRY(copy->data ? QN_OK : QN_ENOMEM);
    }
    item->known = copy;
    *out = item;
    return QN_OK;
}

static QnStatus take_optional(QnOnnxReader *r, const Quern__OptionalValue *p, QnItem **out);

static QnStatus take_sequence(QnOnnxReader *r, const Quern__SequenceValue *p, QnItem **out)
{
    size_t n = p->n_tensor + p->n_sequence + p->n_optional_value, k = 0;
    QnItem *item = new_item(r, QN_ITEM_SEQUENCE, n);
    QN_TRY(item ? QN_OK : QN_ENOMEM);
    for (size_t i = 0; i < p->n_tensor; i++)
        QN_TRY(take_tensor(r, p->tensor[i], &item->item[k++]));
    for (size_t i = 0; i < p->n_sequence; i++)
        QN_TRY(take_sequence(r, p->sequence[i], &item->item[k++]));
    for (size_t i = 0; i < p->n_optional_value; i++)
        QN_TRY(take_optional(r, p->optional_value[i], &item->item[k++]));
    *out = item;
    return QN_OK;
}

static QnStatus take_optional(QnOnnxReader *r, const Quern__OptionalValue *p, QnItem **out)
{
    bool full = p->tensor || p->sequence || p->optional_value;
    QnItem *item = new_item(r, QN_ITEM_OPTIONAL, full);
    QN_TRY(item ? QN_OK : QN_ENOMEM);
    *out = item;
    return p->tensor           ? take_tensor(r, p->tensor, &item->item[0])
           : p->sequence       ? take_sequence(r, p->sequence, &item->item[0])
           : p->optional_value ? take_optional(r, p->optional_value, &item->item[0])
                               : QN_OK;
}

static const ProtobufCMessageDescriptor *message_of(const QnOnnxType *type)
{
    return type && type->kind == QN_ONNX_TYPE_SEQUENCE   ? &quern__sequence_value__descriptor
           : type && type->kind == QN_ONNX_TYPE_OPTIONAL ? &quern__optional_value__descriptor
                                                         : &onnx__tensor_proto__descriptor;
}

/* Files written through NumPy, which has no bfloat16, hold the bits as u16. */
static void take_bits(const QnOnnxType *type, QnItem *item)
{
    QnTensor *t = (QnTensor *)item->known;
    QnDtype dtype;
    if (t && type && type->kind == QN_ONNX_TYPE_TENSOR && !t->text &&
        t->type.dtype == QN_DTYPE_U16 && qn_onnx_dtype(type->elem, &dtype) &&
        dtype == QN_DTYPE_BF16)
        t->type.dtype = dtype;
}

QnStatus qn_onnx_read_value(const char *path, const QnOnnxType *type, QnArena *arena, QnItem **out)
{
    QnFileMap map;
    const ProtobufCMessageDescriptor *d = message_of(type);
    QN_TRY(qn_file_map(path, &map));
    ProtobufCMessage *m = qn_onnx_unpack(d, map.data, map.bytes, path);
    QnStatus st = m ? QN_OK : qn_error_last()->code;
    if (m) {
        QnOnnxReader r = { .arena = arena,
                           .file = qn_arena_strdup(arena, path),
                           .bytes = map.bytes };
        ProtobufCAllocator a = qn_onnx_allocator();
        st = !r.file                                   ? QN_ENOMEM
             : d == &quern__sequence_value__descriptor ? take_sequence(&r, (void *)m, out)
             : d == &quern__optional_value__descriptor ? take_optional(&r, (void *)m, out)
                                                       : take_tensor(&r, (void *)m, out);
        protobuf_c_message_free_unpacked(m, &a);
        if (st == QN_OK)
            take_bits(type, *out);
    }
    qn_file_unmap(&map);
    return st;
}
#else
QnStatus qn_onnx_read_value(const char *path, const QnOnnxType *type, QnArena *arena, QnItem **out)
{
    QnOnnxModel *none = NULL;
    (void)type, (void)arena, (void)out;
    return qn_onnx_read(path, &none); /* says what is missing */
}
#endif
