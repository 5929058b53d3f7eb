/* Classes drawn from rows of logits: x (N,classes) gives (N,samples), class k with probability
 * e^x[k] / sum of e^x, drawn independently; see ops/draw.h for the key. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/draw.h"

typedef struct Attr {
    int64_t samples;
    QnDtype dtype;
    int64_t stream;
} Attr;

static const QnAttrField multinomial_fields[] = {
    { .name = "samples",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, samples),
      .def = 1,
      .min = 1,
      .max = 1 << 30,
      .doc = "classes drawn for each row" },
    { .name = "dtype",
      .kind = QN_ATTR_DTYPE,
      .offset = offsetof(Attr, dtype),
      .def = QN_DTYPE_I64,
      .doc = "of the classes, i32 or i64" },
    QN_DRAW_STREAM(Attr),
};

static QnStatus multinomial_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    const QnShape *x = &c->in[0]->shape;
    char text[QN_TYPE_TEXT_BYTES];
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "multinomial: needs floats, not %s",
                       qn_dtype_name(c->in[0]->dtype));
    if (a->dtype != QN_DTYPE_I32 && a->dtype != QN_DTYPE_I64)
        return qn_fail(QN_EDTYPE, "multinomial: classes of type %s; it must be i32 or i64",
                       qn_dtype_name(a->dtype));
    if (x->rank != 2 || x->dim[1] == 0)
        return qn_fail(QN_ESHAPE, "multinomial: logits are %s; they must be (N,classes)",
                       qn_shape_text(x, text));
    QN_TRY(qn_draw_check_key("multinomial", c->in[1]));
    c->out[0] = (QnType){ .dtype = a->dtype, .shape = QN_SHAPE(x->dim[0], a->samples) };
    return QN_OK;
}

static QnCost multinomial_cost(const QnNode *n)
{
    double drawn = (double)qn_shape_count(&n->out[0].type.shape);
    double classes = (double)n->in[0]->type.shape.dim[1];
    return (QnCost){ .flops = 20 * (double)qn_shape_count(&n->in[0]->type.shape) +
                              drawn * (20 + classes),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type) +
                                   (double)qn_type_bytes(&n->in[1]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

/* The class in which a share u of the row's weight ends. */
static int64_t multinomial_class(const double *x, int64_t n, double top, double share)
{
    int64_t last = 0;
    for (int64_t k = 0; k < n; k++) {
        double w = exp(x[k] - top);
        if (w > 0) {
            last = k;
            share -= w;
            if (share < 0)
                return k;
        }
    }
    return last; /* rounding left a rest */
}

static QnStatus multinomial_ref(const QnRefArgs *a)
{
    const Attr *attr = a->attr;
    int64_t rows = a->in_type[0]->shape.dim[0], n = a->in_type[0]->shape.dim[1];
    QnDraw d = qn_draw_from(a->in_type[1], a->in[1], attr->stream);
    for (int64_t r = 0; r < rows; r++) {
        const double *x = a->in[0] + r * n;
        double top = -INFINITY, sum = 0;
        for (int64_t k = 0; k < n; k++)
            top = fmax(top, x[k]);
        for (int64_t k = 0; k < n; k++)
            sum += exp(x[k] - top);
        if (!isfinite(top) || !isfinite(sum))
            return qn_fail(QN_EARG, "multinomial: row %lld of the logits has no finite weights",
                           (long long)r);
        for (int64_t j = 0; j < attr->samples; j++) {
            int64_t i = r * attr->samples + j;
            double share = ((double)qn_draw_word(&d, i) + 0.5) * 0x1p-32 * sum;
            a->out[0][i] = (double)multinomial_class(x, n, top, share);
        }
    }
    return QN_OK;
}

static const QnSample multinomial_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 0, { 0 }, QN_DTYPE_I64, 0, 1000 } },
      .n_in = 2,
      .lo = -3,
      .hi = 3,
      .attr = &(Attr){ 5, QN_DTYPE_I64, 0 } },
    { .in = { { 2, { 2, 130 } }, { 1, { 2 }, QN_DTYPE_I64, 0, 1000 } },
      .n_in = 2,
      .lo = -3,
      .hi = 3,
      .attr = &(Attr){ 9, QN_DTYPE_I32, 7 } },
};

/* dtype: i32 or i64. */
QN_API QnValue *qn_multinomial(QnGraph *g, QnValue *logits, QnValue *key, int64_t samples,
                               QnDtype dtype)
{
    return qn_emit2(g, &qn_op_multinomial, &(Attr){ samples, dtype, g->next_stream++ }, logits,
                    key);
}

const QnOp qn_op_multinomial = {
    .name = "multinomial",
    .version = 1,
    .doc = "random classes by rows of logits",
    .n_in = 2,
    .traits = QN_RANDOM | QN_NO_GRAD | QN_NO_FOLD,
    QN_ATTRS(Attr, multinomial_fields),
    .infer = multinomial_infer,
    .cost = multinomial_cost,
    .ref = multinomial_ref,
    QN_SAMPLES(multinomial_samples),
};
#endif
