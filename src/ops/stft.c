/* Fourier transforms of frames of a signal: x (N,length,parts), parts as in dft, and a window
 * (frame), optional, give (N,frames,frequencies,2). Frame f holds elements f*step to
 * f*step + frame - 1; what is left at the end is dropped. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/onnx.h"
#include "ops/ops.h"
#include "ops/region.h"

typedef struct Attr {
    int64_t frame, step;
    bool onesided;
} Attr;

static const QnAttrField stft_fields[] = {
    { .name = "frame",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, frame),
      .def = 1,
      .min = 1,
      .max = 1 << 24,
      .doc = "elements of a frame" },
    { .name = "step",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, step),
      .def = 1,
      .min = 1,
      .max = 1 << 24,
      .doc = "elements from one frame's beginning to the next one's" },
    { .name = "onesided",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, onesided),
      .doc = "half of the frequencies, those of a real signal" },
};

static QnStatus stft_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    const QnShape *x = &c->in[0]->shape;
    const QnType *w = c->n_in > 1 ? c->in[1] : NULL;
    char text[QN_TYPE_TEXT_BYTES];
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "stft: needs floats, not %s", qn_dtype_name(c->in[0]->dtype));
    if (x->rank != 3 || (x->dim[2] != 1 && x->dim[2] != 2))
        return qn_fail(QN_ESHAPE, "stft: x %s; it must be (N,length,1) or (N,length,2)",
                       qn_shape_text(x, text));
    if (x->dim[1] >= 0 && x->dim[1] < a->frame)
        return qn_fail(QN_ESHAPE, "stft: x %s is shorter than a frame of %lld",
                       qn_shape_text(x, text), (long long)a->frame);
    if (w && w->dtype != QN_DTYPE_COUNT) {
        if (w->dtype != c->in[0]->dtype)
            return qn_fail(QN_EDTYPE, "stft: the window is %s, x %s", qn_dtype_name(w->dtype),
                           qn_dtype_name(c->in[0]->dtype));
        if (w->shape.rank != 1 || !qn_region_may_equal(w->shape.dim[0], a->frame))
            return qn_fail(QN_ESHAPE,
                           "stft: the window is %s; it must have a frame's %lld elements",
                           qn_shape_text(&w->shape, text), (long long)a->frame);
    }
    QnDim frames = qn_dim_div(c->graph, qn_dim_sub(c->graph, x->dim[1], a->frame), a->step);
    c->out[0].dtype = c->in[0]->dtype;
    c->out[0].shape = QN_SHAPE(x->dim[0], qn_dim_add(c->graph, frames, 1),
                               a->onesided ? a->frame / 2 + 1 : a->frame, 2);
    return QN_OK;
}

static void stft_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    QnDim frames = n->out[0].type.shape.dim[1];
    QnDtype dtype = n->in[0]->type.dtype, t = qn_norm_stat(dtype);
    QnValue *at = qn_arange(g, 0, (double)a->step, frames, QN_DTYPE_I64);
    at = qn_add(g, qn_reshape(g, at, &QN_SHAPE(frames, 1)),
                qn_arange(g, 0, 1, a->frame, QN_DTYPE_I64));
    QnValue *x = qn_cast(g, qn_gather(g, n->in[0], at, 1), t);
    if (n->n_in > 1 && n->in[1])
        x = qn_mul(g, x, qn_reshape(g, qn_cast(g, n->in[1], t), &QN_SHAPE(a->frame, 1)));
    out[0] = qn_cast(g, qn_dft(g, x, 2, 0, false, a->onesided), dtype);
}

static const QnSample stft_samples[] = {
    { .in = { { 3, { 2, 20, 1 } }, { 1, { 8 } } }, .n_in = 2, .attr = &(Attr){ 8, 3, true } },
    { .in = { { 3, { 1, 130, 2 } } }, .n_in = 1, .attr = &(Attr){ 5, 25, false } },
};

/* window may be NULL: ones. */
QN_API QnValue *qn_stft(QnGraph *g, QnValue *x, QnValue *window, int64_t frame, int64_t step,
                        bool onesided)
{
    return qn_emitn(g, &qn_op_stft, &(Attr){ frame, step, onesided }, (QnValue *[]){ x, window },
                    window ? 2 : 1);
}

/* A frame is as long as it says, else as the window, else as the signal. */
static QnStatus stft_import(QnOnnxNode *n)
{
    const QnType *x = qn_onnx_type(n, 0), *window = qn_onnx_type(n, 2);
    int64_t step, frame;
    QN_TRY(qn_onnx_in_int(n, 1, &step));
    if (!x || x->shape.rank < 2)
        return qn_fail(QN_ESHAPE, "input 0 must be (N,length,1) or (N,length,2)");
    frame = window && window->shape.rank == 1 ? window->shape.dim[0] : x->shape.dim[1];
    if (qn_onnx_has(n, 3))
        QN_TRY(qn_onnx_in_int(n, 3, &frame));
    bool half = qn_onnx_int(n, "onesided", 1) != 0;
    QnValue *v = qn_onnx_in(n, 0);
    v = x->shape.rank == 2 ? qn_unsqueeze(n->g, v, 2) : v;
    return qn_onnx_out0(n, qn_stft(n->g, v, qn_onnx_in_or(n, 2, NULL), frame, step, half));
}

static const QnOnnxMap stft_onnx[] = { { .name = "STFT", .since = 17, .import = stft_import } };

const QnOp qn_op_stft = {
    .name = "stft",
    .version = 1,
    .doc = "Fourier transforms of the frames of a signal",
    .n_in = 1,
    .n_in_max = 2,
    QN_ATTRS(Attr, stft_fields),
    .infer = stft_infer,
    .lower = stft_lower,
    QN_ONNX(stft_onnx),
    QN_SAMPLES(stft_samples),
};
#endif
