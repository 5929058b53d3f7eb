/* quern inspect. labels: cli */
#include "program.h"

#include "io/npy.h"
#include "io/safetensors.h"

static const float numbers[6] = { 1, 2, 3, 4, -10, 6 };
static float odd[5];

static const QnSafetensor some[] = {
    { .name = "w", .dtype = QN_DTYPE_F32, .rank = 2, .dims = { 2, 3 }, .data = numbers },
    { .name = "odd", .dtype = QN_DTYPE_F32, .rank = 1, .dims = { 5 }, .data = odd },
    { .name = "bad\x1b[31m", .dtype = QN_DTYPE_I64, .rank = 0, .data = "\7\0\0\0\0\0\0" },
    { .name = "none", .dtype = QN_DTYPE_F32, .rank = 1, .dims = { 0 }, .data = "" },
};
static const QnSafetensorsText notes[] = { { "format", "pt" } };

static int group_setup(void **state)
{
    odd[0] = NAN;
    odd[1] = INFINITY;
    odd[2] = -INFINITY;
    odd[3] = 1;
    odd[4] = 3;
    assert_ok(qn_safetensors_save(temp_path("m.safetensors"), some, 4, notes, 1));
    assert_ok(qn_safetensors_save_shards(temp_path("s.safetensors"), some, 4, notes, 1, 20));
    return 0;
}

static void test_table(void **state)
{
    assert_runs("inspect m.safetensors");
    assert_contains(program_out, "m.safetensors: safetensors\n  format: pt\n");
    assert_contains(program_out, "\ntensor    type  shape  elements  bytes\n");
    assert_contains(program_out, "\nw         f32   [2,3]         6   24 B\n");
    assert_contains(program_out, "\n4 tensors, 12 elements, 52 B\n");
    assert_contains(program_out, "  f32: 3 tensors, 11 elements\n  i64: 1 tensor, 1 elements\n");
    assert_null(strchr(program_out, '\x1b')); /* what a file holds does not reach the terminal */
    assert_runs("inspect m.safetensors --stats");
    assert_contains(program_out, "mean");
    assert_runs("inspect s.safetensors.index.json");
    assert_contains(program_out, "safetensors in 3 shards\n");
    assert_contains(program_out, "\n4 tensors, 12 elements, 52 B\n");
}

static const QnJson *tensor(const QnJson *o, const char *name)
{
    const QnJson *list = qn_json_find(o, "tensors");
    for (int64_t i = 0; list && i < list->n; i++)
        if (!strcmp(json_text(&list->items[i], "name"), name))
            return &list->items[i];
    fail_msg("no tensor '%s'", name);
    return NULL;
}

static void test_json(void **state)
{
    QnArena *arena = qn_arena_new();
    int n;
    assert_runs("inspect m.safetensors --json --stats");
    const QnJson *o = json_lines(arena, &n), *t = tensor(o, "w");
    assert_int_equal(n, 1);
    assert_string_equal(json_text(o, "format"), "safetensors");
    assert_string_equal(json_text(qn_json_find(o, "metadata"), "format"), "pt");
    assert_true(json_number(o, "count") == 4 && json_number(o, "elements") == 12);
    assert_true(json_number(o, "bytes") == 52 && json_number(o, "files") == 1);
    assert_string_equal(json_text(t, "dtype"), "f32");
    assert_true(qn_json_find(t, "shape")->n == 2 && json_number(t, "bytes") == 24);
    assert_true(json_number(t, "min") == -10 && json_number(t, "max") == 6);
    assert_true(json_number(t, "mean") == 1); /* deviations 0 1 2 3 -11 5 */
    assert_true(fabs(json_number(t, "std") - sqrt(160.0 / 6)) < 1e-12);
    t = tensor(o, "odd");
    assert_true(json_number(t, "nan") == 1 && json_number(t, "inf") == 2);
    assert_true(json_number(t, "mean") == 2 && json_number(t, "std") == 1);
    assert_true(qn_json_find(tensor(o, "none"), "mean")->type == QN_JSON_NULL);
    assert_true(json_number(tensor(o, "bad\x1b[31m"), "mean") == 7);
    qn_arena_free(arena);
}

/* The same arrays by NumPy, a run with its checkpoint, and the examples of a folder. */
static void test_other_files(void **state)
{
    QnArena *arena = qn_arena_new();
    int n;
    QnNpy a = { .dtype = QN_DTYPE_F32, .rank = 2, .dims = { 2, 3 } };
    a.data = (void *)(uintptr_t)numbers;
    const char *name = "layer.w";
    assert_ok(qn_npz_write(temp_path("a.npz"), &name, &a, 1, false));
    assert_ok(qn_npy_write(temp_path("b.npy"), a.dtype, a.rank, a.dims, numbers));
    assert_runs("inspect a.npz");
    assert_contains(program_out, "a.npz: NumPy .npz\n");
    assert_contains(program_out, "\nlayer.w  f32   [2,3] ");
    assert_runs("inspect b.npy");
    assert_contains(program_out, "\nb       f32   [2,3] ");

    toy_images("a", 40);
    toy_images("b", 20);
    toy_recipe("r.json", "{'name': 'toy', 'task': 'classify',\n" TOY_DATA ",\n" TOY_MLP ",\n"
                         "'train': {'steps': 2, 'batch': 10, 'lr': 0.02}}");
    assert_runs("train r.json -o run");
    assert_runs("inspect run --json");
    const QnJson *o = json_lines(arena, &n);
    assert_string_equal(json_text(qn_json_find(o, "metadata"), "update"), "2");
    assert_true(json_number(o, "elements") - json_number(o, "optimizer_elements") ==
                64 * 12 + 12 + 12 * 4 + 4);
    assert_true(json_number(tensor(o, "fc1.weight"), "elements") == 64 * 12);
    assert_runs("inspect run/checkpoints/00000002");
    assert_contains(program_out, "the model's: 832 elements; the optimizer's: ");
    qn_arena_free(arena);
}

static void test_refused(void **state)
{
    temp_file("text", "hello", 5);
    temp_file("evil.pt", "PK\3\4", 4);
    assert_refuses("inspect text", 2, "text", "no file of weights that is known");
    assert_refuses("inspect none", 2, "none", "");
    assert_refuses("inspect evil.pt", 2, "evil.pt", "");
    assert_refuses("inspect", 2, "usage: quern inspect PATH", "");
    mkdir(temp_path("empty"), 0777);
    assert_refuses("inspect empty", 2, "empty", "holds no weights");
}
