/* A look at protobuf bytes before they are unpacked (the wire format: protobuf.dev, "Encoding"). */
#include "base/compiler.h"
#include "base/mem.h"
#include "base/utf8.h"

#ifdef QN_HAVE_ONNX
#include "io/onnx_read.h"

#include <stdlib.h>
#include <string.h>

typedef struct Scan {
    const unsigned char *start;
    const char *file;
    uint64_t cost, most; /* bytes that unpacking takes, and may take */
} Scan;

static QnStatus varint(const Scan *s, const unsigned char **p, const unsigned char *end,
                       uint64_t *out)
{
    *out = 0;
    for (int shift = 0; *p < end && shift < 70; shift += 7) {
        unsigned char b = *(*p)++;
        *out |= shift < 64 ? (uint64_t)(b & 0x7f) << shift : 0;
        if (b < 0x80)
            return QN_OK;
    }
    return qn_fail(QN_EFORMAT, "%s: byte %zu: a number is cut off", s->file,
                   (size_t)(*p - s->start));
}

static QnStatus scan(Scan *s, const ProtobufCMessageDescriptor *d, const unsigned char *p,
                     const unsigned char *end, int depth);

/* Names are printed and compared: they must be text without control characters. Documentation and
 * metadata are passed over. */
static bool is_name(const ProtobufCMessageDescriptor *d, const ProtobufCFieldDescriptor *f)
{
    return f && f->type == PROTOBUF_C_TYPE_STRING && strcmp(f->name, "doc_string") != 0 &&
           d != &onnx__string_string_entry_proto__descriptor;
}

static QnStatus check_name(const Scan *s, const ProtobufCFieldDescriptor *f, const unsigned char *p,
                           uint64_t n)
{
    for (uint64_t i = 0; i < n;) {
        int length = qn_utf8_length((const char *)p + i, (size_t)(n - i));
        const char *what = length == 0                                 ? "is no UTF-8"
                           : p[i] < 0x20 || p[i] == 0x7f               ? "has a control character"
                           : p[i] == 0xc2 && length && p[i + 1] < 0xa0 ? "has a control character"
                                                                       : NULL;
        if (what)
            return qn_fail(QN_EFORMAT, "%s: byte %zu: the text of field '%s' %s", s->file,
                           (size_t)(p + i - s->start), f->name, what);
        i += (uint64_t)length;
    }
    return QN_OK;
}

/* A field with a length in front. */
static QnStatus scan_block(Scan *s, const ProtobufCMessageDescriptor *in,
                           const ProtobufCFieldDescriptor *f, const unsigned char **p,
                           const unsigned char *end, int depth)
{
    const unsigned char *at = *p;
    uint64_t n;
    QN_TRY(varint(s, p, end, &n));
    if (n > (uint64_t)(end - *p))
        return qn_fail(QN_EFORMAT,
                       "%s: byte %zu: a length of %llu goes past the end (%zu bytes are "
                       "left)",
                       s->file, (size_t)(at - s->start), (unsigned long long)n, (size_t)(end - *p));
    const unsigned char *block = *p;
    *p += n;
    /* packed varints of one byte become elements of up to eight */
    s->cost += f && f->label == PROTOBUF_C_LABEL_REPEATED && f->type != PROTOBUF_C_TYPE_MESSAGE
                   ? 8 * n + 32
                   : n + 32;
    if (is_name(in, f))
        return check_name(s, f, block, n);
    if (!f || f->type != PROTOBUF_C_TYPE_MESSAGE)
        return QN_OK;
    const ProtobufCMessageDescriptor *d = f->descriptor;
    s->cost += d->sizeof_message;
    if (depth >= QN_ONNX_DEPTH)
        return qn_fail(QN_EFORMAT, "%s: byte %zu: messages are nested more than %d deep", s->file,
                       (size_t)(block - s->start), QN_ONNX_DEPTH);
    return scan(s, d, block, block + n, depth + 1);
}

