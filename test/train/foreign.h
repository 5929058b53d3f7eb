/* Files of weights that a test makes of a session's own, and what tells whether they were read. */
#ifndef QN_TEST_TRAIN_FOREIGN_H
#define QN_TEST_TRAIN_FOREIGN_H

#include "toy.h"

#include "io/safetensors.h"
#include "train/pretrained.h"

#define TRAIN ", 'train': {'epochs': 2, 'batch': 8, 'lr': 0.05, 'seed': 3}}"
#define MLP   TOY_HEAD TOY_DATA ", " TOY_MLP TRAIN
#define RESNET(depth)                                                                              \
    TOY_HEAD TOY_DATA ", 'model': {'name': 'resnet', 'depth': " depth ", 'width': 4}" TRAIN
#define GPT(more)                                                                                  \
    "{'name': 'text', 'task': 'language', 'data': {'format': 'text', 'train': 't.txt', "           \
    "'window': 8}, 'model': {'name': 'gpt2', 'layers': 2, 'heads': 2, 'width': 8" more "}" TRAIN

/* The data that these recipes name. */
QN_UNUSED static void foreign_data(void)
{
    char text[600];
    toy_images("a", 64);
    toy_images("b", 24);
    for (int i = 0; i < QN_COUNT(text); i++)
        text[i] = "abcdefgh\n"[toy_noise((uint32_t)i) % 9];
    temp_file("t.txt", text, sizeof text);
}

QN_UNUSED static void load(Toy *t, const char *path, int64_t taken)
{
    QnPretrained p;
    QnStatus st = qn_pretrained_load(t->session, path, false, &p);
    if (st != QN_OK)
        fail_msg("%s\n%s", qn_error_last()->text, qn_str_text(&p.text));
    assert_int_equal(p.taken, taken);
    assert_int_equal(p.missing + p.unexpected + p.misshapen, 0);
    qn_pretrained_fini(&p);
}

QN_UNUSED static void digest(const Toy *t, char hex[QN_SHA256_HEX])
{
    assert_ok(qn_checkpoint_digest(t->session->store, hex));
}

QN_UNUSED static void assert_same_model(const Toy *a, const Toy *b, bool same)
{
    char x[QN_SHA256_HEX], y[QN_SHA256_HEX];
    digest(a, x);
    digest(b, y);
    assert_int_equal(!strcmp(x, y), same);
}

/* One update on a batch of the loader; gives the loss before it. */
QN_UNUSED static double step(Toy *t)
{
    QnLoader *loader;
    QnLoaderOptions o = { .batch = t->recipe->batch, .workers = 1, .prefetch = 2, .seed = 1 };
    QnBatch b;
    QnStepResult r;
    assert_ok(qn_loader_new(t->data.train, &o, &loader));
    assert_ok(qn_loader_next(loader, &b));
    assert_ok(qn_session_step(t->session, &b, 0, 0.05, &r));
    qn_loader_free(loader);
    return r.loss;
}

/* Tensors of a store under other names, with some that only other programs have. */
typedef struct File {
    QnSafetensor t[300];
    char names[300][200];
    void *data[300];
    int n;
} File;

QN_UNUSED static void *add(File *f, const char *name, QnDtype dtype, int rank, const int64_t *dims)
{
    size_t bytes = qn_dtype_bytes(dtype);
    assert_true(f->n < QN_COUNT(f->t));
    QnSafetensor *t = &f->t[f->n];
    snprintf(f->names[f->n], sizeof f->names[0], "%s", name);
    *t = (QnSafetensor){ .name = f->names[f->n], .dtype = dtype, .rank = rank };
    for (int i = 0; i < rank; i++) {
        t->dims[i] = dims[i];
        bytes *= (size_t)dims[i];
    }
    t->data = f->data[f->n] = calloc(1, bytes + 8);
    return f->data[f->n++];
}

QN_UNUSED static void add_slot(File *f, const char *name, const QnStore *store, const QnSlot *slot)
{
    const QnType *t = qn_slot_type(slot);
    assert_ok(qn_store_read(store, slot, add(f, name, t->dtype, t->shape.rank, t->shape.dim)));
}

QN_UNUSED static const char *save(File *f, const char *name)
{
    const char *path = temp_path(name);
    assert_ok(qn_safetensors_save(path, f->t, f->n, NULL, 0));
    for (int i = 0; i < f->n; i++)
        free(f->data[i]);
    f->n = 0;
    return path;
}

QN_UNUSED static bool is_model_state(const char *name)
{
    return strncmp(name, "optim.", 6) != 0;
}

QN_UNUSED static File file;

#endif
