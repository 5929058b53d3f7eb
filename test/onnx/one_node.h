/* Models of one node, made by hand and run on the CPU. */
#ifndef QN_TEST_ONE_NODE_H
#define QN_TEST_ONE_NODE_H

#include "../test.h"

#include <math.h>

#include "onnx/mapping.h"
#include "onnx/onnx.h"
#include "rt/device.h"

enum { NODE_IO = 8 };

typedef struct One {
    QnArena *arena;
    QnDevice *device;
    QnItem *out[NODE_IO];
} One;

extern const QnBackend qn_backend_cpu;

static inline void one_open(One *c)
{
    *c = (One){ .arena = qn_arena_new() };
    assert_non_null(c->arena);
    assert_ok(qn_device_open(&qn_backend_cpu, &(QnDeviceOptions){ .n_threads = 1 }, &c->device));
}

static inline void one_close(One *c)
{
    qn_arena_free(c->arena);
    qn_device_close(c->device);
}

/* Items go in as given; NULL: the input is absent. */
static inline QnStatus one_run_items(One *c, const char *domain, const char *op, int64_t opset,
                                     const QnOnnxAttr *attr, int n_attr, QnItem *const *in,
                                     int n_in, int n_out)
{
    static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
    static const char *const made[] = { "s", "t", "u", "v", "w", "x", "y", "z" };
    static const QnOnnxType any = { .kind = QN_ONNX_TYPE_NONE, .rank = -1 };
    const char *use[NODE_IO];
    QnOnnxInfo input[NODE_IO], output[NODE_IO];
    QnItem *given[NODE_IO];
    int n_inputs = 0;
    for (int i = 0; i < NODE_IO; i++) {
        use[i] = i < n_in && in[i] ? names[i] : "";
        output[i] = (QnOnnxInfo){ made[i], &any };
        if (!use[i][0])
            continue;
        given[n_inputs] = in[i];
        input[n_inputs++] = (QnOnnxInfo){ names[i], &any };
    }
    QnOnnxDef node = { .name = "it",
                       .op = op,
                       .domain = domain,
                       .n_in = n_in,
                       .n_out = n_out,
                       .in = use,
                       .out = made,
                       .n_attr = n_attr,
                       .attr = attr };
    QnOnnxGraph g = { .name = "one",
                      .n_nodes = 1,
                      .n_inputs = n_inputs,
                      .n_outputs = n_out,
                      .node = &node,
                      .input = input,
                      .output = output };
    char path[] = "one.onnx";
    QnOnnxOpset sets[] = { { domain, opset } };
    QnOnnxModel m = { .path = path, .n_opset = 1, .opset = sets, .graph = &g };
    memset(c->out, 0, sizeof c->out);
    return qn_onnx_run(&m, c->device, given, c->arena, c->out, NULL);
}

static inline QnItem *one_item(One *c, const QnTensor *t)
{
    QnItem *item = qn_arena_alloc(c->arena, sizeof *item);
    assert_non_null(item);
    *item = (QnItem){ .kind = QN_ITEM_TENSOR, .epoch = -1, .known = t, .name = "given" };
    return item;
}

static inline QnStatus one_run(One *c, const char *op, int64_t opset, const QnOnnxAttr *attr,
                               int n_attr, const QnTensor *in, int n_in, int n_out)
{
    QnItem *items[NODE_IO] = { 0 };
    for (int i = 0; i < n_in; i++)
        items[i] = in[i].data || in[i].text ? one_item(c, &in[i]) : NULL;
    return one_run_items(c, "", op, opset, attr, n_attr, items, n_in, n_out);
}

static inline void one_want(const One *c, int i, QnTensor want)
{
    char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
    const QnTensor *got = c->out[i]->known;
    if (!qn_type_is_equal(&got->type, &want.type))
        fail_msg("output %d is %s, expected %s", i, qn_type_text(&got->type, a),
                 qn_type_text(&want.type, b));
    if (qn_type_bytes(&want.type))
        assert_memory_equal(got->data, want.data, (size_t)qn_type_bytes(&want.type));
}

/* TENSOR(I64, QN_SHAPE(2), int64_t, 1, 2); an element type's first letters name it. */
#define TENSOR(DT, SHAPE, ctype, ...)                                                              \
    ((QnTensor){ .type = { .dtype = QN_DTYPE_##DT, .shape = SHAPE },                               \
                 .data = (const ctype[]){ __VA_ARGS__ } })
#define SCALAR(DT, ctype, v) TENSOR(DT, (QnShape){ 0 }, ctype, v)
#define TEXTS(n_, ...)                                                                             \
    ((QnTensor){ .type = { .shape = QN_SHAPE(n_) }, .text = (const QnText[]){ __VA_ARGS__ } })
#define TEXT(s)           ((QnText){ s, sizeof(s) - 1 })
#define INT_ATTR(nm, v)   ((QnOnnxAttr){ .name = nm, .kind = QN_ONNX_INT, .i = v })
#define TEXT_ATTR(nm, v)  ((QnOnnxAttr){ .name = nm, .kind = QN_ONNX_STRING, .s = TEXT(v) })
#define FLOAT_ATTR(nm, v) ((QnOnnxAttr){ .name = nm, .kind = QN_ONNX_FLOAT, .f = v })
#define INTS_ATTR(nm, count, ...)                                                                  \
    ((QnOnnxAttr){                                                                                 \
        .name = nm, .kind = QN_ONNX_INTS, .n = count, .ints = (const int64_t[]){ __VA_ARGS__ } })
#define FLOATS_ATTR(nm, count, ...)                                                                \
    ((QnOnnxAttr){ .name = nm,                                                                     \
                   .kind = QN_ONNX_FLOATS,                                                         \
                   .n = count,                                                                     \
                   .floats = (const float[]){ __VA_ARGS__ } })
#define TEXTS_ATTR(nm, count, ...)                                                                 \
    ((QnOnnxAttr){ .name = nm,                                                                     \
                   .kind = QN_ONNX_STRINGS,                                                        \
                   .n = count,                                                                     \
                   .strings = (const QnText[]){ __VA_ARGS__ } })
#define NO_INPUT ((QnTensor){ 0 })

#endif
