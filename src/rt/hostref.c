#include "rt/hostref.h"

#include "ir/eval.h"

const char *qn_hostref_refuses(const QnNode *n)
{
    if (!n->op->ref && !n->op->map)
        return "a composite, to be lowered first";
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const QnValue *v = i < n->n_in ? n->in[i] : &n->out[i - n->n_in];
        if (v && v->type.layout != QN_LAYOUT_PLAIN)
            return "reads only the plain layout";
    }
    return NULL;
}

/* With `bits`, elements of 64 bits pass through the doubles as they are. */
static QnStatus widen(const QnHostrefIo *io, const QnType *t, const void *src, bool bits,
                      double *wide)
{
    size_t bytes = (size_t)qn_type_bytes(t);
    if (bits || t->dtype == QN_DTYPE_F64)
        return io->read(io->ctx, wide, src, bytes);
    void *narrow = qn_alloc(bytes + 1);
    QnStatus st = narrow ? io->read(io->ctx, narrow, src, bytes) : QN_ENOMEM;
    if (st == QN_OK)
        qn_dtype_to_f64(t->dtype, narrow, wide, qn_shape_count(&t->shape));
    qn_free(narrow);
    return st;
}

static QnStatus narrow(const QnHostrefIo *io, const QnType *t, const double *wide, bool bits,
                       void *dst)
{
    size_t bytes = (size_t)qn_type_bytes(t);
    if (bits || t->dtype == QN_DTYPE_F64)
        return io->write(io->ctx, dst, wide, bytes);
    void *tmp = qn_alloc(bytes + 1);
    if (!tmp)
        return QN_ENOMEM;
    qn_dtype_from_f64(t->dtype, wide, tmp, qn_shape_count(&t->shape));
    QnStatus st = io->write(io->ctx, dst, tmp, bytes);
    qn_free(tmp);
    return st;
}

static double *elements(const QnType *t)
{
    return qn_alloc_array((size_t)qn_shape_count(&t->shape) + 1, sizeof(double));
}

QnStatus qn_hostref_run(const QnNode *n, const QnHostrefIo *io, const void *const *in,
                        void *const *out)
{
    double **x = qn_alloc_array((size_t)n->n_in + 1, sizeof *x);
    double *y[QN_MAX_OUT] = { 0 };
    QnStatus st = x ? QN_OK : QN_ENOMEM;
    for (int i = 0; st == QN_OK && i < n->n_in; i++) {
        if (!in[i])
            continue;
        const QnType *t = &n->in[i]->type;
        x[i] = elements(t);
        st = x[i] ? widen(io, t, in[i], qn_eval_is_bits(n, t, i), x[i]) : QN_ENOMEM;
    }
    for (int i = 0; st == QN_OK && i < n->n_out; i++) {
        y[i] = elements(&n->out[i].type);
        st = y[i] ? QN_OK : QN_ENOMEM;
    }
    if (st == QN_OK)
        st = qn_eval_node(n, (const double *const *)x, y, true);
    for (int i = 0; st == QN_OK && i < n->n_out; i++) {
        const QnType *t = &n->out[i].type;
        st = narrow(io, t, y[i], qn_eval_is_bits(n, t, -1), out[i]);
    }
    for (int i = 0; x && i < n->n_in; i++)
        qn_free(x[i]);
    for (int i = 0; i < n->n_out; i++)
        qn_free(y[i]);
    qn_free(x);
    return st;
}
