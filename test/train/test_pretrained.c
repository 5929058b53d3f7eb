/* Models that begin with a file's weights: under their own names and those of torchvision and
 * Hugging Face, whole or in part. labels: train */
#include "toy.h"

#include "base/fault.h"
#include "base/mem.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "train/pretrained.h"

#define TRAIN ", 'train': {'epochs': 2, 'batch': 8, 'lr': 0.05, 'seed': 3}}"
#define MLP   TOY_HEAD TOY_DATA ", " TOY_MLP TRAIN
#define RESNET(depth)                                                                              \
    TOY_HEAD TOY_DATA ", 'model': {'name': 'resnet', 'depth': " depth ", 'width': 4}" TRAIN
#define GPT(more)                                                                                  \
    "{'name': 'text', 'task': 'language', 'data': {'format': 'text', 'train': 't.txt', "           \
    "'window': 8}, 'model': {'name': 'gpt2', 'layers': 2, 'heads': 2, 'width': 8" more "}" TRAIN

static int group_setup(void **state)
{
    char text[600];
    toy_images("a", 64);
    toy_images("b", 24);
    for (int i = 0; i < QN_COUNT(text); i++)
        text[i] = "abcdefgh\n"[toy_noise((uint32_t)i) % 9];
    temp_file("t.txt", text, sizeof text);
    return 0;
}

static void load(Toy *t, const char *path, int64_t taken)
{
    QnPretrained p;
    QnStatus st = qn_pretrained_load(t->session, path, false, &p);
    if (st != QN_OK)
        fail_msg("%s\n%s", qn_error_last()->text, qn_str_text(&p.text));
    assert_int_equal(p.taken, taken);
    assert_int_equal(p.missing + p.unexpected + p.misshapen, 0);
    qn_pretrained_fini(&p);
}

static void digest(const Toy *t, char hex[QN_SHA256_HEX])
{
    assert_ok(qn_checkpoint_digest(t->session->store, hex));
}

static void assert_same_model(const Toy *a, const Toy *b, bool same)
{
    char x[QN_SHA256_HEX], y[QN_SHA256_HEX];
    digest(a, x);
    digest(b, y);
    assert_int_equal(!strcmp(x, y), same);
}

/* One update on a batch of the loader; gives the loss before it. */
static double step(Toy *t)
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

/* The weights of a trained model give its loss at step 0, whatever holds them. */
static void test_own_weights(void **state)
{
    Toy a, b;
    TOY_OPEN(&a, toy_recipe("m.json", MLP), NULL);
    for (int i = 0; i < 5; i++)
        step(&a);
    const char *path = temp_path("m.safetensors"), *run = temp_path("run");
    assert_ok(qn_store_save(a.session->store, NULL, path)); /* with the optimizer's states */
    QnProgress progress = { .update = 5, .seed = 3 };
    mkdir(run, 0777);
    assert_ok(qn_checkpoint_save(run, a.session->store, &progress, 0));
    temp_file("run/recipe.yaml", "x", 1);
    double want = step(&a);
    const char *const paths[] = { path, run, temp_path("run/checkpoints/00000005") };
    for (int i = 0; i < QN_COUNT(paths); i++) {
        TOY_OPEN(&b, temp_path("m.json"), "train.seed=9", NULL);
        assert_true(step(&b) != want);
        load(&b, paths[i], 4);
        assert_true(step(&b) == want);
        toy_close(&b);
    }
    FILE *f = fopen(temp_path("run/checkpoints/00000005/model.safetensors"), "r+b");
    assert_non_null(f);
    fseek(f, -1, SEEK_END);
    fputc('x', f);
    fclose(f);
    TOY_OPEN(&b, temp_path("m.json"), NULL);
    QnPretrained p;
    assert_fails(qn_pretrained_load(b.session, run, false, &p), QN_EFORMAT, "SHA-256");
    qn_pretrained_fini(&p);
    toy_close(&b);
    toy_close(&a);
}

/* ---- other programs' names ---- */

/* Tensors of a store under other names, with some that only other programs have. */
typedef struct File {
    QnSafetensor t[300];
    char names[300][200];
    void *data[300];
    int n;
} File;

static void *add(File *f, const char *name, QnDtype dtype, int rank, const int64_t *dims)
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

