#include "io/pickle_impl.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

typedef QnStatus Operation(QnPickleMachine *m, int arg);
typedef struct Op {
    const char *name;
    Operation *run; /* NULL: known and refused */
    int arg;
} Op;
static const Op ops[256];

QnStatus qn_pickle_fail(const QnPickleMachine *m, const char *why)
{
    const char *name = m->op_at < m->size ? ops[m->data[m->op_at]].name : NULL;
    return qn_fail(QN_EFORMAT, "%s: byte %zu: pickle: %s: %s", m->name, m->op_at,
                   name ? name : "opcode", why);
}

/* ---- the stack ---- */

static int64_t floor_of(const QnPickleMachine *m)
{
    return m->n_marks ? m->marks[m->n_marks - 1] : 0;
}

QnStatus qn_pickle_push(QnPickleMachine *m, QnPickle *v)
{
    if (!v)
        return QN_ENOMEM;
    QN_TRY(QN_GROW(m->stack, m->cap, m->n));
    m->stack[m->n++] = v;
    return QN_OK;
}

QnPickle *qn_pickle_make(QnPickleMachine *m, QnPickleKind kind)
{
    QnPickle *v = qn_arena_alloc(m->arena, sizeof *v);
    if (v) {
        v->kind = kind;
        v->offset = m->op_at;
    }
    return v;
}

QnStatus qn_pickle_pop(QnPickleMachine *m, int64_t n, QnPickle ***out)
{
    if (m->n - floor_of(m) < n)
        return qn_pickle_fail(m, "takes more values than there are");
    m->n -= n;
    *out = m->stack ? m->stack + m->n : NULL; /* nothing of nothing */
    return QN_OK;
}

QnStatus qn_pickle_pop_to_mark(QnPickleMachine *m, QnPickle ***out, int64_t *n)
{
    if (!m->n_marks)
        return qn_pickle_fail(m, "there is no mark");
    int64_t from = m->marks[--m->n_marks];
    *n = m->n - from;
    m->n = from;
    *out = m->stack ? m->stack + from : NULL;
    return QN_OK;
}

QnStatus qn_pickle_top(QnPickleMachine *m, QnPickle **out)
{
    if (m->n <= floor_of(m))
        return qn_pickle_fail(m, "the stack is empty");
    *out = m->stack[m->n - 1];
    return QN_OK;
}

/* ---- bytes of the pickle ---- */

static QnStatus take(QnPickleMachine *m, size_t n, const uint8_t **out)
{
    if (n > m->size - m->at)
        return qn_pickle_fail(m, "the pickle is cut short");
    *out = m->data + m->at;
    m->at += n;
    return QN_OK;
}

QnStatus qn_pickle_take_uint(QnPickleMachine *m, int bytes, uint64_t *out)
{
    const uint8_t *p = NULL;
    QN_TRY(take(m, (size_t)bytes, &p));
    *out = 0;
    for (int i = bytes - 1; i >= 0; i--)
        *out = *out << 8 | p[i];
    return QN_OK;
}

/* ---- operations ---- */

static QnStatus op_proto(QnPickleMachine *m, int arg)
{
    uint64_t version = 0;
    (void)arg;
    QN_TRY(qn_pickle_take_uint(m, 1, &version));
    if (m->op_at)
        return qn_pickle_fail(m, "stands in the middle");
    return version >= 2 && version <= 5 ? QN_OK : qn_pickle_fail(m, "protocols 2 to 5 are known");
}

static QnStatus op_frame(QnPickleMachine *m, int arg)
{
    uint64_t n = 0;
    QN_TRY(qn_pickle_take_uint(m, arg, &n));
    return n <= m->size - m->at ? QN_OK : qn_pickle_fail(m, "the pickle is cut short");
}

static QnStatus op_stop(QnPickleMachine *m, int arg)
{
    (void)arg;
    if (m->n != 1 || m->n_marks)
        return qn_pickle_fail(m, "leaves other than one value");
    if (m->at != m->size)
        return qn_pickle_fail(m, "more bytes follow");
    m->stopped = true;
    return QN_OK;
}

static QnStatus op_mark(QnPickleMachine *m, int arg)
{
    (void)arg;
    QN_TRY(QN_GROW(m->marks, m->cap_marks, m->n_marks));
    m->marks[m->n_marks++] = m->n;
    return QN_OK;
}

static QnStatus op_none(QnPickleMachine *m, int arg)
{
    (void)arg;
    return qn_pickle_push(m, qn_pickle_make(m, QN_PICKLE_NONE));
}

