/* What ONNX's own cases leave out: integers beyond doubles, old opsets, empty tensors, strings, and
 * nodes that are wrong. */
#include "one_node.h"

#define BIG (INT64_C(1) << 60)

static void run(One *c, const char *op, int64_t opset, const QnOnnxAttr *attr, int n_attr,
                const QnTensor *in, int n_in, int n_out)
{
    if (one_run(c, op, opset, attr, n_attr, in, n_in, n_out) != QN_OK)
        fail_msg("%s-%d: %s", op, (int)opset, qn_error_last()->text);
}

static void test_integers_beyond_doubles(void **state)
{
    One c;
    one_open(&c);
    const QnTensor u = TENSOR(U64, QN_SHAPE(3), uint64_t, UINT64_MAX - 1, UINT64_MAX, 7);
    run(&c, "Max", 13, NULL, 0, (QnTensor[]){ u, SCALAR(U64, uint64_t, UINT64_MAX - 1) }, 2, 1);
    one_want(&c, 0, TENSOR(U64, QN_SHAPE(3), uint64_t, UINT64_MAX - 1, UINT64_MAX, UINT64_MAX - 1));
    run(&c, "Clip", 13, NULL, 0, (QnTensor[]){ u, NO_INPUT, SCALAR(U64, uint64_t, UINT64_MAX - 1) },
        3, 1);
    one_want(&c, 0, TENSOR(U64, QN_SHAPE(3), uint64_t, UINT64_MAX - 1, UINT64_MAX - 1, 7));
    const QnTensor x = TENSOR(I64, QN_SHAPE(3), int64_t, BIG, BIG + 2, BIG + 1);
    run(&c, "ArgMax", 13, NULL, 0, &x, 1, 1);
    one_want(&c, 0, TENSOR(I64, QN_SHAPE(1), int64_t, 1));
    run(&c, "TopK", 11, NULL, 0, (QnTensor[]){ x, TENSOR(I64, QN_SHAPE(1), int64_t, 2) }, 2, 2);
    one_want(&c, 0, TENSOR(I64, QN_SHAPE(2), int64_t, BIG + 2, BIG + 1));
    one_want(&c, 1, TENSOR(I64, QN_SHAPE(2), int64_t, 1, 2));
    run(&c, "ReduceL1", 13, NULL, 0, &x, 1, 1);
    one_want(&c, 0, TENSOR(I64, QN_SHAPE(1), int64_t, 3 * BIG + 3));
    run(&c, "Range", 11, NULL, 0,
        (QnTensor[]){ SCALAR(I64, int64_t, BIG + 1), SCALAR(I64, int64_t, BIG - 6),
                      SCALAR(I64, int64_t, -3) },
        3, 1);
    one_want(&c, 0, TENSOR(I64, QN_SHAPE(3), int64_t, BIG + 1, BIG - 2, BIG - 5));
    run(&c, "Unique", 11, NULL, 0,
        (QnTensor[]){ TENSOR(I64, QN_SHAPE(3), int64_t, BIG + 1, BIG, BIG + 1) }, 1, 4);
    one_want(&c, 0, TENSOR(I64, QN_SHAPE(2), int64_t, BIG, BIG + 1));
    one_want(&c, 3, TENSOR(I64, QN_SHAPE(2), int64_t, 1, 2));
    one_close(&c);
}

static void test_broadcasting_by_attributes(void **state)
{
    One c;
    one_open(&c);
    const QnTensor in[] = { TENSOR(F32, QN_SHAPE(2, 2, 2), float, 0, 1, 2, 3, 4, 5, 6, 7),
                            TENSOR(F32, QN_SHAPE(2), float, 10, 20) };
    const QnOnnxAttr attr[] = { INT_ATTR("broadcast", 1), INT_ATTR("axis", 1) };
    run(&c, "Add", 6, attr, 2, in, 2, 1);
    one_want(&c, 0, TENSOR(F32, QN_SHAPE(2, 2, 2), float, 10, 11, 22, 23, 14, 15, 26, 27));
    run(&c, "Add", 6, attr, 1, in, 2, 1); /* axes at the end */
    one_want(&c, 0, TENSOR(F32, QN_SHAPE(2, 2, 2), float, 10, 21, 12, 23, 14, 25, 16, 27));
    assert_fails(one_run(&c, "Add", 6, NULL, 0, in, 2, 1), QN_ESHAPE, "'broadcast' is 0");
    const QnOnnxAttr far[] = { INT_ATTR("broadcast", 1), INT_ATTR("axis", 3) };
    assert_fails(one_run(&c, "Add", 6, far, 2, in, 2, 1), QN_ESHAPE, "leaves no room");
    one_close(&c);
}

