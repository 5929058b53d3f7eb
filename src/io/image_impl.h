/* Between image.c and its two decoders. */
#ifndef QN_IO_IMAGE_IMPL_H
#define QN_IO_IMAGE_IMPL_H

#include "io/image.h"

/* `want` is NULL where only the size is asked for: then pixels stay undecoded. */
QnStatus qn_image_jpeg_decode(const char *name, const void *data, size_t size, int channels,
                              QnImage *image, bool size_only);
QnStatus qn_image_png_decode(const char *name, const void *data, size_t size, int channels,
                             QnImage *image, bool size_only);
/* Checks the limits, then makes room; to be called before anything of that size is allocated. The
 * compressed size bounds what a file may unpack to. */
QnStatus qn_image_reserve(const char *name, QnImage *image, int64_t height, int64_t width,
                          int channels, size_t file_bytes);

#endif
