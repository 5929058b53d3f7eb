/* Pairs of features turned by angles of their position (Su et al. 2021): with cosines c and sines s
 *   (a, b) becomes (a c - b s, a s + b c)
 * x is (N,heads,length,size), or (N,length,heads*size). Caches of cosines and sines are
 * (positions,turned/2) with positions (N,length), i32 or i64, or (N,length,turned/2) without. The
 * first `turned` features turn (0: all); pairs are halves of them, or neighbours if interleaved. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/onnx.h"
#include "ops/region.h"

typedef struct Attr {
    int64_t heads, turned;
    bool interleaved;
} Attr;

static const QnAttrField rotary_embedding_fields[] = {
    { .name = "heads",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, heads),
      .max = 1 << 30,
      .doc = "of x with three axes; with four, x tells" },
    { .name = "turned",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, turned),
      .max = 1 << 30,
      .doc = "features that turn, the first ones of each head; 0: all" },
    { .name = "interleaved",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, interleaved),
      .doc = "pairs are neighbours, not the halves' elements" },
};

/* x as (N,length,heads,size), or (N,heads,length,size) as it is; `turned` resolved. */
typedef struct Rotary {
    QnShape view;
    int length_axis;
    int64_t size, turned;
} Rotary;

static QnStatus rotary_plan(const Attr *a, const QnShape *x, Rotary *p)
{
    char text[QN_TYPE_TEXT_BYTES];
    *p = (Rotary){ .view = *x, .length_axis = 2 };
    if (x->rank == 3 && a->heads > 0 && x->dim[2] >= 0 && x->dim[2] % a->heads == 0) {
        p->view = QN_SHAPE(x->dim[0], x->dim[1], a->heads, x->dim[2] / a->heads);
        p->length_axis = 1;
    } else if (x->rank != 4) {
        return qn_fail(QN_ESHAPE,
                       "rotary_embedding: x %s with %lld heads; it must be (N,heads,length,size) "
                       "or (N,length,heads*size) with the number of heads",
                       qn_shape_text(x, text), (long long)a->heads);
    }
    p->size = p->view.dim[3];
    p->turned = a->turned ? a->turned : p->size;
    if (p->turned < 0 || p->turned % 2 || p->turned > p->size)
        return qn_fail(QN_ESHAPE,
                       "rotary_embedding: %lld features of %lld turn; it must be an even number of "
                       "them",
                       (long long)p->turned, (long long)p->size);
    return QN_OK;
}

static QnStatus rotary_caches(const QnInfer *c, const Rotary *p)
{
    bool positions = c->n_in > 3 && c->in[3]->dtype != QN_DTYPE_COUNT;
    QnShape want = QN_SHAPE(p->view.dim[0], p->view.dim[p->length_axis], p->turned / 2);
    char s[QN_TYPE_TEXT_BYTES], t[QN_TYPE_TEXT_BYTES];
    if (positions) {
        const QnShape *at = &c->in[3]->shape;
        QN_TRY(qn_region_check_index("rotary_embedding", c->in[3]));
        if (at->rank != 2 || !qn_region_may_equal(at->dim[0], want.dim[0]) ||
            !qn_region_may_equal(at->dim[1], want.dim[1]))
            return qn_fail(QN_ESHAPE,
                           "rotary_embedding: positions are %s for x %s; want (N,length)",
                           qn_shape_text(at, s), qn_shape_text(&c->in[0]->shape, t));
        want = QN_SHAPE(c->in[1]->shape.dim[0], p->turned / 2);
    }
    for (int i = 1; i < 3; i++) {
        const QnShape *k = &c->in[i]->shape;
        if (c->in[i]->dtype != c->in[0]->dtype)
            return qn_fail(QN_EDTYPE, "rotary_embedding: cache %d is %s, x %s", i,
                           qn_dtype_name(c->in[i]->dtype), qn_dtype_name(c->in[0]->dtype));
        bool fits = k->rank == want.rank;
        for (int d = 0; fits && d < want.rank; d++)
            fits = qn_region_may_equal(k->dim[d], want.dim[d]);
        if (!fits)
            return qn_fail(QN_ESHAPE, "rotary_embedding: cache %d is %s, must be %s", i,
                           qn_shape_text(k, s), qn_shape_text(&want, t));
    }
    return QN_OK;
}

static QnStatus rotary_embedding_infer(QnInfer *c)
{
    Rotary p;
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "rotary_embedding: needs floats, not %s",
                       qn_dtype_name(c->in[0]->dtype));
    QN_TRY(rotary_plan(c->attr, &c->in[0]->shape, &p));
    QN_TRY(rotary_caches(c, &p));
    c->out[0] = *c->in[0];
    return QN_OK;
}

