/* Training on an OpenCL device (PoCL where there is no GPU) beside the CPU: the same curve of the
 * loss, and the same bits when it is done twice. QN_CURVE_DEVICE names another device.
 *
 * How far the curves may part follows from the arithmetic. A third run, on the CPU, has each weight
 * and moment put off by one unit in the last place before every step, and its curve parts from the
 * other's; a sum of K terms taken in another order differs by about sqrt(K) units. So the tolerance
 * of a step is what one unit made there on the CPU at most so far (and a unit of the loss itself),
 * sqrt(K) times, K the longest sum of the model. labels: train timeout: 900 */
#include "toy.h"

#include "train/checkpoint.h"

#include <unistd.h>

enum { STEPS = 30 };

#define FMNIST "/usr/share/datasets/fashion-mnist/"
#define LAYERS                                                                                     \
    "'model': {'layers': [{'conv': {'out': 8, 'kernel': 3, 'bias': false}}, 'batch_norm', "        \
    "'relu', {'max_pool': 2}, {'conv': {'out': 16, 'kernel': 3, 'bias': false}}, 'batch_norm', "   \
    "'relu', {'max_pool': 2}, 'flatten', {'linear': 32}, 'relu', {'linear': 'outputs'}]}, "
/* Small steps, and not Adam: one ReLU of 100,000 may fall on the other side of 0, which changes
 * entries of gradients that are next to nothing, and Adam makes whole steps of those. The text's
 * model has no such edges. */
#define TRAIN                                                                                      \
    "'train': {'epochs': 2, 'batch': 16, 'lr': 0.003, "                                            \
    "'optimizer': {'name': 'sgd', 'momentum': 0.9, 'weight_decay': 0.01}}}"
#define GPT                                                                                        \
    "{'name': 'text', 'task': 'language', 'data': {'format': 'text', 'train': '%s', "              \
    "'window': 32, 'train_fraction': 0.9}, 'model': {'name': 'gpt2', 'layers': 2, 'heads': 2, "    \
    "'width': 32, 'bias': false}, 'train': {'steps': 100, 'batch': 8, 'lr': 0.002, "               \
    "'optimizer': {'name': 'adamw', 'beta2': 0.99, 'weight_decay': 0.1, 'clip_norm': 1}}}"

typedef struct Curve {
    double loss[STEPS];
    char digest[QN_SHA256_HEX];
} Curve;

static const char *device_name(void)
{
    const char *name = getenv("QN_CURVE_DEVICE");
    return name ? name : "opencl:0";
}

/* NULL: there is none. */
static QnDevice *open_device(const char *name)
{
    QnDevice *d = NULL;
    QnDeviceOptions o = { .n_threads = 1, .strict = true };
    return qn_device_open_named(name, &o, &d) == QN_OK ? d : NULL;
}

/* Every weight and moment one unit in the last place off, up or down. */
static void nudge_weights(QnStore *store, int step)
{
    for (int64_t i = 0; i < store->n; i++) {
        const QnSlot *slot = &store->slots[i];
        if (slot->type.dtype != QN_DTYPE_F32)
            continue;
        float *x = malloc((size_t)slot->bytes + 1);
        assert_ok(qn_store_read(store, slot, x));
        for (int64_t k = 0; k < slot->bytes / (int64_t)sizeof *x; k++)
            x[k] = nextafterf(x[k], x[k] == 0                                     ? 0
                                    : toy_noise((uint32_t)(k * STEPS + step)) & 1 ? INFINITY
                                                                                  : -INFINITY);
        assert_ok(qn_store_write(store, slot, x));
        free(x);
    }
}

