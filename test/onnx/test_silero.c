/* A trained voice-activity net over 60 s of sound: its ONNX file, state carried from step to step,
 * beside the same net written down here, whose weights went from the ONNX file through a
 * safetensors file. Needs silero_vad_ifless.onnx in $QUERN_TEST_DATA. (The
 * silero_vad_16k.safetensors that comes with it is of another training: all but the Fourier basis
 * differ.) labels: onnx */
#include "onnx/model.h"

#include "ops/ops.h"
#include "quern/onnx.h"
#include "rt/store.h"

#include <math.h>
#include <stdlib.h>

enum { CHUNK = 512, CONTEXT = 64, WIDTH = CHUNK + CONTEXT, STATE = 2 * 128, RATE = 16000 };

static QnValue *weight(QnGraph *g, const char *name, QnShape s)
{
    QnStateAttr a = { .name = name, .dims = { .n = s.rank } };
    memcpy(a.dims.d, s.dim, sizeof a.dims.d);
    return qn_state(g, &a);
}

static QnValue *conv(QnGraph *g, QnValue *x, const char *name, int64_t out, int64_t in,
                     int64_t stride)
{
    QnConvAttr a = { .strides = QN_INTS(stride), .pads = QN_INTS(1, 1) };
    char w[64], b[64];
    snprintf(w, sizeof w, "%s.weight", name);
    snprintf(b, sizeof b, "%s.bias", name);
    return qn_relu(
        g, qn_conv(g, x, weight(g, w, QN_SHAPE(out, in, 3)), weight(g, b, QN_SHAPE(out)), &a));
}

static QnValue *gate(QnGraph *g, QnValue *all, int64_t i)
{
    return qn_slice_axis(g, all, 1, 128 * i, 128 * (i + 1));
}

/* Magnitudes of a short-time Fourier transform, four convolutions, an LSTM cell, one number. */
static QnGraph *build(void)
{
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(1, WIDTH));
    QnValue *h = qn_input(g, "h", QN_DTYPE_F32, &QN_SHAPE(1, 128));
    QnValue *c = qn_input(g, "c", QN_DTYPE_F32, &QN_SHAPE(1, 128));
    QnPadAttr pad = { .before = QN_INTS(0, 0), .after = QN_INTS(0, 64), .mode = QN_PAD_REFLECT };
    QnConvAttr hop = { .strides = QN_INTS(128) };
    QnValue *wave = qn_unsqueeze(g, qn_pad(g, x, &pad), 1);
    QnValue *f = qn_conv(g, wave, weight(g, "stft_conv.weight", QN_SHAPE(258, 1, 256)), NULL, &hop);
    QnValue *re = qn_slice_axis(g, f, 1, 0, 129), *im = qn_slice_axis(g, f, 1, 129, 258);
    QnValue *y = qn_sqrt(g, qn_add(g, qn_square(g, re), qn_square(g, im)));
    y = conv(g, y, "conv1", 128, 129, 1);
    y = conv(g, y, "conv2", 64, 128, 2);
    y = conv(g, y, "conv3", 64, 64, 2);
    y = qn_squeeze(g, conv(g, y, "conv4", 128, 64, 1), 2);
    QnValue *a = qn_add(g,
                        qn_matmul(g, y, weight(g, "lstm_cell.weight_ih", QN_SHAPE(512, 128)),
                                  weight(g, "lstm_cell.bias_ih", QN_SHAPE(512)), false, true),
                        qn_matmul(g, h, weight(g, "lstm_cell.weight_hh", QN_SHAPE(512, 128)),
                                  weight(g, "lstm_cell.bias_hh", QN_SHAPE(512)), false, true));
    QnValue *keep = qn_mul(g, qn_sigmoid(g, gate(g, a, 1)), c);
    QnValue *add = qn_mul(g, qn_sigmoid(g, gate(g, a, 0)), qn_tanh(g, gate(g, a, 2)));
    QnValue *cell = qn_add(g, keep, add);
    QnValue *hidden = qn_mul(g, qn_sigmoid(g, gate(g, a, 3)), qn_tanh(g, cell));
    QnValue *p = qn_conv(g, qn_unsqueeze(g, qn_relu(g, hidden), 2),
                         weight(g, "final_conv.weight", QN_SHAPE(1, 128, 1)),
                         weight(g, "final_conv.bias", QN_SHAPE(1)), &(QnConvAttr){ 0 });
    assert_ok(qn_graph_output(g, "p", qn_sigmoid(g, p)));
    assert_ok(qn_graph_output(g, "h'", hidden));
    assert_ok(qn_graph_output(g, "c'", cell));
    return g;
}

/* Bursts of a gliding tone in noise. */
static float sound(int64_t i)
{
    double t = (double)i / RATE, on = sin(6.283185307 * 0.5 * t) > 0 ? 0.3 : 0;
    uint32_t noise = (uint32_t)i * 2654435761u;
    return (float)(on * sin(6.283185307 * (200 + 50 * sin(t)) * t) +
                   0.02 * ((double)(noise >> 8) * 0x1p-23 - 1));
}

typedef struct Net {
    QnStore *store;
    QnGraph *graph;
    QnPlan *plan;
    QnModel *model;
    float x[WIDTH], h[128], c[128], state[STATE];
} Net;

static float step_native(Net *n)
{
    float p;
    assert_ok(qn_plan_write(n->plan, "x", n->x, sizeof n->x));
    assert_ok(qn_plan_write(n->plan, "h", n->h, sizeof n->h));
    assert_ok(qn_plan_write(n->plan, "c", n->c, sizeof n->c));
    assert_ok(qn_plan_run(n->plan));
    assert_ok(qn_plan_read(n->plan, "p", &p, sizeof p));
    assert_ok(qn_plan_read(n->plan, "h'", n->h, sizeof n->h));
    assert_ok(qn_plan_read(n->plan, "c'", n->c, sizeof n->c));
    return p;
}

