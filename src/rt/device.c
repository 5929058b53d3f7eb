#include "rt/device.h"

#include "rt/memplan.h"

#include <stdio.h>
#include <string.h>

QnStatus qn_device_open(const QnBackend *backend, const QnDeviceOptions *options, QnDevice **out)
{
    QnDeviceOptions none = { 0 };
    QnDevice *d = qn_alloc(sizeof *d);
    if (!d)
        return QN_ENOMEM;
    d->backend = backend;
    d->limit_bytes = options ? (size_t)QN_MAX(0, options->memory_bytes) : 0;
    QnStatus st = backend->open(d, options ? options : &none);
    if (st != QN_OK)
        qn_free(d);
    else
        *out = d;
    return st;
}

void qn_device_close(QnDevice *d)
{
    if (!d)
        return;
    if (d->backend->close)
        d->backend->close(d);
    qn_free(d);
}

/* ---- memory ---- */

int64_t qn_device_align(const QnDevice *d)
{
    return QN_MAX((int64_t)d->align, QN_ARENA_ALIGN);
}

typedef struct QnFarBlock {
    struct QnFarBlock *next;
    const char *p;
    size_t bytes;
} QnFarBlock;

static void *alloc_near(QnDevice *d, size_t bytes)
{
    size_t near = d->now_bytes - d->far_bytes;
    if (!d->limit_bytes || (near <= d->limit_bytes && bytes <= d->limit_bytes - near))
        return d->backend->alloc(d, bytes);
    qn_fail(QN_ENOMEM, "%zu bytes of the device may be used (--device-memory)", d->limit_bytes);
    return NULL;
}

/* Keeps the error of the memory that would have been better, and says why this would not do. */
static void *alloc_far(QnDevice *d, size_t bytes)
{
    char why[QN_ERROR_TEXT_BYTES / 4];
    snprintf(why, sizeof why, "%.255s", qn_error_last()->text);
    QnFarBlock *b = qn_alloc(sizeof *b);
    if (!b)
        return NULL;
    void *p = d->backend->alloc_far(d, bytes);
    if (!p) {
        if (why[0])
            qn_fail_prefix("%s; nor has the host", why);
        qn_free(b);
        return NULL;
    }
    *b = (QnFarBlock){ d->far, p, bytes };
    d->far = b;
    d->far_bytes += bytes;
    qn_error_clear();
    return p;
}

void *qn_device_alloc(QnDevice *d, size_t bytes)
{
    static const char said[] = "%s: cannot allocate %zu bytes; Quern holds %zu bytes there already";
    qn_error_clear();
    void *p = alloc_near(d, bytes);
    if (!p && d->backend->alloc_far)
        p = alloc_far(d, bytes);
    if (!p) {
        if (qn_error_last()->code == QN_OK)
            qn_fail(QN_ENOMEM, said, d->backend->name, bytes, d->now_bytes);
        else /* the backend says why */
            qn_fail_prefix(said, d->backend->name, bytes, d->now_bytes);
        return NULL;
    }
    d->now_bytes += bytes;
    d->peak_bytes = QN_MAX(d->peak_bytes, d->now_bytes);
    return p;
}

static bool free_far(QnDevice *d, void *p)
{
    for (QnFarBlock **at = &d->far; *at; at = &(*at)->next) {
        QnFarBlock *b = *at;
        if (b->p != p)
            continue;
        d->backend->free_far(d, p, b->bytes);
        d->far_bytes -= b->bytes;
        *at = b->next;
        qn_free(b);
        return true;
    }
    return false;
}

void qn_device_free(QnDevice *d, void *p, size_t bytes)
{
    if (!p)
        return;
    if (!free_far(d, p))
        d->backend->free(d, p, bytes);
    d->now_bytes -= bytes;
}

bool qn_device_is_far(const QnDevice *d, const void *p)
{
    for (const QnFarBlock *b = d->far; b; b = b->next) {
        uintptr_t at = (uintptr_t)p, from = (uintptr_t)b->p;
        if (at >= from && at - from < QN_MAX(b->bytes, 1))
            return true;
    }
    return false;
}

QnStatus qn_device_info(QnDevice *d, QnDeviceInfo *out)
{
    *out = (QnDeviceInfo){ 0 };
    return d->backend->info ? d->backend->info(d, out) : QN_OK;
}

QnPipelineOptions qn_device_passes(QnDevice *d)
{
    return (QnPipelineOptions){ .level = QN_O2,
                                .keep = qn_device_has_kernel,
                                .keep_ctx = d,
                                .prefers = qn_device_prefers,
                                .tuned = qn_device_is_tuned,
                                .tuned_ctx = d,
                                .recompute_share = QN_RECOMPUTE_SHARE,
                                .balance = d->backend->balance };
}
