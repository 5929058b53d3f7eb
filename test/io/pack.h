/* Makes the archives and images that the tests read. */
#ifndef QN_TEST_IO_PACK_H
#define QN_TEST_IO_PACK_H

#include "test.h"

#include "base/compiler.h"
#include "base/str.h"

#ifdef QN_HAVE_JPEG
#include <jpeglib.h>
#endif
#ifdef QN_HAVE_PNG
#include <png.h>
#endif

/* Corrects the checksum of a tar header. */
QN_UNUSED static void tar_sign(char *header)
{
    unsigned sum = 0;
    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)header[i];
    snprintf(header + 148, 8, "%06o", sum);
}

/* Appends one entry; the name must fit 100 bytes. */
QN_UNUSED static void tar_add(QnStr *tar, const char *name, char type, const void *data, size_t n)
{
    char header[512] = { 0 };
    static const char zeros[512];
    snprintf(header, 100, "%s", name);
    memcpy(header + 100, "0000644", 8);
    snprintf(header + 124, 12, "%011o", (unsigned)n);
    header[156] = type;
    memcpy(header + 257,
           "ustar\0"
           "00",
           8);
    tar_sign(header);
    qn_str_add_bytes(tar, header, sizeof header);
    qn_str_add_bytes(tar, data, n);
    qn_str_add_bytes(tar, zeros, (512 - n % 512) % 512);
}

QN_UNUSED static void tar_end(QnStr *tar)
{
    static const char zeros[1024];
    qn_str_add_bytes(tar, zeros, sizeof zeros);
}

#ifdef QN_HAVE_JPEG
/* Size of the JPEG made of these pixels (1 or 3 channels), in *out, which the caller frees by
 * free(). */
QN_UNUSED static unsigned long jpeg_pack(const uint8_t *pixels, int height, int width, int channels,
                                         bool progressive, unsigned char **out)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned long size = 0;
    *out = NULL;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, out, &size);
    c.image_width = (JDIMENSION)width;
    c.image_height = (JDIMENSION)height;
    c.input_components = channels;
    c.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 95, TRUE);
    if (progressive)
        jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < c.image_height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + (size_t)c.next_scanline * (size_t)width *
                                                          (size_t)channels);
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    return size;
}
#endif

#ifdef QN_HAVE_PNG
/* Size of the PNG written to out (room for cap bytes). */
QN_UNUSED static size_t png_pack(const uint8_t *pixels, int height, int width, uint32_t format,
                                 void *out, size_t cap)
{
    png_image p = { .version = PNG_IMAGE_VERSION,
                    .width = (png_uint_32)width,
                    .height = (png_uint_32)height,
                    .format = format };
    png_alloc_size_t n = cap;
    if (!png_image_write_to_memory(&p, out, &n, 0, pixels, 0, NULL))
        abort();
    return n;
}
#endif

#endif