/* Until opset 12 over all axes from `axis` on, since 13 along it alone. */
static void test_rows_of_old_opsets(void **state)
{
    One c;
    one_open(&c);
    const QnTensor x = TENSOR(F32, QN_SHAPE(1, 2, 2), float, 1, 4, 3, 2);
    const QnOnnxAttr axis = INT_ATTR("axis", 1);
    run(&c, "Hardmax", 11, &axis, 1, &x, 1, 1);
    one_want(&c, 0, TENSOR(F32, QN_SHAPE(1, 2, 2), float, 0, 1, 0, 0));
    run(&c, "Hardmax", 13, &axis, 1, &x, 1, 1);
    one_want(&c, 0, TENSOR(F32, QN_SHAPE(1, 2, 2), float, 0, 1, 1, 0));
    one_close(&c);
}

static void test_empty_tensors(void **state)
{
    One c;
    one_open(&c);
    const QnTensor none = { .type = { .dtype = QN_DTYPE_I64, .shape = QN_SHAPE(2, 0) },
                            .data = (const int64_t[]){ 0 } };
    run(&c, "ReduceMax", 20, NULL, 0, (QnTensor[]){ none, TENSOR(I64, QN_SHAPE(1), int64_t, 1) }, 2,
        1);
    one_want(&c, 0, TENSOR(I64, QN_SHAPE(2, 1), int64_t, INT64_MIN, INT64_MIN));
    run(&c, "NonZero", 13, NULL, 0, &none, 1, 1);
    one_want(&c, 0, (QnTensor){ .type = { QN_DTYPE_I64, 0, QN_SHAPE(2, 0) } });
    const QnTensor x = TENSOR(I64, QN_SHAPE(2, 3), int64_t, 1, 2, 3, 4, 5, 6);
    run(&c, "Slice", 13, NULL, 0,
        (QnTensor[]){
            x, TENSOR(I64, QN_SHAPE(1), int64_t, -1), TENSOR(I64, QN_SHAPE(1), int64_t, INT64_MIN),
            TENSOR(I64, QN_SHAPE(1), int64_t, -1), TENSOR(I64, QN_SHAPE(1), int64_t, -2) },
        5, 1);
    one_want(&c, 0, TENSOR(I64, QN_SHAPE(2, 2), int64_t, 3, 1, 6, 4));
    const QnOnnxAttr axis = INT_ATTR("axis", -1);
    run(&c, "Concat", 13, &axis, 1, (QnTensor[]){ none, x }, 2, 1);
    one_want(&c, 0, x);
    one_close(&c);
}

static void want_text(const One *c, int64_t i, const char *s)
{
    QnText t = c->out[0]->known->text[i];
    assert_int_equal(t.n, strlen(s));
    assert_memory_equal(t.s, s, t.n);
}