static void train_on(QnDevice *d, const char *recipe, bool nudge, Curve *out)
{
    Toy t = { .device = d };
    QnLoader *loader;
    assert_ok(qn_recipe_open(recipe, NULL, 0, &t.recipe));
    assert_ok(qn_data_open(t.recipe, &t.data));
    assert_ok(qn_session_new(t.recipe, qn_dataset_spec(t.data.train), d,
                             &(QnSessionOptions){ .training = true }, &t.session));
    QnLoaderOptions o = { .batch = t.recipe->batch, .workers = 1, .prefetch = 2, .seed = 1 };
    assert_ok(qn_loader_new(t.data.train, &o, &loader));
    for (int i = 0; i < STEPS; i++) {
        QnBatch b;
        QnStepResult r;
        assert_ok(qn_loader_next(loader, &b));
        if (nudge)
            nudge_weights(t.session->store, i);
        assert_ok(qn_session_step(t.session, &b, i, t.recipe->schedule.lr, &r));
        out->loss[i] = r.loss;
    }
    qn_loader_free(loader);
    assert_ok(qn_checkpoint_digest(t.session->store, out->digest));
    t.device = NULL;
    toy_close(&t);
}

/* Terms of the model's longest sum: `longest`. */
static void compare_curves(const char *recipe, double longest)
{
    static Curve cpu, nudged, first, second;
    QnDevice *host = open_device("cpu"), *d = open_device(device_name());
    double unit = 0, worst = 0, tolerance = 0;
    assert_non_null(host);
    if (!d) {
        qn_device_close(host);
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    }
    train_on(host, recipe, false, &cpu);
    train_on(host, recipe, true, &nudged);
    train_on(d, recipe, false, &first);
    train_on(d, recipe, false, &second);
    qn_device_close(host);
    qn_device_close(d);
    for (int i = 0; i < STEPS; i++) {
        double off = fabs(first.loss[i] - cpu.loss[i]);
        unit = fmax(unit, fabs(nudged.loss[i] - cpu.loss[i]));
        tolerance = sqrt(longest) * fmax(unit, 0x1p-23 * cpu.loss[i]);
        if (!(off <= tolerance))
            fail_msg("step %d: the loss is %.9g, on the CPU %.9g; they may differ by %.3g", i,
                     first.loss[i], cpu.loss[i], tolerance);
        worst = fmax(worst, off / tolerance);
    }
    double learnt = cpu.loss[0] - cpu.loss[STEPS - 1];
    print_message("loss %.4f to %.4f; at most %.0f %% of the tolerance, which ends at %.1e\n",
                  cpu.loss[0], cpu.loss[STEPS - 1], worst * 100, tolerance);
    assert_true(tolerance < learnt / 20); /* else the comparison would say nothing */
    for (int i = 0; i < STEPS; i++)
        assert_true(first.loss[i] == second.loss[i]);
    assert_string_equal(first.digest, second.digest);
}

static void test_small_images(void **state)
{
    toy_images("a", 800);
    toy_images("b", 64);
    const char *recipe = toy_recipe("toy.json", TOY_HEAD TOY_DATA ", " LAYERS TRAIN);
    compare_curves(recipe, 16 * 8 * 8); /* statistics of a channel */
}

static void test_fashion_mnist(void **state)
{
    if (access(FMNIST "train-images-idx3-ubyte.gz", R_OK))
        skip_because("no " FMNIST " (Debian: dataset-fashion-mnist)");
    const char *recipe = toy_recipe(
        "fmnist.json", TOY_HEAD
        "'data': {'format': 'idx', 'train': {'images': '" FMNIST
        "train-images-idx3-ubyte.gz', 'labels': '" FMNIST
        "train-labels-idx1-ubyte.gz'}, 'test': {'images': '" FMNIST
        "t10k-images-idx3-ubyte.gz', 'labels': '" FMNIST
        "t10k-labels-idx1-ubyte.gz'}, 'images': {'mean': 0.286, 'std': 0.353}}, " LAYERS TRAIN);
    compare_curves(recipe, 16 * 28 * 28);
}

/* Shakespeare, or where that is not, words of which each letter follows from the one before. */
static void test_characters(void **state)
{
    char text[20000], json[2048], path[1024] = "t.txt";
    for (int i = 0; i < QN_COUNT(text); i++)
        text[i] = "abcdefgh\n"[(i / 7 + i % 7 * (i % 3)) % 9];
    temp_file("t.txt", text, sizeof text);
    if (!access("../shared/data/tinyshakespeare.txt", R_OK))
        assert_non_null(realpath("../shared/data/tinyshakespeare.txt", path));
    snprintf(json, sizeof json, GPT, path);
    compare_curves(toy_recipe("gpt.json", json), 8 * 32); /* gradients of weights */
}
