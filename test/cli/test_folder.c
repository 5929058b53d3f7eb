/* A folder of photographs of which one is broken: it is passed over, named and counted, or stops
 * the run if the recipe says so. labels: cli */
#include "program.h"

#include "io/pack.h"

#ifdef QN_HAVE_PNG
#define NEEDS_PNG
#else
#define NEEDS_PNG skip_because("built without libpng")
#endif

#define RECIPE                                                                                     \
    "{'name': 'photos', 'task': 'classify', 'data': {'format': 'folder', 'train': 'photos', "      \
    "'test': 'photos', 'images': {'flip': true, 'mean': [0.5, 0.5, 0.5], "                         \
    "'std': [0.3, 0.3, 0.3]}}, 'model': {'name': 'mlp', 'hidden': [8]}, "                          \
    "'train': {'epochs': 3, 'batch': 4, 'lr': 0.02, 'checkpoint': {'every': 4}}}"

/* Bright cats and dark dogs; the eighth cat's file ends too soon. */
static int group_setup(void **state)
{
#ifdef QN_HAVE_PNG
    mkdir(temp_path("photos"), 0777);
    mkdir(temp_path("photos/cat"), 0777);
    mkdir(temp_path("photos/dog"), 0777);
    for (int i = 0; i < 24; i++) {
        uint8_t pixels[8 * 8 * 3], png[2048];
        char name[64];
        for (int p = 0; p < QN_COUNT(pixels); p++)
            pixels[p] = (uint8_t)(toy_noise((uint32_t)(i * 192 + p)) % 140 + (i % 2 ? 0 : 110));
        size_t n = png_pack(pixels, 8, 8, PNG_FORMAT_RGB, png, sizeof png);
        snprintf(name, sizeof name, "photos/%s/%02d.png", i % 2 ? "dog" : "cat", i);
        temp_file(name, png, i == 14 ? n / 2 : n);
    }
    toy_recipe("photos.json", RECIPE);
#endif
    return 0;
}

static void test_broken_file_is_named(void **state)
{
    NEEDS_PNG;
    QnArena *arena = qn_arena_new();
    int n;
    assert_runs("train photos.json -o p --json");
    assert_contains(program_err, "warning: ./photos");
    assert_contains(program_err, "cat/14.png");
    const QnJson *o = json_lines(arena, &n);
    assert_true(json_number(o, "skipped_samples") == 2); /* in training and in test */
    assert_true(json_number(o, "test_accuracy") > 0.8);
    qn_arena_free(arena);
}

static void test_broken_file_stops(void **state)
{
    NEEDS_PNG;
    assert_int_not_equal(run("train photos.json -o s --set data.stop_on_broken=true"), 0);
    char *last = strstr(program_err, "error: ");
    assert_non_null(last);
    assert_contains(last, "cat/14.png");
    assert_string_equal(strchr(last, '\n'), "\n");
}

static void test_predict(void **state)
{
    NEEDS_PNG;
    QnArena *arena = qn_arena_new();
    int n;
    assert_runs("train photos.json -o q");
    assert_runs("predict q photos/cat/00.png photos/dog/01.png --json");
    const QnJson *o = json_lines(arena, &n);
    assert_int_equal(n, 2);
    assert_contains(json_text(o, "file"), "01.png");
    const QnJson *best = &qn_json_find(o, "classes")->items[0];
    assert_string_equal(json_text(best, "class"), "dog");
    assert_refuses("predict q photos/cat", 2, "photos/cat is a folder", "photos/cat/*.jpg");
    /* one bad file does not keep the others from being answered */
    assert_int_not_equal(run("predict q nothing.png photos/dog/01.png"), 0);
    assert_contains(program_err, "nothing.png");
    assert_contains(program_out, "dog");
    qn_arena_free(arena);
}