static void add_slot(File *f, const char *name, const QnStore *store, const QnSlot *slot)
{
    const QnType *t = qn_slot_type(slot);
    assert_ok(qn_store_read(store, slot, add(f, name, t->dtype, t->shape.rank, t->shape.dim)));
}

static const char *save(File *f, const char *name)
{
    const char *path = temp_path(name);
    assert_ok(qn_safetensors_save(path, f->t, f->n, NULL, 0));
    for (int i = 0; i < f->n; i++)
        free(f->data[i]);
    f->n = 0;
    return path;
}

static bool is_model_state(const char *name)
{
    return strncmp(name, "optim.", 6) != 0;
}

static File file;

static void test_torchvision_resnet(void **state)
{
    Toy a, b;
    char name[200];
    TOY_OPEN(&a, toy_recipe("r.json", RESNET("18")), NULL);
    step(&a); /* running statistics are no longer 0 and 1 */
    for (int64_t i = 0; i < qn_store_count(a.session->store); i++) {
        const QnSlot *slot = qn_store_at(a.session->store, i);
        const char *own = qn_slot_name(slot);
        size_t n = strlen(own);
        if (!is_model_state(own))
            continue;
        snprintf(name, sizeof name, "module.%s", own); /* as DataParallel saves it */
        add_slot(&file, name, a.session->store, slot);
        if (n > 12 && !strcmp(own + n - 12, "running_mean")) {
            snprintf(name, sizeof name, "module.%.*snum_batches_tracked", (int)n - 12, own);
            add(&file, name, QN_DTYPE_I64, 0, NULL);
        }
    }
    int64_t count = file.n;
    const char *path = save(&file, "tv.safetensors");
    TOY_OPEN(&b, temp_path("r.json"), "train.seed=9", NULL);
    load(&b, path, count - 20); /* 20 norms */
    assert_same_model(&a, &b, true);
    toy_close(&b);
    toy_close(&a);
}

/* "layer2.0.conv1.weight" as transformers calls it; index numbers from 0. */
static void hugging_face_resnet(const char *own, char *out, size_t size)
{
    int stage, block, part;
    char rest[100];
    if (sscanf(own, "layer%d.%d.conv%d.%99s", &stage, &block, &part, rest) == 4)
        snprintf(out, size, "resnet.encoder.stages.%d.layers.%d.layer.%d.convolution.%s", stage - 1,
                 block, part - 1, rest);
    else if (sscanf(own, "layer%d.%d.bn%d.%99s", &stage, &block, &part, rest) == 4)
        snprintf(out, size, "resnet.encoder.stages.%d.layers.%d.layer.%d.normalization.%s",
                 stage - 1, block, part - 1, rest);
    else if (sscanf(own, "layer%d.%d.downsample.%d.%99s", &stage, &block, &part, rest) == 4)
        snprintf(out, size, "resnet.encoder.stages.%d.layers.%d.shortcut.%s.%s", stage - 1, block,
                 part ? "normalization" : "convolution", rest);
    else if (!strncmp(own, "conv1.", 6))
        snprintf(out, size, "resnet.embedder.embedder.convolution.%s", own + 6);
    else if (!strncmp(own, "bn1.", 4))
        snprintf(out, size, "resnet.embedder.embedder.normalization.%s", own + 4);
    else
        snprintf(out, size, "classifier.1.%s", own + 3);
}

static void test_hugging_face_resnet(void **state)
{
    static const char *const recipes[] = { RESNET("18"), RESNET("50") }; /* both kinds of block */
    for (int k = 0; k < QN_COUNT(recipes); k++) {
        Toy a, b;
        char name[200];
        TOY_OPEN(&a, toy_recipe("r.json", recipes[k]), NULL);
        step(&a);
        for (int64_t i = 0; i < qn_store_count(a.session->store); i++) {
            const QnSlot *slot = qn_store_at(a.session->store, i);
            if (!is_model_state(qn_slot_name(slot)))
                continue;
            hugging_face_resnet(qn_slot_name(slot), name, sizeof name);
            add_slot(&file, name, a.session->store, slot);
        }
        int64_t count = file.n;
        const char *path = save(&file, "hf.safetensors");
        TOY_OPEN(&b, temp_path("r.json"), "train.seed=9", NULL);
        load(&b, path, count);
        assert_same_model(&a, &b, true);
        toy_close(&b);
        toy_close(&a);
    }
}

