/* The tensor repeated along its axes. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/util.h"

typedef struct Attr {
    QnInts repeats;
} Attr;

static const QnAttrField tile_fields[] = {
    { .name = "repeats",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(Attr, repeats),
      .doc = "how often, one number an axis" },
};

static QnStatus tile_infer(QnInfer *c)
{
    const QnInts *r = &((const Attr *)c->attr)->repeats;
    c->out[0] = *c->in[0];
    QnShape *s = &c->out[0].shape;
    if (r->n != s->rank)
        return qn_fail(QN_EARG, "tile: %d repeats for rank %d; give one an axis", r->n, s->rank);
    for (int i = 0; i < r->n; i++) {
        if (r->v[i] < 0)
            return qn_fail(QN_EARG, "tile: axis %d is repeated %lld times", i, (long long)r->v[i]);
        s->dim[i] = qn_dim_mul(c->graph, s->dim[i], r->v[i]);
    }
    return QN_OK;
}

/* Axis by axis: (outer, n, inner) is spread to (outer, r, n, inner). */
static void tile_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const QnInts *r = &((const Attr *)n->attr)->repeats;
    QnValue *x = n->in[0];
    for (int i = 0; i < r->n; i++) {
        QnShape s = x->type.shape;
        if (r->v[i] == 1)
            continue;
        QnDim outer = qn_shape_product(g, &s, 0, i), inner = qn_shape_product(g, &s, i + 1, s.rank);
        QnShape one = QN_SHAPE(outer, 1, s.dim[i], inner), many = one;
        many.dim[1] = r->v[i];
        s.dim[i] = qn_dim_mul(g, s.dim[i], r->v[i]);
        x = qn_reshape(g, qn_expand(g, qn_reshape(g, x, &one), &many), &s);
        if (qn_value_is_poison(x))
            break;
    }
    out[0] = x;
}

static const QnSample tile_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .attr = &(Attr){ { 2, { 2, 3 } } } },
    { .in = { { 3, { 2, 1, 3 } } }, .n_in = 1, .attr = &(Attr){ { 3, { 1, 130, 2 } } } },
};

QN_API QnValue *qn_tile(QnGraph *g, QnValue *x, QnInts repeats)
{
    return qn_emit1(g, &qn_op_tile, &(Attr){ repeats }, x);
}

static QnStatus tile_import(QnOnnxNode *n)
{
    QnInts repeats = { 0 };
    int rank = qn_onnx_rank(n, 0);
    if (rank < 0)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor of numbers");
    if (n->opset >= 6) {
        QN_TRY(qn_onnx_in_ints(n, 1, &repeats));
    } else {
        double times, where;
        int axis;
        QN_TRY(qn_onnx_in_double(n, 1, &times));
        QN_TRY(qn_onnx_in_double(n, 2, &where));
        QN_TRY(qn_onnx_axis((int64_t)where, rank, &axis));
        for (repeats.n = 0; repeats.n < rank; repeats.n++)
            repeats.v[repeats.n] = repeats.n == axis ? (int64_t)times : 1;
    }
    return qn_onnx_out0(n, qn_tile(n->g, qn_onnx_in(n, 0), repeats));
}

static const QnOnnxMap tile_onnx[] = { { .name = "Tile", .since = 1, .import = tile_import } };

const QnOp qn_op_tile = {
    .name = "tile",
    .version = 1,
    .doc = "repeated along its axes",
    .n_in = 1,
    .traits = QN_ANY_DTYPE,
    QN_ATTRS(Attr, tile_fields),
    .infer = tile_infer,
    .lower = tile_lower,
    QN_ONNX(tile_onnx),
    QN_SAMPLES(tile_samples),
};
#endif