static float step_onnx(Net *n)
{
    static const int64_t rate = RATE;
    QnType type;
    const void *data;
    assert_ok(qn_model_set(n->model, "input",
                           &(QnType){ .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(1, WIDTH) }, n->x));
    assert_ok(qn_model_set(n->model, "sr", &(QnType){ .dtype = QN_DTYPE_I64 }, &rate));
    assert_ok(qn_model_set(n->model, "state",
                           &(QnType){ .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(2, 1, 128) },
                           n->state));
    assert_ok(qn_model_run(n->model));
    assert_ok(qn_model_get(n->model, "stateN", &type, &data));
    memcpy(n->state, data, sizeof n->state);
    assert_ok(qn_model_get(n->model, "output", &type, &data));
    return *(const float *)data;
}

/* Our names, which are those of the published safetensors file, and the ONNX file's. */
static const char *const names[][2] = {
    { "stft_conv.weight", "model.stft.forward_basis_buffer" },
    { "conv1.weight", "model.encoder.0.reparam_conv.weight" },
    { "conv1.bias", "model.encoder.0.reparam_conv.bias" },
    { "conv2.weight", "model.encoder.1.reparam_conv.weight" },
    { "conv2.bias", "model.encoder.1.reparam_conv.bias" },
    { "conv3.weight", "model.encoder.2.reparam_conv.weight" },
    { "conv3.bias", "model.encoder.2.reparam_conv.bias" },
    { "conv4.weight", "model.encoder.3.reparam_conv.weight" },
    { "conv4.bias", "model.encoder.3.reparam_conv.bias" },
    { "lstm_cell.weight_ih", "model.decoder.rnn.weight_ih" },
    { "lstm_cell.weight_hh", "model.decoder.rnn.weight_hh" },
    { "lstm_cell.bias_ih", "model.decoder.rnn.bias_ih" },
    { "lstm_cell.bias_hh", "model.decoder.rnn.bias_hh" },
    { "final_conv.weight", "model.decoder.decoder.2.weight" },
    { "final_conv.bias", "model.decoder.decoder.2.bias" },
};

/* The weights of the ONNX file as a safetensors file. */
static void convert(const char *onnx, QnDevice *d, QnGraph *g, const char *to)
{
    QnOnnxModel *m;
    QnStore *store = qn_store_new(d);
    assert_ok(qn_onnx_read(onnx, &m));
    assert_ok(qn_store_add(store, g));
    assert_ok(qn_store_alloc(store));
    for (size_t k = 0; k < QN_COUNT(names); k++) {
        const QnSlot *slot = qn_store_find(store, names[k][0]);
        int64_t i = 0;
        while (i < m->graph->n_inits && strcmp(m->graph->init[i].name, names[k][1]))
            i++;
        assert_non_null(slot);
        assert_true(i < m->graph->n_inits);
        assert_true(qn_type_is_equal(qn_slot_type(slot), &m->graph->init[i].tensor->type));
        assert_ok(qn_store_write(store, slot, m->graph->init[i].tensor->data));
    }
    assert_ok(qn_store_save(store, NULL, to));
    qn_store_free(store);
    qn_onnx_free(m);
}

static void test_a_minute(void **state)
{
    static Net n;
    const char *folder = getenv("QUERN_TEST_DATA");
    char onnx[512];
    QnDevice *d;
    int64_t loaded;
    if (!folder) {
        print_message("QUERN_TEST_DATA names no folder with silero_vad_ifless.onnx\n");
        skip();
    }
    snprintf(onnx, sizeof onnx, "%s/silero_vad_ifless.onnx", folder);
    assert_ok(qn_device_open_named("cpu", NULL, &d));
    assert_ok(qn_model_open(onnx, d, &n.model));
    n.graph = build();
    n.store = qn_store_new(d);
    assert_ok(qn_store_add(n.store, n.graph));
    assert_ok(qn_store_alloc(n.store));
    convert(onnx, d, n.graph, temp_path("silero.safetensors"));
    assert_ok(qn_store_load(n.store, temp_path("silero.safetensors"), &loaded));
    assert_int_equal(loaded, 15);
    QnPipelineOptions o = { .level = QN_O2,
                            .keep = qn_device_has_kernel,
                            .keep_ctx = d,
                            .tuned = qn_device_is_tuned,
                            .tuned_ctx = d };
    assert_ok(qn_pipeline_run(n.graph, &o));
    assert_ok(qn_plan_new(n.graph, d, n.store, NULL, &n.plan));
    double most = 0, largest = 0;
    for (int64_t chunk = 0; chunk < 60 * RATE / CHUNK; chunk++) {
        for (int64_t i = 0; i < WIDTH; i++) {
            int64_t at = chunk * CHUNK + i - CONTEXT;
            n.x[i] = at < 0 ? 0 : sound(at);
        }
        double p = (double)step_native(&n), q = (double)step_onnx(&n);
        most = fmax(most, fabs(p - q));
        largest = fmax(largest, p);
    }
    print_message("largest difference %.2g, largest probability %.3f\n", most, largest);
    assert_true(most <= 1e-5);
    assert_true(largest > 0.005); /* it does hear something */
    assert_int_equal(qn_model_plan_count(n.model), 1);
    qn_plan_free(n.plan);
    qn_store_free(n.store);
    qn_graph_free(n.graph);
    qn_model_close(n.model);
    qn_device_close(d);
}
