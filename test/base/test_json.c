#include "test.h"

#include "base/fault.h"
#include "base/json.h"
#include "base/rng.h"

#include <locale.h>
#include <math.h>

static QnArena *arena;

static int setup(void **state)
{
    arena = qn_arena_new();
    return arena ? 0 : -1;
}

static int teardown(void **state)
{
    qn_arena_free(arena);
    return 0;
}

static const QnJson *parse(const char *text)
{
    const QnJson *out = NULL;
    assert_ok(qn_json_parse(arena, text, strlen(text), &out));
    return out;
}

static void test_tree(void **state)
{
    const QnJson *root =
        parse(" {\"a\": [1, -2.5e3, true, null, \"x\\ty\"], \"b\": {}, \"\": []}\n");
    assert_int_equal(root->type, QN_JSON_OBJECT);
    assert_int_equal(root->n, 3);
    const QnJson *a = qn_json_find(root, "a");
    assert_int_equal(a->n, 5);
    assert_int_equal(a->items[0].integer, 1);
    assert_true(a->items[1].number == -2500);
    assert_true(a->items[2].boolean);
    assert_int_equal(a->items[3].type, QN_JSON_NULL);
    assert_string_equal(a->items[4].string, "x\ty");
    assert_int_equal(a->items[4].n, 3);
    assert_int_equal(a->offset, 7);
    assert_int_equal(a->items[1].offset, 11);
    assert_int_equal(qn_json_find(root, "")->type, QN_JSON_ARRAY);
    assert_null(qn_json_find(root, "c"));
    assert_null(qn_json_find(a, "a"));
}

static void test_numbers_are_exact(void **state)
{
    assert_true(parse("9223372036854775807")->integer == INT64_MAX);
    assert_true(parse("-9223372036854775808")->integer == INT64_MIN);
    assert_int_equal(parse("9223372036854775808")->type, QN_JSON_DOUBLE);
    assert_true(parse("9223372036854775808")->number == 9223372036854775808.0);
    assert_int_equal(parse("9007199254740993")->type, QN_JSON_INT);
    assert_true(parse("9007199254740993")->integer == 9007199254740993);
    assert_true(signbit(parse("-0")->number) && parse("-0")->number == 0);
    assert_int_equal(parse("0")->type, QN_JSON_INT);
    assert_true(parse("1e0")->type == QN_JSON_DOUBLE && parse("1e0")->number == 1);
    assert_true(parse("0.1")->number == 0.1);
    assert_true(parse("5e-324")->number == 5e-324);
    assert_true(parse("1E+2")->number == 100);
    assert_true(qn_json_double(parse("3")) == 3.0);
}

static void test_strings(void **state)
{
    const QnJson *s =
        parse("\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\u0000\\/\\\"\\\\\\b\\f\\n\\r\"");
    assert_int_equal(s->n, 1 + 2 + 3 + 4 + 1 + 7);
    assert_memory_equal(s->string, "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\0/\"\\\b\f\n\r", 18);
    assert_string_equal(parse("\"\xc3\xa9\"")->string, "\xc3\xa9");
}

/* Each with the byte offset that the message must name. */
static const struct {
    const char *text;
    int offset;
    const char *words;
} refused[] = {
    { "", 0, "a value is expected, not the end" },
    { "  ", 2, "a value is expected" },
    { "nul", 0, "unknown word" },
    { "True", 0, "a value is expected, not 'T'" },
    { "[1,]", 3, "a value is expected, not ']'" },
    { "[1 2]", 3, "',' or ']' is expected, not '2'" },
    { "[", 1, "a value is expected" },
    { "{\"a\" 1}", 5, "':' is expected" },
    { "{a: 1}", 1, "a key in quotes" },
    { "{\"a\": 1,}", 8, "a key in quotes" },
    { "{\"a\": 1, \"a\": 2}", 14, "the key \"a\" comes twice" },
    { "{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0,\"i\":0,\"\\u0062\":7}", 64,
      "the key \"b\" comes twice" },
    { "01", 1, "only one value" },
    { "1 2", 2, "only one value" },
    { "-", 1, "a digit is expected" },
    { "+1", 0, "a value is expected" },
    { ".5", 0, "a value is expected" },
    { "1.", 2, "after the point" },
    { "1e", 2, "in the exponent" },
    { "1e+", 3, "in the exponent" },
    { "0x10", 1, "only one value" },
    { "NaN", 0, "a value is expected" },
    { "Infinity", 0, "a value is expected" },
    { "1e999", 5, "too large" },
    { "\"abc", 4, "closing quote" },
    { "\"abc\\", 5, "closing quote" },
    { "\"a\nb\"", 2, "control character 0x0a" },
    { "\"\\x\"", 2, "no escape" },
    { "\"\\u12g4\"", 5, "four hexadecimal digits" },
    { "\"\\ud800\"", 7, "second half" },
    { "\"\\ud800\\u0041\"", 13, "second half" },
    { "\"\\udc00\"", 7, "first half" },
    { "\"\xff\"", 1, "invalid UTF-8" },
    { "\"\xc0\x80\"", 1, "invalid UTF-8" },
    { "\"\xed\xa0\x80\"", 1, "invalid UTF-8" },
    { "\"\xf4\x90\x80\x80\"", 1, "invalid UTF-8" },
    { "\"\xe2\x82\"", 1, "invalid UTF-8" },
    { "/* c */ 1", 0, "a value is expected, not '/'" },
    { "'a'", 0, "a value is expected" },
    { "\xef\xbb\xbf{}", 0, "byte 0xef" },
};

