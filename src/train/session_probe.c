/* Trial steps, and the self-test that compares two of them. */
#include "train/session_impl.h"

#include "nn/scaler.h"

#include <math.h>
#include <stdio.h>

QnStatus qn_session_run_probe(QnSession *s, QnPlan *p, const QnBatch *b, int64_t rows, double *loss,
                              double *grad_norm)
{
    int64_t key[2] = { 0, s->recipe->seed };
    size_t n = (size_t)rows;
    QN_TRY(qn_session_feed(p, s->device, "x", b->x, n * qn_sample_x_bytes(&s->spec)));
    QN_TRY(qn_session_feed(p, s->device, "y", b->y, n * qn_sample_y_bytes(&s->spec)));
    QN_TRY(qn_session_feed(p, s->device, "key", key, sizeof key));
    QN_TRY(qn_plan_run(p));
    QN_TRY(qn_session_scalar(p, s->device, "loss", loss));
    return qn_session_scalar(p, s->device, "grad_norm", grad_norm);
}

/* The loss scale is lowered as training would lower it, and put back. */
static QnStatus run_scaled(QnSession *s, QnPlan *p, const QnBatch *b, int64_t rows, double *loss,
                           double *grad_norm)
{
    const QnSlot *slot = qn_store_find(s->store, "optim.loss_scale");
    float first = 0;
    QN_TRY(qn_session_run_probe(s, p, b, rows, loss, grad_norm));
    if (!slot || isfinite(*grad_norm) || !isfinite(*loss))
        return QN_OK;
    QN_TRY(qn_store_read(s->store, slot, &first));
    QnStatus st = QN_OK;
    float scale = fminf(first, (float)QN_SCALER_MOST) / 2; /* old checkpoints may hold infinity */
    for (; st == QN_OK && scale >= 1 && !isfinite(*grad_norm); scale /= 2) {
        st = qn_store_write(s->store, slot, &scale);
        if (st == QN_OK)
            st = qn_session_run_probe(s, p, b, rows, loss, grad_norm);
    }
    QnStatus back = qn_store_write(s->store, slot, &first);
    return st != QN_OK ? st : back;
}

QnStatus qn_session_probe(QnSession *s, const QnBatch *b, QnPrecision precision, double *loss,
                          double *grad_norm)
{
    QnGraph *g;
    QnPlan *p = NULL;
    int64_t rows = QN_MIN(QN_MIN(s->batch, b->count), QN_PROBE_SAMPLES);
    QnPlanOptions o = { .choices = s->planning.choices };
    QN_TRY(qn_session_build_probe(s, precision, rows, &g));
    QnStatus st = qn_plan_new(g, s->device, s->store, &o, &p);
    if (st == QN_OK)
        st = run_scaled(s, p, b, rows, loss, grad_norm);
    qn_plan_free(p);
    qn_graph_free(g);
    return st;
}

static QnStatus try_precision(QnSession *s, const QnBatch *b, char *reason, size_t bytes)
{
    double loss[2], norm[2];
    double times = s->precision == QN_PRECISION_FP8 ? QN_PROBE_FP8 : 1;
    QN_TRY(qn_session_probe(s, b, QN_PRECISION_FP32, &loss[0], &norm[0]));
    QN_TRY(qn_session_probe(s, b, s->precision, &loss[1], &norm[1]));
    if (!isfinite(loss[0]) || !isfinite(norm[0]))
        return QN_OK; /* fp32 is no better: the run will say what is the matter */
    /* not <=, so that a NaN fails */
    bool fits = fabs(loss[1] - loss[0]) <= times * QN_PROBE_LOSS * (1 + fabs(loss[0])) &&
                fabs(norm[1] - norm[0]) <= times * QN_PROBE_NORM * norm[0] + 1e-6;
    if (fits)
        return QN_OK;
    snprintf(reason, bytes,
             "%s is not used: a trial step gives a loss of %.4g and gradients of norm %.4g, fp32 "
             "%.4g and %.4g (allowed: %g %% of 1 + loss, %g %% of the norm); going on in fp32",
             qn_precision_name(s->precision), loss[1], norm[1], loss[0], norm[0],
             100 * times * QN_PROBE_LOSS, 100 * times * QN_PROBE_NORM);
    return qn_session_set_precision(s, QN_PRECISION_FP32);
}

/* What the trial takes counts for itself, so that the device's peak is that of the run's plans. */
QnStatus qn_session_self_test(QnSession *s, const QnBatch *b, char *reason, size_t bytes)
{
    QnDevice *d = s->device;
    size_t peak = d->peak_bytes;
    QnPrecision precision = s->precision;
    reason[0] = '\0';
    if (precision == QN_PRECISION_FP32)
        return QN_OK;
    d->peak_bytes = d->now_bytes;
    QnStatus st = try_precision(s, b, reason, bytes);
    if (s->precision != precision)
        peak = d->now_bytes; /* other plans than before */
    s->trial_bytes = d->peak_bytes - QN_MIN(d->peak_bytes, d->now_bytes);
    d->peak_bytes = peak;
    return st;
}
