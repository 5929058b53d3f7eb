#include "io/image_test.h"

#include "base/mem.h"

#ifdef QN_HAVE_JPEG

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

typedef struct Writer {
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
    unsigned char *out;
    unsigned long bytes;
} Writer;

static void on_error(j_common_ptr info)
{
    longjmp(((Writer *)info->client_data)->escape, 1);
}

/* Slow waves and some noise, as photographs have. */
static void make_row(unsigned char *row, int width, int y)
{
    uint32_t seed = (uint32_t)y * 2654435761u + 1;
    for (int i = 0; i < 3 * width; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t wave = ((uint32_t)(i / 3 * (2 + i % 3)) + (uint32_t)y * 3) % 400;
        row[i] = (unsigned char)(28 + (wave < 200 ? wave : 400 - wave) * 9 / 10 + (seed >> 27));
    }
}

static QnStatus write_all(Writer *w, int width, int height, unsigned char *row)
{
    w->info.err = jpeg_std_error(&w->errors);
    w->errors.error_exit = on_error;
    w->info.client_data = w;
    if (setjmp(w->escape)) {
        jpeg_destroy_compress(&w->info);
        return qn_fail(QN_EINTERNAL, "the JPEG library cannot write");
    }
    jpeg_create_compress(&w->info);
    jpeg_mem_dest(&w->info, &w->out, &w->bytes);
    w->info.image_width = (JDIMENSION)width;
    w->info.image_height = (JDIMENSION)height;
    w->info.input_components = 3;
    w->info.in_color_space = JCS_RGB;
    jpeg_set_defaults(&w->info);
    jpeg_set_quality(&w->info, 90, TRUE);
    jpeg_start_compress(&w->info, TRUE);
    for (int y = 0; y < height; y++) {
        make_row(row, width, y);
        jpeg_write_scanlines(&w->info, &row, 1);
    }
    jpeg_finish_compress(&w->info);
    jpeg_destroy_compress(&w->info);
    return QN_OK;
}

QnStatus qn_image_test_jpeg(int width, int height, void **file, size_t *bytes)
{
    Writer *w = qn_alloc(sizeof *w);
    unsigned char *row = qn_alloc_array((size_t)width * 3, 1);
    QnStatus st = w && row ? write_all(w, width, height, row) : QN_ENOMEM;
    *file = st == QN_OK ? qn_alloc(w->bytes) : NULL;
    if (st == QN_OK && !*file)
        st = QN_ENOMEM;
    if (st == QN_OK) {
        memcpy(*file, w->out, w->bytes);
        *bytes = w->bytes;
    }
    if (w)
        free(w->out); /* the library's */
    qn_free(row);
    qn_free(w);
    return st;
}

#else

QnStatus qn_image_test_jpeg(int width, int height, void **file, size_t *bytes)
{
    (void)width, (void)height, (void)file, (void)bytes;
    return qn_fail(QN_EUNSUPPORTED, "built without libjpeg");
}

#endif
