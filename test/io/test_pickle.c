/* Pickles that are more than data, or not even that. labels: io */
#include "pickle_make.h"
#include "temp.h"

#include "base/file.h"
#include "base/mem.h"
#include "io/torch_file.h"

/* Opens an archive around this pickle. */
static QnStatus open_pickle(const void *pickle, size_t n, QnTorchFile **f)
{
    ZipMake z = { 0 };
    pk_archive(&z, pickle, n, NULL, 0);
    QnStatus st = qn_torch_file_parse("m.pt", z.file.s, z.file.n, f);
    zip_fini(&z);
    return st;
}

static void test_malicious_pickles(void **state)
{
#define P(text) PK_PROTO text, sizeof(PK_PROTO text) - 1
    static const struct {
        const char *pickle;
        size_t n;
        const char *words;
    } cases[] = {
        { P("cos\nsystem\n(X\2\0\0\0idtR."), "global os.system is not allowed" },
        { P("cposix\nsystem\n(X\2\0\0\0idtR."), "global posix.system is not allowed" },
        { P("cbuiltins\neval\n(X\1\0\0\0"
            "1tR."),
          "global builtins.eval is not allowed" },
        { P("c__builtin__\nexec\n(X\1\0\0\0"
            "1tR."),
          "global __builtin__.exec is not allowed" },
        { P("csubprocess\nPopen\n)R."), "global subprocess.Popen is not allowed" },
        { P("cbuiltins\ngetattr\n(ctorch\nSize\nX\3\0\0\0abctR."), "builtins.getattr is not" },
        { P("ctorch\nload\n(X\1\0\0\0xtR."), "global torch.load is not allowed" },
        { P("ctorch.hub\nload\n)R."), "global torch.hub.load is not allowed" },
        { P("ctorch._utils\n_rebuild_sparse_tensor\n)R."), "_rebuild_sparse_tensor is not" },
        { P("cnumpy.core.multiarray\nscalar\n)R."), "global numpy.core.multiarray.scalar" },
        { P("ccollections.OrderedDict\n__init__\n)R."), "OrderedDict.__init__ is not" },
        { P("ctorch\nSize.__class__\n)R."), "global torch.Size.__class__ is not" },
        { P("X\2\0\0\0osX\6\0\0\0system\x93)R."), "global os.system is not allowed" },
        { P("ios\nsystem\n."), "INST: this opcode is not allowed" },
        { P("(cos\nsystem\no."), "global os.system" },
        { P("(ctorch\nSize\no."), "OBJ: this opcode is not allowed" },
        { P("ctorch\nSize\n)\x81."), "NEWOBJ: this opcode is not allowed" },
        { P("ctorch\nSize\n)}\x92."), "NEWOBJ_EX: this opcode is not allowed" },
        { P("\x82\1."), "EXT1: this opcode is not allowed" },
        { P("\x83\1\0."), "EXT2: this opcode is not allowed" },
        { P("\x84\1\0\0\0."), "EXT4: this opcode is not allowed" },
        { P("Pid\n."), "PERSID: this opcode is not allowed" },
        { P("\x97."), "NEXT_BUFFER: this opcode is not allowed" },
        { P("ctorch\nSize\n)R}b."), "BUILD: sets the state of something that is not a dict" },
        { P("}q\1NR."), "REDUCE: takes a name and a tuple" },
        { P("X\6\0\0\0system)R."), "REDUCE: takes a name and a tuple" },
        { P(PK_ORDERED_DICT "N\x85R."), "REDUCE: takes a name" },
        { P("ccollections\nOrderedDict\n]\x85R."), "a dict with arguments" },
        { P("}2."), "DUP: this opcode is not allowed" },
        { P("S'a'\n."), "STRING: this opcode is not allowed" },
        { P("I1\n."), "INT: this opcode is not allowed" },
        { P("\xff."), "0xff is no opcode" },
        { P("}"), "ends without STOP" },
        { P("."), "STOP: leaves other than one value" },
        { P("}}."), "STOP: leaves other than one value" },
        { P("(}."), "STOP: leaves other than one value" },
        { P("}.N"), "STOP: more bytes follow" },
        { P("s."), "takes more values than there are" },
        { P("}(K\1s."), "takes more values than there are" }, /* not below a mark */
        { P("t."), "there is no mark" },
        { P("}K\1a."), "APPEND: what it adds to is no list" },
        { P("]K\1K\2s."), "SETITEM: what it adds to is no dict" },
        { P("}(K\1u."), "a key without a value" },
        { P("h\1."), "BINGET: the memo has no such entry" },
        { P("j\xff\xff\xff\xff."), "LONG_BINGET: the memo has no such entry" },
        { P("}r\xff\xff\xff\x7f."), "a memo of more entries than the pickle has bytes" },
        { P("q\1."), "the stack is empty" },
        { P("X\xff\xff\xff\xff"
            "abc."),
          "BINUNICODE: the pickle is cut short" },
        { P("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
            "abc."),
          "cut short" },
        { P("X\2\0\0\0\xc0\xaf."), "not UTF-8" },
        { P("\x8a\x09"
            "123456789."),
          "more than 64 bits" },
        { P("\x80\2}."), "stands in the middle" },
        { P("\x95\xff\0\0\0\0\0\0\0}."), "FRAME: the pickle is cut short" },
        { P("cos\nsystem"), "cut short" },
        { P("]q\1h\1a."), "nested too deep, or in itself" },
        { P("}q\1X\1\0\0\0ah\1s."), "nested too deep, or in itself" },
        { P("}}K\1s."), "a key that is neither" },
        { P("}X\1\0\0\0a(NtQs."), "a storage without a tensor" },
        { P("ctorch._utils\n_rebuild_tensor_v2\n)R."), "is not described as PyTorch does" },
        { P("ctorch._utils\n_rebuild_parameter\n)R."), "a parameter without a tensor" },
    };
#undef P
    QnTorchFile *f;
    for (int i = 0; i < QN_COUNT(cases); i++) {
        assert_fails(open_pickle(cases[i].pickle, cases[i].n, &f), QN_EFORMAT, cases[i].words);
        assert_contains(qn_error_last()->text, "m.pt");
    }
    assert_fails(open_pickle("\x80\1}.", 4, &f), QN_EFORMAT, "protocols 2 to 5");
    assert_fails(open_pickle("\x80\6}.", 4, &f), QN_EFORMAT, "protocols 2 to 5");
    assert_fails(open_pickle("}.", 2, &f), QN_EFORMAT, "no pickle of protocol 2 to 5");
    assert_fails(open_pickle("", 0, &f), QN_EFORMAT, "ends without STOP");
}

