/* labels: io */
#include "temp.h"

#include "base/mem.h"
#include "base/str.h"
#include "io/text.h"

static void test_vocabulary_of_characters(void **state)
{
    const char *text = "na\xc3\xafve \xe2\x82\xac\xf0\x9f\x90\x88 na"; /* ï, €, a cat */
    QnVocab *v, *bytes;
    assert_ok(qn_vocab_build("t", QN_VOCAB_CHARS, text, strlen(text), &v));
    assert_int_equal(qn_vocab_count(v), 8);
    assert_int_equal(qn_vocab_find(v, ' '), 0);
    assert_int_equal(qn_vocab_find(v, 'a'), 1);
    assert_int_equal(qn_vocab_find(v, 0x20ac), 6);
    assert_int_equal(qn_vocab_find(v, 0x1f408), 7);
    assert_int_equal(qn_vocab_find(v, 'b'), -1);
    int64_t *ids, n;
    char *back;
    assert_ok(qn_vocab_encode(v, "t", text, strlen(text), &ids, &n));
    assert_int_equal(n, 11);
    assert_int_equal(ids[2], 5); /* ï sorts after v */
    assert_ok(qn_vocab_decode(v, ids, n, &back));
    assert_string_equal(back, text);
    qn_free(ids);
    qn_free(back);
    assert_fails(qn_vocab_encode(v, "p", "nab", 3, &ids, &n), QN_EARG,
                 "p: byte 2: character U+0062 is not among the 8");
    const int64_t wrong[] = { 8 };
    assert_fails(qn_vocab_decode(v, wrong, 1, &back), QN_EARG, "token 8 of a vocabulary of 8");
    assert_ok(qn_vocab_build("t", QN_VOCAB_BYTES, text, strlen(text), &bytes));
    assert_int_equal(qn_vocab_count(bytes), 14); /* \x90 … are tokens of their own */
    assert_ok(qn_vocab_encode(bytes, "t", text, strlen(text), &ids, &n));
    assert_int_equal(n, strlen(text));
    assert_ok(qn_vocab_decode(bytes, ids, n, &back));
    assert_string_equal(back, text);
    qn_free(ids);
    qn_free(back);
    qn_vocab_free(bytes);
    qn_vocab_free(v);
}

static void test_text_that_is_not_utf8(void **state)
{
    static const char *const bad[] = {
        "ab\xff",         "ab\xc3",         "ab\xc0\x80",
        "ab\xe0\x80\x80", "ab\xed\xa0\x80", "ab\xf4\x90\x80\x80",
        "ab\x80",         "ab\xc3(",        "ab\xf8\x88\x80\x80\x80"
    };
    QnVocab *v;
    for (int i = 0; i < QN_COUNT(bad); i++)
        assert_fails(qn_vocab_build("t", QN_VOCAB_CHARS, bad[i], strlen(bad[i]), &v), QN_EFORMAT,
                     "t: byte 2: not UTF-8");
    assert_fails(qn_vocab_build("t", QN_VOCAB_BYTES, "", 0, &v), QN_EFORMAT, "empty");
}

static void test_vocabulary_as_json(void **state)
{
    const char *text = "hello w\xc3\xb6rld", *path = temp_path("vocab.json");
    QnVocab *v, *w;
    assert_ok(qn_vocab_build("t", QN_VOCAB_CHARS, text, strlen(text), &v));
    assert_ok(qn_vocab_save(v, path));
    assert_ok(qn_vocab_load(path, &w));
    assert_int_equal(qn_vocab_count(w), qn_vocab_count(v));
    assert_int_equal(qn_vocab_kind(w), QN_VOCAB_CHARS);
    for (uint32_t c = 0; c < 300; c++)
        assert_int_equal(qn_vocab_find(v, c), qn_vocab_find(w, c));
    qn_vocab_free(v);
    qn_vocab_free(w);
    static const char *const bad[] = { "[]",
                                       "{\"kind\":\"chars\"}",
                                       "{\"kind\":\"words\",\"characters\":[1]}",
                                       "{\"kind\":\"chars\",\"characters\":[]}",
                                       "{\"kind\":\"chars\",\"characters\":[2,1]}",
                                       "{\"kind\":\"chars\",\"characters\":[1,1]}",
                                       "{\"kind\":\"chars\",\"characters\":[-1]}",
                                       "{\"kind\":\"chars\",\"characters\":[1.5]}",
                                       "{\"kind\":\"bytes\",\"characters\":[256]}",
                                       "{\"kind\":\"chars\",\"characters\":[55296]}",
                                       "{\"kind\":\"chars\",\"characters\":[1114112]}" };
    for (int i = 0; i < QN_COUNT(bad); i++)
        assert_fails(qn_vocab_parse("v.json", bad[i], strlen(bad[i]), &v), QN_EFORMAT,
                     "v.json: vocabulary: ");
}

