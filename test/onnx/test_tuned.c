/* Measured kernels: `quern tune` and `quern explain` on ONNX models, and who uses what they keep.
 * labels: onnx cli */
#include "cli/program.h"

#include "base/rng.h"
#include "io/npy.h"
#include "onnx/model.h"
#include "onnx/session.h"
#include "rt/plan.h"
#include "rt/tune.h"

enum { ROWS = 60, DEEP = 2048, WIDE = 128 };

static float w[DEEP * WIDE], x[ROWS * DEEP];

static void fill(float *v, int n)
{
    QnRng rng;
    qn_rng_init(&rng, 1, (uint64_t)n);
    for (int i = 0; i < n; i++)
        v[i] = qn_rng_normal(&rng);
}

/* y = x w, x[batch,2048] */
static void write_net(void)
{
    static const char *const in[] = { "x", "w" }, *const out[] = { "y" };
    QnTensor t = { .type = { .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(DEEP, WIDE) }, .data = w };
    Made m;
    fill(w, DEEP * WIDE);
    fill(x, ROWS * DEEP);
    made_begin(&m, 17);
    made_input(&m, "x", QN_DTYPE_F32, QN_SHAPE(-1, DEEP));
    ((QnOnnxType *)(uintptr_t)m.input[0].type)->dim_name[0] = "batch";
    made_output(&m, "y", QN_DTYPE_F32, QN_SHAPE(-1, WIDE));
    made_init(&m, "w", &t);
    made_node(&m, "MatMul", in, 2, out, 1);
    if (qn_onnx_write(&m.model, temp_path("net.onnx"), false) == QN_EUNSUPPORTED)
        skip_because("built without protobuf-c");
}

/* The kernel of the one step that multiplies, as explain says it. */
static void find_kernel(char name[64])
{
    QnArena *arena = qn_arena_new();
    int n;
    assert_runs("explain net.onnx --dim batch=60 --threads 1 --json --why");
    const QnJson *o = json_lines(arena, &n);
    assert_int_equal(n, 1);
    assert_string_equal(json_text(o, "op"), "matmul");
    assert_non_null(qn_json_find(o, "refused"));
    assert_true(json_number(o, "flops") == 2.0 * ROWS * DEEP * WIDE);
    snprintf(name, 64, "%s", json_text(o, "kernel"));
    qn_arena_free(arena);
}

/* A kernel that tune has measured and found right, other than `not`. */
static bool find_other(const char * not, char name[64])
{
    QnArena *arena = qn_arena_new();
    name[0] = '\0';
    for (const char *p = program_out; *p; p = strchr(p, '\n') + 1) {
        const QnJson *o;
        assert_ok(qn_json_parse(arena, p, (size_t)(strchr(p, '\n') - p), &o));
        if (!qn_json_find(o, "refused") && strcmp(json_text(o, "kernel"), not ) != 0)
            snprintf(name, 64, "%s", json_text(o, "kernel"));
    }
    qn_arena_free(arena);
    return name[0] != '\0';
}

/* What a session of the C interface runs, and what comes of it. */
static void session_kernel(const char *choices, char name[64], float y[ROWS * WIDE])
{
    QnType type;
    const void *data;
    QnDevice *d;
    QnModel *m;
    assert_ok(qn_device_open_named("cpu", &(QnDeviceOptions){ .n_threads = 1 }, &d));
    assert_ok(qn_model_open(temp_path("net.onnx"), d, &m));
    if (choices)
        assert_ok(qn_model_load_choices(m, choices));
    assert_ok(
        qn_model_set(m, "x", &(QnType){ .dtype = QN_DTYPE_F32, .shape = QN_SHAPE(ROWS, DEEP) }, x));
    assert_ok(qn_model_run(m));
    assert_int_equal(qn_model_load_choices(m, "nowhere"), QN_EARG);
    const QnPlan *p = qn_model_plan(m);
    assert_int_equal(qn_plan_n_steps(p), 1);
    snprintf(name, 64, "%s", qn_plan_step(p, 0).kernel->name);
    assert_ok(qn_model_get(m, "y", &type, &data));
    memcpy(y, data, sizeof(float) * ROWS * WIDE);
    qn_model_close(m);
    qn_device_close(d);
}

