#include "io/image_impl.h"

#ifdef QN_HAVE_JPEG

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

enum {
    SCANS_MAX = 200
}; /* a progressive file has about ten; thousands are an attack on our time */

/* libjpeg reports errors by calling back, and must not return: we jump out. */
typedef struct Jpeg {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    const char *name;
    size_t size;
    int channels;
    bool size_only;
    QnImage *image;
    QnStatus st;
} Jpeg;

static size_t jpeg_offset(const Jpeg *j)
{
    size_t left = j->info.src ? j->info.src->bytes_in_buffer : j->size;
    return left <= j->size ? j->size - left : j->size;
}

static void record_message(Jpeg *j, const char *hint)
{
    char text[JMSG_LENGTH_MAX];
    (*j->info.err->format_message)((j_common_ptr)&j->info, text);
    int code = j->info.err->msg_code;
    j->st = qn_fail(code == JERR_OUT_OF_MEMORY ? QN_ENOMEM : QN_EFORMAT, "%s: byte %zu: %s%s",
                    j->name, jpeg_offset(j), text, hint);
}

static void on_error(j_common_ptr info)
{
    Jpeg *j = info->client_data;
    record_message(j, ": a damaged JPEG");
    longjmp(j->escape, 1);
}

/* Warnings mean that pixels were made up, but for these few. */
static bool warning_is_harmless(int code)
{
    return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_TOO_MUCH_DATA ||
           code == JWRN_BOGUS_ICC;
}

static void on_message(j_common_ptr info, int level)
{
    Jpeg *j = info->client_data;
    if (level >= 0 || warning_is_harmless(info->err->msg_code))
        return;
    record_message(j, ": the file is cut short or damaged");
    longjmp(j->escape, 1);
}

static void on_progress(j_common_ptr info)
{
    Jpeg *j = info->client_data;
    if (j->info.input_scan_number <= SCANS_MAX)
        return;
    j->st = qn_fail(QN_EFORMAT, "%s: byte %zu: more than %d scans: refused", j->name,
                    jpeg_offset(j), SCANS_MAX);
    longjmp(j->escape, 1);
}

/* Four inks in place to RGB or grey. Adobe's files hold the inks inverted. */
static void convert_inks(QnImage *image, int channels, bool inverted)
{
    int64_t n = image->height * image->width;
    uint8_t *in = image->data, *out = image->data;
    for (int64_t i = 0; i < n; i++, in += 4) {
        int rgb[3], k = inverted ? in[3] : 255 - in[3];
        for (int c = 0; c < 3; c++)
            rgb[c] = (inverted ? in[c] : 255 - in[c]) * k / 255;
        if (channels == 1) {
            *out++ = (uint8_t)((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
            continue;
        }
        for (int c = 0; c < 3; c++)
            *out++ = (uint8_t)rgb[c];
    }
    image->channels = channels;
}

/* All that may call back; false after an error. */
static bool decode(Jpeg *j, const void *data)
{
    struct jpeg_decompress_struct *info = &j->info;
    if (setjmp(j->escape))
        return false;
    jpeg_create_decompress(info);
    info->client_data = j;
    info->progress = &j->progress;
    jpeg_mem_src(info, data, j->size);
    jpeg_read_header(info, TRUE);
    if (j->size_only) {
        j->image->height = info->image_height;
        j->image->width = info->image_width;
        j->image->channels = info->num_components == 1 ? 1 : 3;
        return true;
    }
    bool inks = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
    info->out_color_space = inks ? JCS_CMYK : j->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    int stored = inks ? 4 : j->channels;
    j->st =
        qn_image_reserve(j->name, j->image, info->image_height, info->image_width, stored, j->size);
    if (j->st != QN_OK)
        return false;
    jpeg_start_decompress(info);
    size_t stride = (size_t)info->output_width * (size_t)stored;
    while (info->output_scanline < info->output_height) {
        JSAMPROW row = j->image->data + info->output_scanline * stride;
        jpeg_read_scanlines(info, &row, 1);
    }
    bool inverted = info->saw_Adobe_marker;
    jpeg_finish_decompress(info);
    if (inks)
        convert_inks(j->image, j->channels, inverted);
    return true;
}

QnStatus qn_image_jpeg_decode(const char *name, const void *data, size_t size, int channels,
                              QnImage *image, bool size_only)
{
    Jpeg j = { .name = name,
               .size = size,
               .channels = channels,
               .size_only = size_only,
               .image = image,
               .st = QN_OK };
    j.info.err = jpeg_std_error(&j.errors);
    j.info.client_data = &j; /* kept by jpeg_create_decompress */
    j.errors.error_exit = on_error;
    j.errors.emit_message = on_message;
    j.progress.progress_monitor = on_progress;
    decode(&j, data);
    jpeg_destroy_decompress(&j.info);
    return j.st;
}

#else

QnStatus qn_image_jpeg_decode(const char *name, const void *data, size_t size, int channels,
                              QnImage *image, bool size_only)
{
    (void)data, (void)size, (void)channels, (void)image, (void)size_only;
    return qn_fail(QN_EUNSUPPORTED, "%s: a JPEG, but this build has no libjpeg", name);
}

#endif
