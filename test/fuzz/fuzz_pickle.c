/* Pickles and the PyTorch files around them: what is accepted has every tensor inside its storage.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "io/pickle.h"
#include "io/torch_file.h"
#include "io/zip.h"

static void put(uint8_t **p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *(*p)++ = (uint8_t)(v >> (8 * i));
}

static uint8_t *put_text(uint8_t *p, const char *text)
{
    memcpy(p, text, strlen(text));
    return p + strlen(text);
}

static const struct {
    const char *name;
    size_t n;
} others[] = { { "a/data/0", 24 }, { "a/data/1", 8 } };

/* An archive with the fuzzer's bytes as its pickle, so that it need not find checksums. */
static size_t wrap(const uint8_t *pickle, size_t n, uint8_t *out)
{
    uint8_t *p = out, directory[512], *d = directory;
    static const uint8_t zeros[24];
    for (int i = 0; i < 3; i++) {
        const char *name = i ? others[i - 1].name : "a/data.pkl";
        const uint8_t *data = i ? zeros : pickle;
        size_t bytes = i ? others[i - 1].n : n, offset = (size_t)(p - out);
        uint32_t crc = qn_zip_crc(0, data, bytes);
        p = put_text(p, "PK\3\4");
        put(&p, 20, 8);
        put(&p, 0, 2); /* version, flags, method, time; date */
        put(&p, crc, 4);
        put(&p, bytes, 4);
        put(&p, bytes, 4);
        put(&p, strlen(name), 4);
        p = put_text(p, name);
        memcpy(p, data, bytes);
        p += bytes;
        d = put_text(d, "PK\1\2");
        put(&d, 20 | 20 << 16, 8);
        put(&d, 0, 4);
        put(&d, crc, 4);
        put(&d, bytes, 4);
        put(&d, bytes, 4);
        put(&d, strlen(name), 4);
        put(&d, 0, 8);
        put(&d, 0, 2);
        put(&d, offset, 4);
        d = put_text(d, name);
    }
    size_t at = (size_t)(p - out), size = (size_t)(d - directory);
    memcpy(p, directory, size);
    p = put_text(p + size, "PK\5\6");
    put(&p, 0, 4);
    put(&p, 3 | 3 << 16, 4);
    put(&p, size, 4);
    put(&p, at, 4);
    put(&p, 0, 2);
    return (size_t)(p - out);
}

static void read_all(const void *data, size_t size)
{
    QnTorchFile *f;
    unsigned sum = 0;
    if (qn_torch_file_parse("f", data, size, &f) != QN_OK)
        return;
    for (int64_t i = 0; i < qn_torch_file_count(f); i++) {
        const QnSafetensor *t = qn_torch_file_at(f, i);
        uint8_t *bytes = qn_alloc(t->bytes);
        if (bytes && qn_torch_file_read(f, i, bytes) == QN_OK)
            for (size_t k = 0; k < t->bytes; k++)
                sum += bytes[k];
        qn_free(bytes);
    }
    for (int64_t i = 0; i < qn_torch_file_text_count(f); i++)
        sum += (unsigned)strlen(qn_torch_file_text_at(f, i).value);
    volatile unsigned sink = sum;
    (void)sink;
    qn_torch_file_close(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (qn_zip_is(data, size)) {
        read_all(data, size);
        return 0;
    }
    uint8_t *archive = qn_alloc(size + 2048);
    if (archive)
        read_all(archive, wrap(data, size, archive));
    qn_free(archive);
    return 0;
}