static void test_what_is_refused_and_where(void **state)
{
    for (int i = 0; i < QN_COUNT(refused); i++) {
        char place[64];
        const QnJson *out = NULL;
        snprintf(place, sizeof place, "JSON, byte %d: ", refused[i].offset);
        print_message("%s\n", refused[i].text);
        assert_int_equal(qn_json_parse(arena, refused[i].text, strlen(refused[i].text), &out),
                         QN_EFORMAT);
        assert_contains(qn_error_last()->text, place);
        assert_contains(qn_error_last()->text, refused[i].words);
        assert_null(out);
    }
}

static void test_depth_and_length_limits(void **state)
{
    char text[1000] = { 0 };
    const QnJson *out;
    memset(text, '[', QN_JSON_DEPTH);
    memset(text + QN_JSON_DEPTH, ']', QN_JSON_DEPTH);
    assert_ok(qn_json_parse(arena, text, 2 * QN_JSON_DEPTH, &out));
    memset(text, '[', QN_JSON_DEPTH + 1);
    assert_fails(qn_json_parse(arena, text, sizeof text, &out), QN_EFORMAT,
                 "nested deeper than 64");
    memset(text, '1', sizeof text);
    assert_fails(qn_json_parse(arena, text, sizeof text, &out), QN_EFORMAT, "1000 characters");
}

/* Cut after each byte: always an error, never a read past the end (a sanitizer would tell). */
static void test_every_prefix_is_refused(void **state)
{
    static const char text[] =
        "{\"a\": [1.5e3, true, \"\\u20ac\\ud83d\\ude00 \xc3\xa9\", {\"b\": null}]}";
    for (size_t n = 0; n + 1 < sizeof text; n++) {
        char *copy = malloc(n ? n : 1);
        const QnJson *out;
        memcpy(copy, text, n);
        assert_int_equal(qn_json_parse(arena, copy, n, &out), QN_EFORMAT);
        free(copy);
    }
}

static void test_need_says_what_it_expected(void **state)
{
    const QnJson *root = parse("{\"lr\": 1, \"name\": \"x\"}"), *out;
    assert_ok(qn_json_need(root, "lr", QN_JSON_DOUBLE, &out));
    assert_true(qn_json_double(out) == 1);
    assert_fails(qn_json_need(root, "name", QN_JSON_INT, &out), QN_EFORMAT,
                 "byte 18: \"name\" is a string, expected a whole number");
    assert_fails(qn_json_need(root, "seed", QN_JSON_INT, &out), QN_EFORMAT,
                 "the key \"seed\" is missing");
}

static void test_many_keys(void **state)
{
    QnStr text = { 0 };
    enum { N = 20000 };
    qn_str_add(&text, "{");
    for (int i = 0; i < N; i++)
        qn_str_printf(&text, "%s\"layer.%d.weight\": %d", i ? "," : "", i, i);
    QnStr twice = { 0 };
    qn_str_printf(&twice, "%s, \"layer.777.weight\": 0}", qn_str_text(&text));
    qn_str_add(&text, "}");
    const QnJson *root = parse(qn_str_text(&text)), *out;
    assert_int_equal(root->n, N);
    assert_int_equal(qn_json_find(root, "layer.19999.weight")->integer, 19999);
    assert_fails(qn_json_parse(arena, twice.s, twice.n, &out), QN_EFORMAT, "layer.777.weight");
    qn_str_fini(&text);
    qn_str_fini(&twice);
}

