/* Illegal arguments: random inputs and attributes, within and beyond what the tables allow, give
 * an error with words or a node that can be priced, evaluated and differentiated. Never an abort.
 */
#include "ops/harness.h"

enum { CASES = 60, BIG = 20000 }; /* a case an operator; elements that are still evaluated */

static QnRng rng;

static int64_t below(int64_t n)
{
    return (int64_t)qn_rng_below(&rng, (uint64_t)n);
}

static int64_t pick_int(const int64_t *v, int n)
{
    return v[below(n)];
}

static int64_t random_int(const QnAttrField *f)
{
    const int64_t v[] = { 0, 1, -1, 2, -2, 3, 8, 9, -9, INT64_MAX, INT64_MIN, 1000000007, 64, 16,
                          255, (int64_t)f->min, (int64_t)f->max,
                          /* one beyond; ranges are far from the ends of int64_t */
                          (int64_t)f->min - 1, (int64_t)f->max + 1 };
    return pick_int(v, fabs(f->min) < 1e15 && fabs(f->max) < 1e15 ? QN_COUNT(v) : 15);
}

static double random_float(const QnAttrField *f)
{
    const double v[] = { 0,         1,      -1,     0.5,        1e-30, 1e30,  NAN,       INFINITY,
                         -INFINITY, f->min, f->max, f->max + 1, -0.0,  1e308, f->min - 1 };
    return v[below(QN_COUNT(v))];
}

static QnDim random_dim(void)
{
    static const int64_t v[] = { 0, 1, 2, 3, 4, 5, 7, 1, 2, 3, 4, 6 };
    static const int64_t odd[] = { 0, -1, -2, INT64_MAX, INT64_MIN, INT64_C(1) << 40, -1000 };
    return below(12) ? pick_int(v, QN_COUNT(v)) : pick_int(odd, QN_COUNT(odd));
}

static void random_ints(QnInts *p)
{
    static const int64_t v[] = { 0, 1, 2, 3, 0, 1, 1, -1, -2, 5, 9, INT64_MAX, INT64_MIN, -9 };
    p->n = (int)(below(8) ? below(5) : below(2 * QN_MAX_RANK + 3) - 1);
    int n = below(3) ? 6 : QN_COUNT(v);
    for (int i = 0; i < p->n && i < 2 * QN_MAX_RANK; i++)
        p->v[i] = pick_int(v, n);
}

static void random_dims(QnDims *p)
{
    p->n = (int)(below(8) ? below(5) : below(QN_MAX_RANK + 3) - 1);
    for (int i = 0; i < p->n && i < QN_MAX_RANK; i++)
        p->d[i] = random_dim();
}

static void mutate(void *attr, const QnAttrField *f)
{
    static const char *const strings[] = {
        "", "x", NULL, "\xff\xfe", "ij,jk->ik", "ii", "->", "a"
    };
    static const double data[4] = { 1, 2, 3, 4 };
    void *at = (char *)attr + f->offset;
    switch (f->kind) {
    case QN_ATTR_INT: *(int64_t *)at = random_int(f); break;
    case QN_ATTR_FLOAT: *(double *)at = random_float(f); break;
    case QN_ATTR_BOOL: *(bool *)at = below(2); break;
    case QN_ATTR_ENUM: *(int *)at = (int)below(8) - 1; break;
    case QN_ATTR_DTYPE: *(QnDtype *)at = (QnDtype)(below(QN_DTYPE_COUNT + 2) - 1); break;
    case QN_ATTR_STRING: *(const char **)at = strings[below(QN_COUNT(strings))]; break;
    case QN_ATTR_INTS: random_ints(at); break;
    case QN_ATTR_DIMS: random_dims(at); break;
    case QN_ATTR_DATA: *(QnData *)at = (QnData){ (size_t)below(33), data }; break;
    case QN_ATTR_BODY: *(const QnBody **)at = NULL; break;
    }
}

