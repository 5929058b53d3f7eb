#include "rt/staging.h"

#include "rt/memplan.h"

#include <string.h>

enum { RING = 2 }; /* one is filled while the other travels */

typedef struct Pinned {
    char *p;
    void *sent; /* event: its last copy is done */
} Pinned;

struct QnStaging {
    QnDevice *device;
    size_t bytes[QN_STAGING_PARTS], at[QN_STAGING_PARTS], all;
    int n_parts;
    Pinned ring[RING];
    int next, last; /* in the ring: to be filled, and filled last */
    char *arrived;  /* on the device */
    void *taken;    /* event: nothing reads `arrived` any more */
    bool is_full;
};

bool qn_staging_is_there(const QnDevice *d)
{
    return d->backend->copy_ahead != NULL;
}

static QnStatus lay_out(QnStaging *s, const size_t *bytes, int n_parts)
{
    for (int i = 0; i < n_parts; i++) {
        size_t up;
        s->bytes[i] = bytes[i];
        s->at[i] = s->all;
        if (qn_add_overflow(bytes[i], QN_ARENA_ALIGN - 1, &up) ||
            qn_add_overflow(s->all, up / QN_ARENA_ALIGN * QN_ARENA_ALIGN, &s->all))
            return qn_fail(QN_ENOMEM, "a batch of more bytes than there are addresses");
    }
    s->n_parts = n_parts;
    return QN_OK;
}

/* The block is used by the copy queue no sooner than the compute queue has it. */
static QnStatus acquire(QnStaging *s)
{
    QnDevice *d = s->device;
    const QnBackend *b = d->backend;
    for (int i = 0; i < RING; i++) {
        s->ring[i].p = b->host_alloc(d, s->all);
        if (!s->ring[i].p)
            return QN_ENOMEM;
        QN_TRY(b->event_new(d, &s->ring[i].sent));
    }
    QN_TRY(b->event_new(d, &s->taken));
    s->arrived = qn_device_alloc(d, s->all);
    if (!s->arrived)
        return qn_fail_prefix("a batch that travels ahead");
    return b->event_record(d, QN_QUEUE_COMPUTE, s->taken);
}

QnStatus qn_staging_new(QnDevice *d, const size_t *bytes, int n_parts, QnStaging **out)
{
    if (n_parts < 1 || n_parts > QN_STAGING_PARTS)
        return qn_fail(QN_EARG, "a batch of %d arrays; 1 to %d can be staged", n_parts,
                       QN_STAGING_PARTS);
    if (!qn_staging_is_there(d))
        return qn_fail(QN_EUNSUPPORTED, "%s has no second queue", d->backend->name);
    QnStaging *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->device = d;
    QnStatus st = lay_out(s, bytes, n_parts);
    if (st == QN_OK)
        st = acquire(s);
    if (st != QN_OK)
        qn_staging_free(s);
    else
        *out = s;
    return st;
}

void qn_staging_free(QnStaging *s)
{
    if (!s)
        return;
    const QnBackend *b = s->device->backend;
    for (int i = 0; i < RING; i++) {
        if (s->ring[i].sent) { /* what fails now cannot be helped */
            b->event_wait(s->device, s->ring[i].sent);
            b->event_free(s->device, s->ring[i].sent);
        }
        if (s->ring[i].p)
            b->host_free(s->device, s->ring[i].p, s->all);
    }
    if (s->taken)
        b->event_free(s->device, s->taken);
    qn_device_free(s->device, s->arrived, s->all);
    qn_free(s);
}

size_t qn_staging_bytes(const QnStaging *s)
{
    return s->all;
}

QnStatus qn_staging_send(QnStaging *s, const void *const *src)
{
    const QnBackend *b = s->device->backend;
    Pinned *r = &s->ring[s->next];
    if (s->is_full)
        return qn_fail(QN_EARG, "the batch that was sent before has not been taken");
    QN_TRY(b->event_wait(s->device, r->sent));
    for (int i = 0; i < s->n_parts; i++) {
        if (s->bytes[i])
            memcpy(r->p + s->at[i], src[i], s->bytes[i]);
    }
    QN_TRY(b->event_order(s->device, QN_QUEUE_COPY, s->taken));
    QN_TRY(b->copy_ahead(s->device, s->arrived, r->p, s->all));
    QN_TRY(b->event_record(s->device, QN_QUEUE_COPY, r->sent));
    s->last = s->next;
    s->next = (s->next + 1) % RING;
    s->is_full = true;
    return QN_OK;
}

QnStatus qn_staging_take(QnStaging *s, void *const *dst)
{
    QnDevice *d = s->device;
    const QnBackend *b = d->backend;
    if (!s->is_full)
        return qn_fail(QN_EARG, "no batch was sent");
    s->is_full = false;
    QN_TRY(b->event_order(d, QN_QUEUE_COMPUTE, s->ring[s->last].sent));
    for (int i = 0; i < s->n_parts; i++) {
        if (dst[i])
            QN_TRY(b->copy(d, dst[i], s->arrived + s->at[i], s->bytes[i]));
    }
    return b->event_record(d, QN_QUEUE_COMPUTE, s->taken);
}

bool qn_staging_is_full(const QnStaging *s)
{
    return s->is_full;
}