static bool is_conv1d(const char *own)
{
    return strstr(own, "c_attn.weight") || strstr(own, "c_proj.weight") ||
           strstr(own, "c_fc.weight");
}

/* All of a GPT-2 as Hugging Face keeps it: (in, out), with masks, with or without a prefix. */
static void fill_hugging_face(const QnStore *store, const char *prefix, bool head)
{
    char name[200];
    for (int64_t i = 0; i < qn_store_count(store); i++) {
        const QnSlot *slot = qn_store_at(store, i);
        const char *own = qn_slot_name(slot);
        const QnShape *s = &qn_slot_type(slot)->shape;
        if (!is_model_state(own))
            continue;
        snprintf(name, sizeof name, "%s%s", strcmp(own, "lm_head.weight") ? prefix : "", own);
        if (is_conv1d(own)) {
            int64_t n, dims[] = { s->dim[1], s->dim[0] };
            float *x = toy_state(store, own, &n);
            float *y = add(&file, name, QN_DTYPE_F32, 2, dims);
            for (int64_t r = 0; r < dims[1]; r++)
                for (int64_t c = 0; c < dims[0]; c++)
                    y[c * dims[1] + r] = x[r * dims[0] + c];
            free(x);
        } else {
            add_slot(&file, name, store, slot);
        }
        if (head && !strcmp(own, "wte.weight"))
            add_slot(&file, "lm_head.weight", store, slot);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%sh.%d.attn.bias", prefix, i);
        add(&file, name, QN_DTYPE_BOOL, 4, (int64_t[]){ 1, 1, 8, 8 });
        snprintf(name, sizeof name, "%sh.%d.attn.masked_bias", prefix, i);
        add(&file, name, QN_DTYPE_F32, 0, NULL);
    }
}

/* Outputs of the model on the first samples. */
static void logits(Toy *t, float *out, int64_t n)
{
    QnLoader *loader;
    QnLoaderOptions o = { .batch = t->recipe->batch, .workers = 1, .prefetch = 2, .seed = 1 };
    QnBatch b;
    QnEvalResult r;
    assert_ok(qn_loader_new(t->data.train, &o, &loader));
    assert_ok(qn_loader_next(loader, &b));
    assert_ok(qn_session_eval(t->session, &b, &r));
    assert_true(r.rows * r.outputs >= n);
    memcpy(out, r.logits, (size_t)n * sizeof *out);
    qn_loader_free(loader);
}

static void test_hugging_face_gpt2(void **state)
{
    static const struct {
        const char *prefix, *tied;
        bool head;
    } cases[] = { { "transformer.", "true", true },
                  { "", "true", false },
                  { "transformer.", "false", false },
                  { "", "false", false } };
    for (int i = 0; i < QN_COUNT(cases); i++) {
        Toy a, b;
        char tied[40];
        float want[200], got[200];
        snprintf(tied, sizeof tied, "model.tied=%s", cases[i].tied);
        TOY_OPEN(&a, toy_recipe("g.json", GPT(", 'bias': true")), tied, NULL);
        step(&a);
        fill_hugging_face(a.session->store, cases[i].prefix, cases[i].head);
        int64_t count = file.n - 4 - cases[i].head;
        const char *path = save(&file, "gpt.safetensors");
        const char *own = temp_path("own.safetensors");
        assert_ok(qn_store_save(a.session->store, NULL, own));
        TOY_OPEN(&b, temp_path("g.json"), tied, "train.seed=9", NULL);
        load(&b, own, count);
        logits(&b, want, 200);
        toy_close(&b);
        TOY_OPEN(&b, temp_path("g.json"), tied, "train.seed=9", NULL);
        load(&b, path, count);
        assert_same_model(&a, &b, true);
        logits(&b, got, 200);
        assert_memory_equal(got, want, sizeof got);
        toy_close(&b);
        toy_close(&a);
    }
}

/* A tied file fills a head of its own with the embedding; a head that differs does not fit a tied
 * model. */
