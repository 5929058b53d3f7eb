/* A picture to measure decoders with. */
#ifndef QN_IO_IMAGE_TEST_H
#define QN_IO_IMAGE_TEST_H

#include "base/status.h"

/* A JPEG of about the bytes per pixel that photographs have; *file is freed by qn_free.
 * QN_EUNSUPPORTED where the library was not there at build time. */
QnStatus qn_image_test_jpeg(int width, int height, void **file, size_t *bytes);

#endif
