/* Tiny data and recipes that the tests of training write, and the way from recipe to session. All
 * files lie in the test's own folder. Recipes are JSON, which is YAML too, so that a build without
 * libyaml reads them. */
#ifndef QN_TEST_TRAIN_TOY_H
#define QN_TEST_TRAIN_TOY_H

#include "io/temp.h"

#include "backend/cpu/cpu.h"
#include "train/loop.h"

#include <math.h>

enum { TOY_SIDE = 8, TOY_CLASSES = 4 };

/* A number from 0 to 2^32-1 that depends on i alone. */
QN_UNUSED static uint32_t toy_noise(uint32_t i)
{
    i = (i ^ 61) ^ (i >> 16);
    i *= 9;
    i ^= i >> 4;
    i *= 0x27d4eb2d;
    return i ^ (i >> 15);
}

/* n images of 8x8 in four classes told apart by a bright band, as IDX files NAME.x and NAME.y. */
QN_UNUSED static void toy_images(const char *name, int n)
{
    char file[64];
    size_t bytes = (size_t)n * TOY_SIDE * TOY_SIDE;
    unsigned char *x = calloc(1, bytes + 16), *y = calloc(1, (size_t)n + 8);
    memcpy(x,
           (unsigned char[]){ 0, 0, 8, 3, 0, 0, (unsigned char)(n >> 8), (unsigned char)n, 0, 0, 0,
                              TOY_SIDE, 0, 0, 0, TOY_SIDE },
           16);
    memcpy(y, (unsigned char[]){ 0, 0, 8, 1, 0, 0, (unsigned char)(n >> 8), (unsigned char)n }, 8);
    for (int i = 0; i < n; i++) {
        int label = i % TOY_CLASSES;
        y[8 + i] = (unsigned char)label;
        for (int p = 0; p < TOY_SIDE * TOY_SIDE; p++) {
            int band = p / (TOY_SIDE * TOY_SIDE / TOY_CLASSES) == label ? 80 : 0;
            uint32_t noise = toy_noise((uint32_t)(i * TOY_SIDE * TOY_SIDE + p)) >> 24;
            x[16 + i * TOY_SIDE * TOY_SIDE + p] = (unsigned char)((int)noise * 5 / 8 + band);
        }
    }
    snprintf(file, sizeof file, "%s.x", name);
    temp_file(file, x, bytes + 16);
    snprintf(file, sizeof file, "%s.y", name);
    temp_file(file, y, (size_t)n + 8);
    free(x);
    free(y);
}

/* Writes a recipe; ' stands for ". */
QN_UNUSED static const char *toy_recipe(const char *name, const char *text)
{
    char json[8192];
    size_t n = strlen(text);
    if (n >= sizeof json)
        abort();
    memcpy(json, text, n + 1);
    for (char *p = json; *p; p++) {
        if (*p == '\'')
            *p = '"';
    }
    return temp_file(name, json, n);
}

/* The parts of a recipe on toy_images("a", …), "b" for testing. */
#define TOY_DATA                                                                                   \
    "'data': {'format': 'idx', 'train': {'images': 'a.x', 'labels': 'a.y'}, "                      \
    "'test': {'images': 'b.x', 'labels': 'b.y'}, 'images': {'mean': 0.3, 'std': 0.3}}"
#define TOY_MLP  "'model': {'name': 'mlp', 'hidden': [12]}"
#define TOY_HEAD "{'name': 'toy', 'task': 'classify', "

/* Everything that a run needs. */
typedef struct Toy {
    QnRecipe *recipe;
    QnTrainData data;
    QnDevice *device;
    QnSession *session;
} Toy;

QN_UNUSED static void toy_close(Toy *t)
{
    qn_session_free(t->session);
    qn_device_close(t->device);
    qn_data_close(&t->data);
    qn_recipe_free(t->recipe);
    *t = (Toy){ 0 };
}

/* On failure everything is closed again. */
QN_UNUSED static QnStatus toy_open(Toy *t, const char *recipe, const char *const *settings,
                                   int n_settings, const QnSessionOptions *options)
{
    *t = (Toy){ 0 };
    QnStatus st = qn_recipe_open(recipe, settings, n_settings, &t->recipe);
    if (st == QN_OK)
        st = qn_data_open(t->recipe, &t->data);
    if (st == QN_OK) {
        QnDeviceOptions o = { .n_threads = t->recipe->threads ? (int)t->recipe->threads : 1,
                              .strict = t->recipe->determinism == QN_DETERMINISM_STRICT };
        st = qn_device_open(&qn_backend_cpu, &o, &t->device);
    }
    if (st == QN_OK)
        st = qn_session_new(t->recipe, qn_dataset_spec(t->data.train), t->device, options,
                            &t->session);
    if (st != QN_OK)
        toy_close(t);
    return st;
}

/* Opens for training with "key=value" words, the last one NULL. */
#define TOY_OPEN(t, recipe, ...)                                                                   \
    do {                                                                                           \
        const char *const words_[] = { __VA_ARGS__ };                                              \
        int n_ = 0;                                                                                \
        while (words_[n_])                                                                         \
            n_++;                                                                                  \
        assert_ok(toy_open((t), (recipe), words_, n_, &(QnSessionOptions){ .training = true }));   \
    } while (0)

/* All of a state's numbers; the caller frees them. */
QN_UNUSED static float *toy_state(const QnStore *store, const char *name, int64_t *n)
{
    const QnSlot *slot = qn_store_find(store, name);
    if (!slot)
        fail_msg("no state '%s'", name);
    float *x = malloc((size_t)slot->bytes + 1);
    assert_ok(qn_store_read(store, slot, x));
    *n = qn_shape_count(&slot->type.shape);
    return x;
}

#endif
