/* Protobuf bytes from a short text, so that models can be broken at will:
 *   7{ … }   field 7, a message        3=-1     field 3, a number
 *   2"text"  field 2, bytes            9#00ff   field 9, bytes in hex        !08ff  bytes as they
 * are Blanks between them are passed over. */
#ifndef QN_TEST_ONNX_WIRE_H
#define QN_TEST_ONNX_WIRE_H

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

enum { WIRE_MOST = 1 << 16 };

typedef struct Wire {
    unsigned char data[WIRE_MOST];
    size_t n;
} Wire;

static void wire_put(Wire *w, const void *data, size_t n)
{
    if (n > WIRE_MOST - w->n)
        abort();
    memcpy(w->data + w->n, data, n);
    w->n += n;
}

static void wire_number(Wire *w, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        wire_put(w, &(unsigned char){ (unsigned char)(v | 0x80) }, 1);
    wire_put(w, &(unsigned char){ (unsigned char)v }, 1);
}

static void wire_block(Wire *w, uint64_t field, const void *data, size_t n)
{
    wire_number(w, field << 3 | 2);
    wire_number(w, n);
    wire_put(w, data, n);
}

/* Hex digits up to the next other character. */
static const char *wire_hex(const char *p, Wire *out)
{
    char two[3] = "";
    for (; p[0] && p[1] && strspn(p, "0123456789abcdef") >= 2; p += 2) {
        memcpy(two, p, 2);
        wire_put(out, &(unsigned char){ (unsigned char)strtoul(two, NULL, 16) }, 1);
    }
    return p;
}

/* Up to the end or the closing brace, whose place it returns. */
static const char *wire_parse(Wire *w, const char *p)
{
    while (*p && *p != '}') {
        if (*p == ' ') {
            p++;
        } else if (*p == '!') {
            p = wire_hex(p + 1, w);
        } else {
            char *after;
            uint64_t field = strtoull(p, &after, 10);
            Wire *in = calloc(1, sizeof *in);
            if (after == p || !in)
                abort();
            p = after + 1;
            if (*after == '{') {
                p = wire_parse(in, p) + 1;
                wire_block(w, field, in->data, in->n);
            } else if (*after == '"') {
                size_t n = strcspn(p, "\"");
                wire_block(w, field, p, n);
                p += n + 1;
            } else if (*after == '#') {
                p = wire_hex(p, in);
                wire_block(w, field, in->data, in->n);
            } else if (*after == '=') {
                int64_t v = strtoll(p, &after, 10);
                wire_number(w, field << 3);
                wire_number(w, (uint64_t)v);
                p = after;
            } else {
                abort();
            }
            free(in);
        }
    }
    return p;
}

/* Models of one graph: opset 17, IR version 8. */
#define HEAD           "1=8 8{2=17}"
#define MODEL(graph)   HEAD "7{2\"g\"" graph "}"
#define IN(name)       "1\"" name "\""
#define TO(name)       "2\"" name "\""
#define OP(op, in_out) "1{4\"" op "\"" in_out "}"
#define RESULT(name)   "12{1\"" name "\"2{1{1=1}}}"
/* An initialiser of float numbers; an i64 one. */
#define FLOATS(name, dims, hex)  "5{8\"" name "\"2=1 " dims " 9#" hex "}"
#define INTS(name, dims, values) "5{8\"" name "\"2=7 " dims " " values "}"

#endif
