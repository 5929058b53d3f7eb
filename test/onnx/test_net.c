/* Models as parts of nets that are trained: what is trained of them, and new heads. labels: onnx */
#include "model.h"
#include "one_node.h"

#include "ir/print.h"
#include "nn/net.h"

static int count(QnGraph *g, const char *what)
{
    QnStr text = { 0 };
    int n = 0;
    assert_ok(qn_graph_print(g, &text));
    for (const char *p = qn_str_text(&text); (p = strstr(p, what)); p++)
        n++;
    qn_str_fini(&text);
    return n;
}

static QnStatus build(Made *m, QnDevice *d, QnNet *net, const char *output, const char *freeze,
                      QnShape x, QnValue **y)
{
    m->model.path = "made.onnx";
    m->model.arena = m->model.arena ? m->model.arena : qn_arena_new();
    qn_net_init(net, qn_graph_new(), true);
    QnOnnxNetOptions o = {
        .input = "x", .output = output, .freeze = &freeze, .n_freeze = freeze != NULL
    };
    return qn_onnx_net(net, &m->model, d, &o, qn_input(net->g, "x", QN_DTYPE_F32, &x), y, NULL);
}

static void close_net(QnNet *net)
{
    qn_graph_free(net->g);
    qn_net_fini(net);
}

static void close_made(Made *m)
{
    qn_arena_free(m->model.arena);
}

/* x through w1, Floor, w2: no gradient comes to w1. */
static void test_cut_off_weights_are_refused(void **state)
{
    static const char *const first[] = { "x", "w1" }, *const a[] = { "a" }, *const b[] = { "b" },
                             *const c[] = { "c" }, *const second[] = { "c", "w2" },
                             *const y[] = { "y" };
    const QnTensor w = TENSOR(F32, QN_SHAPE(2, 2), float, 1, 2, 3, 4);
    Made m;
    One o;
    QnNet net;
    QnValue *out;
    one_open(&o);
    made_begin(&m, 15);
    made_init(&m, "w1", &w);
    made_init(&m, "w2", &w);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(3, 2));
    made_node(&m, "MatMul", first, 2, a, 1);
    made_node(&m, "Floor", a, 1, b, 1)->name = "the.floor";
    made_node(&m, "Round", b, 1, c, 1);
    made_node(&m, "MatMul", second, 2, y, 1);
    made_output(&m, "y", QN_DTYPE_F32, QN_SHAPE(3, 2));
    assert_fails(build(&m, o.device, &net, "y", NULL, QN_SHAPE(3, 2), &out), QN_EUNSUPPORTED,
                 "no gradient goes through floor at 'the.floor', round at 'c'");
    assert_contains(qn_error_last()->text, "1 weights before them ('w1')");
    close_net(&net);
    assert_ok(build(&m, o.device, &net, "y", "w1", QN_SHAPE(3, 2), &out));
    assert_int_equal(net.n_params, 1);
    assert_string_equal(net.params[0].name, "w2");
    assert_true(net.params[0].decay);
    close_net(&net);
    close_made(&m);
    one_close(&o);
}

/* What hangs on the elements of x, as the number of those that are not 0 does. */
static void test_open_shapes_are_refused(void **state)
{
    static const char *const x[] = { "x" }, *const a[] = { "a" }, *const in[] = { "x", "b" },
                             *const b[] = { "b" }, *const cast[] = { "a" }, *const y[] = { "y" };
    const QnTensor w = TENSOR(F32, QN_SHAPE(2), float, 1, 2);
    static const QnOnnxAttr to = { .name = "to", .kind = QN_ONNX_INT, .i = 7 };
    Made m;
    One o;
    QnNet net;
    QnValue *out;
    one_open(&o);
    made_begin(&m, 15);
    made_init(&m, "w", &w);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(2));
    made_node(&m, "Floor", x, 1, a, 1);
    QnOnnxDef *d = made_node(&m, "Cast", cast, 1, b, 1);
    d->attr = &to;
    d->n_attr = 1;
    made_node(&m, "Expand", in, 2, y, 1)->name = "stretch";
    made_output(&m, "y", QN_DTYPE_F32, QN_SHAPE(2));
    assert_fails(build(&m, o.device, &net, "y", NULL, QN_SHAPE(2), &out), QN_EUNSUPPORTED,
                 "node 'stretch'");
    assert_contains(qn_error_last()->text, "made.onnx");
    assert_contains(qn_error_last()->text, "not one fixed graph");
    close_net(&net);
    close_made(&m);
    one_close(&o);
}

