/* Models that are well-formed and ask for the world: memory, turns, depth; what a long loop leaves
 * behind; inputs of other types than declared. labels: onnx */
#include "io/temp.h"
#include "wire.h"

#include "base/fault.h"
#include "base/mem.h"
#include "onnx/onnx.h"

static const QnOnnxLimits none;

static QnOnnxModel *read_wire(const char *text)
{
    Wire *w = calloc(1, sizeof *w);
    QnOnnxModel *m = NULL;
    if (!w || *wire_parse(w, text))
        abort();
    QnStatus st = qn_onnx_read_bytes(w->data, w->n, "it", NULL, &m);
    free(w);
    if (st == QN_EUNSUPPORTED && strstr(qn_error_last()->text, "built without"))
        skip_because("built without protobuf-c");
    return m;
}

/* Runs on up to two inputs; the first output is copied to *out. */
static QnStatus run_wire(const char *text, QnItem *a, QnItem *b, const QnOnnxLimits *l, float *out)
{
    QnDevice *d = NULL;
    QnArena *arena = qn_arena_new();
    QnOnnxModel *m = read_wire(text);
    QnItem *in[2] = { a, b }, *got[4] = { NULL };
    if (!m)
        fail_msg("%s", qn_error_last()->text);
    assert_ok(qn_device_open_named("cpu", &(QnDeviceOptions){ .n_threads = 1 }, &d));
    QnStatus st = qn_onnx_run_with(m, d, in, arena, got, NULL,
                                   &(QnOnnxRunOptions){ .limits = l ? *l : (QnOnnxLimits){ 0 } });
    if (st == QN_OK && out)
        memcpy(out, got[0]->known->data, sizeof *out);
    qn_device_close(d);
    qn_onnx_free(m);
    qn_arena_free(arena);
    return st;
}

static QnItem item_of(const QnTensor *t)
{
    return (QnItem){ .kind = QN_ITEM_TENSOR, .epoch = -1, .known = t, .name = "given" };
}

/* ---- memory ---------------------------------------------------------------------------------- */

#define EXPLODE(op, ins) MODEL("1{4\"" op "\"" ins TO("y") "}" RESULT("y")
#define BIG  INTS("big", "1=1", "7=1125899906842624")
#define BIG0 INTS("big0", "", "7=1125899906842624")
#define ONE  FLOATS("x", "1=1", "0000803f")

static const struct {
    const char *name, *wire;
} explosions[] = {
    { "ConstantOfShape", EXPLODE("ConstantOfShape", IN("big")) BIG) },
    { "Expand", EXPLODE("Expand", IN("x") IN("big")) ONE BIG) },
    { "Tile", EXPLODE("Tile", IN("x") IN("big")) ONE BIG) },
    { "Range", EXPLODE("Range", IN("z") IN("big0") IN("o")) INTS("z", "", "7=0")
                   INTS("o", "", "7=1") BIG0) },
    { "OneHot", EXPLODE("OneHot", IN("i") IN("big0") IN("v")) INTS("i", "1=1", "7=0") BIG0
                    FLOATS("v", "1=2", "000000000000803f")) },
    { "Pad", EXPLODE("Pad", IN("x") IN("p")) ONE INTS("p", "1=2", "7=0 7=1125899906842624")) },
    { "ConstantOfShape of 0 rows", EXPLODE("ConstantOfShape", IN("d"))
          INTS("d", "1=3", "7=0 7=1125899906842624 7=1125899906842624")) },
    { "squares",
      MODEL(ONE INTS("k", "1=1", "7=1048576") OP("Expand", IN("x") IN("k") TO("a"))
                INTS("c", "1=2", "7=-1 7=1") OP("Reshape", IN("a") IN("c") TO("b"))
                    OP("Mul", IN("a") IN("b") TO("m")) INTS("r", "1=2", "7=1048576 7=1")
                        OP("Tile", IN("m") IN("r") TO("y")) RESULT("y")) },
};

