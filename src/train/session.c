#include "train/session_impl.h"

#include "train/f8_choice.h"
#include "train/model_file.h"
#include "train/precision_auto.h"

#include <math.h>
#include <string.h>

static QnStatus host_buffers(QnSession *s)
{
    QnType t;
    qn_plan_output(s->eval_plan, "logits", &t);
    s->host_y = qn_alloc((size_t)s->eval_batch * qn_sample_y_bytes(&s->spec));
    s->host_weight = qn_alloc_array((size_t)s->eval_batch, sizeof *s->host_weight);
    if (!s->device->backend->is_host)
        s->host_logits = qn_alloc((size_t)qn_type_bytes(&t));
    bool ok = s->host_y && s->host_weight && (s->device->backend->is_host || s->host_logits);
    return ok ? QN_OK : QN_ENOMEM;
}

/* Without pinned memory or a second queue batches go the plain way. Evaluation has its own: in the
 * middle of training, a batch of that is on its way. */
static void open_staging(QnSession *s)
{
    size_t n = (size_t)s->batch, x = qn_sample_x_bytes(&s->spec);
    const size_t train[] = { n * x, n * qn_sample_y_bytes(&s->spec) };
    const size_t eval[] = { (size_t)s->eval_batch * x };
    if (!qn_staging_is_there(s->device))
        return;
    if (s->train_graph && qn_staging_new(s->device, train, QN_COUNT(train), &s->staging) != QN_OK)
        qn_error_clear();
    if (qn_staging_new(s->device, eval, QN_COUNT(eval), &s->eval_staging) != QN_OK)
        qn_error_clear();
}

QnStatus qn_session_plan(QnSession *s)
{
    const QnPlanOptions *p = &s->planning;
    QN_TRY(qn_plan_new(s->eval_graph, s->device, s->store, p, &s->eval_plan));
    if (s->train_graph)
        QN_TRY(qn_plan_new(s->train_graph, s->device, s->store, p, &s->train_plan));
    if (s->update_graph)
        QN_TRY(qn_plan_new(s->update_graph, s->device, s->store, p, &s->update_plan));
    return QN_OK;
}

static bool has_states(const QnGraph *g)
{
    QN_GRAPH_EACH(g, n)
    {
        if (n->op->traits & QN_STATE)
            return true;
    }
    return false;
}

QnStatus qn_session_freeze(QnSession *s)
{
    if (!s->inference || s->eval_plan)
        return qn_fail(QN_EARG, "the session was not opened for inference, or is frozen already");
    QN_TRY(qn_graph_freeze(s->eval_graph, s->store));
    QN_TRY(qn_session_optimise(s, s->eval_graph, s->no_passes));
    bool stays = has_states(s->eval_graph);
    QN_TRY(qn_plan_new(s->eval_graph, s->device, stays ? s->store : NULL, &s->planning,
                       &s->eval_plan));
    if (!stays)
        qn_store_release(s->store);
    QN_TRY(host_buffers(s));
    open_staging(s);
    return QN_OK;
}

static QnStatus compile(QnSession *s)
{
    QN_TRY(qn_store_alloc(s->store));
    if (s->inference)
        return QN_OK;
    QN_TRY(qn_store_fill(s->store, (uint64_t)s->recipe->seed));
    if (s->file)
        QN_TRY(qn_model_file_fill(s->file, s->store));
    QN_TRY(qn_session_plan(s));
    QN_TRY(host_buffers(s));
    open_staging(s);
    return QN_OK;
}

QnStatus qn_session_new(const QnRecipe *r, const QnSampleSpec *spec, QnDevice *d,
                        const QnSessionOptions *options, QnSession **out)
{
    QnSession *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    *s = (QnSession){ .recipe = r,
                      .device = d,
                      .spec = *spec,
                      .precision = r->precision,
                      .planning = { .choices = options->choices,
                                    .profile = options->profile,
                                    .poison = options->poison,
                                    .check_finite = r->check_finite },
                      .inference = options->inference,
                      .no_passes = options->no_passes,
                      .batch = r->batch,
                      .eval_batch = r->eval_batch ? r->eval_batch : r->batch };
    s->store = qn_store_new(d);
    QnStatus st = s->store ? QN_OK : QN_ENOMEM;
    if (st == QN_OK)
        st = qn_model_file_open(r, options->onnx, d, qn_session_outputs(s), &s->file);
    if (st == QN_OK && s->file)
        s->file->problems = options->problems;
    if (st == QN_OK)
        st = qn_session_build(s, options);
    if (st == QN_OK && !options->build_only)
        st = compile(s);
    if (st != QN_OK)
        qn_session_free(s);
    else
        *out = s;
    return st;
}