/* Whether `quern run` gives the very bits of y. */
static bool run_gives(const float *y)
{
    QnNpy npy;
    assert_runs("run net.onnx -i x=x.npy --threads 1 -o out");
    assert_ok(qn_npy_read(temp_path("out/y.npy"), &npy));
    assert_int_equal(npy.count, ROWS * WIDE);
    bool same = !memcmp(npy.data, y, sizeof(float) * ROWS * WIDE);
    qn_npy_fini(&npy);
    return same;
}

static void test_choices(void **state)
{
    static float by_rank[ROWS * WIDE], by_choice[ROWS * WIDE];
    char ranked[64], other[64], now[64], command[256], path[512];
    QnChoices *c;
    write_net();
    find_kernel(ranked);
    assert_runs("tune net.onnx --dim batch=60 --threads 1 --json");
    if (!find_other(ranked, other))
        skip_because("no two kernels that compete");
    assert_runs("tune net.onnx --batch 60 --threads 1"); /* the same node */
    assert_contains(program_out, "0 nodes measured; 1 choices in");

    /* The one that ranks lower, whatever was faster. */
    snprintf(path, sizeof path, "%s", temp_path("cache/quern/kernels.json"));
    assert_ok(qn_choices_read(path, &c));
    assert_int_equal(c->n, 1);
    assert_ok(qn_choices_set(c, c->items[0].key, other, 1));
    assert_ok(qn_choices_write(c, path));
    qn_choices_free(c);

    find_kernel(now);
    assert_string_equal(now, other);
    snprintf(command, sizeof command, "bench net.onnx --dim batch=60 --threads 1 --steps 1 %s",
             "--profile");
    assert_runs(command);
    assert_contains(program_out, other);
    session_kernel(NULL, now, by_rank);
    assert_string_equal(now, ranked); /* not asked for */
    session_kernel(path, now, by_choice);
    assert_string_equal(now, other);
    session_kernel(temp_path("nowhere.json"), now, by_rank);
    assert_string_equal(now, ranked);

    /* Kernels add in orders of their own: the last bits tell which one `quern run` takes. */
    assert_ok(qn_npy_write(temp_path("x.npy"), QN_DTYPE_F32, 2, (int64_t[]){ ROWS, DEEP }, x));
    assert_true(run_gives(by_choice));
    print_message("the kernels' results %s\n",
                  memcmp(by_rank, by_choice, sizeof by_rank) ? "differ" : "are the same");
    FILE *f = fopen(path, "wb");
    fputs("{", f);
    fclose(f);
    assert_int_equal(run("run net.onnx -i x=x.npy"), 2);
    assert_contains(program_err, "kernels.json");
    remove(path);
    assert_true(run_gives(by_rank));
}

static void test_refused(void **state)
{
    write_net();
    assert_refuses("explain net.onnx", 2, "'batch'", "--dim");
    assert_refuses("tune net.onnx", 2, "'batch'", "--dim");
    assert_refuses("bench net.onnx", 2, "'batch'", "--dim");
    assert_refuses("bench net.onnx --dim seq=3", 2, "'seq'", "there are: batch");
    assert_refuses("explain net.onnx --batch 2 --eval", 2, "--eval", "recipes");
    assert_refuses("explain r.json --batch 2", 2, "--batch", "ONNX");
    assert_refuses("bench r.json --batch 2", 2, "--batch", "ONNX");
    assert_refuses("tune r.json --dim a=2", 2, "--dim", "ONNX");
    assert_runs("explain net.onnx --batch 2 --device null");
    assert_contains(program_out, "constants 1.00 MiB");
}