/* A type like the sample's or anything else. */
static QnType random_type(const QnSample *s, int i)
{
    QnType t = { 0 };
    if (i < s->n_in && s->in[i].dtype < QN_DTYPE_COUNT) {
        t.dtype = s->in[i].dtype;
        t.shape = sample_shape(&s->in[i]);
    }
    if (below(6) == 0)
        t.dtype = (QnDtype)below(QN_DTYPE_COUNT);
    if (below(4) == 0) {
        t.shape.rank = (int)(below(4) ? below(5) : below(QN_MAX_RANK + 1));
        for (int d = 0; d < t.shape.rank; d++)
            t.shape.dim[d] = llabs(random_dim() % 8);
    } else if (below(3) == 0 && t.shape.rank > 0) {
        static const int64_t v[] = { 0, 0, 1, 1, 2, 3, INT64_C(1) << 40, INT64_MAX };
        t.shape.dim[below(t.shape.rank)] = pick_int(v, QN_COUNT(v));
    }
    return t;
}

static bool is_small(const QnNode *n)
{
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const QnValue *v = i < n->n_in ? n->in[i] : &n->out[i - n->n_in];
        int64_t count = v ? value_count(v) : 0;
        if (count < 0 || count > BIG)
            return false;
    }
    return true;
}

/* Values of any kind: indices out of range among them. */
static double *random_values(const QnValue *v)
{
    int64_t n = value_count(v);
    double *x = new_doubles(n);
    for (int64_t i = 0; i < n; i++)
        x[i] = below(10) ? (double)below(7) - 2 : 1e9;
    round_to_dtype(v->type.dtype, x, n);
    return x;
}

static void evaluate(QnNode *n, const char *what)
{
    double *in[QN_SAMPLE_IN + 1] = { 0 }, *out[QN_MAX_OUT] = { 0 };
    for (int i = 0; i < n->n_in; i++)
        in[i] = n->in[i] ? random_values(n->in[i]) : NULL;
    for (int i = 0; i < n->n_out; i++)
        out[i] = new_doubles(value_count(&n->out[i]));
    qn_error_clear();
    QnStatus st = qn_eval_node(n, (const double *const *)in, out, false);
    if (st && !qn_error_last()->text[0])
        fail_msg("%s: the reference fails without words", what);
    for (int i = 0; i <= QN_SAMPLE_IN; i++)
        qn_free(in[i]);
    free_outputs(out);
}

/* Everything that reads an accepted node. */
static void use(QnGraph *g, QnNode *n, const char *what)
{
    QnCost cost = qn_cost_of(n);
    if (!(cost.flops >= 0) || !(cost.bytes_read >= 0) || !(cost.bytes_written >= 0))
        fail_msg("%s: cost %g flops, %g read, %g written", what, cost.flops, cost.bytes_read,
                 cost.bytes_written);
    if (n->op->call) {
        QnDeviceCall call = { 0 };
        if (n->op->call(n, &call) == QN_OK && !call.kernel)
            fail_msg("%s: a launch without a kernel", what);
    }
    if (op_has_value(n->op) && is_small(n))
        evaluate(n, what);
    assert_ok(qn_graph_verify(g));
    if (n->op->grad) {
        QnValue *dy[QN_MAX_OUT] = { 0 }, *dx[QN_SAMPLE_IN + 1] = { 0 };
        for (int i = 0; i < n->n_out; i++) {
            if (qn_dtype_is_float(n->out[i].type.dtype))
                dy[i] = qn_full(g, 1, n->out[i].type.dtype, &n->out[i].type.shape);
        }
        if (dy[0])
            n->op->grad(g, n, dy, dx);
        QnStatus st = qn_graph_check(g); /* may refuse, in words */
        for (int i = 0; !st && i < n->n_in; i++) {
            if (dx[i] && !qn_type_is_equal(&dx[i]->type, &n->in[i]->type))
                fail_msg("%s: gradient %d is not of its input's type", what, i);
        }
    }
}

