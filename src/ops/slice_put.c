/* y = x with a region, as slice names it, replaced by u. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* Along each axis y has d elements, u has n of them from b on, t apart: the first of u's axes
 * leads. `inside` stays true where all coordinates are among them; `at` is then u's element. */
#define SLICE_PUT_AXIS(j)                                                                          \
    {                                                                                              \
        qn_long off = r % d##j - b##j, c = off / t##j;                                             \
        inside = inside && c * t##j == off && c >= 0 && c < n##j;                                  \
        at += c * unit;                                                                            \
        unit *= n##j;                                                                              \
        r /= d##j;                                                                                 \
    }
QN_KERNEL slice_put_copy(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, QN_GLOBAL const QN_T *u,
                         qn_long count, QN_ARG8(d), QN_ARG8(b), QN_ARG8(t), QN_ARG8(n))
{
    qn_long i = qn_item();
    if (i >= count)
        return;
    qn_long r = i, at = 0, unit = 1;
    bool inside = true;
    SLICE_PUT_AXIS(7)
    SLICE_PUT_AXIS(6)
    SLICE_PUT_AXIS(5)
    SLICE_PUT_AXIS(4)
    SLICE_PUT_AXIS(3)
    SLICE_PUT_AXIS(2)
    SLICE_PUT_AXIS(1)
    SLICE_PUT_AXIS(0)
    if (inside)
        qn_store(y, i, qn_load(u, at));
    else
        qn_store(y, i, qn_load(x, i));
}
#endif

#ifdef QN_HOST
#include "ops/region.h"

static const QnAttrField slice_put_fields[] = {
    { .name = "axes",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(QnSliceAttr, axes),
      .doc = "sliced axes" },
    { .name = "starts",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(QnSliceAttr, starts),
      .doc = "first element of each" },
    { .name = "ends",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(QnSliceAttr, ends),
      .doc = "element before which each stops" },
    { .name = "steps",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(QnSliceAttr, steps),
      .doc = "distance of the elements; none: 1" },
};

static QnStatus slice_put_infer(QnInfer *c)
{
    QnRegion r;
    QN_TRY(qn_region_slice(c->graph, "slice_put", &c->in[0]->shape, c->attr, &r));
    const QnShape *u = &c->in[1]->shape;
    bool fits = u->rank == r.shape.rank;
    for (int i = 0; fits && i < u->rank; i++)
        fits = qn_region_may_equal(u->dim[i], r.shape.dim[i]);
    if (!fits) {
        char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "slice_put: the region is %s, what is put there %s",
                       qn_shape_text(&r.shape, a), qn_shape_text(u, b));
    }
    if (c->in[0]->dtype != c->in[1]->dtype)
        return qn_fail(QN_EDTYPE, "slice_put: %s is put into %s; cast one of them",
                       qn_dtype_name(c->in[1]->dtype), qn_dtype_name(c->in[0]->dtype));
    c->out[0] = *c->in[0];
    return QN_OK;
}

static QnStatus slice_put_ref(const QnRefArgs *a)
{
    const QnShape *s = &a->in_type[0]->shape, *u = &a->in_type[1]->shape;
    QnRegion r;
    QN_TRY(qn_region_slice(NULL, "slice_put", s, a->attr, &r));
    int64_t stride[QN_MAX_RANK], index[QN_MAX_RANK] = { 0 };
    qn_shape_strides(s, stride);
    int64_t offset = qn_util_offset(s->rank, r.start, stride);
    for (int i = 0; i < s->rank; i++)
        stride[i] *= r.step[i];
    memcpy(a->out[0], a->in[0], (size_t)qn_shape_count(s) * sizeof(double));
    for (int64_t i = 0, n = qn_shape_count(u); i < n; i++) {
        a->out[0][offset + qn_util_offset(u->rank, index, stride)] = a->in[1][i];
        qn_util_next(u, index);
    }
    return QN_OK;
}

static void slice_put_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnType *u = &n->in[1]->type;
    dx[0] = qn_slice_put(g, dy[0], qn_full(g, 0, u->dtype, &u->shape), n->attr);
    dx[1] = qn_slice(g, dy[0], n->attr);
}

static QnStatus slice_put_call(const QnNode *n, QnDeviceCall *c)
{
    const QnShape *s = &n->in[0]->type.shape;
    QnRegion r;
    QN_TRY(qn_region_slice(NULL, "slice_put", s, n->attr, &r));
    QN_TRY(qn_region_call("slice_put_copy", n, s, r.start, c));
    qn_region_args(c, s->rank, r.step, 1);
    qn_region_args(c, s->rank, r.shape.dim, 1);
    return QN_OK;
}

static const QnSample slice_put_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 2, 7 } } },
      .n_in = 2,
      .attr = &(QnSliceAttr){ { 1, { 0 } }, { 1, { 1 } }, { 1, { 3 } }, { 0 } } },
    { .in = { { 2, { 130, 3 } }, { 2, { 26, 2 } } },
      .n_in = 2,
      .attr =
          &(QnSliceAttr){
              { 2, { 0, -1 } }, { 2, { -2, 0 } }, { 2, { INT64_MIN, 9 } }, { 2, { -5, 2 } } } },
};

QN_API QnValue *qn_slice_put(QnGraph *g, QnValue *x, QnValue *u, const QnSliceAttr *attr)
{
    return qn_emit2(g, &qn_op_slice_put, attr, x, u);
}

const QnOp qn_op_slice_put = {
    .name = "slice_put",
    .version = 1,
    .doc = "a tensor with a region replaced",
    .n_in = 2,
    .traits = QN_MOVES_DATA,
    QN_ATTRS(QnSliceAttr, slice_put_fields),
    .infer = slice_put_infer,
    .ref = slice_put_ref,
    .grad = slice_put_grad,
    .device = QN_TEXT(slice_put),
    .call = slice_put_call,
    .inplace = 1,
    QN_SAMPLES(slice_put_samples),
};
#endif