/* A cache as it broadcasts to halves of the view. */
static QnValue *rotary_cache(QnGraph *g, const QnNode *n, int i, const Rotary *p, QnDtype t)
{
    QnValue *v = n->in[i];
    if (n->n_in > 3 && n->in[3])
        v = qn_embedding(g, v, n->in[3]);
    return qn_unsqueeze(g, qn_cast(g, v, t), p->length_axis == 1 ? 2 : 1);
}

static QnValue *rotary_part(QnGraph *g, QnValue *x, int64_t from, int64_t to, int64_t step)
{
    QnSliceAttr a = { QN_INTS(3), QN_INTS(from), QN_INTS(to), QN_INTS(step) };
    return qn_slice(g, x, &a);
}

static void rotary_embedding_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *attr = n->attr;
    const QnType *type = &n->in[0]->type;
    QnDtype t = qn_norm_stat(type->dtype);
    Rotary p;
    if (rotary_plan(attr, &type->shape, &p)) {
        out[0] = qn_graph_poison(g);
        return;
    }
    QnValue *x = qn_reshape(g, n->in[0], &p.view), *v = qn_cast(g, x, t), *a, *b;
    QnValue *c = rotary_cache(g, n, 1, &p, t), *s = rotary_cache(g, n, 2, &p, t);
    int64_t half = p.turned / 2;
    if (attr->interleaved) {
        a = rotary_part(g, v, 0, p.turned, 2);
        b = rotary_part(g, v, 1, p.turned, 2);
    } else {
        a = rotary_part(g, v, 0, half, 1);
        b = rotary_part(g, v, half, p.turned, 1);
    }
    QnValue *pair[] = { qn_sub(g, qn_mul(g, a, c), qn_mul(g, b, s)),
                        qn_add(g, qn_mul(g, a, s), qn_mul(g, b, c)) };
    QnShape turned = p.view;
    turned.dim[3] = p.turned;
    v = attr->interleaved ? qn_reshape(g, qn_stack(g, pair, 2, 4), &turned)
                          : qn_concat(g, pair, 2, 3);
    v = qn_cast(g, v, type->dtype);
    if (p.turned < p.size)
        v = qn_concat(g, (QnValue *[]){ v, rotary_part(g, x, p.turned, p.size, 1) }, 2, 3);
    out[0] = qn_reshape(g, v, &type->shape);
}

static const QnSample rotary_embedding_samples[] = {
    { .in = { { 4, { 2, 3, 5, 4 } }, { 3, { 2, 5, 2 } }, { 3, { 2, 5, 2 } } }, .n_in = 3 },
    { .in = { { 3, { 2, 3, 130 } },
              { 2, { 7, 16 } },
              { 2, { 7, 16 } },
              { 2, { 2, 3 }, QN_DTYPE_I64, 0, 6 } },
      .n_in = 4,
      .attr = &(Attr){ 2, 32, true } },
    { .in = { { 4, { 1, 2, 3, 8 } },
              { 2, { 5, 2 } },
              { 2, { 5, 2 } },
              { 2, { 1, 3 }, QN_DTYPE_I32, 0, 4 } },
      .n_in = 4,
      .attr = &(Attr){ 0, 4, false } },
};

/* positions may be NULL. heads: 0 for x of four axes; turned 0: all. */
QN_API QnValue *qn_rotary_embedding(QnGraph *g, QnValue *x, QnValue *cosines, QnValue *sines,
                                    QnValue *positions, int64_t heads, int64_t turned,
                                    bool interleaved)
{
    return qn_emitn(g, &qn_op_rotary_embedding, &(Attr){ heads, turned, interleaved },
                    (QnValue *[]){ x, cosines, sines, positions }, positions ? 4 : 3);
}

static QnStatus rotary_embedding_import(QnOnnxNode *n)
{
    int64_t heads = qn_onnx_int(n, "num_heads", 0);
    QnValue *y = qn_rotary_embedding(
        n->g, qn_onnx_in(n, 0), qn_onnx_in(n, 1), qn_onnx_in(n, 2), qn_onnx_in_or(n, 3, NULL),
        heads, qn_onnx_int(n, "rotary_embedding_dim", 0), qn_onnx_int(n, "interleaved", 0) != 0);
    return qn_onnx_out0(n, y);
}

static const QnOnnxMap rotary_embedding_onnx[] = {
    { .name = "RotaryEmbedding", .since = 23, .import = rotary_embedding_import },
};

const QnOp qn_op_rotary_embedding = {
    .name = "rotary_embedding",
    .version = 1,
    .doc = "pairs of features turned by angles of their position",
    .n_in = 3,
    .n_in_max = 4,
    QN_ATTRS(Attr, rotary_embedding_fields),
    .infer = rotary_embedding_infer,
    .lower = rotary_embedding_lower,
    QN_ONNX(rotary_embedding_onnx),
    QN_SAMPLES(rotary_embedding_samples),
};
#endif