static QnStatus op_bool(QnPickleMachine *m, int arg)
{
    QnPickle *v = qn_pickle_make(m, QN_PICKLE_BOOL);
    if (v)
        v->boolean = arg;
    return qn_pickle_push(m, v);
}

/* arg: bytes, negative if signed; 0: a length and so many bytes (LONG1) */
static QnStatus op_int(QnPickleMachine *m, int arg)
{
    uint64_t n = (uint64_t)(arg < 0 ? -arg : arg), bits = 0;
    if (!arg)
        QN_TRY(qn_pickle_take_uint(m, 1, &n));
    if (n > 8)
        return qn_pickle_fail(m, "an integer of more than 64 bits");
    QN_TRY(qn_pickle_take_uint(m, (int)n, &bits));
    if (arg <= 0 && n && n < 8 && bits >> (8 * n - 1)) /* the sign, extended */
        bits |= ~UINT64_C(0) << (8 * n);
    QnPickle *v = qn_pickle_make(m, QN_PICKLE_INT);
    if (v)
        v->integer = (int64_t)bits;
    return qn_pickle_push(m, v);
}

static QnStatus op_float(QnPickleMachine *m, int arg)
{
    const uint8_t *p = NULL;
    uint64_t bits = 0;
    QN_TRY(take(m, (size_t)arg, &p));
    for (int i = 0; i < arg; i++)
        bits = bits << 8 | p[i];
    QnPickle *v = qn_pickle_make(m, QN_PICKLE_FLOAT);
    if (v)
        memcpy(&v->number, &bits, sizeof v->number);
    return qn_pickle_push(m, v);
}

QnStatus qn_pickle_push_text(QnPickleMachine *m, QnPickleKind kind, const void *text, size_t n)
{
    QnPickle *v = qn_pickle_make(m, kind);
    char *copy = v ? qn_arena_alloc(m->arena, n + 1) : NULL;
    if (!copy)
        return QN_ENOMEM;
    if (n)
        memcpy(copy, text, n);
    v->string = copy;
    v->n = (int64_t)n;
    return qn_pickle_push(m, v);
}

QnStatus qn_pickle_check_utf8(const QnPickleMachine *m, const char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        int k = qn_utf8_length(p + i, n - i);
        if (!k)
            return qn_pickle_fail(m, "a text that is not UTF-8");
        i += (size_t)k;
    }
    return QN_OK;
}

/* arg: bytes of the length */
static QnStatus op_string(QnPickleMachine *m, int arg)
{
    uint64_t n = 0;
    const uint8_t *p = NULL;
    QN_TRY(qn_pickle_take_uint(m, arg, &n));
    QN_TRY(take(m, n, &p));
    QN_TRY(qn_pickle_check_utf8(m, (const char *)p, n));
    return qn_pickle_push_text(m, QN_PICKLE_STRING, p, n);
}

static QnStatus op_bytes(QnPickleMachine *m, int arg)
{
    uint64_t n = 0;
    const uint8_t *p = NULL;
    QN_TRY(qn_pickle_take_uint(m, arg, &n));
    QN_TRY(take(m, n, &p));
    return qn_pickle_push_text(m, QN_PICKLE_BYTES, p, n);
}