/* A file made for one sample, with the batch in a Reshape; a single number is no weight. */
static void test_batch_of_the_file(void **state)
{
    static const char *const in[] = { "x", "to" }, *const a[] = { "a" },
                             *const sum[] = { "a", "bias" }, *const b[] = { "b" },
                             *const power[] = { "b", "two" }, *const y[] = { "y" };
    const QnTensor to = TENSOR(I64, QN_SHAPE(2), int64_t, 1, -1);
    const QnTensor bias = TENSOR(F32, QN_SHAPE(6), float, 1, 2, 3, 4, 5, 6);
    const QnTensor two = SCALAR(F32, float, 2);
    Made m;
    One o;
    QnNet net;
    QnValue *out;
    one_open(&o);
    made_begin(&m, 15);
    made_init(&m, "to", &to);
    made_init(&m, "bias", &bias);
    made_init(&m, "two", &two);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(1, 2, 3));
    made_node(&m, "Reshape", in, 2, a, 1);
    made_node(&m, "Add", sum, 2, b, 1);
    made_node(&m, "Pow", power, 2, y, 1);
    made_output(&m, "y", QN_DTYPE_F32, QN_SHAPE(1, 6));
    assert_ok(build(&m, o.device, &net, "y", NULL, QN_SHAPE(5, 2, 3), &out));
    assert_int_equal(out->type.shape.rank, 2);
    assert_int_equal(out->type.shape.dim[0], 5);
    assert_int_equal(out->type.shape.dim[1], 6);
    assert_int_equal(net.n_params, 1);
    assert_string_equal(net.params[0].name, "bias");
    assert_false(net.params[0].decay);
    close_net(&net);
    close_made(&m);
    one_close(&o);
}

/* Statistics that `freeze` names are taken in training, and kept. */
static void test_frozen_batch_norm(void **state)
{
    static const char *const in[] = { "x", "scale", "bias", "mean", "var" }, *const y[] = { "y" };
    const QnTensor t = TENSOR(F32, QN_SHAPE(2), float, 1, 2);
    Made m;
    One o;
    QnNet net;
    QnValue *out;
    one_open(&o);
    made_begin(&m, 15);
    for (int i = 1; i < 5; i++)
        made_init(&m, in[i], &t);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(4, 2, 3));
    made_node(&m, "BatchNormalization", in, 5, y, 1);
    made_output(&m, "y", QN_DTYPE_F32, QN_SHAPE(4, 2, 3));
    assert_ok(build(&m, o.device, &net, "y", NULL, QN_SHAPE(4, 2, 3), &out));
    assert_int_equal(count(net.g, "assign("), 2);
    assert_int_equal(net.n_params, 2);
    close_net(&net);
    assert_ok(build(&m, o.device, &net, "y", "var", QN_SHAPE(4, 2, 3), &out));
    assert_int_equal(count(net.g, "assign("), 1); /* "mean" still moves */
    close_net(&net);
    assert_ok(build(&m, o.device, &net, "y", "[mv]*", QN_SHAPE(4, 2, 3), &out));
    assert_int_equal(count(net.g, "assign("), 0);
    assert_int_equal(net.n_params, 2);
    close_net(&net);
    close_made(&m);
    one_close(&o);
}

/* ---- heads ----------------------------------------------------------------------------------- */

static const float numbers[64];

static QnTensor zeros(QnShape s)
{
    return (QnTensor){ .type = { .dtype = QN_DTYPE_F32, .shape = s }, .data = numbers };
}

/* x -> OP(x, w) [-> Add] -> Softmax; the new head's weight and what the net then gives. */
static void check_head(const char *op, QnShape x, QnShape w, bool add, QnShape want, QnShape y)
{
    static const char *const in[] = { "x", "w" }, *const a[] = { "a" }, *const sum[] = { "b", "a" },
                             *const s[] = { "s" }, *const end[] = { "end" };
    const QnTensor weight = zeros(w), bias = zeros(QN_SHAPE(3));
    const QnOnnxDef *last;
    Made m;
    One o;
    QnNet net;
    QnValue *out;
    one_open(&o);
    made_begin(&m, 13);
    made_init(&m, "w", &weight);
    made_init(&m, "b", &bias);
    made_input(&m, "x", QN_DTYPE_F32, x);
    made_node(&m, op, in, 2, a, 1);
    if (add)
        made_node(&m, "Add", sum, 2, s, 1);
    made_node(&m, "Softmax", add ? s : a, 1, end, 1);
    made_output(&m, "end", QN_DTYPE_F32, x);
    m.model.path = "made.onnx";
    m.model.arena = qn_arena_new();
    assert_string_equal(qn_onnx_logits(&m.model, "end", &last), add ? "s" : "a");
    assert_string_equal(last->op, "Softmax");
    QnOnnxNetOptions head = { .output = "end" };
    assert_ok(qn_onnx_new_head(&m.model, &head, 5, 7));
    assert_string_equal(head.output, add ? "s" : "a");
    assert_string_equal(head.head, "head.");
    const QnOnnxGraph *g = m.model.graph;
    assert_int_equal(g->n_nodes, 1 + add); /* the Softmax is gone, as are the old weights */
    assert_string_equal(g->init[0].name, "head.weight");
    assert_int_equal(g->output[0].type->rank, y.rank); /* a Softmax keeps dims: those of "end" */
    for (int i = 0; i < y.rank; i++)
        assert_int_equal(g->output[0].type->dim[i], y.dim[i]);
    const QnTensor *t = g->init[0].tensor;
    assert_true(qn_shape_is_equal(&t->type.shape, &want));
    assert_true(((const float *)t->data)[0] != 0);
    assert_ok(build(&m, o.device, &net, head.output, NULL, x, &out));
    assert_true(qn_shape_is_equal(&out->type.shape, &y));
    assert_int_equal(net.n_params, g->n_inits);
    close_net(&net);
    close_made(&m);
    one_close(&o);
}

