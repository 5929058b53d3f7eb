/* Broken and hostile models: each is refused, with words that name the place, before much memory is
 * taken. labels: onnx */
#include "io/temp.h"
#include "wire.h"

#include "base/fault.h"
#include "base/mem.h"
#include "onnx/onnx.h"

typedef struct Bad {
    const char *name;
    QnStatus status;
    const char *words; /* of the error's text */
    const char *wire;
} Bad;

#define ADD               OP("Add", IN("x") IN("x") TO("y")) RESULT("y")
#define X                 FLOATS("x", "1=1", "0000803f")
#define OUTSIDE(location) "5{8\"w\"2=1 1=4 14=1 13{1\"location\"2\"" location "\"}}"
#define OUTSIDE_AT(offset, length)                                                                 \
    "5{8\"w\"2=1 1=4 14=1 13{1\"location\"2\"data.bin\"}13{1\"offset\"2\"" offset                  \
    "\"}13{1\"length\"2\"" length "\"}}"
#define SPARSE(dims, values, indices) "15{1{8\"s\"2=1 " values "}2{2=7 " indices "}" dims "}"
#define TENSOR_ATTR(kind, tensor)     "1{4\"Constant\"" TO("y") "5{1\"value\"20=" kind " " tensor "}}"
#define FUNCTION(name, nodes)         "25{1\"" name "\"10\"f\"4\"a\"5\"b\"9{2=17}" nodes "}"
#define CALL(name)                    "7{4\"" name "\"7\"f\"1\"a\"2\"b\"}"
#define LOOP(trips, body)                                                                          \
    MODEL(INTS("n", "", "7=" trips) "1{4\"Loop\"" IN("n") TO("y") "5{1\"body\"20=5 6{2\"b\"" body  \
                                                                  "}}}" RESULT("y"))
#define OPEN16                  "(((((((((((((((("
#define OPEN64                  OPEN16 OPEN16 OPEN16 OPEN16
#define INFO(field, name, type) field "{1\"" name "\"2{1{1=" type "}}}"

/* ---- bytes ----------------------------------------------------------------------------------- */

static const Bad bytes[] = {
    { "empty", QN_EFORMAT, "no graph", "" },
    { "text", QN_EFORMAT, "byte", "!68656c6c6f20776f726c640a" },
    { "tag cut off", QN_EFORMAT, "byte 1: a number is cut off", "!ff" },
    { "number too long", QN_EFORMAT, "is cut off", "!08ffffffffffffffffffffff01" },
    { "length past the end", QN_EFORMAT, "byte 1: a length of 100", "!3a64" },
    { "length of 2^63", QN_EFORMAT, "goes past the end", "!3affffffffffffffff7f" },
    { "field 0", QN_EFORMAT, "no field has the number 0", "!0001" },
    { "a group", QN_EFORMAT, "fields of kind 3", "!0b" },
    { "fixed cut off", QN_EFORMAT, "byte 0: a number is cut off", "!0d0000" },
    { "graph of the wrong kind", QN_EFORMAT, "no", "1=8 8{2=17}7=5" },
    { "graph twice", QN_EFORMAT, "field 'graph' is given twice", MODEL(ADD) "7{}" },
    { "name with ESC", QN_EFORMAT, "control character", MODEL(X ADD "13{1\"\033[2J\"}") },
    { "name with NUL", QN_EFORMAT, "control character", MODEL("13{1#6100}") },
    { "name with C1", QN_EFORMAT, "control character", MODEL("13{1#c29b}") },
    { "operator with a newline", QN_EFORMAT, "'op_type' has a control", MODEL("1{4\"A\n\"}") },
    { "name no UTF-8", QN_EFORMAT, "'name' is no UTF-8", MODEL("13{1#c0af}") },
    { "graph name a surrogate", QN_EFORMAT, "no UTF-8", HEAD "7{2#eda080}" },
};

/* ---- model, opsets, functions ---------------------------------------------------------------- */

