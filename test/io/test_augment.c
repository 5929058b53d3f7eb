/* labels: io */
#include "test.h"

#include <math.h>

#include "base/compiler.h"
#include "io/augment.h"
#include "io/resize.h"

static uint8_t ramp[8 * 8 * 3];

static QnPixels ramp_pixels(void)
{
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
            for (int c = 0; c < 3; c++)
                ramp[(y * 8 + x) * 3 + c] = (uint8_t)(y * 20 + x * 3 + c + 1);
    return (QnPixels){ ramp, 8, 8, 3 };
}

static float ramp_at(int64_t y, int64_t x, int64_t c)
{
    bool inside = y >= 0 && y < 8 && x >= 0 && x < 8;
    return inside ? (float)(y * 20 + x * 3 + c + 1) / 255.0f : 0.0f;
}

static void test_channels_first_and_normalised(void **state)
{
    QnAugment a = { .normalize_channels = 3,
                    .mean = { 0.1f, 0.2f, 0.3f },
                    .std = { 1.0f, 0.5f, 0.25f } };
    QnPixels p = ramp_pixels();
    float out[192];
    qn_augment_apply(&a, &p, 1, 2, 3, out);
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < 8; y++)
            for (int x = 0; x < 8; x++)
                assert_float_equal(out[(c * 8 + y) * 8 + x],
                                   (ramp_at(y, x, c) - a.mean[c]) / a.std[c], 1e-5);
}

static void test_centre_crop_and_padding(void **state)
{
    QnAugment a = { .crop_height = 4, .crop_width = 6 };
    QnPixels p = ramp_pixels();
    float out[3 * 12 * 12];
    qn_augment_apply(&a, &p, 1, 2, 3, out);
    assert_float_equal(out[0], ramp_at(2, 1, 0), 1e-6);
    assert_float_equal(out[4 * 6 * 2 + 3 * 6 + 5], ramp_at(5, 6, 2), 1e-6);
    a = (QnAugment){ .crop_height = 12, .crop_width = 12, .pad = 2 };
    qn_augment_apply(&a, &p, 1, 2, 3, out);
    for (int y = 0; y < 12; y++)
        for (int x = 0; x < 12; x++)
            assert_float_equal(out[y * 12 + x], ramp_at(y - 2, x - 2, 0), 1e-6);
}

/* Every crop must be a window of the padded image, perhaps mirrored; all windows must occur. */
static void test_random_crop_and_flip(void **state)
{
    QnAugment a = {
        .crop_height = 8, .crop_width = 8, .pad = 1, .random_crop = true, .flip = true
    };
    QnPixels p = ramp_pixels();
    float out[192], again[192];
    int seen[3][3][2] = { 0 };
    for (int64_t i = 0; i < 400; i++) {
        qn_augment_apply(&a, &p, 5, 0, i, out);
        int matches = 0;
        for (int top = -1; top <= 1; top++)
            for (int left = -1; left <= 1; left++)
                for (int flip = 0; flip < 2; flip++) {
                    bool same = true;
                    for (int y = 0; y < 8 && same; y++)
                        for (int x = 0; x < 8 && same; x++)
                            same = fabsf(out[y * 8 + x] -
                                         ramp_at(y + top, (flip ? 7 - x : x) + left, 0)) < 1e-6f;
                    matches += same;
                    seen[top + 1][left + 1][flip] += same;
                }
        assert_int_equal(matches, 1);
    }
    for (int i = 0; i < 18; i++)
        assert_in_range((&seen[0][0][0])[i], 5, 50); /* about 22 of each */
    qn_augment_apply(&a, &p, 5, 3, 17, out);
    qn_augment_apply(&a, &p, 5, 3, 17, again);
    assert_memory_equal(out, again, sizeof out); /* nothing but (seed, epoch, index) counts */
    int differ = 0;
    for (uint64_t e = 0; e < 20; e++) {
        qn_augment_apply(&a, &p, 5, e, 17, again);
        differ += memcmp(out, again, sizeof out) != 0;
    }
    assert_true(differ > 10);
    QnAugment fixed = qn_augment_without_random(&a);
    for (uint64_t e = 0; e < 20; e++) {
        qn_augment_apply(&fixed, &p, 5, e, 17, out);
        assert_float_equal(out[9], ramp_at(1, 1, 0), 1e-6);
    }
}

static void test_cutout(void **state)
{
    QnAugment a = { .cutout = 4, .normalize_channels = 1, .mean = { 0.5f }, .std = { 0.5f } };
    uint8_t white[64];
    memset(white, 255, sizeof white);
    QnPixels p = { white, 8, 8, 1 };
    int largest = 0, smallest = 64;
    for (int64_t i = 0; i < 200; i++) {
        float out[64];
        int holes = 0;
        qn_augment_apply(&a, &p, 1, 0, i, out);
        for (int k = 0; k < 64; k++) {
            assert_true(out[k] == 0.0f || fabsf(out[k] - 1.0f) < 1e-6f);
            holes += out[k] == 0.0f;
        }
        largest = QN_MAX(largest, holes);
        smallest = QN_MIN(smallest, holes);
    }
    assert_int_equal(largest, 16);
    assert_int_equal(smallest, 4); /* a corner */
}

