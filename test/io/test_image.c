/* labels: io */
#include "pack.h"

#include "base/mem.h"
#include "io/image.h"

/* A smooth picture, so that JPEG keeps it nearly as it is. */
QN_UNUSED static void paint(uint8_t *p, int height, int width, int channels)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++)
                *p++ = (uint8_t)(c == 0 ? 4 * y + 20 : c == 1 ? 3 * x + 10 : 200 - 2 * y - x);
}

QN_UNUSED static int largest_difference(const uint8_t *a, const uint8_t *b, int n)
{
    int largest = 0;
    for (int i = 0; i < n; i++)
        largest = QN_MAX(largest, abs(a[i] - b[i]));
    return largest;
}

static void test_other_files_are_refused(void **state)
{
    QnImage image = { 0 };
    assert_fails(qn_image_decode("x.jpg", "GIF89a..", 8, 3, &image), QN_EFORMAT,
                 "x.jpg: byte 0: 474946 is neither a JPEG nor a PNG");
    assert_fails(qn_image_decode("x.jpg", "", 0, 3, &image), QN_EFORMAT, "the file is empty");
    assert_fails(qn_image_decode("x.jpg", "a", 1, 2, &image), QN_EARG, "2 channels");
    assert_true(qn_image_is_named("a/b.JPeG") && qn_image_is_named("b.png"));
    assert_false(qn_image_is_named("png") || qn_image_is_named("a.png.txt"));
}

static void test_jpeg(void **state)
{
#ifndef QN_HAVE_JPEG
    skip_because("built without libjpeg");
#else
    uint8_t pixels[40 * 50 * 3], grey[40 * 50];
    unsigned char *packed;
    QnImage image = { 0 };
    paint(pixels, 40, 50, 3);
    for (int progressive = 0; progressive < 2; progressive++) {
        unsigned long n = jpeg_pack(pixels, 40, 50, 3, progressive, &packed);
        assert_ok(qn_image_decode("x.jpg", packed, n, 3, &image));
        assert_int_equal(image.height, 40);
        assert_int_equal(image.width, 50);
        assert_int_equal(image.channels, 3);
        assert_in_range(largest_difference(image.data, pixels, sizeof pixels), 0, 8);
        assert_ok(qn_image_decode("x.jpg", packed, n, 1, &image));
        assert_int_equal(image.channels, 1);
        for (int i = 0; i < 2000; i++)
            grey[i] = (uint8_t)(0.299 * pixels[3 * i] + 0.587 * pixels[3 * i + 1] +
                                0.114 * pixels[3 * i + 2]);
        assert_in_range(largest_difference(image.data, grey, sizeof grey), 0, 6);
        for (unsigned long cut = 3; cut < n - 2; cut += cut < 700 ? 1 : 37)
            assert_fails(qn_image_decode("x.jpg", packed, cut, 3, &image), QN_EFORMAT,
                         "x.jpg: byte ");
        free(packed);
    }
    unsigned long n = jpeg_pack(pixels, 40, 50, 1, false, &packed); /* grey file to colour */
    assert_ok(qn_image_decode("x.jpg", packed, n, 3, &image));
    assert_int_equal(image.channels, 3);
    assert_int_equal(image.data[30], image.data[32]);
    int64_t h, w;
    int c;
    assert_ok(qn_image_read_size("x.jpg", packed, n, &h, &w, &c));
    assert_true(h == 40 && w == 50 && c == 1);
    free(packed);
    qn_image_fini(&image);
#endif
}

static void test_jpeg_with_four_inks(void **state)
{
#ifndef QN_HAVE_JPEG
    skip_because("built without libjpeg");
#else
    uint8_t inks[16 * 16 * 4];
    unsigned char *packed;
    QnImage image = { 0 };
    for (int i = 0; i < 256; i++) /* inverted, as Adobe does: 200·255, 100·255, 50·255 */
        memcpy(inks + 4 * i, ((uint8_t[]){ 200, 100, 50, 255 }), 4);
    unsigned long n = jpeg_pack(inks, 16, 16, 4, false, &packed);
    assert_ok(qn_image_decode("x.jpg", packed, n, 3, &image));
    assert_int_equal(image.channels, 3);
    for (int i = 0; i < 256; i++)
        assert_in_range(largest_difference(image.data + 3 * i, ((uint8_t[]){ 200, 100, 50 }), 3), 0,
                        4);
    assert_ok(qn_image_decode("x.jpg", packed, n, 1, &image));
    assert_in_range(image.data[255], 120, 130);
    free(packed);
    qn_image_fini(&image);
#endif
}