static const Bad models[] = {
    { "no graph", QN_EFORMAT, "no graph", HEAD },
    { "IR version 0", QN_EFORMAT, "IR version 0", "8{2=17}7{}" },
    { "IR version -1", QN_EFORMAT, "IR version -1", "1=-1 8{2=17}7{}" },
    { "IR version 2", QN_EUNSUPPORTED, "IR version 2; 3 to", "1=2 8{2=17}7{}" },
    { "IR version 99", QN_EUNSUPPORTED, "IR version 99", "1=99 8{2=17}7{}" },
    { "no opset", QN_EFORMAT, "does not say its opset", "1=8 7{}" },
    { "opset 0", QN_EFORMAT, "opset 0", "1=8 8{2=0}7{}" },
    { "opset -5", QN_EFORMAT, "opset -5", "1=8 8{2=-5}7{}" },
    { "opset 9999", QN_EUNSUPPORTED, "opset 9999", "1=8 8{2=9999}7{}" },
    { "two opsets", QN_EFORMAT, "opsets 17 and 18", HEAD "8{1\"ai.onnx\"2=18}7{}" },
    { "unknown domain", QN_EUNSUPPORTED, "1 node is not supported",
      MODEL(X "1{4\"Add\"7\"who\"" IN("x") TO("y") "}" RESULT("y")) },
    { "function without a name", QN_EFORMAT, "function has no name", MODEL(X ADD) "25{10\"f\"}" },
    { "function twice", QN_EFORMAT, "'F' of domain 'f' is there twice",
      MODEL(X ADD) FUNCTION("F", "") FUNCTION("F", "") },
    { "function calls itself", QN_EFORMAT, "'F' calls itself",
      MODEL(X ADD) FUNCTION("F", CALL("F")) },
    { "function's default calls it", QN_EFORMAT, "'F' calls itself",
      MODEL(X ADD) "25{1\"F\"10\"f\"11{1\"g\"20=5 6{1{4\"F\"7\"f\"}}}}" },
    { "functions call in a ring", QN_EFORMAT, "calls itself",
      MODEL(X ADD) FUNCTION("F", CALL("G")) FUNCTION("G", CALL("H")) FUNCTION("H", CALL("F")) },
    { "function's input twice", QN_EFORMAT, "the name 'a' is made twice",
      MODEL(X ADD) "25{1\"F\"10\"f\"4\"a\"4\"a\"}" },
    { "function makes its input", QN_EFORMAT, "the name 'a' is made twice",
      MODEL(X ADD) "25{1\"F\"10\"f\"4\"a\"9{2=17}7{4\"Neg\"1\"a\"2\"a\"}}" },
    { "function's input unnamed", QN_EFORMAT, "input 0 has no name",
      MODEL(X ADD) "25{1\"F\"10\"f\"4\"\"}" },
    { "function makes no output", QN_EFORMAT, "nothing makes output 'b' of the function",
      HEAD "8{1\"f\"2=1}7{2\"g\"" X "1{4\"F\"7\"f\"" IN("x")
          TO("y") "}" RESULT("y") "}" FUNCTION("F", "") },
};

/* ---- graphs ---------------------------------------------------------------------------------- */

