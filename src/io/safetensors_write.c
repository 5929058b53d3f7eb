#include "base/json.h"
#include "base/mem.h"
#include "io/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, ALIGN_BYTES = 64 };

/* A tensor in the order of the file. */
typedef struct Item {
    int64_t index; /* in the caller's array */
    char *name;    /* kept for messages and sorting */
    size_t item_bytes, bytes;
} Item;

struct QnSafetensorsWriter {
    QnFileOut out;
    Item *items;
    int64_t count, at;
    size_t done; /* bytes of items[at] that are written */
};

static const char *dtype_text(QnDtype dtype)
{
    switch (dtype) {
    case QN_DTYPE_F32: return "F32";
    case QN_DTYPE_F16: return "F16";
    case QN_DTYPE_BF16: return "BF16";
    case QN_DTYPE_F64: return "F64";
    case QN_DTYPE_I8: return "I8";
    case QN_DTYPE_U8: return "U8";
    case QN_DTYPE_I32: return "I32";
    case QN_DTYPE_I64: return "I64";
    case QN_DTYPE_BOOL: return "BOOL";
    case QN_DTYPE_I16: return "I16";
    case QN_DTYPE_U16: return "U16";
    case QN_DTYPE_U32: return "U32";
    case QN_DTYPE_U64: return "U64";
    case QN_DTYPE_F8E4M3FN: return "F8_E4M3";
    case QN_DTYPE_F8E5M2: return "F8_E5M2";
    default: return NULL;
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const Item *)a)->name, ((const Item *)b)->name);
}

static int compare_items(const void *a, const void *b)
{
    const Item *x = a, *y = b;
    if (x->item_bytes != y->item_bytes)
        return x->item_bytes > y->item_bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static QnStatus measure_item(const QnSafetensor *t, Item *item)
{
    int64_t n = 1, bytes;
    if (!t->name || !dtype_text(t->dtype) || t->rank < 0 || t->rank > QN_SAFETENSORS_MAX_RANK)
        return qn_fail(QN_EARG, "tensor '%s': rank %d or its dtype cannot be written",
                       t->name ? t->name : "(no name)", t->rank);
    if (!strcmp(t->name, "__metadata__"))
        return qn_fail(QN_EARG, "tensor '__metadata__': this name is taken by the format");
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] < 0 || qn_mul_overflow(n, t->dims[i], &n))
            return qn_fail(QN_EARG, "tensor '%s': dimension %d is %" PRId64, t->name, i,
                           t->dims[i]);
    item->item_bytes = qn_dtype_bytes(t->dtype);
    if (qn_mul_overflow(n, (int64_t)item->item_bytes, &bytes))
        return qn_fail(QN_EARG, "tensor '%s': its size overflows 64 bits", t->name);
    item->bytes = (size_t)bytes;
    item->name = qn_strdup(t->name);
    return item->name ? QN_OK : QN_ENOMEM;
}

static QnStatus sort_items(QnSafetensorsWriter *w, const QnSafetensor *tensors, int64_t count)
{
    w->items = qn_alloc_array((size_t)count, sizeof *w->items);
    if (!w->items)
        return QN_ENOMEM;
    for (; w->count < count; w->count++) {
        w->items[w->count].index = w->count;
        QN_TRY(measure_item(&tensors[w->count], &w->items[w->count]));
    }
    qsort(w->items, (size_t)count, sizeof *w->items, compare_names);
    for (int64_t i = 1; i < count; i++)
        if (!strcmp(w->items[i - 1].name, w->items[i].name))
            return qn_fail(QN_EARG, "tensor '%s' is given twice", w->items[i].name);
    qsort(w->items, (size_t)count, sizeof *w->items, compare_items);
    return QN_OK;
}

static void put_tensor(QnJsonWriter *j, const QnSafetensor *t, uint64_t begin, uint64_t end)
{
    qn_json_key(j, t->name);
    qn_json_open_object(j);
    qn_json_put_string(j, "dtype", dtype_text(t->dtype));
    qn_json_key(j, "shape");
    qn_json_open_array(j);
    for (int i = 0; i < t->rank; i++)
        qn_json_add_int(j, t->dims[i]);
    qn_json_close(j);
    qn_json_key(j, "data_offsets");
    qn_json_open_array(j);
    qn_json_add_int(j, (int64_t)begin);
    qn_json_add_int(j, (int64_t)end);
    qn_json_close(j);
    qn_json_close(j);
}

