/* Discrete Fourier transform along an axis, as a product with a matrix of cosines and sines:
 *   y[k] = sum over j of x[j] e^(-2 pi i j k / n), inverse: with + and divided by n
 * The last axis holds the real part, or real and imaginary part. The axis is cut or filled with
 * zeros to length n; onesided keeps the n/2 + 1 frequencies that those of a real x are made of. The
 * inverse of those (inverse and onesided) is real. Sums in f32 or wider. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "base/mem.h"
#include "ops/norm.h"
#include "ops/onnx.h"
#include "ops/util.h"

enum { DFT_MOST = 1 << 26 }; /* elements of the matrix */

typedef struct Attr {
    int64_t axis, length;
    bool inverse, onesided;
} Attr;

static const QnAttrField dft_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .def = -2,
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "that is transformed; not the last" },
    { .name = "length",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, length),
      .max = 1 << 24,
      .doc = "of the signal; 0: the axis's own, of a onesided inverse 2 (length - 1)" },
    { .name = "inverse",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, inverse),
      .doc = "from frequencies to the signal" },
    { .name = "onesided",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, onesided),
      .doc = "half of the frequencies, those of a real signal" },
};

/* x is (…,has,…,parts), of which `in` elements along the axis count; y (…,out,…,parts_out). */
typedef struct Dft {
    int axis;
    int64_t n, in, out, parts, parts_out;
} Dft;

static QnStatus dft_plan(const Attr *a, const QnShape *x, Dft *p)
{
    char text[QN_TYPE_TEXT_BYTES];
    *p = (Dft){ 0 };
    if (x->rank < 2 || (x->dim[x->rank - 1] != 1 && x->dim[x->rank - 1] != 2))
        return qn_fail(QN_ESHAPE,
                       "dft: x %s; its last axis must hold the real part, or real and imaginary "
                       "part",
                       qn_shape_text(x, text));
    if (!qn_shape_axis(x, a->axis, &p->axis) || p->axis == x->rank - 1)
        return qn_fail(QN_EARG, "dft: axis %lld of x %s; it must be one before the last",
                       (long long)a->axis, qn_shape_text(x, text));
    int64_t has = x->dim[p->axis];
    if (has < 0)
        return qn_fail(QN_EUNSUPPORTED, "dft: axis %d is symbolic; its length must be known",
                       p->axis);
    if (has > DFT_MOST)
        return qn_fail(QN_EUNSUPPORTED, "dft: %lld points are too many", (long long)has);
    bool to_real = a->inverse && a->onesided;
    p->n = a->length ? a->length : to_real ? 2 * (has - 1) : has;
    if (p->n < 1 || has < 1)
        return qn_fail(QN_ESHAPE, "dft: axis %d of x %s is too short", p->axis,
                       qn_shape_text(x, text));
    p->in = QN_MIN(has, to_real ? p->n / 2 + 1 : p->n);
    p->out = a->onesided && !a->inverse ? p->n / 2 + 1 : p->n;
    p->parts = x->dim[x->rank - 1];
    p->parts_out = to_real ? 1 : 2;
    if (p->in * p->parts > DFT_MOST / (p->out * p->parts_out))
        return qn_fail(
            QN_EUNSUPPORTED, "dft: %lld points; the matrix of %lld x %lld would be too large",
            (long long)p->n, (long long)(p->in * p->parts), (long long)(p->out * p->parts_out));
    return QN_OK;
}

static QnStatus dft_infer(QnInfer *c)
{
    const QnType *x = c->in[0];
    Dft p;
    if (!qn_dtype_is_float(x->dtype))
        return qn_fail(QN_EDTYPE, "dft: needs floats, not %s", qn_dtype_name(x->dtype));
    QN_TRY(dft_plan(c->attr, &x->shape, &p));
    c->out[0] = (QnType){ .dtype = x->dtype, .shape = x->shape };
    c->out[0].shape.dim[p.axis] = p.out;
    c->out[0].shape.dim[x->shape.rank - 1] = p.parts_out;
    return QN_OK;
}

/* What part c of element j gives to part d of element k. */
static double dft_factor(const Attr *a, const Dft *p, int64_t j, int64_t c, int64_t k, int64_t d)
{
    const double pi = 3.14159265358979323846;
    double angle = 2 * pi * (double)(j * k % p->n) / (double)p->n;
    double sine = a->inverse ? sin(angle) : -sin(angle), f;
    f = c == d ? cos(angle) : d == 1 ? sine : -sine;
    if (a->inverse)
        f /= (double)p->n;
    /* half of the frequencies stand for their mirror images too */
    return a->inverse && a->onesided && j > 0 && 2 * j != p->n ? 2 * f : f;
}

