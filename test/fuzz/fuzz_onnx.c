/* ONNX models and the values given to them: whatever is read is imported, and run with a megabyte
 * and a thousand nodes. Bytes that begin with 'v' are a value: of the kind that the second says. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "onnx/onnx.h"
#include "onnx/wire.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* What the fuzzer begins with and comes back to. */
#define SCALAR(name, v) INTS(name, "", "7=" v)
#define BODY(graph)     "5{1\"body\"20=5 6{2\"b\"" graph "}}"
static const char *const seeds[] = {
    MODEL(FLOATS("x", "1=2 1=2", "0000803f000000400000404000008040") FLOATS(
        "w", "1=2 1=2", "0000803f000000400000404000008040") OP("MatMul", IN("x") IN("w") TO("a"))
              OP("Relu", IN("a") TO("b")) OP("Softmax", IN("b") TO("y")) RESULT("y")),
    MODEL(SCALAR("n", "3") "5{8\"c\"2=9 9#01}" FLOATS("x", "1=1", "0000803f") "1{4\"Loop\"" IN("n")
              IN("c") IN("x") TO("y") TO("z")
                  BODY("11{1\"i\"}11{1\"k\"}11{1\"s\"}" OP("Add", IN("s") IN("s") TO("t"))
                           OP("Identity", IN("k") TO("l")) RESULT("l") RESULT("t")
                               RESULT("t")) "}" RESULT("y") RESULT("z")),
    MODEL(FLOATS("x", "1=2 1=1", "0000803f00000040")
              FLOATS("s", "1=1", "00000000") "1{4\"Scan\"" IN("s") IN("x") TO("y") TO("z") BODY(
                  "11{1\"a\"}11{1\"b\"}" OP("Add", IN("a") IN("b") TO("c"))
                      OP("Identity", IN("c") TO("d")) RESULT("c")
                          RESULT("d")) "5{1\"num_scan_inputs\"20=2 3=1}}" RESULT("y") RESULT("z")),
    MODEL("5{8\"c\"2=9 9#01}" FLOATS("x", "1=1", "0000803f") "1{4\"If\"" IN("c")
              TO("y") "5{1\"then_branch\"20=5 6{" OP("Neg", IN("x") TO("t"))
                  RESULT("t") "}}5{1\"else_branch\"20=5 6{" OP("Abs", IN("x") TO("u"))
                      RESULT("u") "}}}" RESULT("y")),
    HEAD "8{1\"f\"2=1}7{2\"g\"" FLOATS("x", "1=1", "0000803f") "1{4\"F\"7\"f\"" IN("x")
        TO("y") "}" RESULT(
            "y") "}25{1\"F\"10\"f\"4\"a\"5\"b\"9{2=17}6\"k\"7{4\"LeakyRelu\"1\"a\"2\"b\""
                 "5{1\"alpha\"20=1 21\"k\"}}}",
    MODEL("15{1{8\"s\"2=1 1=2 9#0000803f00000040}2{2=7 1=2 1=2 7=0 7=1 7=1 7=2}3=2 3=3}" INTS(
        "p", "1=1", "7=6") OP("Reshape", IN("s") IN("p") TO("y")) RESULT("y")),
    MODEL("5{8\"t\"2=8 1=2 6\"a\"6\"b\"}" SCALAR("n", "1") OP("Gather", IN("t") IN("n") TO("y"))
              RESULT("y")),
    MODEL(FLOATS("x", "1=1", "0000803f") SCALAR("n", "0") OP(
        "SequenceConstruct", IN("x") IN("x") TO("s")) OP("SequenceAt", IN("s") IN("n") TO("y"))
              OP("SequenceLength", IN("s") TO("l")) RESULT("y") RESULT("l")),
    MODEL(INTS("d", "1=2", "7=3 7=4") OP("ConstantOfShape", IN("d") TO("a"))
              INTS("e", "1=3", "7=2 7=3 7=4") OP("Expand", IN("a") IN("e") TO("b"))
                  OP("NonZero", IN("b") TO("y")) RESULT("y")),
    MODEL(SCALAR("a", "0") SCALAR("b", "9") SCALAR("c", "2")
              OP("Range", IN("a") IN("b") IN("c") TO("r")) INTS("k", "1=1", "7=3")
                  OP("Tile", IN("r") IN("k") TO("t"))
                      OP("Unique", IN("t") TO("u") TO("v") TO("w")) "1{4\"Cast\"" IN("u")
                          TO("y") "5{1\"to\"20=2 3=1}}" RESULT("y") RESULT("v")),
    MODEL(FLOATS("x", "1=1 1=1 1=2 1=2", "0000803f000000400000404000008040")
              FLOATS("w", "1=1 1=1 1=1 1=1", "0000803f") "1{4\"Conv\"" IN("x") IN("w")
                  TO("a") "5{1\"pads\"20=7 8=1 8=1 8=1 8=1}5{1\"strides\"20=7 8=1 8=1}}"
                          "1{4\"MaxPool\"" IN("a") TO(
                              "y") "5{1\"kernel_shape\"20=7 8=2 8=2}}"
                                   "1{4\"Resize\"" IN("a") "1\"\"1\"\"1\"z\"" TO(
                                       "q") "5{1\"mode\"20=3 4\"linear\"}}" INTS("z", "1=4",
                                                                                 "7=1 7=1 7=4 7=4")
                                       RESULT("y") RESULT("q")),
    MODEL("11{1\"x\"2{1{1=1 2{1{2\"n\"}1{1=3}}}}}" OP("Shape", IN("x") TO("s"))
              OP("ReduceSum", IN("x") TO("y")) RESULT("y") RESULT("s")),
};

