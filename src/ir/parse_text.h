/* The parser's own: a cursor over text with NUL at its end, shared by ir/parse.c (nodes) and
 * ir/parse_attr.c (attributes). */
#ifndef QN_IR_PARSE_TEXT_H
#define QN_IR_PARSE_TEXT_H

#include "ir/parse.h"

typedef struct QnParser {
    QnGraph *graph;
    QnOpFind *find;
    const char *text, *p;
    QnValue **values; /* by number */
    int64_t n_values, cap_values;
    int depth; /* of bodies */
} QnParser;

/* Fails at place `at` of the text. */
QnStatus qn_parser_fail(const QnParser *r, const char *at, const char *fmt, ...) QN_PRINTF(3, 4);
/* Adds the place to the error recorded last. */
QnStatus qn_parser_place(const QnParser *r, const char *at);

/* Blanks within a line. */
void qn_parser_skip(QnParser *r);
/* Skips blanks, then takes c if it is next. */
bool qn_parser_take(QnParser *r, char c);
QnStatus qn_parser_expect(QnParser *r, char c);
/* A word of letters, digits, _ and . into buf. */
enum { QN_PARSER_WORD = 64 };
QnStatus qn_parser_word(QnParser *r, const char *what, char buf[QN_PARSER_WORD]);
QnStatus qn_parser_int(QnParser *r, int64_t *out);
QnStatus qn_parser_string(QnParser *r, const char **out); /* in the graph's arena */
QnStatus qn_parser_op(QnParser *r, const QnOp **out);     /* name, perhaps @version */
QnStatus qn_parser_dims(QnParser *r, QnDims *out);        /* [B,10] */
/* The attributes in braces, if any follow; the rest takes its defaults. */
QnStatus qn_parser_attr(QnParser *r, const QnOp *op, void *attr);

#endif