static void drop_graphs(QnSession *s)
{
    qn_plan_free(s->train_plan);
    qn_plan_free(s->update_plan);
    qn_plan_free(s->eval_plan);
    qn_graph_free(s->train_graph);
    qn_graph_free(s->update_graph);
    qn_graph_free(s->eval_graph);
    s->train_plan = s->update_plan = s->eval_plan = NULL;
    s->train_graph = s->update_graph = s->eval_graph = NULL;
}

QnStatus qn_session_set_precision(QnSession *s, QnPrecision precision)
{
    QnSessionOptions o = { .training = s->train_graph != NULL, .no_passes = s->no_passes };
    drop_graphs(s);
    s->precision = precision;
    s->n_params = 0;
    QN_TRY(qn_session_build(s, &o));
    return s->inference ? QN_OK : qn_session_plan(s);
}

void qn_session_free(QnSession *s)
{
    if (!s)
        return;
    qn_staging_free(s->staging);
    qn_staging_free(s->eval_staging);
    drop_graphs(s);
    qn_free(s->host_y);
    qn_free(s->host_weight);
    qn_free(s->host_logits);
    qn_store_free(s->store);
    qn_model_file_free(s->file);
    qn_auto_free(s->mix);
    qn_f8_choice_free(s->f8);
    qn_free(s);
}

int64_t qn_session_planned_bytes(const QnSession *s)
{
    const QnPlan *plans[] = { s->train_plan, s->update_plan, s->eval_plan };
    int64_t bytes = s->store->bytes;
    for (int i = 0; i < QN_COUNT(plans); i++) {
        if (plans[i])
            bytes += qn_plan_memory(plans[i]).arena_bytes + qn_plan_memory(plans[i]).constant_bytes;
    }
    bytes += s->staging ? (int64_t)qn_staging_bytes(s->staging) : 0;
    return bytes + (s->eval_staging ? (int64_t)qn_staging_bytes(s->eval_staging) : 0);
}

/* ---- runs ---- */

QnStatus qn_session_feed(QnPlan *p, QnDevice *d, const char *name, const void *src, size_t bytes)
{
    QnType t;
    void *dst = qn_plan_input(p, name, &t);
    if (!dst)
        return QN_OK; /* a pass has found it unused */
    if ((size_t)qn_type_bytes(&t) != bytes)
        return qn_fail(QN_ESHAPE, "input '%s' takes %lld bytes, not %zu", name,
                       (long long)qn_type_bytes(&t), bytes);
    return d->backend->write(d, dst, src, bytes);
}

static QnStatus feed_scalars(QnPlan *p, QnDevice *d, int64_t step, double lr)
{
    float narrow = (float)lr;
    QN_TRY(qn_session_feed(p, d, "step", &step, sizeof step));
    return qn_session_feed(p, d, "lr", &narrow, sizeof narrow);
}

QnStatus qn_session_scalar(QnPlan *p, QnDevice *d, const char *name, double *out)
{
    const void *src = qn_plan_output(p, name, NULL);
    float x = NAN;
    if (src)
        QN_TRY(d->backend->read(d, &x, src, sizeof x));
    *out = x;
    return QN_OK;
}

static QnStatus feed_batch(QnSession *s, const QnBatch *b)
{
    QnDevice *d = s->device;
    size_t n = (size_t)s->batch;
    if (s->sent && s->sent == b->x) {
        void *dst[] = { qn_plan_input(s->train_plan, "x", NULL),
                        qn_plan_input(s->train_plan, "y", NULL) };
        s->sent = NULL;
        return qn_staging_take(s->staging, dst);
    }
    QN_TRY(qn_session_feed(s->train_plan, d, "x", b->x, n * qn_sample_x_bytes(&s->spec)));
    return qn_session_feed(s->train_plan, d, "y", b->y, n * qn_sample_y_bytes(&s->spec));
}

static QnStatus feed_step(QnSession *s, const QnBatch *b, int64_t micro, double lr)
{
    int64_t key[2] = { micro, s->recipe->seed };
    QN_TRY(feed_batch(s, b));
    QN_TRY(qn_session_feed(s->train_plan, s->device, "key", key, sizeof key));
    return feed_scalars(s->train_plan, s->device, micro / s->recipe->accumulate, lr);
}

QnStatus qn_session_start(QnSession *s, const QnBatch *b, int64_t micro, double lr)
{
    int64_t accumulate = s->recipe->accumulate;
    QN_TRY(feed_step(s, b, micro, lr));
    QN_TRY(qn_plan_run(s->train_plan));
    if (!s->update_plan || (micro + 1) % accumulate)
        return QN_OK;
    QN_TRY(feed_scalars(s->update_plan, s->device, micro / accumulate, lr));
    return qn_plan_run(s->update_plan);
}