static QnStatus write_header(QnSafetensorsWriter *w, const QnSafetensor *tensors,
                             const QnSafetensorsText *metadata, int metadata_count)
{
    QnStr text = { 0 };
    QnJsonWriter j;
    uint64_t at = 0;
    QnStatus st = QN_OK;
    qn_json_begin(&j, &text, 0);
    qn_json_open_object(&j);
    if (metadata_count) {
        qn_json_key(&j, "__metadata__");
        qn_json_open_object(&j);
        for (int i = 0; i < metadata_count; i++)
            qn_json_put_string(&j, metadata[i].key, metadata[i].value);
        qn_json_close(&j);
    }
    for (int64_t i = 0; i < w->count; i++) {
        put_tensor(&j, &tensors[w->items[i].index], at, at + w->items[i].bytes);
        at += w->items[i].bytes;
    }
    qn_json_close(&j);
    QN_TRY_DONE(qn_json_end(&j));
    size_t over = (LENGTH_BYTES + text.n) % ALIGN_BYTES;
    qn_str_add_repeat(&text, " ", over ? (int64_t)(ALIGN_BYTES - over) : 0);
    QN_TRY_DONE(text.st);
    if (text.n > QN_SAFETENSORS_HEADER_MAX) {
        st = qn_fail(QN_EARG, "a header of %zu bytes is over the format's limit", text.n);
        goto done;
    }
    uint8_t length[LENGTH_BYTES];
    for (int i = 0; i < LENGTH_BYTES; i++)
        length[i] = (uint8_t)((uint64_t)text.n >> (8 * i));
    QN_TRY_DONE(qn_file_write(&w->out, length, sizeof length));
    st = qn_file_write(&w->out, text.s, text.n);
done:
    qn_str_fini(&text);
    return st;
}

/* Empty tensors want no bytes. */
static void skip_done(QnSafetensorsWriter *w)
{
    while (w->at < w->count && w->done == w->items[w->at].bytes) {
        w->at++;
        w->done = 0;
    }
}

static void writer_free(QnSafetensorsWriter *w)
{
    for (int64_t i = 0; w->items && i < w->count; i++)
        qn_free(w->items[i].name);
    qn_free(w->items);
    qn_free(w);
}

QnStatus qn_safetensors_create(const char *path, const QnSafetensor *tensors, int64_t count,
                               const QnSafetensorsText *metadata, int metadata_count,
                               QnSafetensorsWriter **out)
{
    QnSafetensorsWriter *w = qn_alloc(sizeof *w);
    if (!w)
        return QN_ENOMEM;
    QnStatus st = sort_items(w, tensors, count);
    if (st == QN_OK)
        st = qn_file_create(&w->out, path);
    if (st != QN_OK) {
        writer_free(w);
        return st;
    }
    st = write_header(w, tensors, metadata, metadata_count);
    if (st != QN_OK) {
        qn_safetensors_discard(w);
        return qn_fail_prefix("%s", path);
    }
    skip_done(w);
    *out = w;
    return QN_OK;
}

int64_t qn_safetensors_next(const QnSafetensorsWriter *w)
{
    return w->at < w->count ? w->items[w->at].index : -1;
}

QnStatus qn_safetensors_write(QnSafetensorsWriter *w, const void *data, size_t bytes)
{
    if (w->at >= w->count || bytes > w->items[w->at].bytes - w->done)
        return qn_fail(QN_EARG, "%s: %zu bytes more than its tensors take", w->out.path, bytes);
    QN_TRY(qn_file_write(&w->out, data, bytes));
    w->done += bytes;
    skip_done(w);
    return QN_OK;
}

QnStatus qn_safetensors_commit(QnSafetensorsWriter *w)
{
    if (w->at < w->count) {
        QnStatus st = qn_fail(QN_EARG, "%s: tensor '%s' is not written whole", w->out.path,
                              w->items[w->at].name);
        qn_safetensors_discard(w);
        return st;
    }
    QnStatus st = qn_file_commit(&w->out);
    writer_free(w);
    return st;
}

void qn_safetensors_discard(QnSafetensorsWriter *w)
{
    if (!w)
        return;
    qn_file_discard(&w->out);
    writer_free(w);
}

QnStatus qn_safetensors_save(const char *path, const QnSafetensor *tensors, int64_t count,
                             const QnSafetensorsText *metadata, int metadata_count)
{
    QnSafetensorsWriter *w;
    QN_TRY(qn_safetensors_create(path, tensors, count, metadata, metadata_count, &w));
    for (int64_t i; (i = qn_safetensors_next(w)) >= 0;) {
        QnStatus st = qn_safetensors_write(w, tensors[i].data, w->items[w->at].bytes);
        if (st != QN_OK) {
            qn_safetensors_discard(w);
            return st;
        }
    }
    return qn_safetensors_commit(w);
}
