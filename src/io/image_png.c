#include "io/image_impl.h"

#ifdef QN_HAVE_PNG

#include <png.h>
#include <string.h>

static uint32_t read_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The chunks must lead from the signature to IEND inside the file: libpng stops reading after the
 * last pixel and would not notice. */
static QnStatus check_chunks(const char *name, const uint8_t *p, size_t size)
{
    size_t at = 8;
    while (size - at >= 12) {
        size_t n = read_be32(p + at);
        if (n > size - at - 12)
            return qn_fail(QN_EFORMAT,
                           "%s: byte %zu: a chunk of %zu bytes, but only %zu follow: the file is "
                           "cut short",
                           name, at, n, size - at - 12);
        if (!memcmp(p + at + 4, "IEND", 4))
            return QN_OK;
        at += n + 12;
    }
    return qn_fail(QN_EFORMAT,
                   "%s: byte %zu: the last chunk (IEND) is missing: the file is cut "
                   "short",
                   name, at);
}

/* CRC-32 of a chunk's name and data. */
static uint32_t chunk_crc(const uint8_t *p, size_t size)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0xedb88320 & (0 - (crc & 1)));
    }
    return ~crc;
}

/* libpng says what is wrong but not where: the first chunk whose checksum does not fit, else the
 * first of pixels, else the header, which lead the file. */
static QnStatus fail_damaged(const char *name, const uint8_t *p, size_t size, const char *why)
{
    size_t at = 8, pixels = 0, found = 0;
    while (!found && size - at >= 12) { /* check_chunks has passed: lengths fit */
        size_t n = read_be32(p + at);
        if (chunk_crc(p + at + 4, n + 4) != read_be32(p + at + 8 + n))
            found = at;
        if (!pixels && !memcmp(p + at + 4, "IDAT", 4))
            pixels = at;
        if (!memcmp(p + at + 4, "IEND", 4))
            break;
        at += n + 12;
    }
    at = found ? found : pixels ? pixels : 8;
    return qn_fail(QN_EFORMAT, "%s: byte %zu: %s: a damaged PNG", name, at, why);
}

/* RGBA or grey with alpha, in place, to pixels without. */
static void drop_alpha(QnImage *image, int channels)
{
    int64_t n = image->height * image->width;
    const uint8_t *in = image->data;
    uint8_t *out = image->data;
    for (int64_t i = 0; i < n; i++, in += channels + 1)
        for (int c = 0; c < channels; c++)
            *out++ = in[c];
    image->channels = channels;
}

QnStatus qn_image_png_decode(const char *name, const void *data, size_t size, int channels,
                             QnImage *image, bool size_only)
{
    QN_TRY(check_chunks(name, data, size));
    QnStatus st = QN_OK;
    png_image png = { .version = PNG_IMAGE_VERSION };
    if (!png_image_begin_read_from_memory(&png, data, size)) {
        st = fail_damaged(name, data, size, png.message);
        goto done;
    }
    if (size_only) {
        image->height = png.height;
        image->width = png.width;
        image->channels = png.format & PNG_FORMAT_FLAG_COLOR ? 3 : 1;
        goto done;
    }
    png.format = channels == 1 ? PNG_FORMAT_GA : PNG_FORMAT_RGBA;
    QN_TRY_DONE(qn_image_reserve(name, image, png.height, png.width, channels + 1, size));
    if (!png_image_finish_read(&png, NULL, image->data, 0, NULL)) {
        st = fail_damaged(name, data, size, png.message);
        goto done;
    }
    drop_alpha(image, channels);
done:
    png_image_free(&png);
    return st;
}

#else

QnStatus qn_image_png_decode(const char *name, const void *data, size_t size, int channels,
                             QnImage *image, bool size_only)
{
    (void)data, (void)size, (void)channels, (void)image, (void)size_only;
    return qn_fail(QN_EUNSUPPORTED, "%s: a PNG, but this build has no libpng", name);
}

#endif
