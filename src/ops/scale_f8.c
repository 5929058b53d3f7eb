/* What a tensor is multiplied by before it is rounded to 8 bits, and its reciprocal: the power of
 * two that brings the largest element below the format's. The largest of what the history holds
 * (one number for each step before); of x, where there is none or it holds zeros alone. Infinity
 * and NaN in x are nothing there. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
#include "ops/f8_tile.h"

/* One group: it reads x at the first step alone. */
QN_KERNEL scale_f8_one(QN_GLOBAL float *scale, QN_GLOBAL float *inverse, QN_GLOBAL const QN_T *x,
                       QN_GLOBAL const float *history, qn_long count, qn_long n, float most)
{
    QN_SHARED float part[256];
    const int lid = qn_lid();
    float seen = history[0], a = 0.0f;
    for (qn_long i = 1; i < n; i++)
        seen = qn_f8_larger(seen, history[i]);
    for (qn_long i = lid * 4; !(seen > 0.0f) && i < count; i += 4 * 256) {
        float v[4];
        qn_get4(x, i, count, v);
        QN_EACH4(a = qn_f8_larger(a, qn_absf(v[u])))
    }
    part[lid] = a;
    qn_f8_fold(part);
    if (lid == 0) {
        a = seen > 0.0f ? seen : QN_F8_IS_SOUND(part[0]) ? part[0] : 0.0f;
        a = qn_f8_scale_of(a, most);
        scale[0] = a;
        inverse[0] = 1.0f / a;
    }
}
#endif

#ifdef QN_HOST
#include "ops/f8.h"
#include "ops/util.h"

typedef struct Attr {
    QnDtype dtype;
} Attr;

static const QnAttrField scale_f8_fields[] = {
    { .name = "dtype",
      .kind = QN_ATTR_DTYPE,
      .offset = offsetof(Attr, dtype),
      .def = QN_DTYPE_F8E4M3FN,
      .doc = "that x is rounded to: f8e4m3fn or f8e5m2" },
};

static QnStatus scale_f8_infer(QnInfer *c)
{
    QN_TRY(qn_f8_check("scale_f8", ((const Attr *)c->attr)->dtype, c->in[0]));
    if (c->n_in > 1)
        QN_TRY(qn_f8_check_history("scale_f8", c->in[1]));
    c->n_out = 2;
    for (int i = 0; i < 2; i++)
        c->out[i].dtype = QN_DTYPE_F32;
    return QN_OK;
}

static void scale_f8_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    QnDtype dtype = ((const Attr *)n->attr)->dtype;
    QnValue *history = n->n_in > 1 ? n->in[1] : NULL;
    QnValue *amax = qn_f8_largest(g, n->in[0]), *zero = qn_scalar_like(g, amax, 0);
    amax = qn_where(g, qn_f8_is_sound(g, amax), amax, zero);
    if (history) {
        QnValue *seen = qn_reduce_max(g, history, QN_ALL_AXES, false);
        amax = qn_where(g, qn_greater(g, seen, zero), seen, amax);
    }
    out[0] = qn_pow2_scale(g, amax, qn_f8_most(dtype));
    out[1] = qn_reciprocal(g, out[0]);
}

static QnStatus scale_f8_call(const QnNode *n, QnDeviceCall *c)
{
    if (n->n_in < 2)
        return qn_fail(QN_EUNSUPPORTED, "scale_f8: the device text is for a history");
    *c = (QnDeviceCall){ .kernel = "scale_f8_one", .n_groups = 1, .group_size = QN_GROUP };
    qn_device_int(c, qn_shape_count(&n->in[0]->type.shape));
    qn_device_int(c, n->in[1]->type.shape.dim[0]);
    qn_device_float(c, qn_f8_most(((const Attr *)n->attr)->dtype));
    return QN_OK;
}

static const QnSample scale_f8_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 1, { 16 }, .lo = 0, .hi = 3 } },
      .n_in = 2,
      .lo = -9,
      .hi = 9,
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY }, /* steps */
    { .in = { { 1, { 1030 }, .lo = -99, .hi = 99 },
              { 1, { 3 }, .lo = -1, .hi = -0.5 } }, /* nothing seen */
      .n_in = 2,
      .attr = &(Attr){ QN_DTYPE_F8E5M2 },
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
    { .in = { { 3, { 3, 5, 2 } } },
      .n_in = 1,
      .lo = -0.1,
      .hi = 0.1,
      .flags = QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY },
};

/* Outputs scale and reciprocal, f32 scalars. history may be NULL. */
QN_API QnNode *qn_scale_f8(QnGraph *g, QnValue *x, QnValue *history, QnDtype dtype)
{
    return qn_emit(g, &qn_op_scale_f8, &(Attr){ dtype }, (QnValue *[]){ x, history },
                   history ? 2 : 1);
}

const QnOp qn_op_scale_f8 = {
    .name = "scale_f8",
    .version = 1,
    .doc = "power of two that a tensor is multiplied by before it is rounded to 8 bits",
    .n_in = 1,
    .n_in_max = 2,
    .n_out = 2,
    .traits = QN_NO_GRAD,
    QN_ATTRS(Attr, scale_f8_fields),
    .infer = scale_f8_infer,
    .lower = scale_f8_lower,
    .device = QN_TEXT(scale_f8),
    .call = scale_f8_call,
    QN_SAMPLES(scale_f8_samples),
};
#endif
