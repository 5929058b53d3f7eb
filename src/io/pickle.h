/* Python's pickles as data. A pickle is a program for a small machine that can call anything; this
 * machine calls nothing. It knows the instructions that build numbers, texts, lists and dicts, and
 * names (globals) from a list; "calls" become values that say what would have been called with
 * what. Everything else is refused by its name. */
#ifndef QN_IO_PICKLE_H
#define QN_IO_PICKLE_H

#include "base/mem.h"

typedef enum QnPickleKind {
    QN_PICKLE_NONE,
    QN_PICKLE_BOOL,
    QN_PICKLE_INT,
    QN_PICKLE_FLOAT,
    QN_PICKLE_STRING, /* UTF-8 */
    QN_PICKLE_BYTES,
    QN_PICKLE_TUPLE,
    QN_PICKLE_LIST,
    QN_PICKLE_DICT,       /* items: key, value, key, value …; n pairs */
    QN_PICKLE_GLOBAL,     /* string: "module.name" */
    QN_PICKLE_CALL,       /* items[0]: the global, items[1]: its arguments, a tuple */
    QN_PICKLE_PERSISTENT, /* items[0]: what names an object outside the pickle */
} QnPickleKind;

/* A value. Lists and dicts may hold themselves, and a value may stand in many places: whoever walks
 * bounds depth and steps. */
typedef struct QnPickle QnPickle;
struct QnPickle {
    QnPickleKind kind;
    size_t offset; /* in the pickle, for messages */
    int64_t n;     /* bytes, items or pairs */
    int64_t cap;
    union {
        bool boolean;
        int64_t integer;
        double number;
        const char *string; /* NUL-terminated */
        const QnPickle **items;
    };
};

/* A global that may be named. dict: calling it without arguments gives an empty dict. */
typedef struct QnPickleGlobal {
    const char *name;
    bool dict;
} QnPickleGlobal;

/* Protocols 2 to 5. Values live in the arena and do not point into `data`; they take at most some
 * hundred bytes for each byte of the pickle. `name` is for messages. */
QnStatus qn_pickle_parse(QnArena *arena, const char *name, const void *data, size_t size,
                         const QnPickleGlobal *globals, int n_globals, const QnPickle **out);

#endif
