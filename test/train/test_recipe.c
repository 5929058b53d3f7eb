/* Recipes are checked before anything is opened: each complaint names file, line, key and what was
 * expected. labels: train */
#include "toy.h"

/* Line 4 holds data, line 5 the model, line 6 and on train. */
static const char *const good = "{\n"
                                "'name': 'toy',\n"
                                "'task': 'classify',\n" TOY_DATA ",\n" TOY_MLP ",\n"
                                "'train': {'epochs': 2, 'batch': 10, 'lr': 0.1,\n"
                                "          'optimizer': {'name': 'sgd', 'momentum': 0.9},\n"
                                "          'schedule': {'kind': 'step', 'marks': [1, 1.5]}}}\n";

static QnStatus opened(const char *text, const char *setting)
{
    QnRecipe *r = NULL;
    QnStatus st = qn_recipe_open(toy_recipe("r.json", text), &setting, setting != NULL, &r);
    if (st == QN_OK)
        qn_recipe_free(r);
    return st;
}

/* The good recipe with its first `from` made into `to` must be refused with all of these words. */
static void assert_refused(const char *from, const char *to, const char *a, const char *b)
{
    char text[4096];
    const char *at = strstr(good, from);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    assert_fails(opened(text, NULL), QN_EUSAGE, a);
    assert_contains(qn_error_last()->text, b);
    assert_contains(qn_error_last()->text, "r.json:");
}

static void test_good_recipe(void **state)
{
    QnRecipe *r;
    assert_ok(qn_recipe_open(toy_recipe("r.json", good), NULL, 0, &r));
    assert_string_equal(r->name, "toy");
    assert_int_equal(r->task, QN_TASK_CLASSIFY);
    assert_int_equal(r->epochs, 2);
    assert_int_equal(r->steps, 0);
    assert_int_equal(r->batch, 10);
    assert_int_equal(r->accumulate, 1);
    assert_int_equal(r->checkpoint_keep, 2);
    assert_int_equal(r->schedule.kind, QN_SCHEDULE_STEP);
    assert_int_equal(r->schedule.n_marks, 2);
    assert_true(r->schedule.marks[1] == 1.5 && r->schedule.gamma == 0.1);
    assert_string_equal(r->optimizer.name, "sgd");
    assert_true(r->optimizer.momentum == 0.9);
    assert_string_equal(r->data.train.x, temp_path("a.x")); /* relative to the recipe's folder */
    qn_recipe_free(r);
}

static void test_unknown_keys(void **state)
{
    assert_refused("'batch'", "'bacth'", "bacth", "did you mean 'batch'");
    assert_contains(qn_error_last()->text, "r.json:6: train");
    assert_refused("'momentum'", "'momentun'", "r.json:7: train.optimizer", "'momentum'");
    assert_refused("'name': 'toy'", "'nmae': 'toy'", "r.json:2", "'name'");
    assert_refused("'images': {'mean'", "'images': {'men'", "r.json:4: data.images", "'mean'");
    assert_refused("'marks'", "'mark'", "r.json:8: train.schedule", "'marks'");
}

static void test_wrong_types_and_ranges(void **state)
{
    assert_refused("'batch': 10", "'batch': 'ten'", "r.json:6: train.batch", "an integer");
    assert_refused("'batch': 10", "'batch': 0", "r.json:6: train.batch", "0");
    assert_refused("'batch': 10", "'batch': 2.5", "r.json:6: train.batch", "2.5");
    assert_refused("'batch': 10", "'batch': [10]", "r.json:6: train.batch", "list");
    assert_refused("'lr': 0.1", "'lr': true", "train.lr", "number");
    assert_refused("'lr': 0.1", "'lr': -1", "train.lr", "-1");
    assert_refused("'sgd', 'momentum': 0.9", "'adam', 'beta1': 1", "train.optimizer.beta1",
                   "0.999999");
    assert_refused("'sgd'", "'adam'", "train.optimizer.momentum", "adam does not use momentum");
    assert_refused("'momentum': 0.9", "'beta1': 0.9", "train.optimizer.beta1", "adamw");
    assert_refused("'momentum': 0.9", "'momentum': 9", "r.json:7: train.optimizer.momentum", "1");
    assert_refused("'kind': 'step'", "'kind': 'stop'", "train.schedule.kind", "one_cycle");
    assert_refused("'task': 'classify'", "'task': 'classfy'", "r.json:3: task", "classify");
    assert_refused("'idx'", "'idy'", "data.format", "folder");
    assert_refused("'mean': 0.3, 'std': 0.3", "'mean': [0.3, 0.3], 'std': 0.3", "data.images",
                   "one a channel");
}

static void test_missing_and_contradicting(void **state)
{
    assert_refused("'epochs': 2", "'epochs': 2, 'steps': 10", "train", "either epochs or steps");
    assert_refused("'epochs': 2, ", "", "train", "either epochs or steps");
    assert_refused("'lr': 0.1,\n", "\n", "train", "lr");
    assert_refused("'task': 'classify',\n", "\n", "task", "r.json");
    assert_refused(", 'marks': [1, 1.5]", "", "train.schedule", "marks");
    assert_refused(TOY_MLP ",\n", "\n", "model", "r.json");
    assert_refused("'labels': 'a.y'", "'y': 'a.y'", "data.train", "labels");
    assert_fails(opened("[1, 2]", NULL), QN_EUSAGE, "task, data, model and train");
}

