/* Files that are no models, failures of memory while one is read, and what odd but good ones hold.
 * labels: onnx */
#include "io/temp.h"
#include "wire.h"

#include "base/fault.h"
#include "base/mem.h"
#include "onnx/onnx.h"

#include <errno.h>
#include <fcntl.h>

static const char *wire_file(const char *name, const char *text)
{
    Wire *w = calloc(1, sizeof *w);
    if (!w || *wire_parse(w, text))
        abort();
    const char *path = temp_file(name, w->data, w->n);
    free(w);
    return path;
}

static void read_or_skip(const char *path, QnOnnxModel **out)
{
    QnStatus st = qn_onnx_read(path, out);
    if (st == QN_EUNSUPPORTED && strstr(qn_error_last()->text, "built without"))
        skip_because("built without protobuf-c");
    if (st != QN_OK)
        fail_msg("%s", qn_error_last()->text);
}

/* ---- sparse tensors -------------------------------------------------------------------------- */

static void check_sparse(const char *wire)
{
    static const float expected[] = { 0, 1, 0, 0, 0, 2 };
    QnOnnxModel *m = NULL;
    read_or_skip(wire_file("sparse.onnx", wire), &m);
    assert_int_equal(m->graph->n_inits, 1);
    assert_string_equal(m->graph->init[0].name, "s");
    const QnTensor *t = m->graph->init[0].tensor;
    assert_true(qn_shape_is_equal(&t->type.shape, &QN_SHAPE(2, 3)));
    assert_memory_equal(t->data, expected, sizeof expected);
    qn_onnx_free(m);
}

static void test_sparse(void **state)
{
    check_sparse(
        MODEL("15{1{8\"s\"2=1 1=2 9#0000803f00000040}2{2=7 1=2 7=1 7=5}3=2 3=3}")); /* counted */
    check_sparse(
        MODEL(/* by row and column */
              "15{1{8\"s\"2=1 1=2 9#0000803f00000040}2{2=7 1=2 1=2 7=0 7=1 7=1 7=2}3=2 3=3}"));
}

static void test_sparse_strings(void **state)
{
    QnOnnxModel *m = NULL;
    read_or_skip(wire_file("text.onnx", MODEL("15{1{8\"s\"2=8 1=1 6\"ab\"}2{2=7 1=1 7=1}3=3}")),
                 &m);
    const QnTensor *t = m->graph->init[0].tensor;
    assert_non_null(t->text);
    assert_int_equal(t->text[0].n, 0);
    assert_int_equal(t->text[1].n, 2);
    assert_memory_equal(t->text[1].s, "ab", 2);
    qn_onnx_free(m);
}

/* Booleans are 0 or 1 whatever the file has. */
static void test_booleans(void **state)
{
    static const unsigned char expected[] = { 1, 0, 1 };
    QnOnnxModel *m = NULL;
    read_or_skip(wire_file("bool.onnx", MODEL("5{8\"a\"2=9 1=3 9#0700ff}"
                                              "5{8\"b\"2=9 1=3 5=256 5=0 5=-1}")),
                 &m);
    assert_memory_equal(m->graph->init[0].tensor->data, expected, sizeof expected);
    assert_memory_equal(m->graph->init[1].tensor->data, expected, sizeof expected);
    qn_onnx_free(m);
}

/* ---- files of other kinds -------------------------------------------------------------------- */

static void test_no_model(void **state)
{
    QnOnnxModel *m = NULL;
    if (qn_onnx_read(temp_file("empty", "", 0), &m) == QN_EUNSUPPORTED)
        skip_because("built without protobuf-c");
    assert_fails(qn_onnx_read(temp_path("missing"), &m), QN_ENOTFOUND, "No such file");
    assert_fails(qn_onnx_read("/nowhere/model.onnx", &m), QN_ENOTFOUND, "No such file");
    assert_fails(qn_onnx_read("/tmp", &m), QN_EARG, "not a regular file");
    assert_fails(qn_onnx_read("/dev/zero", &m), QN_EARG, "not a regular file");
    assert_int_equal(mkfifo(temp_path("pipe"), 0600), 0);
    assert_fails(qn_onnx_read(temp_path("pipe"), &m), QN_EARG, "not a regular file");
    assert_fails(qn_onnx_read(temp_file("text", "nothing of the kind\n", 20), &m), QN_EFORMAT,
                 "byte");
    assert_null(m);
}

