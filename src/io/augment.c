#include "io/augment.h"
#include "base/rng.h"
#include "io/dataset.h"

#include <inttypes.h>
#include <math.h>

enum { SIDE_MAX = 1 << 16 };

static QnStatus check_options(const QnAugment *a)
{
    const int64_t sides[] = { a->resize_height, a->resize_width, a->resize_short, a->pad,
                              a->crop_height,   a->crop_width,   a->cutout };
    static const char *const names[] = { "resize height", "resize width", "resize short side",
                                         "pad",           "crop height",  "crop width",
                                         "cutout" };
    for (int i = 0; i < QN_COUNT(sides); i++)
        if (sides[i] < 0 || sides[i] > SIDE_MAX)
            return qn_fail(QN_EARG, "augment: %s %" PRId64 " is not between 0 and %d", names[i],
                           sides[i], SIDE_MAX);
    if (!a->resize_height != !a->resize_width)
        return qn_fail(QN_EARG, "augment: resize needs both a height and a width");
    if (a->resize_short && a->resize_height)
        return qn_fail(QN_EARG, "augment: resize by the short side or to a size, not both");
    if (!a->crop_height != !a->crop_width)
        return qn_fail(QN_EARG, "augment: crop needs both a height and a width");
    if (a->pad && !a->crop_height && a->random_crop)
        return qn_fail(QN_EARG, "augment: padding for a random crop needs the crop's size");
    if (a->normalize_channels < 0 || a->normalize_channels > QN_IMAGE_MAX_CHANNELS)
        return qn_fail(QN_EARG, "augment: normalise has %d channels, at most %d",
                       a->normalize_channels, QN_IMAGE_MAX_CHANNELS);
    for (int c = 0; c < a->normalize_channels; c++)
        if (!isfinite(a->mean[c]) || !(a->std[c] > 0) || !isfinite(a->std[c]))
            return qn_fail(QN_EARG,
                           "augment: normalise channel %d has mean %g and deviation %g: the "
                           "deviation must be above 0",
                           c, (double)a->mean[c], (double)a->std[c]);
    return QN_OK;
}

typedef struct Frame {
    int64_t height, width; /* after resize */
    int64_t out_height, out_width;
    int64_t pad;
} Frame;

static Frame frame_of(const QnAugment *a, int64_t height, int64_t width)
{
    Frame f = { .height = a->resize_height ? a->resize_height : height,
                .width = a->resize_width ? a->resize_width : width,
                .pad = a->crop_height ? a->pad : 0 };
    if (a->resize_short) { /* rounded to the nearest; the short side is exact */
        int64_t shorter = QN_MIN(height, width), n = a->resize_short;
        f.height = QN_MAX(n, (height * n + shorter / 2) / shorter);
        f.width = QN_MAX(n, (width * n + shorter / 2) / shorter);
    }
    f.out_height = a->crop_height ? a->crop_height : f.height;
    f.out_width = a->crop_width ? a->crop_width : f.width;
    return f;
}

QnStatus qn_augment_check(const QnAugment *a, int64_t height, int64_t width, int64_t channels,
                          int64_t *out_height, int64_t *out_width)
{
    QN_TRY(check_options(a));
    if (!height && !width && !channels)
        return QN_OK;
    if (height < 1 || width < 1 || channels < 1 || channels > QN_IMAGE_MAX_CHANNELS)
        return qn_fail(QN_EARG, "augment: an image of %" PRId64 "x%" PRId64 "x%" PRId64, height,
                       width, channels);
    if (a->normalize_channels && a->normalize_channels != channels)
        return qn_fail(QN_ESHAPE,
                       "augment: normalise gives %d means, the images have %" PRId64 " channels",
                       a->normalize_channels, channels);
    Frame f = frame_of(a, height, width);
    if (f.out_height > f.height + 2 * f.pad || f.out_width > f.width + 2 * f.pad)
        return qn_fail(QN_ESHAPE,
                       "augment: crop %" PRId64 "x%" PRId64 " is larger than the image of %" PRId64
                       "x%" PRId64 " with padding %" PRId64 ": resize first or pad more",
                       f.out_height, f.out_width, f.height, f.width, f.pad);
    if (out_height)
        *out_height = f.out_height;
    if (out_width)
        *out_width = f.out_width;
    return QN_OK;
}

QnAugment qn_augment_without_random(const QnAugment *a)
{
    QnAugment b = *a;
    b.random_crop = b.flip = false;
    b.cutout = 0;
    return b;
}

/* The source pixels that one output coordinate sees along one axis, by a triangle filter: two
 * neighbours when enlarging, about twice the scale when shrinking. */
typedef struct Taps {
    int64_t first, last;
    double centre, width;
} Taps;

static Taps taps_at(int64_t i, int64_t in, int64_t out)
{
    double scale = (double)in / (double)out;
    Taps t = { .centre = ((double)i + 0.5) * scale, .width = fmax(scale, 1.0) };
    t.first = QN_MAX((int64_t)0, (int64_t)floor(t.centre - t.width));
    t.last = QN_MIN(in - 1, (int64_t)ceil(t.centre + t.width));
    return t;
}

static double tap_weight(const Taps *t, int64_t i)
{
    return fmax(0.0, 1.0 - fabs((double)i + 0.5 - t->centre) / t->width);
}