/* A second file where the format has one would be left unread, other keys unheard. */
static void test_keys_of_other_formats(void **state)
{
    assert_refused("'format': 'idx'", "'format': 'idx', 'window': 8", "r.json:4: data.window",
                   "format idx");
    assert_refused("'format': 'idx'", "'format': 'idx', 'target': 'y'", "r.json:4: data.target",
                   "format idx");
    static const char *const text =
        "{'task': 'classify', 'data': {'format': 'csv', 'train': 'a.csv',\n 'test': 'b.csv'}, "
        "'model': {'name': 'linear'}, 'train': {'epochs': 1, 'batch': 1, 'lr': 1}}";
    assert_fails(opened(text, NULL), QN_EUSAGE, "r.json:2: data.test");
    assert_contains(qn_error_last()->text, "train_fraction");
}

static void test_settings(void **state)
{
    QnRecipe *r;
    const char *const words[] = { "train.batch=20",      "train.optimizer=adam",
                                  "model.hidden=[5, 6]", "train.epochs=null",
                                  "train.steps=7",       "train.batch=30" };
    assert_ok(qn_recipe_open(toy_recipe("r.json", good), words, QN_COUNT(words), &r));
    assert_int_equal(r->batch, 30); /* the last one counts */
    assert_int_equal(r->epochs, 0);
    assert_int_equal(r->steps, 7);
    assert_string_equal(r->optimizer.name, "adam");
    assert_int_equal(qn_yaml_find(r->model, "hidden")->count, 2);
    qn_recipe_free(r);
    assert_fails(opened(good, "train.bach=3"), QN_EUSAGE, "did you mean 'batch'");
    assert_fails(opened(good, "train.batch=x"), QN_EUSAGE,
                 "--set train.batch: expected an integer");
    assert_fails(opened(good, "train.batch.x=3"), QN_EUSAGE, "train.batch");
    assert_fails(opened(good, "=3"), QN_EUSAGE, "=3");
    assert_fails(opened(good, "compile.recompute=1.5"), QN_EUSAGE, "compile.recompute");
    assert_fails(opened(good, "compile.recompute=-0.1"), QN_EUSAGE, "compile.recompute");
    assert_fails(opened(good, "compile.recompute=yes"), QN_EUSAGE, "compile.recompute");
}

/* The printed recipe, read from another folder, means the same. */
static void test_print_is_complete(void **state)
{
    QnRecipe *r, *again;
    char *text;
    const char *setting = "train.batch=20";
    assert_ok(qn_recipe_open(toy_recipe("r.json", good), &setting, 1, &r));
    assert_ok(qn_recipe_print(r, &text));
    assert_int_equal(mkdir(temp_path("elsewhere"), 0777), 0);
    const char *path = temp_file("elsewhere/r.json", text, strlen(text));
    assert_ok(qn_recipe_open(path, NULL, 0, &again));
    assert_int_equal(again->batch, 20);
    assert_string_equal(again->data.train.x, r->data.train.x);
    assert_string_equal(again->data.test.y, r->data.test.y);
    qn_free(text);
    qn_recipe_free(again);
    qn_recipe_free(r);
}

/* Messages of later stages lead back to the recipe too. */
static void test_session_errors_name_the_recipe(void **state)
{
    Toy t;
    toy_images("a", 40);
    toy_images("b", 20);
    const char *path = toy_recipe("r.json", good);
    const QnSessionOptions o = { .training = true };
    const char *bad = "train.optimizer.name=sdg";
    assert_fails(toy_open(&t, path, &bad, 1, &o), QN_EUSAGE, "train.optimizer");
    assert_contains(qn_error_last()->text, "adamw");
    bad = "train.batch=41";
    assert_fails(toy_open(&t, path, &bad, 1, &o), QN_EUSAGE, "train.batch is 41");
    bad = "model.name=mpl";
    assert_fails(toy_open(&t, path, &bad, 1, &o), QN_EUSAGE, "no model 'mpl'");
    bad = "model={layers: [{conv: {out: 4, kernel: 99, pad: 0}}]}";
#ifdef QN_HAVE_YAML
    assert_fails(toy_open(&t, path, &bad, 1, &o), QN_EUSAGE, "--set model: node 0_conv");
#endif
    bad = "data.test.images=a.x"; /* 40 images, 20 labels */
    assert_int_not_equal(toy_open(&t, path, &bad, 1, &o), QN_OK);
    assert_contains(qn_error_last()->text, "b.y");
}

static void test_layer_line(void **state)
{
    static const char *const text = "{'task': 'classify', " TOY_DATA ", 'model': {'layers': [\n"
                                    "  {'conv': 4},\n"
                                    "  {'conv': {'out': 8, 'kernel': 99, 'pad': 0}},\n"
                                    "  'flatten', {'linear': 'outputs'}]},\n"
                                    "'train': {'epochs': 1, 'batch': 10, 'lr': 0.1}}";
    Toy t;
    toy_images("a", 40);
    toy_images("b", 20);
    assert_fails(toy_open(&t, toy_recipe("r.json", text), NULL, 0, &(QnSessionOptions){ 0 }),
                 QN_EUSAGE, "r.json:3: model.layers");
    static const char *const short_text =
        "{'task': 'classify', " TOY_DATA ", 'model': {'layers': [\n"
        "  'flatten', {'linear': 3}]},\n"
        "'train': {'epochs': 1, 'batch': 10, 'lr': 0.1}}";
    assert_fails(toy_open(&t, toy_recipe("r.json", short_text), NULL, 0, &(QnSessionOptions){ 0 }),
                 QN_EUSAGE, "(N, 4)");
}
