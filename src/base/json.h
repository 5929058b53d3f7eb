/* JSON (RFC 8259), strictly: a reader into a tree, and a streaming writer.
 *
 * The reader refuses what the standard does, and also invalid UTF-8, lone surrogates, a key that
 * comes twice in an object, nesting deeper than 64, and numbers too large for a double. Errors name
 * the byte offset. Memory stays in proportion to the text: a value takes 40 bytes in the tree. */
#ifndef QN_BASE_JSON_H
#define QN_BASE_JSON_H

#include "base/mem.h"
#include "base/str.h"

typedef enum QnJsonType {
    QN_JSON_NULL,
    QN_JSON_BOOL,
    QN_JSON_INT, /* no fraction, no exponent, and fits int64_t (other than "-0") */
    QN_JSON_DOUBLE,
    QN_JSON_STRING,
    QN_JSON_ARRAY,
    QN_JSON_OBJECT,
} QnJsonType;

enum { QN_JSON_DEPTH = 64 };

typedef struct QnJson QnJson;
struct QnJson {
    QnJsonType type;
    uint32_t key_n;  /* bytes of the key */
    const char *key; /* in an object: the member's name, NUL-terminated; otherwise NULL */
    size_t offset;   /* of the value's first byte in the text */
    int64_t n;       /* bytes of a string, items of an array, members of an object */
    union {
        bool boolean;
        int64_t integer;
        double number;
        const char *string;  /* UTF-8, NUL-terminated; may hold further NULs: see n */
        const QnJson *items; /* of an array or object, in the text's order */
    };
};

/* The tree lives in the arena and does not point into `text`. */
QnStatus qn_json_parse(QnArena *arena, const char *text, size_t bytes, const QnJson **out);

const char *qn_json_type_name(QnJsonType type); /* "string", "object", … */
/* The member of that name, or NULL (also if `object` is NULL or no object). */
const QnJson *qn_json_find(const QnJson *object, const char *key);
/* The member of that name and type; an error names offset, key and what was expected. A whole
 * number is accepted where a double is wanted: read it with qn_json_double. */
QnStatus qn_json_need(const QnJson *object, const char *key, QnJsonType type, const QnJson **out);
double qn_json_double(const QnJson *number); /* of QN_JSON_INT or QN_JSON_DOUBLE */

/* The writer appends to `out`. Values in an object come after their key. Misuse and lack of memory
 * are sticky; check qn_json_end once. */
typedef struct QnJsonWriter {
    QnStr *out;
    int indent;                    /* spaces a level; 0: all in one line */
    int depth;                     /* open arrays and objects */
    uint64_t is_object, has_items; /* a bit for each level */
    bool after_key, done;
    QnStatus st;
} QnJsonWriter;

void qn_json_begin(QnJsonWriter *w, QnStr *out, int indent);
/* QN_EINTERNAL if something is still open or was misplaced. */
QnStatus qn_json_end(QnJsonWriter *w);
void qn_json_open_object(QnJsonWriter *w);
void qn_json_open_array(QnJsonWriter *w);
void qn_json_close(QnJsonWriter *w); /* the innermost array or object */
void qn_json_key(QnJsonWriter *w, const char *key);
void qn_json_add_null(QnJsonWriter *w);
void qn_json_add_bool(QnJsonWriter *w, bool value);
void qn_json_add_int(QnJsonWriter *w, int64_t value);
/* The shortest text that reads back as the same value; null if it is not finite, which JSON cannot
 * say. A whole number keeps ".0", so that it reads back as a double. */
void qn_json_add_double(QnJsonWriter *w, double value);
void qn_json_add_float(QnJsonWriter *w, float value);
/* Bytes that are not UTF-8 become U+FFFD. */
void qn_json_add_string(QnJsonWriter *w, const char *text);
void qn_json_add_bytes(QnJsonWriter *w, const char *text, size_t n);
/* Key and value in one. */
void qn_json_put_bool(QnJsonWriter *w, const char *key, bool value);
void qn_json_put_int(QnJsonWriter *w, const char *key, int64_t value);
void qn_json_put_double(QnJsonWriter *w, const char *key, double value);
void qn_json_put_string(QnJsonWriter *w, const char *key, const char *value);

#endif