/* Pixel (y,x) of the image resized to (height,width), channels 0…255 in `value`. */
static void resized_pixel(const QnPixels *in, int64_t height, int64_t width, int64_t y, int64_t x,
                          float *value)
{
    if (height == in->height && width == in->width) {
        const uint8_t *p = in->data + (y * width + x) * in->channels;
        for (int64_t c = 0; c < in->channels; c++)
            value[c] = (float)p[c];
        return;
    }
    Taps ty = taps_at(y, in->height, height), tx = taps_at(x, in->width, width);
    double sum[QN_IMAGE_MAX_CHANNELS] = { 0 }, total = 0;
    for (int64_t i = ty.first; i <= ty.last; i++) {
        double wy = tap_weight(&ty, i);
        if (wy <= 0)
            continue;
        for (int64_t j = tx.first; j <= tx.last; j++) {
            double w = wy * tap_weight(&tx, j);
            const uint8_t *p = in->data + (i * in->width + j) * in->channels;
            for (int64_t c = 0; c < in->channels; c++)
                sum[c] += w * p[c];
            total += w;
        }
    }
    for (int64_t c = 0; c < in->channels; c++)
        value[c] = (float)(sum[c] / total);
}

void qn_augment_resize(const QnPixels *in, int64_t height, int64_t width, uint8_t *out)
{
    float value[QN_IMAGE_MAX_CHANNELS];
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            resized_pixel(in, height, width, y, x, value);
            for (int64_t c = 0; c < in->channels; c++)
                *out++ = (uint8_t)(value[c] + 0.5f);
        }
}

/* What chance decided for one sample. */
typedef struct Draw {
    int64_t top, left; /* of the crop, in the resized image; negative inside the padding */
    bool flip;
    int64_t hole_top, hole_bottom, hole_left, hole_right;
} Draw;

/* 0 … n-1 from 32 random bits. */
static int64_t below(uint32_t bits, int64_t n)
{
    return (int64_t)((uint64_t)bits * (uint64_t)n >> 32);
}

static void augment_bits(uint64_t seed, uint64_t epoch, int64_t index, uint32_t bits[8])
{
    uint64_t stream = QN_STREAM_AUGMENT | epoch, counter = (uint64_t)index * 2;
    qn_rng_u32x4(seed, stream, counter, bits);
    qn_rng_u32x4(seed, stream, counter + 1, bits + 4);
}

static Draw draw_sample(const QnAugment *a, const Frame *f, uint64_t seed, uint64_t epoch,
                        int64_t index)
{
    uint32_t r[8];
    augment_bits(seed, epoch, index, r);
    int64_t spare_y = f->height + 2 * f->pad - f->out_height;
    int64_t spare_x = f->width + 2 * f->pad - f->out_width;
    Draw d = { .top = spare_y / 2 - f->pad, .left = spare_x / 2 - f->pad };
    if (a->random_crop) {
        d.top = below(r[0], spare_y + 1) - f->pad;
        d.left = below(r[1], spare_x + 1) - f->pad;
    }
    d.flip = a->flip && (r[2] >> 31);
    if (a->cutout) { /* centred anywhere, so that it may reach over the edge */
        d.hole_top = below(r[3], f->out_height) - a->cutout / 2;
        d.hole_left = below(r[4], f->out_width) - a->cutout / 2;
        d.hole_bottom = d.hole_top + a->cutout;
        d.hole_right = d.hole_left + a->cutout;
    }
    return d;
}

void qn_augment_apply(const QnAugment *a, const QnPixels *in, uint64_t seed, uint64_t epoch,
                      int64_t index, float *out)
{
    Frame f = frame_of(a, in->height, in->width);
    Draw d = { 0 };
    if (a->random_crop || a->flip || a->cutout || a->crop_height)
        d = draw_sample(a, &f, seed, epoch, index);
    float gain[QN_IMAGE_MAX_CHANNELS], bias[QN_IMAGE_MAX_CHANNELS], hole[QN_IMAGE_MAX_CHANNELS];
    for (int64_t c = 0; c < in->channels; c++) {
        bool normal = a->normalize_channels > 0;
        gain[c] = normal ? 1.0f / (255.0f * a->std[c]) : 1.0f / 255.0f;
        bias[c] = normal ? -a->mean[c] / a->std[c] : 0.0f;
        hole[c] = 0.0f; /* the mean, once normalised */
    }
    int64_t plane = f.out_height * f.out_width;
    for (int64_t y = 0; y < f.out_height; y++)
        for (int64_t x = 0; x < f.out_width; x++) {
            float value[QN_IMAGE_MAX_CHANNELS] = { 0 };
            int64_t sy = y + d.top, sx = (d.flip ? f.out_width - 1 - x : x) + d.left;
            if (sy >= 0 && sy < f.height && sx >= 0 && sx < f.width)
                resized_pixel(in, f.height, f.width, sy, sx, value);
            bool cut = y >= d.hole_top && y < d.hole_bottom && x >= d.hole_left && x < d.hole_right;
            for (int64_t c = 0; c < in->channels; c++)
                out[c * plane + y * f.out_width + x] = cut ? hole[c] : value[c] * gain[c] + bias[c];
        }
}