/* Whether it was accepted. */
static bool run_case(const QnOp *op, int number)
{
    char what[96];
    const QnSample *s = &op->samples[below(op->n_samples)];
    QnGraph *g = qn_graph_new();
    QnValue *in[QN_SAMPLE_IN + 1] = { 0 };
    int n_in = below(10) ? s->n_in : (int)below(s->n_in + 2);
    void *attr = op->attr_bytes ? qn_arena_alloc(g->arena, op->attr_bytes) : NULL;
    snprintf(what, sizeof what, "%s, case %d", op->name, number);
    if (attr && s->attr)
        memcpy(attr, s->attr, op->attr_bytes);
    else if (attr)
        qn_attr_defaults(op, attr);
    for (int64_t k = below(3); attr && k > 0; k--)
        mutate(attr, &op->fields[below(op->n_fields)]);
    for (int i = 0; i < n_in; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        QnType t = random_type(s, i);
        in[i] = below(15) ? qn_input(g, name, t.dtype, &t.shape) : NULL;
    }
    bool sound = qn_graph_check(g) == QN_OK; /* an input itself may be too large */
    QnNode *n = qn_emit(g, op, attr, in, n_in);
    if (n)
        use(g, n, what);
    else if (sound && (!g->error.code || !g->error.text[0]))
        fail_msg("%s: refused without words", what);
    qn_graph_free(g);
    return n != NULL;
}

static void test_anything_is_refused_in_words_or_works(void **state)
{
    int cases = 0, accepted = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        for (int i = 0; i < CASES; i++) {
            qn_rng_init(&rng, 5, (uint64_t)(o * CASES + i));
            accepted += run_case(all_ops[o], i);
            cases++;
        }
    }
    print_message("%d cases, %d accepted\n", cases, accepted);
    assert_true(accepted > cases / 10 && accepted < cases * 9 / 10);
}

/* Must be refused by a text that contains the words. */
static void expect_refusal(QnGraph *g, QnValue *y, const char *words)
{
    assert_true(qn_value_is_poison(y));
    assert_int_not_equal(qn_graph_check(g), QN_OK);
    if (!strstr(qn_error_last()->text, words))
        fail_msg("no \"%s\" in \"%s\"", words, qn_error_last()->text);
    qn_graph_free(g);
}

/* A fresh graph with an image (2,3,8,8), a matrix (2,3) and integers of its shape. */
static QnGraph *start(QnValue **image, QnValue **matrix, QnValue **ids)
{
    QnGraph *g = qn_graph_new();
    assert_non_null(g);
    *image = qn_input(g, "image", QN_DTYPE_F32, &QN_SHAPE(2, 3, 8, 8));
    *matrix = qn_input(g, "matrix", QN_DTYPE_F32, &QN_SHAPE(2, 3));
    *ids = qn_input(g, "ids", QN_DTYPE_I32, &QN_SHAPE(2, 3));
    return g;
}

#define MISTAKE(words, ...)                                                                        \
    do {                                                                                           \
        QnValue *image, *matrix, *ids;                                                             \
        QnGraph *g = start(&image, &matrix, &ids);                                                 \
        expect_refusal(g, (__VA_ARGS__), words);                                                   \
    } while (0)

static void test_axes_out_of_range(void **state)
{
    QnShape scalar = { 0 };
    MISTAKE("axis 2", qn_softmax(g, matrix, 2));
    MISTAKE("axis -3", qn_softmax(g, matrix, -3));
    MISTAKE("axis 0", qn_softmax(g, qn_full(g, 1, QN_DTYPE_F32, &scalar), 0));
    MISTAKE("axis 5", qn_sum(g, matrix, QN_AXES(5), false));
    MISTAKE("twice", qn_sum(g, matrix, QN_AXES(1, -1), false));
    MISTAKE("axis", qn_concat(g, (QnValue *[]){ matrix, matrix }, 2, 2));
    MISTAKE("axis", qn_cumsum(g, matrix, -3, false, false));
    MISTAKE("", qn_transpose(g, matrix, QN_AXES(0, 0)));
}