static void test_every_failed_allocation_is_clean(void **state)
{
    static const char text[] = "{\"a\": [1, 2, 3], \"b\": \"x\", \"c\":0,\"d\":0,\"e\":0,\"f\":0,"
                               "\"g\":0,\"h\":0,\"i\":0}";
    int failed = 0;
    for (int n = 1;; n++) {
        QnArena *own = qn_arena_new();
        const QnJson *out = NULL;
        qn_fault_arm(n);
        QnStatus st = qn_json_parse(own, text, sizeof text - 1, &out);
        qn_fault_arm(0);
        qn_arena_free(own);
        if (st == QN_OK)
            break;
        assert_int_equal(st, QN_ENOMEM);
        failed++;
    }
    assert_in_range(failed, 3, 20);
}

static void test_writer(void **state)
{
    QnStr out = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &out, 0);
    qn_json_open_object(&w);
    qn_json_put_int(&w, "n", INT64_MIN);
    qn_json_put_double(&w, "x", 0.1);
    qn_json_put_double(&w, "one", 1);
    qn_json_put_double(&w, "nan", NAN);
    qn_json_put_bool(&w, "yes", true);
    qn_json_put_string(&w, "s\"\\", "a\tb\x01\xc3\xa9\xff/");
    qn_json_key(&w, "list");
    qn_json_open_array(&w);
    qn_json_add_float(&w, 0.1f);
    qn_json_add_null(&w);
    qn_json_open_array(&w);
    qn_json_close(&w);
    qn_json_close(&w);
    qn_json_close(&w);
    assert_ok(qn_json_end(&w));
    assert_string_equal(qn_str_text(&out),
                        "{\"n\": -9223372036854775808, \"x\": 0.1, \"one\": 1.0, \"nan\": null, "
                        "\"yes\": true, \"s\\\"\\\\\": \"a\\u0009b\\u0001\xc3\xa9\xef\xbf\xbd/\", "
                        "\"list\": [0.1, null, []]}");
    parse(qn_str_text(&out));
    qn_str_clear(&out);
    qn_json_begin(&w, &out, 2);
    qn_json_open_object(&w);
    qn_json_put_int(&w, "a", 1);
    qn_json_put_int(&w, "b", 2);
    qn_json_close(&w);
    assert_ok(qn_json_end(&w));
    assert_string_equal(qn_str_text(&out), "{\n  \"a\": 1,\n  \"b\": 2\n}");
    qn_str_fini(&out);
}

static void test_writer_refuses_misuse(void **state)
{
    QnStr out = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &out, 0);
    qn_json_open_object(&w);
    qn_json_add_int(&w, 1);
    assert_fails(qn_json_end(&w), QN_EINTERNAL, "a value without its key");
    qn_json_begin(&w, &out, 0);
    qn_json_add_int(&w, 1);
    qn_json_add_int(&w, 2);
    assert_fails(qn_json_end(&w), QN_EINTERNAL, "a second value");
    qn_json_begin(&w, &out, 0);
    qn_json_open_array(&w);
    assert_fails(qn_json_end(&w), QN_EINTERNAL, "not closed");
    qn_json_begin(&w, &out, 0);
    qn_json_open_array(&w);
    qn_json_key(&w, "k");
    assert_fails(qn_json_end(&w), QN_EINTERNAL, "a key outside");
    qn_json_begin(&w, &out, 0);
    qn_json_close(&w);
    assert_fails(qn_json_end(&w), QN_EINTERNAL, "nothing to close");
    qn_str_fini(&out);
}

/* Random bit patterns survive printing and parsing, in any locale. */
static void test_doubles_round_trip(void **state)
{
    QnRng rng;
    QnStr out = { 0 };
    QnJsonWriter w;
    qn_rng_init(&rng, 1, 1);
    bool comma = setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = qn_rng_u64(&rng);
        double x;
        memcpy(&x, &bits, sizeof x);
        if (!isfinite(x))
            continue;
        float f = (float)x;
        qn_str_clear(&out);
        qn_json_begin(&w, &out, 0);
        qn_json_open_array(&w);
        qn_json_add_double(&w, x);
        qn_json_add_float(&w, isfinite(f) ? f : 1);
        qn_json_close(&w);
        assert_ok(qn_json_end(&w));
        const QnJson *back = parse(qn_str_text(&out));
        assert_true(qn_json_double(&back->items[0]) == x);
        assert_int_equal(back->items[0].type, QN_JSON_DOUBLE);
        if (isfinite(f))
            assert_true((float)qn_json_double(&back->items[1]) == f);
    }
    if (!comma)
        print_message("the locale de_DE.UTF-8 is not installed: tested with points only\n");
    setlocale(LC_NUMERIC, "C");
    qn_str_fini(&out);
}