static void test_resize(void **state)
{
    uint8_t in[4] = { 0, 100, 100, 200 }, out[16], one;
    QnPixels p = { in, 2, 2, 1 };
    qn_resize_image(&p, 4, 4, out);
    assert_int_equal(out[0], 0); /* half-pixel centres: the corner is the corner */
    assert_int_equal(out[1], 25);
    assert_int_equal(out[2], 75);
    assert_int_equal(out[5], 50);
    assert_int_equal(out[15], 200);
    qn_resize_image(&p, 1, 1, &one);
    assert_int_equal(one, 100); /* shrinking averages all */
    uint8_t stripes[64], small[16];
    for (int i = 0; i < 64; i++)
        stripes[i] = i % 2 ? 255 : 0;
    QnPixels s = { stripes, 8, 8, 1 };
    qn_resize_image(&s, 4, 4, small);
    for (int i = 0; i < 16; i++) /* antialiased, not picked */
        assert_in_range(small[i], 90, 165);
    QnAugment a = { .resize_height = 4, .resize_width = 4, .crop_height = 2, .crop_width = 2 };
    float x[4];
    qn_augment_apply(&a, &p, 0, 0, 0, x);
    assert_float_equal(x[0], 50.0 / 255, 1e-6);
    assert_float_equal(x[3], 150.0 / 255, 1e-6);
}

/* Against the filter written out for one pixel, on sizes that need several runs of columns. */
static void test_resize_in_runs_of_columns(void **state)
{
    enum { W = 3000, H = 7 };
    static uint8_t in[W * H * 2], out[700 * 5 * 2];
    for (int i = 0; i < W * H * 2; i++)
        in[i] = (uint8_t)(i * 7919 % 251);
    QnPixels p = { in, H, W, 2 };
    static const int widths[] = { 3, 299, 700 };
    for (int k = 0; k < 3; k++) {
        int w = widths[k], h = 5;
        qn_resize_image(&p, h, w, out);
        for (int y = 0; y < h; y += 2)
            for (int x = 0; x < w; x += 1 + w / 37)
                for (int c = 0; c < 2; c++) {
                    double sum = 0, total = 0, sx = (double)W / w, sy = (double)H / h;
                    for (int i = 0; i < H; i++)
                        for (int j = 0; j < W; j++) {
                            double wy = 1 - fabs(i + 0.5 - (y + 0.5) * sy) / sy;
                            double wx = 1 - fabs(j + 0.5 - (x + 0.5) * sx) / sx;
                            if (wy <= 0 || wx <= 0)
                                continue;
                            sum += wy * wx * in[(i * W + j) * 2 + c];
                            total += wy * wx;
                        }
                    assert_true(fabs(out[(y * w + x) * 2 + c] - sum / total) < 0.51);
                }
    }
    QnAugment a = { .resize_height = 5, .resize_width = 2 };
    int64_t height, width;
    assert_fails(qn_augment_check(&a, H, W, 2, &height, &width), QN_EARG, "more than 1000 times");
}

static void test_short_side(void **state)
{
    QnAugment a = { .resize_short = 4 };
    int64_t h, w;
    assert_ok(qn_augment_check(&a, 8, 13, 3, &h, &w));
    assert_true(h == 4 && w == 7);
    assert_ok(qn_augment_check(&a, 100, 3, 3, &h, &w));
    assert_true(h == 133 && w == 4);
    a.resize_height = a.resize_width = 5;
    assert_fails(qn_augment_check(&a, 8, 8, 3, &h, &w), QN_EARG, "not both");
}

static void test_options_are_checked(void **state)
{
    int64_t h, w;
    QnAugment a = { .crop_height = 9, .crop_width = 8 };
    assert_fails(qn_augment_check(&a, 8, 8, 3, &h, &w), QN_ESHAPE, "crop 9x8 is larger");
    a.pad = 1;
    assert_ok(qn_augment_check(&a, 8, 8, 3, &h, &w));
    assert_int_equal(h, 9);
    a.crop_width = 0;
    assert_fails(qn_augment_check(&a, 8, 8, 3, &h, &w), QN_EARG, "both a height and a width");
    a = (QnAugment){ .normalize_channels = 1, .std = { 0 } };
    assert_fails(qn_augment_check(&a, 8, 8, 1, &h, &w), QN_EARG, "deviation must be above 0");
    a.std[0] = 1;
    assert_fails(qn_augment_check(&a, 8, 8, 3, &h, &w), QN_ESHAPE, "3 channels");
    assert_fails(qn_augment_check(&(QnAugment){ .pad = -1 }, 8, 8, 3, &h, &w), QN_EARG, "pad -1");
    assert_fails(qn_augment_check(&(QnAugment){ 0 }, 8, 8, 5, &h, &w), QN_EARG, "8x8x5");
}