static const Bad graphs[] = {
    { "input of nobody", QN_EFORMAT, "nothing makes its input 'x'", MODEL(ADD) },
    { "output of nobody", QN_EFORMAT, "nothing makes output 'z'", MODEL(X ADD RESULT("z")) },
    { "made twice", QN_EFORMAT, "the name 'y' is made twice", MODEL(X ADD ADD) },
    { "initialiser twice", QN_EFORMAT, "the name 'x' is made twice", MODEL(X X ADD) },
    { "input twice", QN_EFORMAT, "the name 'i' is made twice",
      MODEL(INFO("11", "i", "1") INFO("11", "i", "1")) },
    { "node makes an input", QN_EFORMAT, "made twice", MODEL(X OP("Neg", IN("x") TO("x"))) },
    { "cycle of one", QN_EFORMAT, "needs its own result", MODEL(OP("Neg", IN("y") TO("y"))) },
    { "cycle of two", QN_EFORMAT, "the graph has a cycle",
      MODEL(OP("Neg", IN("b") TO("a")) OP("Neg", IN("a") TO("b"))) },
    { "cycle through a subgraph", QN_EFORMAT, "the graph has a cycle",
      MODEL("1{4\"If\"" IN("c") TO("y") "5{1\"then_branch\"20=5 6{2\"t\"" OP("Neg", IN("y") TO("z"))
                RESULT("z") "}}}") },
    { "no operator", QN_EFORMAT, "names no operator", MODEL("1{3\"n\"}") },
    { "unknown operator", QN_EUNSUPPORTED, "1 node is not supported",
      MODEL(X OP("Frobnicate", IN("x") TO("y")) RESULT("y")) },
    { "input without a name", QN_EFORMAT, "input 0 has no name", MODEL("11{}") },
    { "output without a name", QN_EFORMAT, "output 0 has no name", MODEL("12{}") },
    { "initialiser without a name", QN_EFORMAT, "initialiser 0 has no name", MODEL("5{2=1}") },
    { "attribute without a name", QN_EFORMAT, "an attribute has no name", MODEL("1{4\"A\"5{}}") },
    { "attribute twice", QN_EFORMAT, "two attributes 'a'",
      MODEL("1{4\"A\"5{1\"a\"20=2}5{1\"a\"20=2}}") },
    { "attribute of kind 77", QN_EUNSUPPORTED, "of kind 77", MODEL("1{4\"A\"5{1\"a\"20=77}}") },
    { "no tensor", QN_EFORMAT, "'value' has no tensor", MODEL(TENSOR_ATTR("4", "")) },
    { "no sparse tensor", QN_EFORMAT, "'value' has no tensor", MODEL(TENSOR_ATTR("11", "")) },
    { "no graph in If", QN_EFORMAT, "has no graph", MODEL("1{4\"If\"5{1\"then_branch\"20=5}}") },
    { "too many dims in a type", QN_EUNSUPPORTED, "a tensor of 9 dims",
      MODEL("11{1\"i\"2{1{1=1 2{1{}1{}1{}1{}1{}1{}1{}1{}1{}}}}}") },
    { "If without a branch", QN_EFORMAT, "'then_branch' must be a graph",
      MODEL("5{8\"c\"2=9 9#01}1{4\"If\"" IN("c") TO("y") "}" RESULT("y")) },
    { "If with a number for a branch", QN_EFORMAT, "must be a graph",
      MODEL("5{8\"c\"2=9 9#01}1{4\"If\"" IN("c")
                TO("y") "5{1\"then_branch\"20=2 3=1}}" RESULT("y")) },
    { "condition of two", QN_ESHAPE, "must be one number",
      MODEL("5{8\"c\"2=9 1=2 9#0100}1{4\"If\"" IN("c") TO("y") "}" RESULT("y")) },
    { "Loop body of no inputs", QN_EFORMAT, "the body has 0 inputs", LOOP("3", "") },
    { "pattern of 256 parentheses", QN_EUNSUPPORTED, "or 200 parentheses",
      "1=8 8{2=20}7{2\"g\"5{8\"t\"2=8 1=1 6\"a\"}1{4\"RegexFullMatch\"" IN("t")
          TO("y") "5{1\"pattern\"20=3 4\"" OPEN64 OPEN64 OPEN64 OPEN64 "\"}}" RESULT("y") "}" },
    { "Scan of 2^31 inputs", QN_EFORMAT, "-2147483648 of its 1 inputs are scanned",
      MODEL(X "1{4\"Scan\"" IN("x")
                TO("y") "5{1\"num_scan_inputs\"20=2 3=-2147483648}}" RESULT("y")) },
    { "axis out of range", QN_ESHAPE, "axis",
      MODEL(X "1{4\"Softmax\"" IN("x")
                TO("y") "5{1\"axis\"20=2 3=4611686018427387904}}" RESULT("y")) },
    { "shapes that do not agree", QN_ESHAPE, "node 'y'",
      MODEL(X FLOATS("w", "1=2 1=3", "000000000000000000000000000000000000000000000000")
                OP("MatMul", IN("x") IN("w") TO("y")) RESULT("y")) },
    { "types that do not agree", QN_EDTYPE, "node 'y'",
      MODEL(X INTS("n", "1=1", "7=1") OP("Add", IN("x") IN("n") TO("y")) RESULT("y")) },
    { "a missing input", QN_EARG, "takes 2 inputs, not 1",
      MODEL(X OP("Sub", IN("x") TO("y")) RESULT("y")) },
    { "sequence into arithmetic", QN_EDTYPE, "no tensor",
      MODEL(X OP("SequenceConstruct", IN("x") TO("s")) OP("Neg", IN("s") TO("y")) RESULT("y")) },
};

/* ---- tensors --------------------------------------------------------------------------------- */

