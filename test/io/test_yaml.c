/* labels: io */
#include "test.h"

#include <math.h>

#include "base/mem.h"
#include "base/str.h"
#include "io/yaml.h"

#ifdef QN_HAVE_YAML
#define NEED_YAML() ((void)0)
#else
#define NEED_YAML() skip_because("built without libyaml")
#endif

static QnYamlDoc *parse(const char *text)
{
    QnYamlDoc *doc = NULL;
    assert_ok(qn_yaml_parse("r.yaml", text, strlen(text), &doc));
    return doc;
}

static void refuse(const char *text, const char *words)
{
    QnYamlDoc *doc;
    assert_fails(qn_yaml_parse("r.yaml", text, strlen(text), &doc), QN_EFORMAT, words);
}

/* JSON is YAML too, so this one runs in both builds. */
static const char recipe[] = "{\"model\": {\"name\": \"mlp\", \"units\": [64, 32]},\n"
                             " \"train\": {\"batch\": 32,\n"
                             "   \"rate\": 1e-3, \"shuffle\": true, \"note\": null,\n"
                             "   \"word\": \"12\"}}";

static void test_typed_reading(void **state)
{
    QnYamlDoc *doc = parse(recipe);
    QnYaml *root = qn_yaml_root(doc), *train = NULL, *list = NULL;
    int64_t batch = 0, units[4];
    double rate = 0;
    bool shuffle = false;
    const char *name = NULL, *note = "kept";
    int n = 0, choice = -1;
    static const char *const models[] = { "cnn", "mlp" };
    assert_ok(qn_yaml_map(root, "train", true, &train));
    assert_ok(qn_yaml_int(train, "batch", true, 1, INT64_MAX, &batch));
    assert_int_equal(batch, 32);
    assert_ok(qn_yaml_real(root, "train.rate", true, 0, INFINITY, &rate));
    assert_true(rate == 1e-3);
    assert_ok(qn_yaml_real(root, "train.batch", true, 0, INFINITY, &rate)); /* whole is a number */
    assert_true(rate == 32);
    assert_ok(qn_yaml_bool(train, "shuffle", true, &shuffle));
    assert_true(shuffle);
    assert_ok(qn_yaml_string(root, "model.name", true, &name));
    assert_string_equal(name, "mlp");
    assert_ok(qn_yaml_choice(root, "model.name", true, models, 2, &choice));
    assert_int_equal(choice, 1);
    assert_ok(qn_yaml_ints(root, "model.units", true, 1, 100, units, 4, &n));
    assert_int_equal(n, 2);
    assert_int_equal(units[1], 32);
    assert_ok(qn_yaml_ints(train, "batch", true, 1, 100, units, 4, &n)); /* one is a list of one */
    assert_int_equal(n, 1);
    assert_ok(qn_yaml_list(root, "model.units", true, &list));
    assert_int_equal(list->count, 2);
    assert_ok(qn_yaml_string(train, "note", false, &note)); /* null is as good as absent */
    assert_string_equal(note, "kept");
    assert_ok(qn_yaml_int(train, "absent", false, 1, 5, &batch));
    assert_int_equal(batch, 32);
    assert_null(qn_yaml_find(root, "model.name.deeper"));
    assert_null(qn_yaml_find(NULL, "x"));
    qn_yaml_free(doc);
}

