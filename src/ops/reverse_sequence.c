/* The first lengths[b] elements of each sequence b of a batch in reverse order, the rest as they
 * are. x has sequences along time_axis, one for each place along batch_axis. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/region.h"

typedef struct Attr {
    int64_t batch_axis, time_axis;
} Attr;

static const QnAttrField reverse_sequence_fields[] = {
    { .name = "batch_axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, batch_axis),
      .def = 1,
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "along which sequences lie" },
    { .name = "time_axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, time_axis),
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "along which each sequence runs" },
};

static QnStatus reverse_sequence_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    const QnShape *x = &c->in[0]->shape, *n = &c->in[1]->shape;
    int batch, time;
    QN_TRY(qn_region_check_index("reverse_sequence", c->in[1]));
    if (!qn_shape_axis(x, a->batch_axis, &batch) || !qn_shape_axis(x, a->time_axis, &time) ||
        batch == time)
        return qn_fail(QN_EARG,
                       "reverse_sequence: batch axis %lld and time axis %lld of x of rank %d; they "
                       "must be two axes of it",
                       (long long)a->batch_axis, (long long)a->time_axis, x->rank);
    if (n->rank != 1 || !qn_region_may_equal(n->dim[0], x->dim[batch])) {
        char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE,
                       "reverse_sequence: lengths are %s for x %s; give one number for each place "
                       "along axis %d",
                       qn_shape_text(n, p), qn_shape_text(x, q), batch);
    }
    c->out[0] = *c->in[0];
    return QN_OK;
}

/* As slices of (batch, time, rest): tuples of indices stay small. */
static void reverse_sequence_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    const QnShape *x = &n->in[0]->type.shape;
    int batch = 0, time = 0;
    qn_shape_axis(x, a->batch_axis, &batch);
    qn_shape_axis(x, a->time_axis, &time);
    QnInts there = { .n = 2, .v = { batch, time } }, back = { .n = x->rank };
    for (int i = 0; i < x->rank; i++) {
        if (i != batch && i != time)
            there.v[there.n++] = i;
    }
    for (int i = 0; i < x->rank; i++)
        back.v[there.v[i]] = i;
    QnShape column = QN_SHAPE(x->dim[batch], 1), tuples = QN_SHAPE(x->dim[batch], x->dim[time], 1);
    QnValue *len = qn_reshape(g, qn_cast(g, n->in[1], QN_DTYPE_I64), &column);
    QnValue *at = qn_arange(g, 0, 1, x->dim[time], QN_DTYPE_I64);
    QnValue *turned = qn_sub(g, qn_add_scalar(g, len, -1), at);
    QnValue *from = qn_reshape(g, qn_where(g, qn_less(g, at, len), turned, at), &tuples);
    out[0] = qn_gather_nd(g, qn_transpose(g, n->in[0], there), from, 1);
    out[0] = qn_transpose(g, out[0], back);
}

static const QnSample reverse_sequence_samples[] = {
    { .in = { { 3, { 5, 4, 3 } }, { 1, { 4 }, QN_DTYPE_I64, 0, 5 } }, .n_in = 2 },
    { .in = { { 2, { 3, 130 } }, { 1, { 3 }, QN_DTYPE_I64, 1, 130 } },
      .n_in = 2,
      .attr = &(Attr){ 0, 1 } },
    { .in = { { 4, { 2, 3, 4, 2 }, QN_DTYPE_I32, -9, 9 }, { 1, { 3 }, QN_DTYPE_I32, 0, 4 } },
      .n_in = 2,
      .attr = &(Attr){ 1, -2 } },
};

/* lengths: i32 or i64, each from 0 to the length of x along time_axis. */
QN_API QnValue *qn_reverse_sequence(QnGraph *g, QnValue *x, QnValue *lengths, int64_t batch_axis,
                                    int64_t time_axis)
{
    return qn_emit2(g, &qn_op_reverse_sequence, &(Attr){ batch_axis, time_axis }, x, lengths);
}

static const QnOnnxMap reverse_sequence_onnx[] = { { .name = "ReverseSequence", .since = 10 } };

const QnOp qn_op_reverse_sequence = {
    .name = "reverse_sequence",
    .version = 1,
    .doc = "the beginnings of sequences reversed, each by its own length",
    .n_in = 2,
    QN_ATTRS(Attr, reverse_sequence_fields),
    .infer = reverse_sequence_infer,
    .lower = reverse_sequence_lower,
    QN_ONNX(reverse_sequence_onnx),
    QN_SAMPLES(reverse_sequence_samples),
};
#endif
