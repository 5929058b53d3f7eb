/* Pickles: lists, tuples, dicts, the memo, names and what would be called. */
#include "io/pickle_impl.h"

#include <string.h>

/* ---- containers ---- */

static QnStatus push_tuple(QnPickleMachine *m, QnPickle **from, int64_t n)
{
    QnPickle *v = qn_pickle_make(m, QN_PICKLE_TUPLE);
    if (!v)
        return QN_ENOMEM;
    v->items = qn_arena_array(m->arena, (size_t)n, sizeof *v->items);
    if (!v->items)
        return QN_ENOMEM;
    for (int64_t i = 0; i < n; i++)
        v->items[i] = from[i];
    v->n = n;
    return qn_pickle_push(m, v);
}

/* arg: items; negative: all above the mark */
QnStatus qn_pickle_op_tuple(QnPickleMachine *m, int arg)
{
    QnPickle **from = NULL;
    int64_t n = arg;
    QN_TRY(arg < 0 ? qn_pickle_pop_to_mark(m, &from, &n) : qn_pickle_pop(m, n, &from));
    return push_tuple(m, from, n);
}

QnStatus qn_pickle_op_empty(QnPickleMachine *m, int arg)
{
    return qn_pickle_push(m, qn_pickle_make(m, (QnPickleKind)arg));
}

/* Appends n values to a list's or dict's items. */
static QnStatus append(QnPickleMachine *m, QnPickle *v, QnPickle **from, int64_t n, int each)
{
    int64_t used = v->n * each;
    if (used + n > v->cap) {
        int64_t cap = QN_MAX(used + n, v->cap * 2);
        const QnPickle **items = qn_arena_array(m->arena, (size_t)cap, sizeof *items);
        if (!items)
            return QN_ENOMEM;
        if (used)
            memcpy(items, v->items, (size_t)used * sizeof *items);
        v->items = items;
        v->cap = cap;
    }
    for (int64_t i = 0; i < n; i++)
        v->items[used + i] = from[i];
    v->n += n / each;
    return QN_OK;
}

/* arg: values, negative: all above the mark; a list takes one each, a dict two. */
static QnStatus add_items(QnPickleMachine *m, int arg, QnPickleKind kind)
{
    QnPickle **from = NULL, *v = NULL;
    int64_t n = arg;
    int each = kind == QN_PICKLE_DICT ? 2 : 1;
    QN_TRY(arg < 0 ? qn_pickle_pop_to_mark(m, &from, &n) : qn_pickle_pop(m, n, &from));
    QN_TRY(qn_pickle_top(m, &v));
    if (v->kind != kind)
        return qn_pickle_fail(m, each == 2 ? "what it adds to is no dict"
                                           : "what it adds to is no list");
    if (n % each)
        return qn_pickle_fail(m, "a key without a value");
    return append(m, v, from, n, each);
}

QnStatus qn_pickle_op_append(QnPickleMachine *m, int arg)
{
    return add_items(m, arg, QN_PICKLE_LIST);
}

QnStatus qn_pickle_op_set_items(QnPickleMachine *m, int arg)
{
    return add_items(m, arg, QN_PICKLE_DICT);
}

/* ---- memo ---- */

static QnStatus put(QnPickleMachine *m, uint64_t at)
{
    QnPickle *v = NULL;
    QN_TRY(qn_pickle_top(m, &v));
    if (at >= m->size) /* each entry takes a byte at least */
        return qn_pickle_fail(m, "a memo of more entries than the pickle has bytes");
    while ((uint64_t)m->n_memo <= at) {
        QN_TRY(QN_GROW(m->memo, m->cap_memo, m->n_memo));
        m->memo[m->n_memo++] = NULL;
    }
    m->memo[at] = v;
    return QN_OK;
}

QnStatus qn_pickle_op_put(QnPickleMachine *m, int arg)
{
    uint64_t at = 0;
    QN_TRY(qn_pickle_take_uint(m, arg, &at));
    return put(m, at);
}

QnStatus qn_pickle_op_memoize(QnPickleMachine *m, int arg)
{
    (void)arg;
    return put(m, (uint64_t)m->n_memo);
}

QnStatus qn_pickle_op_get(QnPickleMachine *m, int arg)
{
    uint64_t at = 0;
    QN_TRY(qn_pickle_take_uint(m, arg, &at));
    if (at >= (uint64_t)m->n_memo || !m->memo[at])
        return qn_pickle_fail(m, "the memo has no such entry");
    return qn_pickle_push(m, m->memo[at]);
}