static void test_wrong_operands(void **state)
{
    MISTAKE("f32 and i32", qn_add(g, matrix, ids));
    MISTAKE("floating", qn_exp(g, ids));
    MISTAKE("bool", qn_logical_not(g, matrix));
    MISTAKE("bool", qn_where(g, matrix, matrix, matrix));
    MISTAKE("missing", qn_emit2(g, &qn_op_add, NULL, matrix, NULL));
    MISTAKE("inputs", qn_emit1(g, &qn_op_add, NULL, matrix));
    MISTAKE("broadcast", qn_add(g, matrix, qn_transpose(g, matrix, QN_AXES(1, 0))));
    MISTAKE("", qn_matmul(g, matrix, matrix, NULL, false, false));
    MISTAKE("elements", qn_reshape(g, matrix, &QN_SHAPE(4, 2)));
    MISTAKE("", qn_embedding(g, matrix, matrix));
}

static void test_windows(void **state)
{
    QnPoolAttr zero_stride = { .kernel = { 2, { 2, 2 } }, .strides = { 2, { 0, 1 } } };
    QnPoolAttr no_kernel = { .kernel = { 2, { 0, 2 } } };
    QnPoolAttr too_large = { .kernel = { 2, { 9, 9 } } };
    QnPoolAttr negative_pad = { .kernel = { 2, { 2, 2 } }, .pads = { 4, { -1, 0, 0, 0 } } };
    QnConvAttr stride = { .strides = { 2, { 1, 0 } } }, groups = { .groups = 2 };
    MISTAKE("", qn_max_pool(g, image, &zero_stride));
    MISTAKE("", qn_max_pool(g, image, &no_kernel));
    MISTAKE("", qn_max_pool(g, image, &too_large));
    MISTAKE("", qn_avg_pool(g, image, &negative_pad));
    MISTAKE("", qn_max_pool(g, matrix, &(QnPoolAttr){ .kernel = { 2, { 2, 2 } } }));
    MISTAKE("", qn_conv(g, image, image, NULL, &stride));
    MISTAKE("", qn_conv(g, image, image, NULL, &groups));
    MISTAKE("", qn_conv(g, image, matrix, NULL, &(QnConvAttr){ .groups = 1 }));
}

/* Ranks that no shape can have, and sizes that no memory can. */
static void test_ranks_and_sizes(void **state)
{
    QnShape nine = { .rank = 9 }, below = { .rank = -1 };
    QnShape huge = QN_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40);
    MISTAKE("rank 9", qn_input(g, "x", QN_DTYPE_F32, &nine));
    MISTAKE("rank -1", qn_input(g, "x", QN_DTYPE_F32, &below));
    MISTAKE("2^63", qn_input(g, "x", QN_DTYPE_F32, &huge));
    MISTAKE("negative", qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(-5)));
    MISTAKE("data type", qn_input(g, "x", QN_DTYPE_COUNT, &QN_SHAPE(2)));
}

/* Sizes that look like symbols in a graph without any: sums of them must not name themselves. */
static void test_dims_of_no_symbol(void **state)
{
    MISTAKE("entry 0 of sizes is -1: negative",
            qn_node_out(g, qn_split_sizes(g, matrix, 1, &(QnDims){ 3, { -1, 2, 1 } }), 0));
}

static void test_device_call_without_a_bias(void **state)
{
    QnValue *image, *matrix, *ids;
    QnGraph *g = start(&image, &matrix, &ids);
    QnNode *n = qn_emit(g, &qn_op_matmul, &(struct { bool a, b; }){ true, false },
                        (QnValue *[]){ matrix, matrix, NULL }, 3);
    QnDeviceCall call = { 0 };
    assert_non_null(n);
    assert_ok(qn_op_matmul.call(n, &call));
    assert_null(strstr(call.kernel, "bias"));
    qn_graph_free(g);
}