static void test_complaints_name_place_and_expectation(void **state)
{
    QnYamlDoc *doc = parse(recipe);
    QnYaml *root = qn_yaml_root(doc), *map = NULL;
    int64_t i;
    double d;
    bool b;
    const char *s;
    int n;
    static const char *const models[] = { "cnn", "resnet" };
    assert_fails(qn_yaml_int(root, "train.rate", true, 1, INT64_MAX, &i), QN_EUSAGE,
                 "r.yaml:3: train.rate: expected an integer from 1, found '");
    assert_fails(qn_yaml_int(root, "train.batch", true, 1, 16, &i), QN_EUSAGE,
                 "r.yaml:2: train.batch: expected an integer from 1 to 16, found '32'");
    assert_fails(qn_yaml_int(root, "train.batch", true, INT64_MIN, 16, &i), QN_EUSAGE,
                 "expected an integer up to 16,");
    assert_fails(qn_yaml_int(root, "train.word", true, 1, 16, &i), QN_EUSAGE, "found '12'");
    assert_fails(qn_yaml_real(root, "train.rate", true, 0.5, 1, &d), QN_EUSAGE,
                 "expected a number from 0.5 to 1");
    assert_fails(qn_yaml_bool(root, "train.batch", true, &b), QN_EUSAGE, "expected true or false");
    assert_fails(qn_yaml_string(root, "model.units", true, &s), QN_EUSAGE,
                 "model.units: expected a text, found a list");
    assert_fails(qn_yaml_int(root, "train.epochs", true, 1, 5, &i), QN_EUSAGE,
                 "train.epochs is missing: expected an integer from 1 to 5");
    assert_fails(qn_yaml_int(root, "train.note", true, 1, 5, &i), QN_EUSAGE,
                 "r.yaml:3: train.note: has no value");
    assert_fails(qn_yaml_choice(root, "model.name", true, models, 2, &n), QN_EUSAGE,
                 "expected one of cnn, resnet, found 'mlp'");
    assert_fails(qn_yaml_map(root, "train.batch", true, &map), QN_EUSAGE, "expected a map");
    int64_t out[4];
    assert_fails(qn_yaml_ints(root, "model.units", true, 40, 100, out, 4, &n), QN_EUSAGE,
                 "model.units[1]: expected an integer from 40 to 100, found '32'");
    assert_fails(qn_yaml_ints(root, "model.units", true, 1, 100, out, 1, &n), QN_EUSAGE,
                 "at most 1 numbers, found 2");
    qn_yaml_free(doc);
}

static void test_unknown_keys_get_a_suggestion(void **state)
{
    static const char *const known[] = { "batch", "rate", "shuffle", "note", "word" };
    static const char *const other[] = { "bach", "rate", "shuffle", "note", "word" };
    static const char *const near[] = { "branch", "batches", "match", "watch", "word" };
    static const char *const far[] = { "epochs", "rate", "shuffle", "note", "word" };
    QnYamlDoc *doc = parse(recipe);
    QnYaml *train = qn_yaml_find(qn_yaml_root(doc), "train");
    assert_ok(qn_yaml_check_keys(train, known, 5));
    assert_ok(qn_yaml_check_keys(NULL, known, 5));
    assert_fails(qn_yaml_check_keys(train, other, 5), QN_EUSAGE,
                 "r.yaml:2: train.batch: unknown key; did you mean 'bach'?");
    assert_fails(qn_yaml_check_keys(train, near, 5), QN_EUSAGE, "did you mean 'match'?");
    assert_fails(qn_yaml_check_keys(train, far, 5), QN_EUSAGE, "known here: epochs, rate");
    qn_yaml_free(doc);
}

static void test_numbers_as_written(void **state)
{
    NEED_YAML();
    QnYamlDoc *doc = parse("a: 1_000\nb: -7\nc: 9223372036854775808\nd: 1e3\ne: .5\nf: 0x10\n"
                           "g: .inf\nh: 1__0\ni: '5'\nj: -9223372036854775808\nk: Yes\n");
    QnYaml *r = qn_yaml_root(doc);
    int64_t i = 0;
    double d = 0;
    bool b = false;
    assert_ok(qn_yaml_int(r, "a", true, 0, 5000, &i));
    assert_int_equal(i, 1000);
    assert_ok(qn_yaml_int(r, "b", true, -9, 0, &i));
    assert_int_equal(i, -7);
    assert_ok(qn_yaml_int(r, "j", true, INT64_MIN, 0, &i));
    assert_true(i == INT64_MIN);
    const char *const wrong[] = { "c", "d", "e", "f", "h", "i" };
    for (int k = 0; k < 6; k++)
        assert_fails(qn_yaml_int(r, wrong[k], true, INT64_MIN, INT64_MAX, &i), QN_EUSAGE,
                     "expected an integer, found");
    assert_ok(qn_yaml_real(r, "d", true, -INFINITY, INFINITY, &d));
    assert_true(d == 1000);
    assert_ok(qn_yaml_real(r, "e", true, -INFINITY, INFINITY, &d));
    assert_true(d == 0.5);
    assert_fails(qn_yaml_real(r, "f", true, -INFINITY, INFINITY, &d), QN_EUSAGE, "a number,");
    assert_fails(qn_yaml_real(r, "g", true, -INFINITY, INFINITY, &d), QN_EUSAGE, "a number,");
    assert_ok(qn_yaml_bool(r, "k", true, &b));
    assert_true(b);
    qn_yaml_free(doc);
}

