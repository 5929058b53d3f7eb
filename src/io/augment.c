#include "io/augment.h"
#include "base/rng.h"
#include "io/dataset.h"
#include "io/resize.h"

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
    if (height / f.height > QN_RESIZE_SHRINK_MAX || width / f.width > QN_RESIZE_SHRINK_MAX)
        return qn_fail(QN_EARG,
                       "augment: %" PRId64 "x%" PRId64 " pixels to %" PRId64 "x%" PRId64
                       " shrinks more than %d times",
                       height, width, f.height, f.width, QN_RESIZE_SHRINK_MAX);
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

/* Everything that the loops over the pixels need. */
typedef struct Plan {
    const QnPixels *in;
    Frame f;
    Draw d;
    /* the part of the output that shows the image: rows y, and columns u before a flip */
    int64_t y_first, y_end, u_first, u_end;
    float gain[QN_IMAGE_MAX_CHANNELS], bias[QN_IMAGE_MAX_CHANNELS];
    float *out;
} Plan;

static Plan make_plan(const QnAugment *a, const QnPixels *in, uint64_t seed, uint64_t epoch,
                      int64_t index, float *out)
{
    Plan p = { .in = in, .f = frame_of(a, in->height, in->width), .out = out };
    if (a->random_crop || a->flip || a->cutout || a->crop_height)
        p.d = draw_sample(a, &p.f, seed, epoch, index);
    p.y_first = QN_MAX((int64_t)0, -p.d.top);
    p.y_end = QN_MIN(p.f.out_height, p.f.height - p.d.top);
    p.u_first = QN_MAX((int64_t)0, -p.d.left);
    p.u_end = QN_MIN(p.f.out_width, p.f.width - p.d.left);
    for (int64_t c = 0; c < in->channels; c++) {
        bool normal = a->normalize_channels > 0;
        p.gain[c] = normal ? 1.0f / (255.0f * a->std[c]) : 1.0f / 255.0f;
        p.bias[c] = normal ? -a->mean[c] / a->std[c] : 0.0f;
    }
    return p;
}

static float *out_row(const Plan *p, int64_t c, int64_t y)
{
    return p->out + (c * p->f.out_height + y) * p->f.out_width;
}

/* Black, as the padding is, once normalised. */
static void fill_padding(const Plan *p)
{
    int64_t plane = p->f.out_height * p->f.out_width;
    for (int64_t c = 0; c < p->in->channels; c++)
        for (int64_t i = 0; i < plane; i++)
            p->out[c * plane + i] = p->bias[c];
}

static void copy_pixels(const Plan *p)
{
    const QnPixels *in = p->in;
    int64_t n = p->u_end - p->u_first, step = in->channels;
    for (int64_t c = 0; c < in->channels; c++) {
        float gain = p->gain[c], bias = p->bias[c];
        for (int64_t y = p->y_first; y < p->y_end; y++) {
            int64_t from = (y + p->d.top) * in->width + p->d.left + p->u_first;
            const uint8_t *src = in->data + from * step + c;
            float *row = out_row(p, c, y);
            if (p->d.flip) {
                row += p->f.out_width - 1 - p->u_first;
                for (int64_t i = 0; i < n; i++)
                    row[-i] = (float)src[i * step] * gain + bias;
            } else if (step == 1) {
                row += p->u_first;
                for (int64_t i = 0; i < n; i++)
                    row[i] = (float)src[i] * gain + bias;
            } else {
                row += p->u_first;
                for (int64_t i = 0; i < n; i++)
                    row[i] = (float)src[i * step] * gain + bias;
            }
        }
    }
}

static void resize_pixels(const Plan *p)
{
    QnResize r;
    float value[QN_RESIZE_COLUMNS * QN_IMAGE_MAX_CHANNELS];
    int64_t channels = p->in->channels;
    for (int64_t u = p->u_first; u < p->u_end; u += r.count) {
        qn_resize_columns(&r, p->in->width, p->f.width, p->d.left + u, p->d.left + p->u_end);
        for (int64_t y = p->y_first; y < p->y_end; y++) {
            qn_resize_row(&r, p->in, p->f.height, y + p->d.top, value);
            for (int64_t c = 0; c < channels; c++) {
                float *row = out_row(p, c, y);
                for (int64_t i = 0; i < r.count; i++) {
                    int64_t x = p->d.flip ? p->f.out_width - 1 - u - i : u + i;
                    row[x] = value[i * channels + c] * p->gain[c] + p->bias[c];
                }
            }
        }
    }
}

/* The mean, which is 0 once normalised. */
static void cut_hole(const Plan *p)
{
    int64_t top = QN_MAX((int64_t)0, p->d.hole_top), left = QN_MAX((int64_t)0, p->d.hole_left);
    int64_t bottom = QN_MIN(p->f.out_height, p->d.hole_bottom);
    int64_t right = QN_MIN(p->f.out_width, p->d.hole_right);
    for (int64_t c = 0; c < p->in->channels; c++)
        for (int64_t y = top; y < bottom; y++)
            for (int64_t x = left; x < right; x++)
                out_row(p, c, y)[x] = 0.0f;
}

void qn_augment_apply(const QnAugment *a, const QnPixels *in, uint64_t seed, uint64_t epoch,
                      int64_t index, float *out)
{
    Plan p = make_plan(a, in, seed, epoch, index, out);
    if (p.y_end - p.y_first < p.f.out_height || p.u_end - p.u_first < p.f.out_width)
        fill_padding(&p);
    if (p.f.height == in->height && p.f.width == in->width)
        copy_pixels(&p);
    else
        resize_pixels(&p);
    if (a->cutout)
        cut_hole(&p);
}
