/* Grids for grid_sample: places of an image of the given size under affine maps theta (N,2,3) or
 * (N,3,4): grid (N,H,W,2) or (N,D,H,W,3), the place along the last axis first. Jaderberg et al.
 * 2015. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/onnx.h"

typedef struct Attr {
    QnDims size;
    bool align_corners;
} Attr;

static const QnAttrField affine_grid_fields[] = {
    { .name = "size",
      .kind = QN_ATTR_DIMS,
      .offset = offsetof(Attr, size),
      .doc = "spatial dims of the image, two or three" },
    { .name = "align_corners",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, align_corners),
      .doc = "-1 and 1 are the centres of the outermost elements, not their edges" },
};

static QnStatus affine_grid_infer(QnInfer *c)
{
    const QnDims *size = &((const Attr *)c->attr)->size;
    const QnShape *t = &c->in[0]->shape;
    char text[QN_TYPE_TEXT_BYTES];
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "affine_grid: needs floats, not %s",
                       qn_dtype_name(c->in[0]->dtype));
    if (size->n < 2 || size->n > 3 || t->rank != 3 || t->dim[1] != size->n ||
        t->dim[2] != size->n + 1)
        return qn_fail(QN_ESHAPE,
                       "affine_grid: theta %s for an image of %d axes; it must be (N,2,3) for two, "
                       "(N,3,4) for three",
                       qn_shape_text(t, text), size->n);
    c->out[0].dtype = c->in[0]->dtype;
    c->out[0].shape = (QnShape){ .rank = size->n + 2, .dim = { t->dim[0] } };
    for (int i = 0; i < size->n; i++) {
        if (size->d[i] < 0)
            return qn_fail(QN_EUNSUPPORTED,
                           "affine_grid: spatial dim %d is symbolic; its length must be known", i);
        c->out[0].shape.dim[1 + i] = size->d[i];
    }
    c->out[0].shape.dim[1 + size->n] = size->n;
    return QN_OK;
}

/* Places of n elements from -1 to 1. */
static QnValue *affine_grid_places(QnGraph *g, int64_t n, bool align_corners, QnDtype t)
{
    if (!align_corners)
        return qn_arange(g, 1 / (double)n - 1, 2 / (double)n, n, t);
    return n > 1 ? qn_arange(g, -1, 2 / (double)(n - 1), n, t) : qn_full(g, 0, t, &QN_SHAPE(n));
}

static void affine_grid_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    const QnShape *y = &n->out[0].type.shape;
    QnDtype t = qn_norm_stat(n->in[0]->type.dtype);
    int axes = a->size.n;
    QnValue *part[4];
    QnShape whole = { .rank = axes + 1 }, points = { .rank = 2, .dim = { 1, axes + 1 } };
    for (int d = 0; d < axes; d++) {
        whole.dim[d] = a->size.d[d];
        points.dim[0] = qn_dim_mul(g, points.dim[0], a->size.d[d]);
    }
    whole.dim[axes] = 1;
    for (int d = 0; d < axes; d++) {
        QnShape along = { .rank = axes + 1, .dim = { 1, 1, 1, 1 } };
        along.dim[d] = a->size.d[d];
        QnValue *v = affine_grid_places(g, a->size.d[d], a->align_corners, t);
        part[axes - 1 - d] = qn_expand(g, qn_reshape(g, v, &along), &whole);
    }
    part[axes] = qn_full(g, 1, t, &whole);
    QnValue *base = qn_reshape(g, qn_concat(g, part, axes + 1, axes), &points);
    QnValue *v = qn_matmul(g, base, qn_cast(g, n->in[0], t), NULL, false, true);
    out[0] = qn_cast(g, qn_reshape(g, v, y), n->in[0]->type.dtype);
}

static const QnSample affine_grid_samples[] = {
    { .in = { { 3, { 2, 2, 3 } } }, .n_in = 1, .attr = &(Attr){ { 2, { 3, 5 } }, false } },
    { .in = { { 3, { 1, 3, 4 } } }, .n_in = 1, .attr = &(Attr){ { 3, { 2, 1, 4 } }, true } },
};

QN_API QnValue *qn_affine_grid(QnGraph *g, QnValue *theta, const QnDims *size, bool align_corners)
{
    return qn_emit1(g, &qn_op_affine_grid, &(Attr){ *size, align_corners }, theta);
}

static QnStatus affine_grid_import(QnOnnxNode *n)
{
    QnInts size;
    QN_TRY(qn_onnx_in_ints(n, 1, &size)); /* (N,C,spatial...) */
    QnDims spatial = { .n = size.n - 2 };
    if (size.n < 4 || size.n > 5)
        return qn_fail(QN_ESHAPE, "a size of %d dims; it must be (N,C,H,W) or (N,C,D,H,W)", size.n);
    for (int i = 0; i < spatial.n; i++)
        spatial.d[i] = size.v[2 + i];
    bool align = qn_onnx_int(n, "align_corners", 0) != 0;
    return qn_onnx_out0(n, qn_affine_grid(n->g, qn_onnx_in(n, 0), &spatial, align));
}

static const QnOnnxMap affine_grid_onnx[] = {
    { .name = "AffineGrid", .since = 20, .import = affine_grid_import },
};

const QnOp qn_op_affine_grid = {
    .name = "affine_grid",
    .version = 1,
    .doc = "places of an image's elements under affine maps",
    .n_in = 1,
    QN_ATTRS(Attr, affine_grid_fields),
    .infer = affine_grid_infer,
    .lower = affine_grid_lower,
    QN_ONNX(affine_grid_onnx),
    QN_SAMPLES(affine_grid_samples),
};
#endif
