/* JPEG and PNG to 8-bit pixels. */
#ifndef QN_IO_IMAGE_H
#define QN_IO_IMAGE_H

#include "io/augment.h"

/* A buffer that keeps its memory from one image to the next. */
typedef struct QnImage {
    uint8_t *data; /* (H,W,C) */
    size_t capacity_bytes;
    int64_t height, width, channels;
} QnImage;

void qn_image_fini(QnImage *image);
QnPixels qn_image_pixels(const QnImage *image);

enum { QN_IMAGE_SIDE_MAX = 32768 };
#define QN_IMAGE_BYTES_MAX ((size_t)1 << 30) /* of decoded pixels */

/* Decodes a whole image file. channels: 1 grey, 3 RGB (converted; transparency is left out). A
 * truncated or damaged file is an error that names it, also where the decoder would only warn.
 * QN_EUNSUPPORTED for other formats, or where the library was not there at build time. */
QnStatus qn_image_decode(const char *name, const void *data, size_t size, int channels,
                         QnImage *image);
/* Size of an image from its header; *channels is what the file has (1 or 3; grey or colour). */
QnStatus qn_image_read_size(const char *name, const void *data, size_t size, int64_t *height,
                            int64_t *width, int *channels);
/* Is it a name that ends in .jpg, .jpeg or .png? */
bool qn_image_is_named(const char *name);
QnStatus qn_image_read(const char *path, int channels, QnImage *image);

#endif