bool qn_session_sends(const QnSession *s)
{
    return s->staging != NULL;
}

QnStatus qn_session_send(QnSession *s, const QnBatch *next)
{
    const void *src[] = { next->x, next->y };
    if (!s->staging)
        return QN_OK;
    QN_TRY(qn_staging_send(s->staging, src));
    s->sent = next->x;
    return QN_OK;
}

QnStatus qn_session_finish(QnSession *s, QnStepResult *out)
{
    QnDevice *d = s->device;
    QnPlan *updater = s->update_plan ? s->update_plan : s->train_plan;
    QN_TRY(qn_session_scalar(updater, d, "grad_norm", &out->grad_norm));
    QN_TRY(qn_session_scalar(s->train_plan, d, "finite", &out->finite));
    QN_TRY(qn_session_scalar(s->train_plan, d, "loss_scale", &out->loss_scale));
    return qn_session_scalar(s->train_plan, d, "loss", &out->loss);
}

QnStatus qn_session_step(QnSession *s, const QnBatch *b, int64_t micro, double lr,
                         QnStepResult *out)
{
    QN_TRY(qn_session_start(s, b, micro, lr));
    return qn_session_finish(s, out);
}

QnStatus qn_session_blame(QnSession *s, const QnBatch *b, int64_t micro, double lr)
{
    QN_TRY(feed_step(s, b, micro, lr));
    return qn_plan_run_checked(s->train_plan);
}

/* Samples that are not there must not count. */
static QnStatus feed_labels(QnSession *s, const QnBatch *b)
{
    size_t each = qn_sample_y_bytes(&s->spec);
    memcpy(s->host_y, b->y, (size_t)b->count * each);
    if (s->recipe->task == QN_TASK_REGRESS) {
        memset((char *)s->host_y + (size_t)b->count * each, 0,
               (size_t)(s->eval_batch - b->count) * each);
        for (int64_t i = 0; i < s->eval_batch; i++)
            s->host_weight[i] = i < b->count;
        QN_TRY(qn_session_feed(s->eval_plan, s->device, "weight", s->host_weight,
                               (size_t)s->eval_batch * sizeof *s->host_weight));
    } else {
        int64_t *labels = s->host_y, per_sample = (int64_t)(each / sizeof *labels);
        for (int64_t i = b->count * per_sample; i < s->eval_batch * per_sample; i++)
            labels[i] = QN_IGNORED_LABEL;
    }
    return qn_session_feed(s->eval_plan, s->device, "y", s->host_y, (size_t)s->eval_batch * each);
}

static QnStatus read_logits(QnSession *s, QnEvalResult *out)
{
    QnType t;
    const void *p = qn_plan_output(s->eval_plan, "logits", &t);
    out->outputs = t.shape.dim[1];
    out->logits = p;
    if (s->device->backend->is_host)
        return QN_OK;
    out->logits = s->host_logits;
    return s->device->backend->read(s->device, s->host_logits, p, (size_t)qn_type_bytes(&t));
}

QnStatus qn_session_eval_start(QnSession *s, const QnBatch *b)
{
    s->eval_count = b->count;
    if (s->eval_sent && s->eval_sent == b->x) {
        s->eval_sent = NULL;
        QN_TRY(
            qn_staging_take(s->eval_staging, (void *[]){ qn_plan_input(s->eval_plan, "x", NULL) }));
    } else {
        QN_TRY(qn_session_feed(s->eval_plan, s->device, "x", b->x,
                               (size_t)s->eval_batch * qn_sample_x_bytes(&s->spec)));
    }
    QN_TRY(feed_labels(s, b));
    return qn_plan_run(s->eval_plan);
}

QnStatus qn_session_eval_send(QnSession *s, const QnBatch *next)
{
    if (!s->eval_staging)
        return QN_OK;
    QN_TRY(qn_staging_send(s->eval_staging, (const void *[]){ next->x }));
    s->eval_sent = next->x;
    return QN_OK;
}

QnStatus qn_session_eval_finish(QnSession *s, QnEvalResult *out)
{
    QnType t;
    QN_TRY(read_logits(s, out));
    qn_plan_output(s->eval_plan, "logits", &t);
    out->rows = t.shape.dim[0] / s->eval_batch * s->eval_count;
    out->loss_rows = out->rows * (s->recipe->task == QN_TASK_REGRESS ? out->outputs : 1);
    out->labels = s->host_y;
    return qn_session_scalar(s->eval_plan, s->device, "loss", &out->loss_sum);
}

QnStatus qn_session_eval(QnSession *s, const QnBatch *b, QnEvalResult *out)
{
    QN_TRY(qn_session_eval_start(s, b));
    return qn_session_eval_finish(s, out);
}
