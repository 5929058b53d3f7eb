#include "rt/store.h"
#include "rt/memplan.h"

#include <stdlib.h>
#include <string.h>

QnStore *qn_store_new(QnDevice *d)
{
    QnStore *s = qn_alloc(sizeof *s);
    if (!s)
        return NULL;
    s->device = d;
    s->arena = qn_arena_new();
    if (!s->arena) {
        qn_free(s);
        return NULL;
    }
    return s;
}

void qn_store_release(QnStore *s)
{
    for (int64_t i = 0; s->copies && i < s->n; i++)
        qn_free(s->copies[i]);
    qn_free(s->copies);
    s->copies = NULL;
    qn_device_free(s->device, s->base, (size_t)s->bytes);
    s->base = NULL;
    s->bytes = 0;
}

void qn_store_free(QnStore *s)
{
    if (!s)
        return;
    qn_store_release(s);
    qn_free(s->slots);
    qn_arena_free(s->arena);
    qn_free(s);
}

const QnSlot *qn_store_find(const QnStore *s, const char *name)
{
    int64_t lo = 0, hi = s->n;
    while (lo < hi) {
        int64_t mid = (lo + hi) / 2;
        int c = strcmp(name, s->slots[mid].name);
        if (c == 0)
            return &s->slots[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

static QnStatus insert(QnStore *s, const QnNode *n, const char *name)
{
    if (s->base)
        return qn_fail(QN_EARG, "state '%s' comes after the store was allocated", name);
    int64_t bytes = qn_type_bytes(&n->out[0].type);
    if (bytes < 0)
        return qn_fail(QN_ESHAPE, "state '%s' has a symbolic shape", name);
    QN_TRY(QN_GROW(s->slots, s->cap, s->n));
    QnSlot slot = { .name = qn_arena_strdup(s->arena, name),
                    .type = n->out[0].type,
                    .op = n->op,
                    .attr = qn_attr_copy(s->arena, n->op, n->attr, NULL, NULL),
                    .bytes = bytes };
    if (!slot.name || !slot.attr)
        return QN_ENOMEM;
    int64_t i = s->n++;
    for (; i > 0 && strcmp(s->slots[i - 1].name, name) > 0; i--)
        s->slots[i] = s->slots[i - 1];
    s->slots[i] = slot;
    return QN_OK;
}

QnStatus qn_store_add(QnStore *s, const QnGraph *g)
{
    QN_GRAPH_EACH(g, n)
    {
        if (!(n->op->traits & QN_STATE))
            continue;
        const char *name = qn_node_label(n);
        const QnSlot *known = qn_store_find(s, name);
        if (known && !qn_type_is_equal(&known->type, &n->out[0].type)) {
            char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
            return qn_fail(QN_ESHAPE, "state '%s' is %s here and %s elsewhere", name,
                           qn_type_text(&n->out[0].type, a), qn_type_text(&known->type, b));
        }
        if (!known)
            QN_TRY(insert(s, n, name));
    }
    return QN_OK;
}

/* Between states: a parameter, its gradient and its moments, which an update walks together, would
 * else often lie a power of two apart and meet in the same sets of caches and banks of memory. */
enum { SKEW = 5 * QN_ARENA_ALIGN };

QnStatus qn_store_alloc(QnStore *s)
{
    int64_t at = 0, align = qn_device_align(s->device);
    if (s->base)
        return QN_OK; /* and nothing can have been added since */
    for (int64_t i = 0; i < s->n; i++) {
        s->slots[i].offset = at;
        at += (s->slots[i].bytes + SKEW + align - 1) / align * align;
    }
    qn_free(s->copies); /* of an attempt that failed */
    if (!(s->copies = qn_alloc_array((size_t)s->n + 1, sizeof *s->copies)))
        return QN_ENOMEM;
    s->base = qn_device_alloc(s->device, (size_t)at);
    if (!s->base)
        return qn_fail_prefix("parameters and optimizer state");
    s->bytes = at;
    if (s->device->backend->is_host)
        memset(s->base, 0, (size_t)at);
    return QN_OK;
}

int64_t qn_store_count(const QnStore *s)
{
    return s->n;
}

const QnSlot *qn_store_at(const QnStore *s, int64_t i)
{
    return i >= 0 && i < s->n ? &s->slots[i] : NULL;
}

const char *qn_slot_name(const QnSlot *slot)
{
    return slot->name;
}

const QnType *qn_slot_type(const QnSlot *slot)
{
    return &slot->type;
}

void *qn_store_ptr(const QnStore *s, const QnSlot *slot)
{
    return s->base + slot->offset;
}

/* Reorders between the layout in memory and row-major; in place of a copy when they agree. */
static QnStatus relayout(const QnType *t, void *dst, const void *src, bool to_memory)
{
    int64_t memory[QN_MAX_RANK], tight[QN_MAX_RANK], index[QN_MAX_RANK] = { 0 };
    const QnShape *s = &t->shape;
    size_t size = qn_dtype_bytes(t->dtype);
    qn_type_strides(t, memory);
    qn_shape_strides(s, tight);
    for (int64_t i = 0, n = qn_shape_count(s); i < n; i++) {
        int64_t m = 0;
        for (int k = 0; k < s->rank; k++)
            m += index[k] * memory[k];
        memcpy((char *)dst + (size_t)(to_memory ? m : i) * size,
               (const char *)src + (size_t)(to_memory ? i : m) * size, size);
        for (int k = s->rank - 1; k >= 0 && ++index[k] == s->dim[k]; k--)
            index[k] = 0;
    }
    return QN_OK;
}

static QnStatus check_access(const QnStore *s, const QnSlot *slot)
{
    if (!slot)
        return qn_fail(QN_ENOTFOUND, "the store has no such state");
    return s->base ? QN_OK : qn_fail(QN_EARG, "the store is not allocated: call qn_store_alloc");
}

QnStatus qn_store_write(QnStore *s, const QnSlot *slot, const void *src)
{
    const QnBackend *b = s->device->backend;
    QN_TRY(check_access(s, slot));
    if (slot->type.layout == QN_LAYOUT_PLAIN)
        return b->write(s->device, qn_store_ptr(s, slot), src, (size_t)slot->bytes);
    void *tmp = qn_alloc((size_t)slot->bytes);
    if (!tmp)
        return QN_ENOMEM;
    relayout(&slot->type, tmp, src, true);
    QnStatus st = b->write(s->device, qn_store_ptr(s, slot), tmp, (size_t)slot->bytes);
    qn_free(tmp);
    return st;
}

QnStatus qn_store_read(const QnStore *s, const QnSlot *slot, void *dst)
{
    const QnBackend *b = s->device->backend;
    QN_TRY(check_access(s, slot));
    if (slot->type.layout == QN_LAYOUT_PLAIN)
        return b->read(s->device, dst, qn_store_ptr(s, slot), (size_t)slot->bytes);
    void *tmp = qn_alloc((size_t)slot->bytes);
    QnStatus st =
        tmp ? b->read(s->device, tmp, qn_store_ptr(s, slot), (size_t)slot->bytes) : QN_ENOMEM;
    if (st == QN_OK)
        relayout(&slot->type, dst, tmp, false);
    qn_free(tmp);
    return st;
}

QnStatus qn_store_borrow(const QnStore *s, const QnSlot *slot, const void **data)
{
    QN_TRY(check_access(s, slot));
    if (s->device->backend->only_counts)
        return qn_fail(QN_EUNSUPPORTED, "'%s' has no content on device %s, which only counts",
                       slot->name, s->device->backend->name);
    if (s->device->backend->is_host && slot->type.layout == QN_LAYOUT_PLAIN) {
        *data = qn_store_ptr(s, slot);
        return QN_OK;
    }
    void **copy = &s->copies[slot - s->slots];
    QnStatus st = QN_OK;
    if (!*copy) {
        *copy = qn_alloc((size_t)slot->bytes + 1);
        st = *copy ? qn_store_read(s, slot, *copy) : QN_ENOMEM;
    }
    if (st != QN_OK) {
        qn_free(*copy);
        *copy = NULL;
    }
    *data = *copy;
    return st;
}