static const Op ops[256] = {
    ['('] = { "MARK", op_mark, 0 },
    ['.'] = { "STOP", op_stop, 0 },
    ['0'] = { "POP", NULL, 0 },
    ['1'] = { "POP_MARK", NULL, 0 },
    ['2'] = { "DUP", NULL, 0 },
    ['F'] = { "FLOAT", NULL, 0 },
    ['I'] = { "INT", NULL, 0 },
    ['J'] = { "BININT", op_int, -4 },
    ['K'] = { "BININT1", op_int, 1 },
    ['L'] = { "LONG", NULL, 0 },
    ['M'] = { "BININT2", op_int, 2 },
    ['N'] = { "NONE", op_none, 0 },
    ['P'] = { "PERSID", NULL, 0 },
    ['Q'] = { "BINPERSID", qn_pickle_op_persistent, 0 },
    ['R'] = { "REDUCE", qn_pickle_op_reduce, 0 },
    ['S'] = { "STRING", NULL, 0 },
    ['T'] = { "BINSTRING", NULL, 0 },
    ['U'] = { "SHORT_BINSTRING", NULL, 0 },
    ['V'] = { "UNICODE", NULL, 0 },
    ['X'] = { "BINUNICODE", op_string, 4 },
    ['a'] = { "APPEND", qn_pickle_op_append, 1 },
    ['b'] = { "BUILD", qn_pickle_op_build, 0 },
    ['c'] = { "GLOBAL", qn_pickle_op_global, 0 },
    ['d'] = { "DICT", NULL, 0 },
    ['}'] = { "EMPTY_DICT", qn_pickle_op_empty, QN_PICKLE_DICT },
    ['e'] = { "APPENDS", qn_pickle_op_append, -1 },
    ['g'] = { "GET", NULL, 0 },
    ['h'] = { "BINGET", qn_pickle_op_get, 1 },
    ['i'] = { "INST", NULL, 0 },
    ['j'] = { "LONG_BINGET", qn_pickle_op_get, 4 },
    ['l'] = { "LIST", NULL, 0 },
    [']'] = { "EMPTY_LIST", qn_pickle_op_empty, QN_PICKLE_LIST },
    ['o'] = { "OBJ", NULL, 0 },
    ['p'] = { "PUT", NULL, 0 },
    ['q'] = { "BINPUT", qn_pickle_op_put, 1 },
    ['r'] = { "LONG_BINPUT", qn_pickle_op_put, 4 },
    ['s'] = { "SETITEM", qn_pickle_op_set_items, 2 },
    ['t'] = { "TUPLE", qn_pickle_op_tuple, -1 },
    [')'] = { "EMPTY_TUPLE", qn_pickle_op_tuple, 0 },
    ['u'] = { "SETITEMS", qn_pickle_op_set_items, -1 },
    ['B'] = { "BINBYTES", op_bytes, 4 },
    ['C'] = { "SHORT_BINBYTES", op_bytes, 1 },
    ['G'] = { "BINFLOAT", op_float, 8 },
    [0x80] = { "PROTO", op_proto, 0 },
    [0x81] = { "NEWOBJ", NULL, 0 },
    [0x82] = { "EXT1", NULL, 0 },
    [0x83] = { "EXT2", NULL, 0 },
    [0x84] = { "EXT4", NULL, 0 },
    [0x85] = { "TUPLE1", qn_pickle_op_tuple, 1 },
    [0x86] = { "TUPLE2", qn_pickle_op_tuple, 2 },
    [0x87] = { "TUPLE3", qn_pickle_op_tuple, 3 },
    [0x88] = { "NEWTRUE", op_bool, 1 },
    [0x89] = { "NEWFALSE", op_bool, 0 },
    [0x8a] = { "LONG1", op_int, 0 },
    [0x8b] = { "LONG4", NULL, 0 },
    [0x8c] = { "SHORT_BINUNICODE", op_string, 1 },
    [0x8d] = { "BINUNICODE8", op_string, 8 },
    [0x8e] = { "BINBYTES8", op_bytes, 8 },
    [0x8f] = { "EMPTY_SET", NULL, 0 },
    [0x90] = { "ADDITEMS", NULL, 0 },
    [0x91] = { "FROZENSET", NULL, 0 },
    [0x92] = { "NEWOBJ_EX", NULL, 0 },
    [0x93] = { "STACK_GLOBAL", qn_pickle_op_stack_global, 0 },
    [0x94] = { "MEMOIZE", qn_pickle_op_memoize, 0 },
    [0x95] = { "FRAME", op_frame, 8 },
    [0x96] = { "BYTEARRAY8", NULL, 0 },
    [0x97] = { "NEXT_BUFFER", NULL, 0 },
    [0x98] = { "READONLY_BUFFER", NULL, 0 },
};

static QnStatus run(QnPickleMachine *m)
{
    while (!m->stopped) {
        m->op_at = m->at;
        if (m->at == m->size)
            return qn_fail(QN_EFORMAT, "%s: byte %zu: the pickle ends without STOP", m->name,
                           m->at);
        uint8_t code = m->data[m->at++];
        const Op *op = &ops[code];
        if (!m->op_at && code != 0x80)
            return qn_fail(QN_EFORMAT, "%s: byte 0: no pickle of protocol 2 to 5", m->name);
        if (!op->name)
            return qn_fail(QN_EFORMAT, "%s: byte %zu: 0x%02x is no opcode of a pickle", m->name,
                           m->op_at, code);
        if (!op->run)
            return qn_pickle_fail(
                m, "this opcode is not allowed: only tensors and plain data are read");
        QN_TRY(op->run(m, op->arg));
    }
    return QN_OK;
}

QnStatus qn_pickle_parse(QnArena *arena, const char *name, const void *data, size_t size,
                         const QnPickleGlobal *globals, int n_globals, const QnPickle **out)
{
    QnPickleMachine m = { .arena = arena,
                          .name = name,
                          .data = data,
                          .size = size,
                          .globals = globals,
                          .n_globals = n_globals };
    QnStatus st = run(&m);
    if (st == QN_OK)
        *out = m.stack[0];
    qn_free(m.stack);
    qn_free(m.marks);
    qn_free(m.memo);
    return st;
}