static void test_explosions(void **state)
{
    for (size_t i = 0; i < QN_COUNT(explosions); i++) {
        uint64_t before = qn_alloc_bytes();
        QnStatus st = run_wire(explosions[i].wire, NULL, NULL, &none, NULL);
        if (st == QN_OK || st == QN_EINTERNAL || !strstr(qn_error_last()->text, "it: "))
            fail_msg("%s: %s: %s", explosions[i].name, qn_status_name(st), qn_error_last()->text);
        if (qn_alloc_bytes() - before > 64u << 20)
            fail_msg("%s: %llu bytes were asked for", explosions[i].name,
                     (unsigned long long)(qn_alloc_bytes() - before));
    }
}

/* ---- loops ----------------------------------------------------------------------------------- */

#define TRIPS(n)               INTS("n", "", "7=" n)
#define LOOP(ins, outs, graph) "1{4\"Loop\"" ins outs "5{1\"body\"20=5 6{2\"b\"" graph "}}}"
#define STATE                  "11{1\"i\"}11{1\"k\"}11{1\"s\"}"

/* The condition hangs on an input, so that each turn is a graph of its own: 100 turns of 256 KB
 * pass in 3 MB only if each turn's state is freed. */
static void test_loop_frees_its_states(void **state)
{
    static const bool yes = true;
    static const QnTensor t = { { .dtype = QN_DTYPE_BOOL }, &yes, NULL };
    const QnOnnxLimits limits = { .bytes = 3 << 20 };
    QnItem go = item_of(&t);
    float y = 0;
    assert_ok(run_wire(MODEL("11{1\"go\"2{1{1=9 2{}}}}" TRIPS("100") INTS("d", "1=1", "7=65536") OP(
                           "ConstantOfShape", IN("d") TO("z")) FLOATS("one", "", "0000803f")
                                 LOOP(IN("n") IN("go") IN("z"), TO("y"),
                                      STATE OP("Add", IN("s") IN("one") TO("t"))
                                          OP("And", IN("go") IN("go") TO("l")) RESULT("l")
                                              RESULT("t")) RESULT("y")),
                       &go, NULL, &limits, &y));
    assert_true(y == 100);
}

/* What later turns still read must not go: the state of the first turn through a name around the
 * loop, a sequence, and what each turn leaves. */
static void test_loop_keeps_what_it_needs(void **state)
{
    static const bool yes = true;
    static const QnTensor t = { { .dtype = QN_DTYPE_BOOL }, &yes, NULL };
    QnItem go = item_of(&t);
    float y = 0;
    assert_ok(run_wire(
        MODEL("11{1\"go\"2{1{1=9 2{}}}}" TRIPS("5") FLOATS("one", "1=1", "0000803f") OP(
            "Add", IN("one") IN("one") TO("two")) OP("SequenceConstruct", IN("two") TO("q0"))
                  LOOP(IN("n") IN("go") IN("q0"), TO("q") TO("scan"),
                       STATE INTS("at", "", "7=-1") OP("SequenceAt", IN("s") IN("at") TO("e"))
                           OP("Add", IN("e") IN("two") TO("f"))
                               OP("SequenceInsert", IN("s") IN("f") TO("r"))
                                   OP("And", IN("go") IN("go") TO("l")) RESULT("l") RESULT("r")
                                       RESULT("f")) "1{4\"ReduceSum\"" IN("scan")
                      TO("y") "5{1\"keepdims\"20=2 3=0}}" RESULT("y") RESULT("q")),
        &go, NULL, &none, &y));
    assert_true(y == 4 + 6 + 8 + 10 + 12);
}

/* A graph that grows too long is cut between nodes. */
static void test_long_loop_is_cut(void **state)
{
    float y = 0;
    assert_ok(run_wire(MODEL(TRIPS("70000") "5{8\"c\"2=9 9#01}" FLOATS("x", "", "00000000") FLOATS(
                           "one", "", "0000803f") LOOP(IN("n") IN("c") IN("x"), TO("y"),
                                                       STATE OP("Add", IN("s") IN("one") TO("t"))
                                                           RESULT("k") RESULT("t")) RESULT("y")),
                       NULL, NULL, &none, &y));
    assert_true(y == 70000);
}