/* Models are rarely found by chance. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static Wire w;
    if (size >= 8 && seed % 64)
        return LLVMFuzzerMutate(data, size, max_size);
    w.n = 0;
    wire_parse(&w, seeds[seed / 64 % QN_COUNT(seeds)]);
    size_t n = w.n < max_size ? w.n : max_size;
    memcpy(data, w.data, n);
    return n;
}

static void read_value(const uint8_t *data, size_t size)
{
    static const QnOnnxType tensor = { .kind = QN_ONNX_TYPE_TENSOR, .rank = -1 },
                            sequence = { .kind = QN_ONNX_TYPE_SEQUENCE, .of = &tensor },
                            optional = { .kind = QN_ONNX_TYPE_OPTIONAL, .of = &sequence };
    char path[64];
    const QnOnnxType *type = data[1] % 3 == 0 ? &tensor : data[1] % 3 == 1 ? &sequence : &optional;
    int fd = memfd_create("value", 0);
    QnArena *arena = qn_arena_new();
    QnItem *item = NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd >= 0 && arena && write(fd, data + 2, size - 2) == (ssize_t)(size - 2))
        (void)qn_onnx_read_value(path, type, arena, &item);
    qn_arena_free(arena);
    close(fd);
}

static void run(const QnOnnxModel *m, QnDevice *d)
{
    const QnOnnxGraph *g = m->graph;
    const QnOnnxLimits limits = { .bytes = 1 << 20, .nodes = 1000 };
    QnOnnxImportOptions o = { .limits = limits, .batch = 1, .states = true };
    QnGraph *graph = NULL;
    QnArena *arena = qn_arena_new();
    if (qn_onnx_import(m, d, &o, &graph, NULL) == QN_OK)
        qn_graph_free(graph);
    QnItem **in = qn_arena_array(arena, (size_t)g->n_inputs + 1, sizeof *in);
    QnItem **out = qn_arena_array(arena, (size_t)g->n_outputs + 1, sizeof *out);
    if (in && out)
        (void)qn_onnx_run_with(m, d, in, arena, out, NULL, &(QnOnnxRunOptions){ .limits = limits });
    qn_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    QnOnnxModel *m = NULL;
    QnDevice *d = NULL;
    if (size >= 2 && data[0] == 'v') {
        read_value(data, size);
        return 0;
    }
    if (qn_onnx_read_bytes(data, size, "f", NULL, &m) != QN_OK)
        return 0;
    if (qn_device_open_named("cpu", &(QnDeviceOptions){ .n_threads = 1 }, &d) == QN_OK)
        run(m, d);
    qn_device_close(d);
    qn_onnx_free(m);
    return 0;
}
