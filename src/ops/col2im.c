/* Columns (N,C*taps,places) added up into images (N,C,image...): column k of place l holds what tap
 * k of the window at place l gives. The adjoint of laying an image out in columns, and so the
 * gradient of a convolution whose weights pick single taps. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/region.h"
#include "ops/window.h"

typedef struct Attr {
    QnInts image, kernel, strides, pads, dilations;
} Attr;

static const QnAttrField col2im_fields[] = {
    { .name = "image",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(Attr, image),
      .doc = "spatial sizes of the images, one to three" },
    { .name = "kernel",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(Attr, kernel),
      .doc = "size of the window along each spatial axis" },
    { .name = "strides",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(Attr, strides),
      .doc = "steps of the window along each spatial axis; none: all 1" },
    { .name = "pads",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(Attr, pads),
      .doc = "zeros before each spatial axis, then those after each; none: all 0" },
    { .name = "dilations",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(Attr, dilations),
      .doc = "distance of neighbouring taps along each spatial axis; none: all 1" },
};

/* The convolution whose gradient this is: images (N,C,image...), weights (C*taps,1,kernel...),
 * result y (N,C*taps,places...). */
typedef struct Col2im {
    QnConvAttr conv;
    int64_t taps;
    QnShape x, w, y;
} Col2im;

static QnStatus col2im_sizes(const QnInts *list, const char *name, int n)
{
    if (list->n != n)
        return qn_fail(QN_EARG, "col2im: %s has %d entries, image has %d", name, list->n, n);
    for (int i = 0; i < n; i++) {
        if (list->v[i] < 1 || list->v[i] > 1 << 30)
            return qn_fail(QN_EARG, "col2im: %s holds %lld; it must be in 1..%d", name,
                           (long long)list->v[i], 1 << 30);
    }
    return QN_OK;
}

static QnStatus col2im_plan(QnGraph *g, const Attr *a, const QnShape *s, Col2im *p)
{
    int n = a->image.n;
    char text[QN_TYPE_TEXT_BYTES];
    if (n < 1 || n > 3 || s->rank != 3)
        return qn_fail(QN_ESHAPE,
                       "col2im: x %s for images of %d axes; it takes (N,C*taps,places) and one to "
                       "three axes",
                       qn_shape_text(s, text), n);
    QN_TRY(col2im_sizes(&a->image, "image", n));
    QN_TRY(col2im_sizes(&a->kernel, "kernel", n));
    *p = (Col2im){ .conv = { a->strides, a->pads, a->dilations, 0 }, .taps = 1 };
    for (int i = 0; i < n; i++) {
        if (a->kernel.v[i] > (1 << 30) / p->taps)
            return qn_fail(QN_EARG, "col2im: the kernel has more than %d taps", 1 << 30);
        p->taps *= a->kernel.v[i];
    }
    if (s->dim[1] < 0 || s->dim[1] % p->taps)
        return qn_fail(s->dim[1] < 0 ? QN_EUNSUPPORTED : QN_ESHAPE,
                       "col2im: axis 1 of x %s must be a multiple of the kernel's %lld taps",
                       qn_shape_text(s, text), (long long)p->taps);
    p->conv.groups = s->dim[1] / p->taps;
    p->x = QN_SHAPE(s->dim[0], p->conv.groups);
    p->w = QN_SHAPE(s->dim[1], 1);
    p->x.rank = p->w.rank = n + 2;
    for (int i = 0; i < n; i++) {
        p->x.dim[2 + i] = a->image.v[i];
        p->w.dim[2 + i] = a->kernel.v[i];
    }
    return qn_window_conv_shape(g, "col2im", &p->conv, &p->x, &p->w, &p->y);
}

static QnStatus col2im_infer(QnInfer *c)
{
    const QnType *x = c->in[0];
    Col2im p;
    if (!qn_dtype_is_float(x->dtype))
        return qn_fail(QN_EDTYPE, "col2im: needs floats, not %s", qn_dtype_name(x->dtype));
    QN_TRY(col2im_plan(c->graph, c->attr, &x->shape, &p));
    QnDim places = qn_shape_product(c->graph, &p.y, 2, p.y.rank);
    if (!qn_region_may_equal(places, x->shape.dim[2]))
        return qn_fail(QN_ESHAPE, "col2im: x has %lld places, the window has %lld in the image",
                       (long long)x->shape.dim[2], (long long)places);
    c->out[0] = (QnType){ .dtype = x->dtype, .shape = p.x };
    return QN_OK;
}

static void col2im_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const QnType *x = &n->in[0]->type;
    Col2im p;
    if (col2im_plan(g, n->attr, &x->shape, &p)) {
        out[0] = qn_graph_poison(g);
        return;
    }
    QnShape one = QN_SHAPE(1, p.taps, p.taps), all = one;
    all.dim[0] = p.conv.groups;
    QnValue *pick = qn_reshape(g, qn_eye(g, p.taps, p.taps, 0, x->dtype), &one);
    QnValue *w = qn_reshape(g, qn_expand(g, pick, &all), &p.w);
    out[0] = qn_conv_dx(g, qn_reshape(g, n->in[0], &p.y), w, &p.conv, &p.x);
}

static const QnSample col2im_samples[] = {
    { .in = { { 3, { 2, 12, 12 } } },
      .n_in = 1,
      .attr = &(Attr){ .image = { 2, { 4, 6 } },
                       .kernel = { 2, { 2, 3 } },
                       .pads = { 4, { 0, 0, 0, 0 } } } },
    { .in = { { 3, { 1, 4, 6 } } },
      .n_in = 1,
      .attr = &(Attr){ .image = { 2, { 5, 6 } },
                       .kernel = { 2, { 2, 2 } },
                       .strides = { 2, { 2, 1 } },
                       .pads = { 4, { 0, 0, 1, 0 } },
                       .dilations = { 2, { 2, 3 } } } },
    { .in = { { 3, { 1, 6, 128 } } },
      .n_in = 1,
      .attr = &(Attr){ .image = { 1, { 130 } }, .kernel = { 1, { 3 } } } },
};

/* strides, pads and dilations may have no entries. */
QN_API QnValue *qn_col2im(QnGraph *g, QnValue *x, QnInts image, QnInts kernel, QnInts strides,
                          QnInts pads, QnInts dilations)
{
    return qn_emit1(g, &qn_op_col2im, &(Attr){ image, kernel, strides, pads, dilations }, x);
}

static QnStatus col2im_import(QnOnnxNode *n)
{
    QnInts image, block, strides, pads, dilations;
    QN_TRY(qn_onnx_in_ints(n, 1, &image));
    QN_TRY(qn_onnx_in_ints(n, 2, &block));
    qn_onnx_ints(n, "strides", &strides);
    qn_onnx_ints(n, "pads", &pads);
    qn_onnx_ints(n, "dilations", &dilations);
    if (image.n > 3)
        return qn_onnx_refuse(n, "%d spatial axes, at most 3 are supported", image.n);
    return qn_onnx_out0(n,
                        qn_col2im(n->g, qn_onnx_in(n, 0), image, block, strides, pads, dilations));
}

static const QnOnnxMap col2im_onnx[] = {
    { .name = "Col2Im", .since = 18, .import = col2im_import },
};

const QnOp qn_op_col2im = {
    .name = "col2im",
    .version = 1,
    .doc = "columns of windows added up into images",
    .n_in = 1,
    QN_ATTRS(Attr, col2im_fields),
    .infer = col2im_infer,
    .lower = col2im_lower,
    QN_ONNX(col2im_onnx),
    QN_SAMPLES(col2im_samples),
};
#endif