/* Without a --set of the user's own it is the file that is named. */
static void test_set_in_what_is_no_map(void **state)
{
    NEED_YAML();
    QnYamlDoc *doc = parse("hi\n");
    assert_fails(qn_yaml_set(doc, "train.batch=1"), QN_EUSAGE, "r.yaml: expected a map");
    qn_yaml_free(doc);
}

static void test_byte_order_mark(void **state)
{
    NEED_YAML();
    QnYamlDoc *doc = parse("\xef\xbb\xbf"
                           "batch: 32\n"); /* as Windows' editors write */
    int64_t batch = 0;
    assert_ok(qn_yaml_int(qn_yaml_root(doc), "batch", true, 1, 100, &batch));
    assert_int_equal(batch, 32);
    qn_yaml_free(doc);
    refuse("\xef\xbb\xbf", "empty");
}

static void test_refused_documents(void **state)
{
    NEED_YAML();
    refuse("", "r.yaml: the file is empty");
    refuse("a: 1\nb: 2\na: 3\n", "r.yaml:3: key 'a' was already given in line 1");
    refuse("a: {x: 1, x: 2}\n", "key 'x' was already given");
    refuse("a: 1\n---\nb: 2\n", "a second document");
    refuse("a: *b\n", "alias '*b' has no anchor before it");
    refuse("a: &x [1, *x]\n", "contains itself");
    refuse("a: &x {b: 1}\nc:\n  <<: *x\n", "r.yaml:3:3: merge keys");
    refuse("[1, 2]: 3\n", "a key must be a plain word");
    refuse("a: !python/object x\n", "tag '!python/object' is not allowed");
    refuse("a: [1, 2\nb: 3\n", "r.yaml:2:");
    refuse("a:\n\t- 1\n", "r.yaml:2:");
    refuse("a: \"\\0\"\n", "a zero byte");
    refuse("a: \xff\xfe\n", "not UTF-8");
    char deep[300];
    memset(deep, '[', 100);
    memset(deep + 100, ']', 100);
    deep[200] = 0;
    refuse(deep, "nested deeper than 64 levels");
    refuse("a: &a [x,x,x,x,x,x,x,x,x,x]\n"
           "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
           "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
           "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
           "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
           "aliases unfold to more than 10000");
    QnStr many = { 0 };
    qn_str_add(&many, "a: [");
    qn_str_add_repeat(&many, "1,", QN_YAML_NODES_MAX + 5);
    qn_str_add(&many, "1]");
    refuse(qn_str_text(&many), "more than 100000 values");
    qn_str_fini(&many);
}

static void test_aliases_are_copies(void **state)
{
    NEED_YAML();
    QnYamlDoc *doc = parse("a: &x {n: 1}\nb: *x\n");
    assert_ok(qn_yaml_set(doc, "b.n=5"));
    int64_t i = 0;
    assert_ok(qn_yaml_int(qn_yaml_root(doc), "a.n", true, 0, 9, &i));
    assert_int_equal(i, 1);
    assert_ok(qn_yaml_int(qn_yaml_root(doc), "b.n", true, 0, 9, &i));
    assert_int_equal(i, 5);
    qn_yaml_free(doc);
}

