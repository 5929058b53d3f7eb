/* A scalar from the lengths of axes, y = max(product of dims - minus, 0)^exponent: what a mean
 * divides by, exact even where the dims are symbolic when the graph is built. */
#include "ops/dialect.h"

#ifdef QN_HOST

typedef struct Attr {
    QnDtype dtype;
    QnDims dims;
    double minus, exponent;
} Attr;

static const QnAttrField count_fields[] = {
    { .name = "dtype",
      .kind = QN_ATTR_DTYPE,
      .offset = offsetof(Attr, dtype),
      .doc = "of the result" },
    { .name = "dims", .kind = QN_ATTR_DIMS, .offset = offsetof(Attr, dims), .doc = "factors" },
    { .name = "minus",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, minus),
      .doc = "taken off the product" },
    { .name = "exponent",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, exponent),
      .def = 1,
      .doc = "power of the result; -1: its reciprocal" },
};

static QnStatus count_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    c->out[0].dtype = a->dtype;
    return QN_OK;
}

static double count_value(const Attr *a)
{
    double n = 1;
    for (int i = 0; i < a->dims.n; i++)
        n *= (double)a->dims.d[i];
    return pow(fmax(n - a->minus, 0), a->exponent);
}

static QnStatus count_ref(const QnRefArgs *a)
{
    a->out[0][0] = count_value(a->attr);
    return QN_OK;
}

static const QnSample count_samples[] = {
    { .attr = &(Attr){ QN_DTYPE_F32, { 2, { 3, 4 } }, 1, -1 }, .flags = QN_SAMPLE_NO_GRAD },
    { .attr = &(Attr){ QN_DTYPE_I64, { 0 }, 0, 1 }, .flags = QN_SAMPLE_NO_GRAD },
};

QN_API QnValue *qn_count(QnGraph *g, QnDtype dtype, const QnDims *dims, double minus,
                         double exponent)
{
    Attr a = { dtype, *dims, minus, exponent };
    for (int i = 0; i < dims->n; i++) {
        if (dims->d[i] < 0)
            return qn_emit0(g, &qn_op_count, &a);
    }
    return qn_full(g, count_value(&a), dtype, &(QnShape){ 0 });
}

const QnOp qn_op_count = {
    .name = "count",
    .version = 1,
    .doc = "(product of dims - minus)^exponent",
    .traits = QN_LEAF | QN_NO_GRAD,
    QN_ATTRS(Attr, count_fields),
    .infer = count_infer,
    .ref = count_ref,
    QN_SAMPLES(count_samples),
};
#endif