static const Bad tensors[] = {
    { "dim -1", QN_EFORMAT, "'w': dim 0 is -1", MODEL(FLOATS("w", "1=-1", "")) },
    { "dims overflow", QN_EFORMAT, "product of its dims overflows",
      MODEL(FLOATS("w", "1=4294967296 1=4294967296", "")) },
    { "dims overflow beside 0", QN_EFORMAT, "product of its dims overflows",
      MODEL(FLOATS("w", "1=0 1=4294967296 1=4294967296", "")) },
    { "2^40 rows of nothing", QN_EFORMAT, "is empty, with dims of",
      MODEL(FLOATS("w", "1=1099511627776 1=0", "")) },
    { "far more dims than bytes", QN_EFORMAT, "has 4 bytes",
      MODEL(FLOATS("w", "1=1099511627776", "00000000")) },
    { "nine dims", QN_EUNSUPPORTED, "has 9 dims",
      MODEL(FLOATS("w", "1=1 1=1 1=1 1=1 1=1 1=1 1=1 1=1 1=1", "00000000")) },
    { "too few bytes", QN_EFORMAT, "has 3 bytes", MODEL(FLOATS("w", "1=1", "000000")) },
    { "too many bytes", QN_EFORMAT, "has 8 bytes", MODEL(FLOATS("w", "1=1", "0000000000000000")) },
    { "too few numbers", QN_EFORMAT, "has 1 elements", MODEL(INTS("w", "1=2", "7=1")) },
    { "numbers of another type", QN_EFORMAT, "has 0 elements", MODEL(INTS("w", "1=1", "5=1")) },
    { "element type 0", QN_EFORMAT, "element type 0", MODEL("5{8\"w\"9#00}") },
    { "element type 99", QN_EFORMAT, "element type 99", MODEL("5{8\"w\"2=99 9#00}") },
    { "complex", QN_EUNSUPPORTED, "element type 14", MODEL("5{8\"w\"2=14 9#00}") },
    { "too few strings", QN_EFORMAT, "of 2 strings has 1", MODEL("5{8\"w\"2=8 1=2 6\"a\"}") },
    { "segments", QN_EUNSUPPORTED, "segments", MODEL("5{8\"w\"2=1 3{1=0 2=4}9#00000000}") },
    { "sparse without indices", QN_EFORMAT, "has no indices",
      MODEL("15{1{8\"s\"2=1 1=1 9#00000000}3=4}") },
    { "sparse without a name", QN_EFORMAT, "has no name", MODEL("15{1{2=1 1=1}3=4}") },
    { "sparse index 4 of 4", QN_EFORMAT, "index 0 lies outside",
      MODEL(SPARSE("3=4", "1=1 9#0000803f", "1=1 7=4")) },
    { "sparse index -1", QN_EFORMAT, "index 0 lies outside",
      MODEL(SPARSE("3=4", "1=1 9#0000803f", "1=1 7=-1")) },
    { "sparse pair outside", QN_EFORMAT, "index 0 lies outside",
      MODEL(SPARSE("3=2 3=2", "1=1 9#0000803f", "1=1 1=2 7=0 7=3")) },
    { "sparse indices descend", QN_EFORMAT, "index 1 does not come after",
      MODEL(SPARSE("3=4", "1=2 9#0000803f0000803f", "1=2 7=2 7=1")) },
    { "sparse index twice", QN_EFORMAT, "index 1 does not come after",
      MODEL(SPARSE("3=4", "1=2 9#0000803f0000803f", "1=2 7=2 7=2")) },
    { "sparse counts differ", QN_EFORMAT, "indices for its 1 values",
      MODEL(SPARSE("3=4", "1=1 9#0000803f", "1=2 7=0 7=1")) },
    { "sparse values of rank 2", QN_EFORMAT, "of rank 2, not 1",
      MODEL(SPARSE("3=4", "1=1 1=1 9#0000803f", "1=1 7=0")) },
    { "sparse float indices", QN_EFORMAT, "must be i64",
      MODEL("15{1{8\"s\"2=1 1=1 9#0000803f}2{2=1 1=1 9#00000000}3=4}") },
    { "sparse of 2^50", QN_EFORMAT, "far more than the file holds",
      MODEL(SPARSE("3=1125899906842624", "1=1 9#0000803f", "1=1 7=0")) },
    { "sparse dims overflow", QN_EFORMAT, "product of its dims overflows",
      MODEL(SPARSE("3=4294967296 3=4294967296", "1=1 9#0000803f", "1=1 7=0")) },
    { "sparse attribute of 2^50", QN_EFORMAT, "far more than the file holds",
      MODEL(TENSOR_ATTR("11", "22{1{2=1 1=1 9#0000803f}2{2=7 1=1 7=0}3=1125899906842624}")) },
};

