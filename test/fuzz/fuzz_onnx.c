/* ONNX models and the values given to them: whatever is read is imported, and run with a megabyte
 * and a thousand nodes. Bytes that begin with 'v' are a value: of the kind that the second says. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "onnx/mapping.h"
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

/* ---- changes that leave the lengths right: bytes changed at random rarely do ------------------
 */

typedef struct Change {
    unsigned random;
    int64_t at, target; /* counted fields; the one to change */
} Change;

static unsigned roll(Change *c, unsigned sides)
{
    c->random ^= c->random << 13;
    c->random ^= c->random >> 17;
    c->random ^= c->random << 5;
    return c->random % sides;
}

static uint64_t take_number(const uint8_t **p, const uint8_t *end)
{
    uint64_t v = 0;
    for (int shift = 0; *p < end && shift < 64; shift += 7) {
        v |= (uint64_t)(**p & 0x7f) << shift;
        if (*(*p)++ < 0x80)
            break;
    }
    return v;
}

/* One field; its payload from *body to *p. false: these bytes are no message. */
static bool take_field(const uint8_t **p, const uint8_t *end, uint64_t *tag, const uint8_t **body)
{
    *tag = take_number(p, end);
    *body = *p;
    if (*tag >> 3 == 0 || *tag >> 3 > 100)
        return false;
    uint64_t n = (*tag & 7) == 1 ? 8 : (*tag & 7) == 5 ? 4 : 0;
    if ((*tag & 7) == 2) {
        n = take_number(p, end);
        *body = *p;
    } else if ((*tag & 7) == 0) {
        (void)take_number(p, end);
    } else if (!n) {
        return false;
    }
    if (n > (uint64_t)(end - *p))
        return false;
    *p += n;
    return true;
}

static bool is_message(const uint8_t *p, const uint8_t *end)
{
    uint64_t tag;
    const uint8_t *body;
    bool whole = p < end;
    while (whole && p < end)
        whole = take_field(&p, end, &tag, &body);
    return whole;
}

/* An operator's name for a text, an interesting number for a number, other bytes for bytes. */
static void put_other(Change *c, uint64_t tag, const uint8_t *body, size_t n, Wire *out)
{
    static const int64_t numbers[] = { 0,   1,  2,         3,     4,         5,         6,
                                       7,   8,  9,         10,    11,        12,        13,
                                       16,  64, 1000,      -1,    -2,        INT32_MAX, INT64_MAX,
                                       255, 20, 1LL << 40, 65536, INT64_MIN, INT32_MIN };
    QnMapping m;
    uint8_t bytes[300];
    int64_t i = roll(c, 400);
    wire_number(out, tag);
    if ((tag & 7) == 0) {
        wire_number(out, (uint64_t)numbers[roll(c, QN_COUNT(numbers))]);
    } else if ((tag & 7) != 2) {
        for (size_t k = 0; k < n; k++)
            wire_put(out, &(uint8_t){ (uint8_t)roll(c, 256) }, 1);
    } else if (n > 2 && n < 24 && body[0] >= 'A' && body[0] <= 'Z' && qn_mapping_next(&i, &m)) {
        wire_number(out, strlen(m.map->name));
        wire_put(out, m.map->name, strlen(m.map->name));
    } else {
        n = n < 200 ? n : 200;
        memcpy(bytes, body, n);
        n = LLVMFuzzerMutate(bytes, n, sizeof bytes);
        wire_number(out, n);
        wire_put(out, bytes, n);
    }
}

static void copy_message(Change *c, const uint8_t *p, const uint8_t *end, Wire *out)
{
    while (p < end) {
        uint64_t tag;
        const uint8_t *start = p, *body;
        if (!take_field(&p, end, &tag, &body))
            return;
        int how = c->at++ == c->target ? (int)roll(c, 6) : -1;
        if (how > 1) {
            put_other(c, tag, body, (size_t)(p - body), out);
        } else if (how < 0 && (tag & 7) == 2 && is_message(body, p)) {
            Wire *in = calloc(1, sizeof *in);
            if (!in)
                abort();
            copy_message(c, body, p, in);
            wire_block(out, tag >> 3, in->data, in->n);
            free(in);
        } else { /* as it is; 0: not at all; 1: twice */
            for (int i = how < 0 ? 1 : 2 * how; i > 0; i--)
                wire_put(out, start, (size_t)(p - start));
        }
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static Wire w, changed;
    Change c = { .random = seed | 1, .target = -1 };
    w.n = changed.n = 0;
    if (size < 8 || seed % 64 == 0) {
        wire_parse(&w, seeds[seed / 64 % QN_COUNT(seeds)]);
    } else {
        if (seed % 4 == 0 || !is_message(data, data + size))
            return LLVMFuzzerMutate(data, size, max_size);
        copy_message(&c, data, data + size, &w); /* counts */
        c.target = c.at ? (int64_t)roll(&c, (unsigned)c.at) : -1;
        c.at = 0;
        copy_message(&c, data, data + size, &changed);
        w = changed;
    }
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

/* Zeros for an input of numbers that has not too many. */
static QnItem *zeros_for(const QnOnnxInfo *info, QnArena *arena)
{
    const QnOnnxType *t = info->type;
    QnTensor *zeros = qn_arena_alloc(arena, sizeof *zeros);
    QnItem *item = qn_arena_alloc(arena, sizeof *item);
    if (!zeros || !item || t->kind != QN_ONNX_TYPE_TENSOR || t->rank < 0 ||
        !qn_onnx_dtype(t->elem, &zeros->type.dtype))
        return NULL;
    zeros->type.shape.rank = t->rank;
    for (int i = 0; i < t->rank; i++)
        zeros->type.shape.dim[i] = t->dim[i] < 0 ? 2 : t->dim[i];
    int64_t bytes = qn_type_bytes(&zeros->type);
    if (bytes < 0 || bytes > 4096 || !(zeros->data = qn_arena_alloc(arena, (size_t)bytes + 1)))
        return NULL;
    *item = (QnItem){ .kind = QN_ITEM_TENSOR, .epoch = -1, .known = zeros, .name = info->name };
    return item;
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
    for (int64_t i = 0; in && i < g->n_inputs; i++)
        in[i] = zeros_for(&g->input[i], arena);
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