static void test_heads(void **state)
{
    Toy tied, loose;
    QnPretrained p;
    int64_t n, m;
    TOY_OPEN(&tied, toy_recipe("g.json", GPT("")), "model.tied=true", NULL);
    TOY_OPEN(&loose, temp_path("g.json"), "train.seed=9", NULL);
    const char *path = temp_path("tied.safetensors");
    assert_ok(qn_store_save(tied.session->store, NULL, path));
    assert_ok(qn_pretrained_load(loose.session, path, false, &p));
    qn_pretrained_fini(&p);
    float *head = toy_state(loose.session->store, "lm_head.weight", &n);
    float *table = toy_state(tied.session->store, "wte.weight", &m);
    assert_int_equal(n, m);
    assert_memory_equal(head, table, (size_t)n * sizeof *head);
    free(head);
    free(table);
    step(&loose);
    assert_ok(qn_store_save(loose.session->store, NULL, temp_path("loose.safetensors")));
    assert_fails(qn_pretrained_load(tied.session, temp_path("loose.safetensors"), false, &p),
                 QN_ESHAPE, "unexpected 1");
    assert_contains(qn_str_text(&p.text), "unexpected  lm_head.weight");
    qn_pretrained_fini(&p);
    toy_close(&tied);
    toy_close(&loose);
}

/* A model that looks back less far takes the first positions; one that looks further does not fit.
 */
static void test_window(void **state)
{
    Toy near, far;
    int64_t n, m;
    QnPretrained p;
    TOY_OPEN(&far, toy_recipe("g.json", GPT("")), "data.window=12", NULL);
    TOY_OPEN(&near, temp_path("g.json"), "train.seed=9", NULL);
    assert_ok(qn_store_save(far.session->store, NULL, temp_path("far.safetensors")));
    assert_ok(qn_store_save(near.session->store, NULL, temp_path("near.safetensors")));
    assert_fails(qn_pretrained_load(far.session, temp_path("near.safetensors"), false, &p),
                 QN_ESHAPE, "of another shape 1");
    assert_contains(qn_str_text(&p.text), "other shape wpe.weight is f32[8,8]");
    qn_pretrained_fini(&p);
    assert_ok(qn_pretrained_load(near.session, temp_path("far.safetensors"), false, &p));
    qn_pretrained_fini(&p);
    float *x = toy_state(near.session->store, "wpe.weight", &n);
    float *y = toy_state(far.session->store, "wpe.weight", &m);
    assert_true(n == 64 && m == 96);
    assert_memory_equal(x, y, 64 * sizeof *x);
    free(x);
    free(y);
    toy_close(&near);
    toy_close(&far);
}

/* The n-th allocation or system call fails, for all n: an error, and no leak. */
static void test_every_step_may_fail(void **state)
{
    Toy a, b;
    TOY_OPEN(&a, toy_recipe("g.json", GPT("")), NULL);
    fill_hugging_face(a.session->store, "transformer.", false);
    const char *path = save(&file, "fault.safetensors");
    TOY_OPEN(&b, temp_path("g.json"), "train.seed=9", NULL);
    for (int64_t at = 1;; at++) {
        QnPretrained p;
        qn_fault_arm(at);
        QnStatus st = qn_pretrained_load(b.session, path, false, &p);
        bool over = qn_fault_events() < at;
        qn_fault_arm(0);
        qn_pretrained_fini(&p);
        assert_true(st == QN_OK || st == QN_ENOMEM || st == QN_EIO);
        if (over) {
            assert_int_equal(st, QN_OK);
            break;
        }
    }
    assert_same_model(&a, &b, true);
    toy_close(&a);
    toy_close(&b);
}

/* ---- what does not fit ---- */