/* ---- tensors in other files ------------------------------------------------------------------ */

static const Bad outsides[] = {
    { "parent folder", QN_EFORMAT, "not a plain path", MODEL(OUTSIDE("../data.bin")) },
    { "parent inside", QN_EFORMAT, "not a plain path", MODEL(OUTSIDE("in/../../data.bin")) },
    { "absolute", QN_EFORMAT, "not a plain path", MODEL(OUTSIDE("/etc/passwd")) },
    { "dot", QN_EFORMAT, "not a plain path", MODEL(OUTSIDE("./data.bin")) },
    { "two slashes", QN_EFORMAT, "not a plain path", MODEL(OUTSIDE("in//data.bin")) },
    { "empty location", QN_EFORMAT, "not a plain path", MODEL(OUTSIDE("")) },
    { "no location", QN_EFORMAT, "no location is given", MODEL("5{8\"w\"2=1 1=4 14=1}") },
    { "missing file", QN_ENOTFOUND, "'none.bin' cannot be opened", MODEL(OUTSIDE("none.bin")) },
    { "symbolic link", QN_EFORMAT, "symbolic link", MODEL(OUTSIDE("link.bin")) },
    { "linked folder", QN_EFORMAT, "'linked' cannot be opened", MODEL(OUTSIDE("linked/passwd")) },
    { "hard link", QN_EFORMAT, "hard link", MODEL(OUTSIDE("hard.bin")) },
    { "FIFO", QN_EFORMAT, "no regular file", MODEL(OUTSIDE("fifo")) },
    { "folder", QN_EFORMAT, "no regular file", MODEL(OUTSIDE("in")) },
    { "escape codes in a location", QN_ENOTFOUND, "\\x1b[2J", MODEL(OUTSIDE("\033[2J")) },
    { "offset past the end", QN_EFORMAT, "16 at offset 100", MODEL(OUTSIDE_AT("100", "16")) },
    { "offset of 2^64 - 1", QN_EFORMAT, "has 16 bytes",
      MODEL(OUTSIDE_AT("18446744073709551615", "16")) },
    { "offset over 2^64", QN_EFORMAT, "is no offset",
      MODEL(OUTSIDE_AT("99999999999999999999", "16")) },
    { "offset -1", QN_EFORMAT, "'-1' is no offset", MODEL(OUTSIDE_AT("-1", "16")) },
    { "length in hex", QN_EFORMAT, "'0x10' is no offset", MODEL(OUTSIDE_AT("0", "0x10")) },
    { "length over the end", QN_EFORMAT, "17 at offset 0", MODEL(OUTSIDE_AT("0", "17")) },
    { "length unlike the dims", QN_EFORMAT, "has 8 bytes", MODEL(OUTSIDE_AT("0", "8")) },
    { "inside and outside", QN_EFORMAT, "in the file too",
      MODEL("5{8\"w\"2=1 1=1 14=1 9#00000000 13{1\"location\"2\"data.bin\"}}") },
    { "in an attribute", QN_EFORMAT, "not a plain path",
      MODEL(TENSOR_ATTR("4", "5{2=1 1=4 14=1 13{1\"location\"2\"../d\"}}")) },
    { "in a list of tensors", QN_EFORMAT, "not a plain path",
      MODEL(TENSOR_ATTR("9", "10{2=1 1=4 14=1 13{1\"location\"2\"../d\"}}")) },
    { "in a sparse attribute", QN_EFORMAT, "not a plain path",
      MODEL(TENSOR_ATTR("11", "22{1{2=1 1=4 14=1 13{1\"location\"2\"../d\"}}2{2=7 1=0}3=4}")) },
    { "in sparse indices", QN_EFORMAT, "not a plain path",
      MODEL("15{1{8\"s\"2=1 1=1 9#00000000}2{2=7 1=1 14=1 13{1\"location\"2\"../d\"}}3=4}") },
    { "in sparse values", QN_EFORMAT, "not a plain path",
      MODEL("15{1{8\"s\"2=1 1=1 14=1 13{1\"location\"2\"../d\"}}2{2=7 1=1 7=0}3=4}") },
    { "in a subgraph", QN_EFORMAT, "not a plain path",
      MODEL("1{4\"If\"5{1\"then_branch\"20=5 6{" OUTSIDE("../d") "}}}") },
    { "in a function", QN_EFORMAT, "not a plain path",
      MODEL(X ADD) FUNCTION("F", "7{4\"Constant\"2\"b\"5{1\"value\"20=4 "
                                 "5{2=1 1=4 14=1 13{1\"location\"2\"../d\"}}}}") },
    { "in a function's default", QN_EFORMAT, "not a plain path",
      MODEL(X ADD) "25{1\"F\"10\"f\"11{1\"v\"20=4 5{2=1 1=4 14=1 13{1\"location\"2\"../d\"}}}}" },
};