static QnValue *dft_matrix(QnGraph *g, const Attr *a, const Dft *p, QnDtype t)
{
    QnShape s = QN_SHAPE(p->in * p->parts, p->out * p->parts_out);
    int64_t row = s.dim[1];
    double *line = qn_alloc_array((size_t)row, sizeof *line);
    char *all = qn_alloc_array((size_t)(s.dim[0] * row), qn_dtype_bytes(t));
    QnValue *m = NULL;
    for (int64_t i = 0; line && all && i < s.dim[0]; i++) {
        for (int64_t o = 0; o < row; o++)
            line[o] =
                dft_factor(a, p, i / p->parts, i % p->parts, o / p->parts_out, o % p->parts_out);
        qn_dtype_from_f64(t, line, all + (size_t)(i * row) * qn_dtype_bytes(t), row);
    }
    if (line && all)
        m = qn_constant(g, t, &s, all);
    qn_free(line);
    qn_free(all);
    return m ? m : qn_graph_poison(g);
}

static void dft_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const QnType *x = &n->in[0]->type;
    int rank = x->shape.rank;
    QnDtype t = qn_norm_stat(x->dtype);
    Dft p;
    if (dft_plan(n->attr, &x->shape, &p)) {
        out[0] = qn_graph_poison(g);
        return;
    }
    QnInts there = { .n = 0 }, back = { .n = rank };
    for (int i = 0; i < rank - 1; i++) {
        if (i != p.axis)
            there.v[there.n++] = i;
    }
    there.v[there.n++] = p.axis;
    there.v[there.n++] = rank - 1;
    QnValue *v = qn_slice_axis(g, qn_cast(g, n->in[0], t), p.axis, 0, p.in);
    v = qn_transpose(g, v, there);
    QnShape y = n->out[0].type.shape, turned = { .rank = rank };
    for (int i = 0; i < rank; i++) {
        back.v[there.v[i]] = i;
        turned.dim[i] = y.dim[there.v[i]];
    }
    QnShape rows = QN_SHAPE(qn_shape_product(g, &turned, 0, rank - 2), p.in * p.parts);
    v = qn_matmul(g, qn_reshape(g, v, &rows), dft_matrix(g, n->attr, &p, t), NULL, false, false);
    out[0] = qn_cast(g, qn_transpose(g, qn_reshape(g, v, &turned), back), x->dtype);
}

static const QnSample dft_samples[] = {
    { .in = { { 3, { 2, 7, 1 } } }, .n_in = 1, .attr = &(Attr){ -2, 0, false, true } },
    { .in = { { 4, { 2, 6, 3, 2 } } }, .n_in = 1, .attr = &(Attr){ 1, 8, false, false } },
    { .in = { { 3, { 2, 9, 2 } } }, .n_in = 1, .attr = &(Attr){ 1, 0, true, false } },
    { .in = { { 3, { 2, 65, 2 } } }, .n_in = 1, .attr = &(Attr){ 1, 0, true, true } },
    { .in = { { 2, { 130, 1 } } }, .n_in = 1, .attr = &(Attr){ 0, 101, false, false } },
};

/* length 0: the axis's own. */
QN_API QnValue *qn_dft(QnGraph *g, QnValue *x, int64_t axis, int64_t length, bool inverse,
                       bool onesided)
{
    return qn_emit1(g, &qn_op_dft, &(Attr){ axis, length, inverse, onesided }, x);
}

/* Opset 20 made the axis an input. */
static QnStatus dft_import(QnOnnxNode *n)
{
    int64_t axis = n->opset < 20 ? qn_onnx_int(n, "axis", 1) : -2, length = 0;
    bool inverse = qn_onnx_int(n, "inverse", 0) != 0, half = qn_onnx_int(n, "onesided", 0) != 0;
    if (qn_onnx_has(n, 1)) {
        QN_TRY(qn_onnx_in_int(n, 1, &length));
        if (length < 1)
            return qn_fail(QN_EFORMAT, "dft_length is %lld", (long long)length);
    }
    if (n->opset >= 20 && qn_onnx_has(n, 2))
        QN_TRY(qn_onnx_in_int(n, 2, &axis));
    return qn_onnx_out0(n, qn_dft(n->g, qn_onnx_in(n, 0), axis, length, inverse, half));
}

static const QnOnnxMap dft_onnx[] = { { .name = "DFT", .since = 17, .import = dft_import } };

const QnOp qn_op_dft = {
    .name = "dft",
    .version = 1,
    .doc = "discrete Fourier transform along an axis",
    .n_in = 1,
    QN_ATTRS(Attr, dft_fields),
    .infer = dft_infer,
    .lower = dft_lower,
    QN_ONNX(dft_onnx),
    QN_SAMPLES(dft_samples),
};
#endif
