/* Models that begin with weights under the names of torchvision and Hugging Face. labels: train */
#include "foreign.h"

#include "base/fault.h"
#include "base/mem.h"

static int group_setup(void **state)
{
    foreign_data();
    return 0;
}

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