static void test_endless_loop(void **state)
{
    const QnOnnxLimits limits = { .nodes = 10000 };
    const char *endless = MODEL(TRIPS("4611686018427387904") "5{8\"c\"2=9 9#01}" ONE LOOP(
        IN("n") IN("c") IN("x"), TO("y"), STATE OP("Neg", IN("s") TO("t")) RESULT("k") RESULT("t"))
                                    RESULT("y"));
    const char *empty = MODEL(TRIPS("4611686018427387904") "5{8\"c\"2=9 9#01}" ONE LOOP(
        IN("n") IN("c") IN("x"), TO("y"), STATE RESULT("k") RESULT("s")) RESULT("y"));
    assert_fails(run_wire(endless, NULL, NULL, &limits, NULL), QN_EUNSUPPORTED, "it: ");
    assert_fails(run_wire(empty, NULL, NULL, &limits, NULL), QN_EUNSUPPORTED, "it: ");
}

/* ---- depth ----------------------------------------------------------------------------------- */

/* `head`, n times `open`, `core`, n times `close`, `tail`. */
static char *nested(const char *head, const char *open, int n, const char *core, const char *close,
                    const char *tail)
{
    char *text = calloc(1, strlen(head) + strlen(core) + strlen(tail) +
                               (size_t)n * (strlen(open) + strlen(close)) + 1);
    if (!text)
        abort();
    strcat(text, head);
    for (int i = 0; i < n; i++)
        strcat(text, open);
    strcat(text, core);
    for (int i = 0; i < n; i++)
        strcat(text, close);
    return strcat(text, tail);
}

static void refused(char *text, QnStatus status, const char *words)
{
    QnOnnxModel *m = read_wire(text);
    free(text);
    if (m)
        fail_msg("read, expected an error with \"%s\"", words);
    assert_fails(qn_error_last()->code, status, words);
}

static void test_depth(void **state)
{
    refused(nested(HEAD "7{", "1{4\"If\"5{1\"then_branch\"20=5 6{", 25, "", "}}}", "}"), QN_EFORMAT,
            "nested more than 64 deep");
    refused(nested(HEAD "7{11{1\"i\"2{", "4{1{", 40, "", "}}", "}}}"), QN_EFORMAT,
            "nested more than 64 deep");
    QnOnnxModel *m = NULL; /* a depth that is in order */
    char *text = nested(HEAD "7{2\"g\"11{1\"i\"2{", "4{1{", 20, "", "}}", "}}}");
    m = read_wire(text);
    free(text);
    assert_non_null(m);
    qn_onnx_free(m);
}

/* Functions 0 to n - 1, each of which calls the next so many times. */
static char *chain(int n, int calls)
{
    char *text = calloc(1, 65536), *p = text;
    if (!text)
        abort();
    p += sprintf(p, "%s7{2\"g\"}", HEAD);
    for (int i = 0; i < n; i++) {
        p += sprintf(p, "25{1\"F%d\"10\"f\"4\"a\"5\"b\"9{2=17}", i);
        for (int k = 0; k < calls; k++)
            p += sprintf(p, "7{4\"F%d\"7\"f\"1\"a\"2\"b%d\"}", i + 1, k);
        p += sprintf(p, "}");
    }
    return text;
}