static void test_strings(void **state)
{
    One c;
    one_open(&c);
    const QnOnnxAttr to_text = INT_ATTR("to", 8), to_u64 = INT_ATTR("to", 13);
    const QnOnnxAttr to_f32 = INT_ATTR("to", 1);
    run(&c, "Cast", 13, &to_text, 1,
        (QnTensor[]){ TENSOR(F32, QN_SHAPE(4), float, 0.1f, 100, 1e-7f, -INFINITY) }, 1, 1);
    want_text(&c, 0, "0.1");
    want_text(&c, 1, "100.0");
    want_text(&c, 2, "1e-07");
    want_text(&c, 3, "-inf");
    const QnTensor u = TENSOR(U64, QN_SHAPE(1), uint64_t, UINT64_MAX);
    run(&c, "Cast", 13, &to_text, 1, &u, 1, 1);
    want_text(&c, 0, "18446744073709551615");
    run(&c, "Cast", 13, &to_u64, 1, (QnTensor[]){ TEXTS(1, TEXT("18446744073709551615")) }, 1, 1);
    one_want(&c, 0, u);
    run(&c, "Cast", 13, &to_f32, 1, (QnTensor[]){ TEXTS(2, TEXT("-1.5e2"), TEXT("+INF")) }, 1, 1);
    one_want(&c, 0, TENSOR(F32, QN_SHAPE(2), float, -150, INFINITY));
    assert_fails(one_run(&c, "Cast", 13, &to_f32, 1, (QnTensor[]){ TEXTS(1, TEXT("1.5x")) }, 1, 1),
                 QN_EFORMAT, "\"1.5x\", is no number");
    run(&c, "Equal", 19, NULL, 0,
        (QnTensor[]){ TEXTS(2, TEXT("a"), TEXT("")), TEXTS(1, TEXT("a")) }, 2, 1);
    one_want(&c, 0, TENSOR(BOOL, QN_SHAPE(2), uint8_t, 1, 0));
    one_close(&c);
}

/* Strings are moved as numbers are; what else is done with them is refused. */
static void test_strings_that_move(void **state)
{
    One c;
    one_open(&c);
    const QnTensor x = TEXTS(3, TEXT("a"), TEXT("bc"), TEXT(""));
    const QnTensor at = TENSOR(I64, QN_SHAPE(2), int64_t, -2, 0);
    const QnOnnxAttr axis = INT_ATTR("axis", 0), dash = TEXT_ATTR("delimiter", "-");
    run(&c, "Gather", 13, &axis, 1, (QnTensor[]){ x, at }, 2, 1);
    want_text(&c, 0, "bc");
    want_text(&c, 1, "a");
    run(&c, "Concat", 13, &axis, 1, (QnTensor[]){ x, TEXTS(1, TEXT("z")) }, 2, 1);
    want_text(&c, 1, "bc");
    want_text(&c, 3, "z");
    assert_fails(one_run(&c, "Concat", 13, &axis, 1, (QnTensor[]){ x, at }, 2, 1), QN_EDTYPE,
                 "not of strings");
    assert_fails(one_run(&c, "Gather", 13, &axis, 1, (QnTensor[]){ at, x }, 2, 1), QN_EDTYPE,
                 "not of strings");
    assert_fails(one_run(&c, "Exp", 13, NULL, 0, &x, 1, 1), QN_EDTYPE, "no tensor of numbers");
    run(&c, "StringSplit", 20, &dash, 1, (QnTensor[]){ TEXTS(2, TEXT("p--q"), TEXT("r")) }, 1, 2);
    one_want(&c, 1, TENSOR(I64, QN_SHAPE(2), int64_t, 3, 1));
    want_text(&c, 1, "");
    want_text(&c, 2, "q");
    want_text(&c, 3, "r");
    one_close(&c);
}

/* 5 thrice, 6 once, (5,6) side by side and one apart. */
static void test_n_grams(void **state)
{
    One c;
    one_open(&c);
    const int64_t counts[] = { 0, 2 }, indexes[] = { 2, 0, 1 }, pool[] = { 5, 6, 5, 6 };
    const float weights[] = { 10, 20, 30 };
    QnOnnxAttr attr[] = {
        INT_ATTR("max_gram_length", 2),
        INT_ATTR("max_skip_count", 1),
        { .name = "ngram_counts", .kind = QN_ONNX_INTS, .n = 2, .ints = counts },
        { .name = "ngram_indexes", .kind = QN_ONNX_INTS, .n = 3, .ints = indexes },
        { .name = "pool_int64s", .kind = QN_ONNX_INTS, .n = 4, .ints = pool },
        { .name = "weights", .kind = QN_ONNX_FLOATS, .n = 3, .floats = weights },
        TEXT_ATTR("mode", "TFIDF"),
    };
    const QnTensor x = TENSOR(I64, QN_SHAPE(4), int64_t, 5, 5, 6, 5);
    run(&c, "TfIdfVectorizer", 9, attr, 7, &x, 1, 1);
    one_want(&c, 0, TENSOR(F32, QN_SHAPE(3), float, 20, 60, 30));
    run(&c, "TfIdfVectorizer", 9, attr, 6, &x, 1, 1);
    one_want(&c, 0, TENSOR(F32, QN_SHAPE(3), float, 1, 2, 3));
    attr[4].n = 3;
    assert_fails(one_run(&c, "TfIdfVectorizer", 9, attr, 7, &x, 1, 1), QN_EFORMAT, "no part");
    one_close(&c);
}