/* ---- names and what they make ---- */

static QnStatus push_global(QnPickleMachine *m, const char *module, size_t module_n,
                            const char *name, size_t name_n)
{
    for (int i = 0; i < m->n_globals; i++) {
        const char *known = m->globals[i].name;
        if (strlen(known) == module_n + 1 + name_n && !strncmp(known, module, module_n) &&
            known[module_n] == '.' && !strncmp(known + module_n + 1, name, name_n))
            return qn_pickle_push_text(m, QN_PICKLE_GLOBAL, known, strlen(known));
    }
    return qn_fail(QN_EFORMAT,
                   "%s: byte %zu: pickle: global %.*s.%.*s is not allowed: only tensors and plain "
                   "data are read; save a state_dict()",
                   m->name, m->op_at, (int)QN_MIN(module_n, (size_t)200), module,
                   (int)QN_MIN(name_n, (size_t)200), name);
}

QnStatus qn_pickle_op_global(QnPickleMachine *m, int arg)
{
    const char *line[2];
    size_t n[2];
    (void)arg;
    for (int i = 0; i < 2; i++) {
        line[i] = (const char *)m->data + m->at;
        const char *end = memchr(line[i], '\n', m->size - m->at);
        if (!end)
            return qn_pickle_fail(m, "the pickle is cut short");
        n[i] = (size_t)(end - line[i]);
        QN_TRY(qn_pickle_check_utf8(m, line[i], n[i]));
        m->at += n[i] + 1;
    }
    return push_global(m, line[0], n[0], line[1], n[1]);
}

QnStatus qn_pickle_op_stack_global(QnPickleMachine *m, int arg)
{
    QnPickle **v = NULL;
    (void)arg;
    QN_TRY(qn_pickle_pop(m, 2, &v));
    if (v[0]->kind != QN_PICKLE_STRING || v[1]->kind != QN_PICKLE_STRING)
        return qn_pickle_fail(m, "module and name are no texts");
    return push_global(m, v[0]->string, (size_t)v[0]->n, v[1]->string, (size_t)v[1]->n);
}

static bool makes_dict(const QnPickleMachine *m, const char *name)
{
    for (int i = 0; i < m->n_globals; i++)
        if (!strcmp(m->globals[i].name, name))
            return m->globals[i].dict;
    return false;
}

/* What Python would call is written down; only an empty dict is made at once. */
QnStatus qn_pickle_op_reduce(QnPickleMachine *m, int arg)
{
    QnPickle **v = NULL, *what, *args;
    (void)arg;
    QN_TRY(qn_pickle_pop(m, 2, &v));
    what = v[0];
    args = v[1];
    if (what->kind != QN_PICKLE_GLOBAL || args->kind != QN_PICKLE_TUPLE)
        return qn_pickle_fail(m, "takes a name and a tuple of arguments");
    if (makes_dict(m, what->string))
        return args->n ? qn_pickle_fail(m, "a dict with arguments")
                       : qn_pickle_push(m, qn_pickle_make(m, QN_PICKLE_DICT));
    QnPickle *call = qn_pickle_make(m, QN_PICKLE_CALL);
    if (!call || append(m, call, (QnPickle *[]){ what, args }, 2, 1) != QN_OK)
        return QN_ENOMEM;
    return qn_pickle_push(m, call);
}

QnStatus qn_pickle_op_persistent(QnPickleMachine *m, int arg)
{
    QnPickle **v = NULL;
    (void)arg;
    QN_TRY(qn_pickle_pop(m, 1, &v));
    QnPickle *p = qn_pickle_make(m, QN_PICKLE_PERSISTENT);
    if (!p || append(m, p, (QnPickle *[]){ v[0] }, 1, 1) != QN_OK)
        return QN_ENOMEM;
    return qn_pickle_push(m, p);
}

/* Attributes of a dict (PyTorch's _metadata) do not matter here; other objects have none. */
QnStatus qn_pickle_op_build(QnPickleMachine *m, int arg)
{
    QnPickle **state = NULL, *v = NULL;
    (void)arg;
    QN_TRY(qn_pickle_pop(m, 1, &state));
    QN_TRY(qn_pickle_top(m, &v));
    if (v->kind != QN_PICKLE_DICT || state[0]->kind != QN_PICKLE_DICT)
        return qn_pickle_fail(m, "sets the state of something that is not a dict");
    return QN_OK;
}