static void test_mismatches_are_listed_and_change_nothing(void **state)
{
    Toy a, b;
    QnPretrained p;
    char before[QN_SHA256_HEX], after[QN_SHA256_HEX];
    static const int64_t dims[] = { 3 };
    TOY_OPEN(&a, toy_recipe("m.json", MLP), NULL);
    const QnStore *store = a.session->store;
    add_slot(&file, "fc1.weight", store, qn_store_find(store, "fc1.weight"));
    add_slot(&file, "fc1.bias", store, qn_store_find(store, "fc1.bias"));
    add(&file, "out.weight", QN_DTYPE_F32, 2, (int64_t[]){ 7, 12 });
    add(&file, "head.extra", QN_DTYPE_F32, 1, dims);
    add(&file, "fc9.bias", QN_DTYPE_I64, 1, dims);
    const char *path = save(&file, "odd.safetensors");
    TOY_OPEN(&b, temp_path("m.json"), "train.seed=9", NULL);
    digest(&b, before);
    assert_fails(qn_pretrained_load(b.session, path, false, &p), QN_ESHAPE,
                 "missing 1, unexpected 2, of another shape 1");
    assert_true(p.missing == 1 && p.unexpected == 2 && p.misshapen == 1 && p.taken == 2);
    assert_contains(qn_str_text(&p.text), "missing     out.bias f32[4]\n");
    assert_contains(qn_str_text(&p.text), "unexpected  head.extra f32[3]\n");
    assert_contains(qn_str_text(&p.text), "unexpected  fc9.bias i64[3]\n");
    assert_contains(qn_str_text(&p.text),
                    "other shape out.weight is f32[7,12], the model has out.weight f32[4,12]\n");
    qn_pretrained_fini(&p);
    digest(&b, after);
    assert_string_equal(before, after);

    assert_ok(qn_pretrained_load(b.session, path, true, &p)); /* a new head */
    assert_true(p.taken == 2 && p.missing == 1);
    qn_pretrained_fini(&p);
    const char *const names[] = { "fc1.weight", "fc1.bias", "out.weight" };
    for (int i = 0; i < 3; i++) {
        int64_t n;
        float *x = toy_state(a.session->store, names[i], &n);
        float *y = toy_state(b.session->store, names[i], &n);
        assert_int_equal(!memcmp(x, y, (size_t)n * sizeof *x), i < 2);
        free(x);
        free(y);
    }
    add(&file, "nothing", QN_DTYPE_F32, 1, dims);
    assert_fails(qn_pretrained_load(b.session, save(&file, "odd.safetensors"), true, &p), QN_ESHAPE,
                 "none of its 1 tensors fits");
    qn_pretrained_fini(&p);
    assert_fails(qn_pretrained_load(b.session, temp_path("none"), true, &p), QN_ENOTFOUND, "none");
    qn_pretrained_fini(&p);
    toy_close(&a);
    toy_close(&b);
}

/* Half-precision files are widened; averaged weights begin as the file has them, or as the weights.
 */
static void test_types_and_averages(void **state)
{
    Toy a, b;
    int64_t n;
    TOY_OPEN(&a, toy_recipe("m.json", MLP), NULL);
    const QnStore *store = a.session->store;
    const char *const names[] = { "fc1.weight", "fc1.bias", "out.weight", "out.bias" };
    const char *npz_names[4];
    QnNpy arrays[4];
    for (int i = 0; i < 4; i++) {
        const QnShape *s = &qn_slot_type(qn_store_find(store, names[i]))->shape;
        float *x = toy_state(store, names[i], &n);
        arrays[i] = (QnNpy){ .dtype = QN_DTYPE_F16, .rank = s->rank, .data = calloc(2, (size_t)n) };
        memcpy(arrays[i].dims, s->dim, sizeof arrays[i].dims);
        qn_dtype_from_f32(QN_DTYPE_F16, x, arrays[i].data, n);
        npz_names[i] = names[i];
        free(x);
    }
    const char *path = temp_path("half.npz");
    assert_ok(qn_npz_write(path, npz_names, arrays, 4, false));
    TOY_OPEN(&b, temp_path("m.json"), "train.ema=0.9", "train.seed=9", NULL);
    load(&b, path, 4);
    for (int i = 0; i < 4; i++) {
        char ema[40];
        float *want = malloc((size_t)qn_slot_type(qn_store_find(store, names[i]))->shape.dim[0] *
                             (i % 2 ? 1 : 64) * sizeof *want);
        float *x = toy_state(b.session->store, names[i], &n);
        snprintf(ema, sizeof ema, "ema.%s", names[i]);
        float *y = toy_state(b.session->store, ema, &n);
        qn_dtype_to_f32(QN_DTYPE_F16, arrays[i].data, want, n);
        assert_memory_equal(x, want, (size_t)n * sizeof *x);
        assert_memory_equal(y, want, (size_t)n * sizeof *x);
        free(want);
        free(x);
        free(y);
        free(arrays[i].data);
    }
    step(&b); /* weights and averages part */
    assert_ok(qn_store_save(b.session->store, NULL, temp_path("ema.safetensors")));
    Toy c;
    TOY_OPEN(&c, temp_path("m.json"), "train.ema=0.9", "train.seed=7", NULL);
    load(&c, temp_path("ema.safetensors"), 4);
    assert_same_model(&b, &c, true);
    toy_close(&a);
    toy_close(&b);
    toy_close(&c);
}