/* ---- running them ---------------------------------------------------------------------------- */

/* Reads, and where that goes well runs, a model that lies at `path`. */
static QnStatus run_file(const char *path)
{
    QnOnnxModel *m = NULL;
    QnDevice *d = NULL;
    QnArena *arena = qn_arena_new();
    QnStatus st = arena ? qn_onnx_read(path, &m) : QN_ENOMEM;
    if (st == QN_OK)
        st = qn_device_open_named("cpu", &(QnDeviceOptions){ .n_threads = 1 }, &d);
    if (st == QN_OK) {
        QnItem *in[8] = { NULL }, *out[8] = { NULL };
        st = m->graph->n_inputs > 8 || m->graph->n_outputs > 8
                 ? QN_EARG
                 : qn_onnx_run(m, d, in, arena, out, NULL);
    }
    qn_device_close(d);
    qn_onnx_free(m);
    qn_arena_free(arena);
    return st;
}

static QnStatus run_wire(const char *text)
{
    Wire *w = calloc(1, sizeof *w);
    if (!w || *wire_parse(w, text))
        abort();
    const char *path = temp_file("bad.onnx", w->data, w->n);
    free(w);
    return run_file(path);
}

static void skip_without_onnx(void)
{
    if (run_wire("") == QN_EUNSUPPORTED)
        skip_because("built without protobuf-c");
}

static void check(const Bad *b)
{
    uint64_t before = qn_alloc_bytes();
    qn_error_clear();
    QnStatus st = run_wire(b->wire);
    const QnError *e = qn_error_last();
    if (st != b->status || e->code != st || !strstr(e->text, b->words))
        fail_msg("%s: %s \"%s\", expected %s with \"%s\"", b->name, qn_status_name(st), e->text,
                 qn_status_name(b->status), b->words);
    for (const char *p = e->text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            fail_msg("%s: a control character in \"%s\"", b->name, e->text);
    if (qn_alloc_bytes() - before > 4u << 20)
        fail_msg("%s: %llu bytes were taken", b->name,
                 (unsigned long long)(qn_alloc_bytes() - before));
}

#define CHECK_ALL(table)                                                                           \
    skip_without_onnx();                                                                           \
    for (size_t i_ = 0; i_ < QN_COUNT(table); i_++)                                                \
    check(&(table)[i_])

static void test_bytes(void **state)
{
    CHECK_ALL(bytes);
}

static void test_models(void **state)
{
    CHECK_ALL(models);
}

static void test_graphs(void **state)
{
    CHECK_ALL(graphs);
}

static void test_tensors(void **state)
{
    CHECK_ALL(tensors);
}

static void test_outside(void **state)
{
    static const char zeros[16];
    (void)temp_file("data.bin", zeros, sizeof zeros);
    (void)temp_file("hard.bin", zeros, sizeof zeros);
    assert_int_equal(link(temp_path("hard.bin"), temp_path("hard2.bin")), 0);
    assert_int_equal(symlink("/etc/passwd", temp_path("link.bin")), 0);
    assert_int_equal(symlink("/etc", temp_path("linked")), 0);
    assert_int_equal(mkfifo(temp_path("fifo"), 0600), 0);
    assert_int_equal(mkdir(temp_path("in"), 0700), 0);
    CHECK_ALL(outsides);
}
