/* Models that begin with a file's weights, whole or in part. labels: train */
#include "foreign.h"

#include "base/mem.h"
#include "io/npy.h"

static int group_setup(void **state)
{
    foreign_data();
    return 0;
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