/* Protobuf merges a message that is given twice into one, again and again: time that grows with the
 * square of the file. No writer does that. */
static QnStatus check_once(const Scan *s, const ProtobufCMessageDescriptor *d,
                           const ProtobufCFieldDescriptor *f, const unsigned char *at,
                           uint64_t *seen)
{
    if (!f || f->type != PROTOBUF_C_TYPE_MESSAGE || f->label == PROTOBUF_C_LABEL_REPEATED)
        return QN_OK;
    uint64_t bit = UINT64_C(1) << ((f - d->fields) & 63);
    if (*seen & bit)
        return qn_fail(QN_EFORMAT, "%s: byte %zu: field '%s' is given twice", s->file,
                       (size_t)(at - s->start), f->name);
    *seen |= bit;
    return QN_OK;
}

static QnStatus scan(Scan *s, const ProtobufCMessageDescriptor *d, const unsigned char *p,
                     const unsigned char *end, int depth)
{
    uint64_t seen = 0;
    while (p < end) {
        const unsigned char *at = p;
        uint64_t tag, skip;
        QN_TRY(varint(s, &p, end, &tag));
        if (tag >> 32 || tag >> 3 == 0)
            return qn_fail(QN_EFORMAT, "%s: byte %zu: no field has the number %llu", s->file,
                           (size_t)(at - s->start), (unsigned long long)(tag >> 3));
        const ProtobufCFieldDescriptor *f =
            protobuf_c_message_descriptor_get_field(d, (unsigned)(tag >> 3));
        QN_TRY(check_once(s, d, f, at, &seen));
        s->cost += 16;
        switch (tag & 7) {
        case 0: QN_TRY(varint(s, &p, end, &skip)); break;
        case 1: skip = 8; goto fixed;
        case 5:
            skip = 4;
        fixed:
            if (skip > (uint64_t)(end - p))
                return qn_fail(QN_EFORMAT, "%s: byte %zu: a number is cut off", s->file,
                               (size_t)(at - s->start));
            p += skip;
            break;
        case 2: QN_TRY(scan_block(s, d, f, &p, end, depth)); break;
        default:
            return qn_fail(QN_EFORMAT, "%s: byte %zu: no ONNX file has fields of kind %d", s->file,
                           (size_t)(at - s->start), (int)(tag & 7));
        }
        if (s->cost > s->most)
            return qn_fail(QN_EFORMAT,
                           "%s: byte %zu: so many small messages take far more memory "
                           "than the file has bytes",
                           s->file, (size_t)(at - s->start));
    }
    return QN_OK;
}

QnStatus qn_onnx_scan(const ProtobufCMessageDescriptor *d, const unsigned char *data, size_t bytes,
                      const char *file)
{
    Scan s = { .start = data, .file = file, .most = 32 * (uint64_t)bytes + (64u << 20) };
    return scan(&s, d, data, data + bytes, 1);
}

static void *take(void *ctx, size_t n)
{
    (void)ctx;
    return qn_alloc(n);
}

static void give(void *ctx, void *p)
{
    (void)ctx;
    qn_free(p);
}

ProtobufCAllocator qn_onnx_allocator(void)
{
    return (ProtobufCAllocator){ take, give, NULL };
}

ProtobufCMessage *qn_onnx_unpack(const ProtobufCMessageDescriptor *d, const void *data,
                                 size_t bytes, const char *file)
{
    ProtobufCAllocator a = qn_onnx_allocator();
    if (qn_onnx_scan(d, data, bytes, file) != QN_OK)
        return NULL;
    qn_error_clear();
    ProtobufCMessage *m = protobuf_c_message_unpack(d, &a, bytes, data);
    if (!m && qn_error_last()->code != QN_ENOMEM)
        qn_fail(QN_EFORMAT, "%s: this is no %s", file, d->short_name);
    return m;
}
#endif