static void test_heads(void **state)
{
    check_head("Gemm", QN_SHAPE(2, 4), QN_SHAPE(4, 3), false, QN_SHAPE(5, 4), QN_SHAPE(2, 5));
    check_head("MatMul", QN_SHAPE(2, 4), QN_SHAPE(4, 3), false, QN_SHAPE(4, 5), QN_SHAPE(2, 5));
    check_head("MatMul", QN_SHAPE(2, 6, 4), QN_SHAPE(4, 3), true, QN_SHAPE(4, 5),
               QN_SHAPE(2, 6, 5));
    check_head("Conv", QN_SHAPE(2, 4, 1, 1), QN_SHAPE(3, 4, 1, 1), false, QN_SHAPE(5, 4, 1, 1),
               QN_SHAPE(2, 5, 1, 1));
}

/* A weight that lies in the file under another shape. */
static void test_head_of_a_reshaped_weight(void **state)
{
    static const char *const turn[] = { "w", "to" }, *const w2[] = { "w2" },
                             *const in[] = { "x", "w2" }, *const y[] = { "y" };
    const QnTensor w = zeros(QN_SHAPE(1, 1, 4, 3)), to = TENSOR(I64, QN_SHAPE(2), int64_t, 4, 3);
    QnOnnxNetOptions head = { .output = "y" };
    Made m;
    made_begin(&m, 13);
    m.model.path = "made.onnx";
    m.model.arena = qn_arena_new();
    made_init(&m, "w", &w);
    made_init(&m, "to", &to);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(2, 4));
    made_node(&m, "Reshape", turn, 2, w2, 1);
    made_node(&m, "Gemm", in, 2, y, 1);
    made_output(&m, "y", QN_DTYPE_F32, QN_SHAPE(2, 3));
    assert_ok(qn_onnx_new_head(&m.model, &head, 5, 7));
    const QnOnnxGraph *g = m.model.graph;
    assert_string_equal(g->node[1].in[1], "head.weight");
    for (int64_t i = 0; i < g->n_inits; i++)
        if (!strcmp(g->init[i].name, "head.weight"))
            assert_true(qn_shape_is_equal(&g->init[i].tensor->type.shape, &QN_SHAPE(5, 4)));
    assert_int_equal(g->output[0].type->dim[1], 5);
    close_made(&m);
}

static void test_no_head(void **state)
{
    static const char *const in[] = { "x", "w" }, *const y[] = { "y" }, *const z[] = { "z" };
    const QnTensor w = zeros(QN_SHAPE(2, 2, 3, 3));
    QnOnnxNetOptions head = { .output = "z" };
    Made m;
    made_begin(&m, 13);
    m.model.path = "made.onnx";
    m.model.arena = qn_arena_new();
    made_init(&m, "w", &w);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(1, 2, 5, 5));
    made_node(&m, "Conv", in, 2, y, 1)->name = "large";
    made_node(&m, "GlobalAveragePool", y, 1, z, 1);
    made_output(&m, "z", QN_DTYPE_F32, QN_SHAPE(1, 2, 1, 1));
    assert_fails(qn_onnx_new_head(&m.model, &head, 5, 7), QN_EUNSUPPORTED,
                 "found node 'large' (Conv)");
    head.output = "x";
    assert_fails(qn_onnx_new_head(&m.model, &head, 5, 7), QN_EUNSUPPORTED, "found the input");
    close_made(&m);
}