static void test_set(void **state)
{
    QnYamlDoc *doc = parse(recipe);
    QnYaml *root = qn_yaml_root(doc);
    int64_t i = 0, units[4];
    int n;
    const char *s;
    assert_ok(qn_yaml_set(doc, "train.batch=64"));
    assert_ok(qn_yaml_int(root, "train.batch", true, 1, 99, &i));
    assert_int_equal(i, 64);
    assert_ok(qn_yaml_set(doc, "model.units=[8, 9, 10]"));
    assert_ok(qn_yaml_set(doc, "model.units.1=77"));
    assert_ok(qn_yaml_ints(root, "model.units", true, 1, 99, units, 4, &n));
    assert_int_equal(n, 3);
    assert_int_equal(units[1], 77);
    assert_ok(qn_yaml_set(doc, "new.deep.key=word"));
    assert_ok(qn_yaml_string(root, "new.deep.key", true, &s));
    assert_string_equal(s, "word");
    assert_ok(qn_yaml_set(doc, "train.note.inner=3")); /* null gives way to a map */
    assert_ok(qn_yaml_int(root, "train.note.inner", true, 1, 9, &i));
    assert_ok(qn_yaml_set(doc, "train.rate=abc"));
    double d;
    assert_fails(qn_yaml_real(root, "train.rate", true, 0, 1, &d), QN_EUSAGE,
                 "--set train.rate: expected a number from 0 to 1, found 'abc'");
    assert_ok(qn_yaml_set(doc, "train.rate="));
    assert_null(qn_yaml_find(root, "train.rate"));
    assert_fails(qn_yaml_set(doc, "train.batch.x=1"), QN_EUSAGE, "batch is a value");
    assert_fails(qn_yaml_set(doc, "model.units.3=1"), QN_EUSAGE, "'3' is not one of the 3 items");
    assert_fails(qn_yaml_set(doc, "model.units.x=1"), QN_EUSAGE, "'x' is not one of");
    assert_fails(qn_yaml_set(doc, "word"), QN_EUSAGE, "expected KEY=VALUE");
    assert_fails(qn_yaml_set(doc, "a..b=1"), QN_EUSAGE, "an empty key");
    assert_fails(qn_yaml_set(doc, "a={b"), QN_EFORMAT, "--set a");
    QnStr path = { 0 };
    qn_str_add_repeat(&path, "a.", 63);
    qn_str_add(&path, "a=1");
    assert_fails(qn_yaml_set(doc, qn_str_text(&path)), QN_EUSAGE, "nested deeper");
    qn_str_fini(&path);
    qn_yaml_free(doc);
}

/* Printed, read and printed again: the same text; and the same JSON. */
static void round_trip(const char *text)
{
    QnYamlDoc *doc = parse(text);
    char *yaml, *yaml2, *json, *json2, *json3;
    assert_ok(qn_yaml_print(qn_yaml_root(doc), &yaml));
    assert_ok(qn_yaml_print_json(qn_yaml_root(doc), &json));
    QnYamlDoc *again = parse(yaml), *from_json = parse(json);
    assert_ok(qn_yaml_print(qn_yaml_root(again), &yaml2));
    assert_ok(qn_yaml_print_json(qn_yaml_root(again), &json2));
    assert_ok(qn_yaml_print_json(qn_yaml_root(from_json), &json3));
    assert_string_equal(yaml, yaml2);
    assert_string_equal(json, json2);
    assert_string_equal(json, json3);
    qn_free(yaml);
    qn_free(yaml2);
    qn_free(json);
    qn_free(json2);
    qn_free(json3);
    qn_yaml_free(doc);
    qn_yaml_free(again);
    qn_yaml_free(from_json);
}

static void test_printing(void **state)
{
    NEED_YAML();
    QnYamlDoc *doc = parse("a: 1\nb: {c: [1, x], d: 'true'}\ne: []\nf:\n  - g: 2\n    h: ~\n");
    char *text;
    assert_ok(qn_yaml_print(qn_yaml_root(doc), &text));
    assert_string_equal(text, "a: 1\nb:\n  c: [1, x]\n  d: \"true\"\ne: []\nf:\n  -\n    g: 2\n"
                              "    h: null\n");
    qn_free(text);
    assert_ok(qn_yaml_print_json(qn_yaml_root(doc), &text));
    assert_string_equal(text, "{\"a\": 1, \"b\": {\"c\": [1, \"x\"], \"d\": \"true\"}, \"e\": [], "
                              "\"f\": [{\"g\": 2, \"h\": null}]}");
    qn_free(text);
    qn_yaml_free(doc);
    round_trip(recipe);
    round_trip("a: 'x: y'\nb: \"line\\nbreak\\ttab \\\"q\\\" \\\\\"\n'c d': '#no'\ne: '- x'\n");
    round_trip(
        "- [[1, 2], [3]]\n- {}\n- {a: {}}\n- ''\n- '1'\n- \xc3\xa9t\xc3\xa9\n- '\xc2\x85'\n");
    round_trip("\"a \\x80 \\u2028 \\N \\_ \\uFEFF \\e \\x7f \\U0001f408\"\n");
    round_trip("just a word");
    round_trip("[1, 2, three]");
    round_trip("a: '...'\nb: '---'\nc: '-'\nd: '?'\ne: '~'\nf: 'null'\ng: '1e5'\nh: +5\ni: .5\n");
}