static void test_windows(void **state)
{
    QnStr text = { 0 };
    for (int i = 0; i < 1000; i++)
        qn_str_printf(&text, "%c", 'a' + i * i % 17);
    QnTextOptions o = { .path = "t", .window = 8 };
    QnDataset *train, *valid;
    QnVocab *v;
    assert_ok(qn_text_parse(&o, text.s, text.n, &train, &valid, &v));
    assert_int_equal(qn_text_token_count(train), 900);
    assert_int_equal(qn_text_token_count(valid), 100);
    assert_true(qn_text_bytes_per_token(train) == 1.0);
    assert_int_equal(qn_dataset_count(train), 112); /* 899 / 8 */
    assert_int_equal(qn_dataset_count(valid), 12);
    const QnSampleSpec *s = qn_dataset_spec(train);
    assert_true(s->x_kind == QN_FEATURE_TOKENS && s->y_kind == QN_LABEL_TOKENS);
    assert_int_equal(s->class_count, qn_vocab_count(v));
    assert_ok(qn_dataset_validate_labels(train, true));
    int64_t x[8], y[8], z[8];
    char *word;
    for (int64_t i = 0; i < 12; i++) { /* validation: one after the other */
        assert_ok(qn_dataset_get(valid, i, (uint64_t)i, 5, x, y));
        assert_ok(qn_vocab_decode(v, x, 8, &word));
        assert_memory_equal(word, text.s + 900 + 8 * i, 8);
        qn_free(word);
        assert_ok(qn_vocab_decode(v, y, 8, &word));
        assert_memory_equal(word, text.s + 901 + 8 * i, 8);
        qn_free(word);
    }
    int64_t first_half = 0, differ = 0;
    for (int64_t i = 0; i < 112; i++) { /* training: anywhere in its part, x and y one apart */
        assert_ok(qn_dataset_get(train, i, 0, 5, x, y));
        assert_memory_equal(x + 1, y, 7 * sizeof *x);
        assert_ok(qn_vocab_decode(v, x, 8, &word));
        const char *at = strstr(text.s, word); /* period 17, so this is only about its letters */
        assert_true(at && at - text.s < 900);
        qn_free(word);
        first_half += x[0] < qn_vocab_count(v) / 2;
        assert_ok(qn_dataset_get(train, i, 0, 5, z, y));
        assert_memory_equal(x, z, sizeof x); /* the same draw gives the same window */
        assert_ok(qn_dataset_get(train, i, 1, 5, z, y));
        differ += memcmp(x, z, sizeof x) != 0;
    }
    assert_true(first_half > 20 && first_half < 100 && differ > 80);
    qn_vocab_free(v);
    qn_dataset_free(train);
    qn_dataset_free(valid);
    qn_str_fini(&text);
}

static void test_ends_of_the_random_range_are_reached(void **state)
{
    QnTextOptions o = { .path = "t", .window = 3, .train_fraction = 1 };
    QnDataset *train, *valid;
    QnVocab *v;
    assert_ok(qn_text_parse(&o, "abcdefg", 7, &train, &valid, &v));
    assert_null(valid);
    int seen[7] = { 0 };
    for (uint64_t e = 0; e < 200; e++) {
        int64_t x[3], y[3];
        assert_ok(qn_dataset_get(train, 0, e, 1, x, y));
        seen[x[0]]++;
        assert_int_equal(y[2], x[0] + 3);
    }
    for (int i = 0; i < 4; i++) /* starts 0 … 3: the last y is the last letter */
        assert_in_range(seen[i], 25, 80);
    assert_int_equal(seen[4] + seen[5] + seen[6], 0);
    qn_dataset_free(train);
    qn_vocab_free(v);
}

static void test_options_and_short_texts(void **state)
{
    QnDataset *a, *b;
    QnVocab *v, *own;
    QnTextOptions o = { .path = "t.txt", .window = 9 };
    assert_fails(qn_text_parse(&o, "0123456789", 10, &a, &b, &v), QN_EARG,
                 "t.txt: the training part has 9 tokens, a window needs 10");
    o.window = 5;
    assert_fails(qn_text_parse(&o, "0123456789", 10, &a, &b, &v), QN_EARG,
                 "the validation part has 1 tokens");
    o.window = 0;
    assert_fails(qn_text_parse(&o, "0123456789", 10, &a, &b, &v), QN_EARG, "a window of 0");
    o = (QnTextOptions){ .path = "t.txt", .window = 2, .train_fraction = 0.5 };
    assert_ok(qn_vocab_build("v", QN_VOCAB_BYTES, "abc", 3, &own));
    o.vocab = own;
    assert_fails(qn_text_parse(&o, "abcabcxabc", 10, &a, &b, &v), QN_EARG, "byte 6");
    assert_ok(qn_text_parse(&o, "abaabbabab", 10, &a, &b, &v));
    assert_int_equal(qn_vocab_count(v), 3); /* that of the options, not of the text */
    qn_vocab_free(own);
    qn_vocab_free(v);
    qn_dataset_free(a);
    qn_dataset_free(b);
}

static void test_tinyshakespeare(void **state)
{
    const char *path = "../shared/data/tinyshakespeare.txt";
    if (access(path, R_OK))
        skip_because("no %s", path);
    QnDataset *train, *valid;
    QnVocab *v;
    assert_ok(qn_text_open(&(QnTextOptions){ .path = path, .window = 64 }, &train, &valid, &v));
    assert_int_equal(qn_vocab_count(v), 65);
    assert_int_equal(qn_text_token_count(train), 1003854);
    assert_int_equal(qn_text_token_count(valid), 111540);
    qn_vocab_free(v);
    qn_dataset_free(train);
    qn_dataset_free(valid);
}
