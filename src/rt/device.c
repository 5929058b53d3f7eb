#include "rt/device.h"

#include <string.h>

QnStatus qn_device_open(const QnBackend *backend, const QnDeviceOptions *options, QnDevice **out)
{
    QnDeviceOptions none = { 0 };
    QnDevice *d = qn_alloc(sizeof *d);
    if (!d)
        return QN_ENOMEM;
    d->backend = backend;
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

void *qn_device_alloc(QnDevice *d, size_t bytes)
{
    static const char said[] = "%s: cannot allocate %zu bytes; Quern holds %zu bytes there already";
    qn_error_clear();
    void *p = d->backend->alloc(d, bytes);
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

void qn_device_free(QnDevice *d, void *p, size_t bytes)
{
    if (!p)
        return;
    d->backend->free(d, p, bytes);
    d->now_bytes -= bytes;
}

QnPipelineOptions qn_device_passes(QnDevice *d)
{
    return (QnPipelineOptions){ .level = QN_O2,
                                .keep = qn_device_has_kernel,
                                .keep_ctx = d,
                                .tuned = qn_device_is_tuned,
                                .tuned_ctx = d };
}
