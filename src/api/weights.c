/* The states of a store as a safetensors file, or from any file of weights. */
#include "io/safetensors.h"
#include "io/weights.h"
#include "rt/store.h"

#include <string.h>

static QnSafetensor describe(const QnSlot *slot)
{
    const QnShape *s = &slot->type.shape;
    QnSafetensor t = { .name = slot->name, .dtype = slot->type.dtype, .rank = s->rank };
    memcpy(t.dims, s->dim, (size_t)s->rank * sizeof t.dims[0]);
    return t;
}

/* Writes tensors[i], which is slots[i]. `room` takes the largest. */
static QnStatus write_all(QnSafetensorsWriter *w, const QnStore *s, const QnSlot *const *slots,
                          void *room)
{
    for (int64_t i; (i = qn_safetensors_next(w)) >= 0;) {
        QN_TRY(qn_store_read(s, slots[i], room));
        QN_TRY(qn_safetensors_write(w, room, (size_t)slots[i]->bytes));
    }
    return QN_OK;
}

QnStatus qn_store_save(const QnStore *s, const char *prefix, const char *path)
{
    int64_t n = 0, most = 0;
    QnSafetensorsWriter *w = NULL;
    QnSafetensor *tensors = qn_alloc_array((size_t)s->n + 1, sizeof *tensors);
    const QnSlot **slots = qn_alloc_array((size_t)s->n + 1, sizeof *slots);
    void *room = NULL;
    QnStatus st = tensors && slots ? QN_OK : QN_ENOMEM;
    for (int64_t i = 0; st == QN_OK && i < s->n; i++) {
        if (prefix && strncmp(s->slots[i].name, prefix, strlen(prefix)) != 0)
            continue;
        slots[n] = &s->slots[i];
        tensors[n++] = describe(&s->slots[i]);
        most = QN_MAX(most, s->slots[i].bytes);
    }
    QN_TRY_DONE(st);
    room = qn_alloc((size_t)most + 1);
    QN_TRY_DONE(room ? QN_OK : QN_ENOMEM);
    QN_TRY_DONE(qn_safetensors_create(path, tensors, n, NULL, 0, &w));
    QN_TRY_DONE(write_all(w, s, slots, room));
    st = qn_safetensors_commit(w);
    w = NULL;
done:
    qn_safetensors_discard(w);
    qn_free(room);
    qn_free(slots);
    qn_free(tensors);
    return st;
}

static QnStatus check(const char *path, const QnSafetensor *t, const QnSlot *slot)
{
    QnType found = { .dtype = t->dtype, .shape = qn_shape_make(t->rank, t->dims) };
    char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
    if (t->dtype == slot->type.dtype && qn_shape_is_equal(&found.shape, &slot->type.shape))
        return QN_OK;
    return qn_fail(QN_ESHAPE, "%s: tensor '%s' is %s, the model needs %s", path, t->name,
                   qn_type_text(&found, a), qn_type_text(&slot->type, b));
}

/* Tensor i of the file into its slot, by way of memory where it does not lie there as it is. */
static QnStatus fill(QnStore *s, const QnSlot *slot, QnWeights *w, int64_t i)
{
    const QnSafetensor *t = qn_weights_at(w, i);
    if (t->data && t->dtype != QN_DTYPE_BOOL)
        return qn_store_write(s, slot, t->data);
    void *room = qn_alloc(t->bytes + 1);
    QnStatus st = room ? qn_weights_read(w, i, room) : QN_ENOMEM;
    if (st == QN_OK)
        st = qn_store_write(s, slot, room);
    qn_free(room);
    return st;
}

QnStatus qn_store_load(QnStore *s, const char *path, int64_t *n)
{
    QnWeights *file = NULL;
    int64_t found = 0;
    QN_TRY(qn_weights_open(path, &file));
    QnStatus st = QN_OK;
    for (int64_t i = 0; st == QN_OK && i < qn_weights_count(file); i++) { /* all, then change */
        const QnSafetensor *t = qn_weights_at(file, i);
        const QnSlot *slot = qn_store_find(s, t->name);
        if (slot)
            st = check(path, t, slot);
    }
    for (int64_t i = 0; st == QN_OK && i < qn_weights_count(file); i++) {
        const QnSlot *slot = qn_store_find(s, qn_weights_at(file, i)->name);
        if (!slot)
            continue;
        st = fill(s, slot, file, i);
        found++;
    }
    qn_weights_close(file);
    if (st == QN_OK && n)
        *n = found;
    return st;
}