static void test_jpeg_that_promises_too_much(void **state)
{
#ifndef QN_HAVE_JPEG
    skip_because("built without libjpeg");
#else
    uint8_t pixels[8 * 8 * 3];
    unsigned char *packed;
    QnImage image = { 0 };
    paint(pixels, 8, 8, 3);
    unsigned long n = jpeg_pack(pixels, 8, 8, 3, false, &packed), at = 2;
    while (packed[at + 1] != 0xc0) /* walk to the frame header */
        at += 2 + (unsigned long)(packed[at + 2] << 8 | packed[at + 3]);
    packed[at + 5] = packed[at + 7] = 0x7f; /* 32,520 x 32,520 */
    assert_fails(qn_image_decode("x.jpg", packed, n, 3, &image), QN_EFORMAT, "over the limit");
    packed[at + 5] = packed[at + 7] = 0x10; /* 4,104 x 4,104: 50 MB from 700 bytes */
    assert_fails(qn_image_decode("x.jpg", packed, n, 3, &image), QN_EFORMAT, "cannot hold");
    packed[at + 5] = 0xff;
    assert_fails(qn_image_decode("x.jpg", packed, n, 3, &image), QN_EFORMAT, "sides are 1 to");
    assert_null(image.data);
    free(packed);
#endif
}

static void test_png(void **state)
{
#ifndef QN_HAVE_PNG
    skip_because("built without libpng");
#else
    uint8_t pixels[30 * 20 * 4], packed[8192];
    QnImage image = { 0 };
    paint(pixels, 30, 20, 3);
    size_t n = png_pack(pixels, 30, 20, PNG_FORMAT_RGB, packed, sizeof packed);
    assert_ok(qn_image_decode("x.png", packed, n, 3, &image));
    assert_true(image.height == 30 && image.width == 20 && image.channels == 3);
    assert_memory_equal(image.data, pixels, 30 * 20 * 3); /* exact */
    for (size_t cut = 8; cut < n; cut += cut < 100 || cut > n - 30 ? 1 : 41)
        assert_fails(qn_image_decode("x.png", packed, cut, 3, &image), QN_EFORMAT, "x.png: byte ");
    size_t first = 8;
    while (memcmp(packed + first + 4, "IDAT", 4))
        first += 12 + packed[first + 3];
    char place[40]; /* of the only chunk of pixels */
    snprintf(place, sizeof place, "x.png: byte %zu: ", first);
    assert_int_equal(n - 12, first + 12 + (packed[first + 2] << 8) + packed[first + 3]);
    for (size_t i = first + 8; i < n - 12; i++) { /* a flipped bit is seen by the checksums */
        packed[i] ^= 4;
        assert_fails(qn_image_decode("x.png", packed, n, 3, &image), QN_EFORMAT, place);
        packed[i] ^= 4;
    }
    packed[8 + 8] ^= 1; /* the width */
    assert_fails(qn_image_decode("x.png", packed, n, 3, &image), QN_EFORMAT, "x.png: byte 8: ");
    packed[8 + 8] ^= 1;
    uint8_t rgba[30 * 20 * 4];
    for (int i = 0; i < 600; i++) { /* transparency is left out, colours stay */
        memcpy(rgba + 4 * i, pixels + 3 * i, 3);
        rgba[4 * i + 3] = (uint8_t)(i % 2 ? 255 : 128);
    }
    n = png_pack(rgba, 30, 20, PNG_FORMAT_RGBA, packed, sizeof packed);
    assert_ok(qn_image_decode("x.png", packed, n, 3, &image));
    assert_memory_equal(image.data, pixels, 30 * 20 * 3);
    n = png_pack(pixels, 30, 20, PNG_FORMAT_GRAY, packed, sizeof packed);
    assert_ok(qn_image_decode("x.png", packed, n, 1, &image));
    assert_memory_equal(image.data, pixels, 30 * 20);
    int64_t h, w;
    int c;
    assert_ok(qn_image_read_size("x.png", packed, n, &h, &w, &c));
    assert_true(h == 30 && w == 20 && c == 1);
    qn_image_fini(&image);
#endif
}

static void test_buffer_is_reused(void **state)
{
#ifndef QN_HAVE_PNG
    skip_because("built without libpng");
#else
    uint8_t pixels[30 * 20 * 3], packed[8192];
    QnImage image = { 0 };
    paint(pixels, 30, 20, 3);
    size_t n = png_pack(pixels, 30, 20, PNG_FORMAT_RGB, packed, sizeof packed);
    assert_ok(qn_image_decode("x.png", packed, n, 3, &image));
    uint64_t before = qn_alloc_count();
    for (int i = 0; i < 5; i++)
        assert_ok(qn_image_decode("x.png", packed, n, i % 2 ? 1 : 3, &image));
    assert_int_equal(qn_alloc_count(), before);
    qn_image_fini(&image);
#endif
}