static void test_calls(void **state)
{
    refused(chain(70, 1), QN_EFORMAT, "nested more than 64 deep");
    refused(chain(30, 2), QN_EUNSUPPORTED, "over 16777216 nodes");
    char *text = chain(20, 2);
    QnOnnxModel *m = read_wire(text);
    free(text);
    assert_non_null(m);
    qn_onnx_free(m);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

#define TAKES_F32 MODEL("11{1\"x\"2{1{1=1 2{1{1=2}}}}}" OP("Neg", IN("x") TO("y")) RESULT("y"))

static void test_inputs(void **state)
{
    static const double wide[2] = { 1, 2 };
    static const float numbers[2] = { 1, 2 };
    static const QnText text[2] = { { "a", 1 }, { "b", 1 } };
    static const QnTensor of_f64 = { { .dtype = QN_DTYPE_F64, .shape = { 1, { 2 } } }, wide, NULL },
                          of_f32 = { { .dtype = QN_DTYPE_F32, .shape = { 1, { 2 } } },
                                     numbers,
                                     NULL },
                          of_text = { { .shape = { 1, { 2 } } }, NULL, text };
    QnItem a = item_of(&of_f64), c = item_of(&of_f32), d = item_of(&of_text);
    QnItem *list[1] = { &c };
    QnItem e = { .kind = QN_ITEM_SEQUENCE, .epoch = -1, .name = "given", .item = list, .n = 1 };
    float y;
    assert_fails(run_wire(TAKES_F32, &a, NULL, &none, &y), QN_EDTYPE, "input 'x' is f64[2]");
    assert_fails(run_wire(TAKES_F32, &d, NULL, &none, &y), QN_EDTYPE,
                 "is strings[2], the model takes f32[2]");
    assert_fails(run_wire(TAKES_F32, &e, NULL, &none, &y), QN_EDTYPE, "a sequence");
    assert_fails(run_wire(TAKES_F32, NULL, NULL, &none, &y), QN_EFORMAT, "nothing makes its input");
    for (int i = 0; i < 2; i++) { /* the same item twice */
        assert_ok(run_wire(TAKES_F32, &c, NULL, &none, &y));
        assert_true(y == -1);
    }
}

static void test_lists_in_lists(void **state)
{
    assert_fails(run_wire(MODEL(ONE OP("SequenceConstruct", IN("x") IN("x") TO("a"))
                                    OP("SequenceConstruct", IN("a") IN("a") TO("b"))
                                        OP("SequenceLength", IN("b") TO("y")) RESULT("y")),
                          NULL, NULL, &none, NULL),
                 QN_EDTYPE, "must be a tensor");
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Each allocation fails once while a loop is run that is cut at each turn. */
static void test_faults(void **state)
{
    static const bool yes = true;
    static const QnTensor t = { { .dtype = QN_DTYPE_BOOL }, &yes, NULL };
    static const char *const wire = MODEL("11{1\"go\"2{1{1=9 2{}}}}" TRIPS("2") ONE LOOP(
        IN("n") IN("go") IN("x"), TO("y") TO("z"),
        STATE OP("Add", IN("s") IN("s") TO("t")) OP("And", IN("go") IN("go") TO("l")) RESULT("l")
            RESULT("t") RESULT("t")) RESULT("y") RESULT("z"));
    QnItem go = item_of(&t), *in[] = { &go };
    QnOnnxModel *m = read_wire(wire);
    QnDevice *d = NULL;
    assert_non_null(m);
    assert_ok(qn_device_open_named("cpu", &(QnDeviceOptions){ .n_threads = 1 }, &d));
    for (int64_t n = 1;; n++) {
        QnItem *out[2] = { NULL };
        QnArena *arena = qn_arena_new();
        qn_fault_arm(n);
        QnStatus st = qn_onnx_run(m, d, in, arena, out, NULL);
        bool all = qn_fault_events() < n;
        qn_fault_arm(0);
        if (st != QN_OK && st != QN_ENOMEM)
            fail_msg("event %lld: %s: %s", (long long)n, qn_status_name(st), qn_error_last()->text);
        if (st == QN_OK)
            assert_true(*(const float *)out[0]->known->data == 4);
        qn_arena_free(arena);
        if (all)
            break;
    }
    qn_device_close(d);
    qn_onnx_free(m);
}
