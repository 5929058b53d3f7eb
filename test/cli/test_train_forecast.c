/* quern train beside its prediction: nothing but money where the machine was not measured; then
 * time and money, memory as planned, and what earlier runs teach the next one. labels: cli slow */
#include "cli/program.h"

#include <math.h>

#define RECIPE                                                                                     \
    "{'name': 'toy', 'task': 'classify',\n" TOY_DATA ",\n" TOY_MLP ",\n"                           \
    "'train': {'epochs': 3, 'batch': 10, 'lr': 0.02, 'seed': 4, 'threads': 1}}"

static int group_setup(void **state)
{
    toy_images("a", 120);
    toy_images("b", 40);
    toy_recipe("r.json", RECIPE);
    return 0;
}

/* The last line that the program printed. */
static const QnJson *last(QnArena *arena)
{
    int n;
    return json_lines(arena, &n);
}

/* Of the first device of a plan, or of a run's end. */
static double get(const char *args, const char *key, bool *there)
{
    QnArena *arena = qn_arena_new();
    assert_runs(args);
    const QnJson *o, *v;
    const char *line =
        strncmp(args, "plan", 4) ? strstr(program_out, "{\"event\": \"done\"") : program_out;
    assert_non_null(line);
    assert_ok(qn_json_parse(arena, line, strcspn(line, "\n"), &o));
    v = qn_json_find(o, key);
    double x = v ? qn_json_double(v) : NAN;
    *there = v != NULL;
    qn_arena_free(arena);
    return x;
}

static void test_without_calibration(void **state)
{
    QnArena *arena = qn_arena_new();
    assert_runs("train r.json -o none --json");
    const QnJson *o = last(arena);
    assert_null(qn_json_find(o, "predicted_seconds"));
    assert_null(qn_json_find(o, "usd"));
    assert_null(strstr(program_err, "predicted:"));
    assert_true(json_number(o, "planned_peak_bytes") == json_number(o, "allocated_peak_bytes"));
    assert_runs("train r.json -o money --json --price 3600"); /* a USD a second */
    o = last(arena);
    double usd = json_number(o, "usd");
    assert_true(usd >= json_number(o, "train_seconds") && usd < 60);
    assert_null(qn_json_find(o, "predicted_seconds"));
    assert_refuses("train r.json -o x --price many", 2, "--price", "a number");
    assert_true(access(temp_path("x"), F_OK) != 0);
    assert_refuses("plan r.json --gpu this", 2, "", "quern plan --calibrate");
    qn_arena_free(arena);
}

static void test_with_calibration(void **state)
{
    QnArena *arena = qn_arena_new();
    bool there;
    assert_runs("plan --calibrate --seconds 2 --threads 1 --hourly 0.36 --power 50 --json");
    assert_true(json_number(last(arena), "peak_flops") > 1e7);
    assert_true(json_number(last(arena), "usd_per_hour") == 0.36);
    assert_runs("train r.json -o first --json");
    const QnJson *o = last(arena);
    double predicted = json_number(o, "predicted_seconds_per_epoch"),
           measured = json_number(o, "seconds_per_epoch");
    assert_true(predicted > 0 && measured > 0);
    assert_true(json_number(o, "predicted_seconds") >= 3 * predicted);
    assert_true(json_number(o, "usd") > 0 && json_number(o, "earlier_runs") == 0);
    /* 0.36 USD and 0.05 kWh an hour, of the same time */
    assert_true(fabs(json_number(o, "kwh") / json_number(o, "usd") - 0.05 / 0.36) < 1e-3);
    /* the plan of the same step says the same, before anything has been learnt and after */
    double step = get("plan r.json --gpu this --json", "step_ms", &there);
    double factor = pow(measured / predicted, 1 / 3.0);
    if (!(fabs(step / (1e3 * factor * predicted / 12) - 1) < 0.01))
        fail_msg("plan %g ms, train %g ms, factor %g", step, 1e3 * predicted / 12, factor);
    step = get("plan r.json --gpu this --json --batch 20", "step_ms", &there);
    assert_true(step > 0); /* another step: nothing is known of it */
    assert_runs("train r.json -o second --json");
    o = last(arena);
    assert_true(json_number(o, "earlier_runs") == 1);
    assert_true(fabs(json_number(o, "earlier_factor") / factor - 1) < 1e-6);
    assert_true(fabs(json_number(o, "predicted_seconds_per_epoch") / predicted / factor - 1) <
                1e-6);
    assert_runs("plan residuals --json");
    assert_true(json_number(last(arena), "runs") == 2);
    qn_arena_free(arena);
}

static void test_opting_out(void **state)
{
    bool there;
    double runs = get("plan residuals --json", "runs", &there);
    assert_true(get("train r.json -o third --json --no-residuals", "earlier_runs", &there) == 0);
    assert_int_equal(run_after("env QUERN_NO_RESIDUALS=1", "train r.json -o fourth --json"), 0);
    assert_true(get("plan residuals --json", "runs", &there) == runs);
    assert_runs("plan residuals --clear");
    assert_runs("plan residuals --json");
    assert_string_equal(program_out, "");
}

static void test_damaged_files_are_left_out(void **state)
{
    bool there;
    temp_file("cache/quern/residuals.jsonl", "{broken\n", 8);
    assert_runs("train r.json -o fifth --json");
    assert_contains(program_err, "1 damaged line");
    temp_file("cache/quern/calibration.json", "{broken", 7);
    assert_runs("train r.json -o sixth --json");
    assert_contains(program_err, "no prediction");
    get("train r.json -o seventh --json", "predicted_seconds", &there);
    assert_false(there);
    assert_refuses("plan r.json --gpu this", 2, "calibration.json", "");
}