static void test_refusals(void **state)
{
    One c;
    one_open(&c);
    const QnTensor x = TENSOR(F32, QN_SHAPE(2, 2), float, 1, 2, 3, 4);
    const QnTensor pads = TENSOR(I64, QN_SHAPE(4), int64_t, 0, 0, 0, 0);
    const QnOnnxAttr mirror = TEXT_ATTR("mode", "mirror"), complex = INT_ATTR("to", 14);
    const QnOnnxAttr axis = INT_ATTR("axis", 2), odd = INT_ATTR("unheard_of", 1);
    assert_fails(one_run(&c, "Pad", 13, &mirror, 1, (QnTensor[]){ x, pads }, 2, 1), QN_EUNSUPPORTED,
                 "mode 'mirror'");
    assert_fails(one_run(&c, "Pad", 13, NULL, 0, (QnTensor[]){ x, SCALAR(I64, int64_t, 1) }, 2, 1),
                 QN_ESHAPE, "1 pads for 2 axes");
    assert_fails(one_run(&c, "Cast", 13, &complex, 1, &x, 1, 1), QN_EUNSUPPORTED,
                 "element type 14");
    assert_fails(one_run(&c, "ArgMin", 13, &axis, 1, &x, 1, 1), QN_ESHAPE, "axis 2");
    assert_fails(one_run(&c, "Exp", 13, &odd, 1, &x, 1, 1), QN_EUNSUPPORTED, "'unheard_of'");
    assert_fails(one_run(&c, "Concat", 13, &axis, 1, &x, 0, 1), QN_EUNSUPPORTED, "0 inputs");
    assert_fails(
        one_run(&c, "Expand", 13, NULL, 0, (QnTensor[]){ x, SCALAR(I64, int64_t, 3) }, 2, 1),
        QN_ESHAPE, "do not broadcast");
    one_close(&c);
}

/* Every row of every operator, with inputs that are absent or of another kind: an error or a
 * result, but never a crash. */
static void test_odd_inputs_of_all_rows(void **state)
{
    One c;
    QnMapping m;
    const QnTensor kinds[] = { SCALAR(F32, float, 1),
                               TENSOR(I64, QN_SHAPE(2), int64_t, -1, 1),
                               { .type = { QN_DTYPE_F32, 0, QN_SHAPE(0, 2) }, .data = "" },
                               TEXTS(1, TEXT("a")),
                               TENSOR(F32, QN_SHAPE(1, 2, 2), float, 1, 2, 3, 4) };
    enum { KINDS = QN_COUNT(kinds) };
    one_open(&c);
    for (int64_t i = 0; qn_mapping_next(&i, &m);)
        for (int kind = -2; kind < KINDS; kind++)
            for (int n_in = 0; n_in < 5; n_in++) {
                QnItem sequence = { .kind = QN_ITEM_SEQUENCE, .epoch = -1, .name = "given" };
                QnItem *in[NODE_IO] = { 0 };
                for (int k = 0; k < n_in && kind >= -1; k++)
                    in[k] = kind < 0 ? &sequence : one_item(&c, &kinds[kind]);
                QnStatus st = one_run_items(&c, m.map->domain ? m.map->domain : "", m.map->name,
                                            m.map->since, NULL, 0, in, n_in, 2);
                if (st == QN_EINTERNAL)
                    fail_msg("%s-%d: %s", m.map->name, m.map->since, qn_error_last()->text);
            }
    one_close(&c);
}