/* A file of 3 GB that is one hole, and numbers behind it. */
static void test_large_outside(void **state)
{
    static const float four[] = { 1, 2, 3, 4 };
    const off_t at = (off_t)3 << 30;
    QnOnnxModel *m = NULL;
    struct stat info;
    int fd = open(temp_path("large.bin"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    bool made = fd >= 0 && pwrite(fd, four, sizeof four, at) == (ssize_t)sizeof four &&
                fstat(fd, &info) == 0;
    if (fd >= 0)
        close(fd);
    if (!made || (int64_t)info.st_blocks * 512 > 1 << 20) {
        unlink(temp_path("large.bin"));
        skip_because("this file system has no holes");
    }
    read_or_skip(wire_file("large.onnx",
                           MODEL("5{8\"w\"2=1 1=4 14=1 13{1\"location\"2\"large.bin\"}13{1\"offset"
                                 "\"2\"3221225472\"}13{1\"length\"2\"16\"}}")),
                 &m);
    assert_memory_equal(m->graph->init[0].tensor->data, four, sizeof four);
    qn_onnx_free(m);
}

/* ---- failures -------------------------------------------------------------------------------- */

#define GOOD                                                                                       \
    HEAD "8{1\"f\"2=1}14{1\"key\"2\"value\"}"                                                      \
         "7{2\"g\"" FLOATS(                                                                        \
             "x", "1=1",                                                                           \
             "0000803f") "5{8\"text\"2=8 1=1 6\"a\"}"                                              \
                         "5{8\"half\"2=10 1=1 5=15360}5{8\"out\"2=1 1=2 14=1 "                     \
                         "13{1\"location\"2\"two.bin\"}}"                                          \
                         "15{1{8\"s\"2=1 1=1 9#0000803f}2{2=7 1=1 7=1}3=2}"                        \
                         "1{4\"If\"" IN("c") TO("z") "5{1\"then_branch\"20=5 6{" OP(               \
                             "Neg", IN("y") TO("t"))                                               \
                             RESULT("t") "}}5{1\"else_branch\"20=5 6{" RESULT("x") "}}}" OP(       \
                                 "Add",                                                            \
                                 IN("x") IN("x")                                                   \
                                     TO("y")) "11{1\"c\"2{1{1=9}}}" RESULT("z") "}"                \
                                                                                "25{"              \
                                                                                "1\"F\"10\"f\"4\"" \
                                                                                "a\"5\"b\"9{2=17}" \
                                                                                "11{1\"k\"20=2 "   \
                                                                                "3=1}7{"           \
                                                                                "4\"Neg\"1\"a\"2"  \
                                                                                "\"b\"}}"

/* Each allocation and each system call fails once: an error, nothing left behind (the address
 * sanitizer's build sees leaks), and the next reading works. */
static void test_faults(void **state)
{
    static const float two[2];
    QnOnnxModel *m = NULL;
    (void)temp_file("two.bin", two, sizeof two);
    char *path = qn_strdup(wire_file("good.onnx", GOOD));
    read_or_skip(path, &m);
    assert_int_equal(m->graph->n_inits, 5);
    qn_onnx_free(m);
    int64_t n = 1;
    for (;; n++) {
        m = NULL;
        qn_fault_arm(n);
        QnStatus st = qn_onnx_read(path, &m);
        bool all = qn_fault_events() < n;
        qn_fault_arm(0);
        if (st == QN_OK && all)
            break;
        if (st == QN_OK)
            fail_msg("event %lld failed unseen", (long long)n);
        if (st != QN_ENOMEM && st != QN_EIO)
            fail_msg("event %lld: %s: %s", (long long)n, qn_status_name(st), qn_error_last()->text);
        assert_null(m);
    }
    assert_true(n > 40);
    qn_onnx_free(m);
    qn_free(path);
}