static void test_a_pickle_that_unpacks_to_too_much(void **state)
{
    static char tuples[1 << 20]; /* empty ones: one byte, and 64 in memory */
    QnTorchFile *f;
    QnZipWriter *w;
    char *data;
    size_t n;
    memset(tuples, ')', sizeof tuples);
    const char *path = temp_path("bomb.pt");
#ifndef QN_HAVE_ZLIB
    skip_because("zlib is not there");
#endif
    assert_ok(qn_zip_create(path, &w));
    assert_ok(qn_zip_add(w, "a/data.pkl", &(QnZipPart){ tuples, sizeof tuples }, 1, true));
    assert_ok(qn_zip_commit(w));
    assert_ok(qn_file_read(path, 1 << 20, &data, &n));
    assert_true(n < 4096);
    assert_fails(qn_torch_file_parse("m.pt", data, n, &f), QN_EFORMAT,
                 "a pickle that unpacks to 1048576 bytes in an archive of ");
    qn_free(data);
}

/* 2^40 values from 100 bytes: each list holds the one before it twice. */
static void test_values_that_multiply(void **state)
{
    QnStr s = { 0 };
    QnTorchFile *f;
    qn_str_add(&s, PK_PROTO "]q\1");
    for (char i = 1; i < 40; i++) {
        char op[] = { ']', '(', 'h', i, 'h', i, 'e', 'q', (char)(i + 1) };
        qn_str_add_bytes(&s, op, sizeof op);
    }
    QnStr t = { 0 };
    qn_str_add(&t, PK_PROTO "(");
    qn_str_add_bytes(&t, s.s + 2, s.n - 2);
    qn_str_add(&t, "t.");
    assert_fails(open_pickle(t.s, t.n, &f), QN_EFORMAT, "repeated without end");
    qn_str_fini(&s);
    qn_str_fini(&t);
}

/* Nothing at all, in each way that takes nothing from an empty stack. */
static void test_empty_values(void **state)
{
    static const char *const pickles[] = { PK_PROTO ").", PK_PROTO "(t.", PK_PROTO "}(u.",
                                           PK_PROTO "](e.", PK_PROTO "N." };
    QnTorchFile *f;
    for (int i = 0; i < QN_COUNT(pickles); i++) {
        assert_ok(open_pickle(pickles[i], strlen(pickles[i]), &f));
        assert_int_equal(qn_torch_file_count(f), 0);
        qn_torch_file_close(f);
    }
}
