/* Models as recipes name them: what they give for which data, and what they refuse. */
#include "test.h"

#include "nn/models.h"
#include "train/model.h"

typedef struct Built {
    QnGraph *g;
    QnNet net;
    QnYamlDoc *doc;
    QnValue *y;
    QnStatus status;
} Built;

/* Words get quotes, so that builds without libyaml read the same recipe as JSON. */
static void quote(const char *text, char *out, size_t bytes)
{
    static const char *const letters = "abcdefghijklmnopqrstuvwxyz_0123456789";
    size_t n = 0;
    while (*text && n + 80 < bytes) {
        size_t word = *text >= '0' && *text <= '9' ? 0 : strspn(text, letters);
        bool bare = !word || (word == 4 && !strncmp(text, "true", 4)) ||
                    (word == 5 && !strncmp(text, "false", 5));
        size_t take = word                           ? word
                      : *text >= '0' && *text <= '9' ? strspn(text, "0123456789.e-")
                                                     : 1;
        n += (size_t)snprintf(out + n, bytes - n, bare ? "%.*s" : "\"%.*s\"", (int)take, text);
        text += take;
    }
    out[n] = '\0';
}

static Built build(const char *text, QnDtype dtype, const QnShape *shape, QnModelIo io)
{
    Built b = { qn_graph_new(), { 0 }, NULL, NULL, QN_OK };
    char quoted[2000];
    quote(text, quoted, sizeof quoted);
    assert_ok(qn_yaml_parse("recipe", quoted, strlen(quoted), &b.doc));
    qn_net_init(&b.net, b.g, true);
    b.net.key = qn_input(b.g, "key", QN_DTYPE_I64, &QN_SHAPE(2));
    b.status =
        qn_model_build(&b.net, qn_yaml_root(b.doc), &io, qn_input(b.g, "x", dtype, shape), &b.y);
    return b;
}

static void finish(Built *b)
{
    qn_net_fini(&b->net);
    qn_graph_free(b->g);
    qn_yaml_free(b->doc);
}

static void gives(const char *text, QnDtype dtype, QnShape shape, QnModelIo io, int64_t params)
{
    Built b = build(text, dtype, &shape, io);
    assert_ok(b.status);
    assert_int_equal(b.y->type.shape.dim[1], io.outputs);
    assert_int_equal(qn_nn_param_count(&b.net), params);
    finish(&b);
}

static void refuses(const char *text, QnDtype dtype, QnShape shape, QnModelIo io, const char *words)
{
    Built b = build(text, dtype, &shape, io);
    assert_fails(b.status, QN_EUSAGE, words);
    finish(&b);
}

#define F32 QN_DTYPE_F32

static void test_named_models(void **state)
{
    QnModelIo ten = { 10, 0 };
    gives("{name: linear}", F32, QN_SHAPE(4, 30), ten, 310);
    gives("{name: mlp, hidden: [8, 4]}", F32, QN_SHAPE(4, 5), ten, 48 + 36 + 50);
    gives("{name: lenet}", F32, QN_SHAPE(4, 1, 28, 28), ten, 61706);
    gives("{name: vgg, depth: 11}", F32, QN_SHAPE(4, 3, 32, 32), ten, 9231114);
    gives("{name: resnet}", F32, QN_SHAPE(4, 3, 32, 32), ten, 11173962);
    gives("{name: resnet, small: false, depth: 50}", F32, QN_SHAPE(4, 3, 224, 224),
          (QnModelIo){ 1000, 0 }, 25557032);
}

static void test_gpt2_takes_vocabulary_and_window_from_the_data(void **state)
{
    gives("{name: gpt2, tied: true}", QN_DTYPE_I64, QN_SHAPE(2, 64), (QnModelIo){ 65, 64 },
          795904 + 64 * 128);
    gives("{name: gpt2, size: small}", QN_DTYPE_I64, QN_SHAPE(2, 1024), (QnModelIo){ 50257, 1024 },
          124439808);
}

static void test_what_does_not_fit_names_line_and_key(void **state)
{
    QnModelIo ten = { 10, 0 };
    refuses("{name: resnet, depth: 19}", F32, QN_SHAPE(4, 3, 32, 32), ten, "18, 34, 50");
    refuses("{name: resnet}", F32, QN_SHAPE(4, 30), ten, "needs images");
    refuses("{name: resnet,\n widht: 3}", F32, QN_SHAPE(4, 3, 32, 32), ten, "recipe:2");
    refuses("{name: gpt2}", F32, QN_SHAPE(4, 64), (QnModelIo){ 65, 64 }, "tokens");
    refuses("{name: gpt2, heads: 3}", QN_DTYPE_I64, QN_SHAPE(4, 64), (QnModelIo){ 65, 64 },
            "3 heads");
    refuses("{name: alexnet}", F32, QN_SHAPE(4, 3, 32, 32), ten, "there are linear, mlp, lenet");
}
