#include "io/image.h"
#include "base/mem.h"
#include "io/gz.h"
#include "io/image_impl.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

/* A flat JPEG packs about 2,000 to 1 and a flat PNG about 1,000 to 1 of its pixels' bytes; a file
 * that promises more is refused before we allocate. */
enum { RATIO_MAX = 4096, RATIO_FREE_BYTES = 1 << 20 };

void qn_image_fini(QnImage *image)
{
    qn_free(image->data);
    *image = (QnImage){ 0 };
}

QnPixels qn_image_pixels(const QnImage *image)
{
    return (QnPixels){ image->data, image->height, image->width, image->channels };
}

QnStatus qn_image_reserve(const char *name, QnImage *image, int64_t height, int64_t width,
                          int channels, size_t file_bytes)
{
    if (height < 1 || width < 1 || height > QN_IMAGE_SIDE_MAX || width > QN_IMAGE_SIDE_MAX)
        return qn_fail(QN_EFORMAT,
                       "%s: an image of %" PRId64 "x%" PRId64 " pixels: sides are 1 to "
                       "%d",
                       name, width, height, QN_IMAGE_SIDE_MAX);
    size_t bytes = (size_t)height * (size_t)width * (size_t)channels;
    if (bytes > QN_IMAGE_BYTES_MAX)
        return qn_fail(QN_EFORMAT,
                       "%s: an image of %" PRId64 "x%" PRId64 " pixels is over the "
                       "limit of %zu bytes",
                       name, width, height, QN_IMAGE_BYTES_MAX);
    if (bytes > RATIO_FREE_BYTES && bytes / RATIO_MAX > file_bytes)
        return qn_fail(QN_EFORMAT,
                       "%s: %zu bytes cannot hold an image of %" PRId64 "x%" PRId64 " pixels: the "
                       "file is cut short or damaged",
                       name, file_bytes, width, height);
    if (bytes > image->capacity_bytes) {
        uint8_t *p = qn_realloc(image->data, bytes);
        if (!p)
            return qn_fail_prefix("%s", name);
        image->data = p;
        image->capacity_bytes = bytes;
    }
    image->height = height;
    image->width = width;
    image->channels = channels;
    return QN_OK;
}

static QnStatus decode_any(const char *name, const void *data, size_t size, int channels,
                           QnImage *image, bool size_only)
{
    const uint8_t *p = data;
    if (channels != 1 && channels != 3 && !size_only)
        return qn_fail(QN_EARG, "%s: %d channels: ask for 1 (grey) or 3 (RGB)", name, channels);
    if (size >= 3 && p[0] == 0xff && p[1] == 0xd8 && p[2] == 0xff)
        return qn_image_jpeg_decode(name, data, size, channels, image, size_only);
    if (size >= 8 && !memcmp(p, "\x89PNG\r\n\x1a\n", 8))
        return qn_image_png_decode(name, data, size, channels, image, size_only);
    if (!size)
        return qn_fail(QN_EFORMAT, "%s: the file is empty", name);
    return qn_fail(QN_EFORMAT, "%s: byte 0: %02x%02x%02x is neither a JPEG nor a PNG", name, p[0],
                   size > 1 ? p[1] : 0, size > 2 ? p[2] : 0);
}

QnStatus qn_image_decode(const char *name, const void *data, size_t size, int channels,
                         QnImage *image)
{
    return decode_any(name, data, size, channels, image, false);
}

QnStatus qn_image_read_size(const char *name, const void *data, size_t size, int64_t *height,
                            int64_t *width, int *channels)
{
    QnImage image = { 0 };
    QN_TRY(decode_any(name, data, size, 0, &image, true));
    *height = image.height;
    *width = image.width;
    *channels = (int)image.channels;
    return QN_OK;
}

bool qn_image_is_named(const char *name)
{
    static const char *const ends[] = { ".jpg", ".jpeg", ".png" };
    const char *dot = strrchr(name, '.');
    for (int i = 0; dot && i < QN_COUNT(ends); i++)
        if (!strcasecmp(dot, ends[i]))
            return true;
    return false;
}

QnStatus qn_image_read(const char *path, int channels, QnImage *image)
{
    uint8_t *data;
    size_t size;
    QN_TRY(qn_gz_read(path, QN_IMAGE_BYTES_MAX, &data, &size));
    QnStatus st = qn_image_decode(path, data, size, channels, image);
    qn_free(data);
    return st;
}
