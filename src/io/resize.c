#include "io/resize.h"

#include <math.h>

enum { TAPS_MAX = 2 * QN_RESIZE_SHRINK_MAX + 4, SPAN_MAX = 4096 };

/* What one output coordinate sees along one axis, by a triangle filter: two neighbours when
 * enlarging, about twice the scale when shrinking. */
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
    t.last = QN_MIN(t.last, t.first + TAPS_MAX - 1);
    return t;
}

static double tap_weight(const Taps *t, int64_t i)
{
    return fmax(0.0, 1.0 - fabs((double)i + 0.5 - t->centre) / t->width);
}

static double tap_total(const Taps *t)
{
    double total = 0;
    for (int64_t i = t->first; i <= t->last; i++)
        total += tap_weight(t, i);
    return total;
}

void qn_resize_columns(QnResize *r, int64_t in_width, int64_t out_width, int64_t x, int64_t x_end)
{
    int64_t used = 0;
    r->count = 0;
    r->span = 0;
    for (; x < x_end && r->count < QN_RESIZE_COLUMNS; x++) {
        Taps t = taps_at(x, in_width, out_width);
        int64_t n = t.last - t.first + 1;
        if (!r->count)
            r->source = t.first;
        if (used + n > QN_RESIZE_WEIGHTS || t.last - r->source >= SPAN_MAX)
            break;
        double total = tap_total(&t);
        for (int64_t i = 0; i < n; i++)
            r->weights[used + i] = (float)(tap_weight(&t, t.first + i) / total);
        used += n;
        r->first[r->count] = t.first;
        r->taps[r->count++] = (int)n;
        r->span = QN_MAX(r->span, t.last - r->source + 1);
    }
}

/* Source columns source … source+span-1 blended down to one row. */
static void blend_rows(const QnResize *r, const QnPixels *in, int64_t out_height, int64_t y,
                       float *row)
{
    Taps t = taps_at(y, in->height, out_height);
    double total = tap_total(&t);
    int64_t n = r->span * in->channels;
    for (int64_t k = 0; k < n; k++)
        row[k] = 0.0f;
    for (int64_t i = t.first; i <= t.last; i++) {
        float w = (float)(tap_weight(&t, i) / total);
        const uint8_t *src = in->data + (i * in->width + r->source) * in->channels;
        for (int64_t k = 0; k < n; k++)
            row[k] += w * (float)src[k];
    }
}

void qn_resize_row(const QnResize *r, const QnPixels *in, int64_t out_height, int64_t y,
                   float *value)
{
    float row[SPAN_MAX * QN_IMAGE_MAX_CHANNELS];
    int64_t channels = in->channels;
    const float *w = r->weights;
    blend_rows(r, in, out_height, y, row);
    for (int64_t x = 0; x < r->count; x++) {
        const float *src = row + (r->first[x] - r->source) * channels;
        for (int64_t c = 0; c < channels; c++) {
            float sum = 0.0f;
            for (int i = 0; i < r->taps[x]; i++)
                sum += w[i] * src[i * channels + c];
            *value++ = sum;
        }
        w += r->taps[x];
    }
}

void qn_resize_image(const QnPixels *in, int64_t height, int64_t width, uint8_t *out)
{
    QnResize r;
    float value[QN_RESIZE_COLUMNS * QN_IMAGE_MAX_CHANNELS];
    for (int64_t x = 0; x < width; x += r.count) {
        qn_resize_columns(&r, in->width, width, x, width);
        for (int64_t y = 0; y < height; y++) {
            qn_resize_row(&r, in, height, y, value);
            uint8_t *to = out + (y * width + x) * in->channels;
            for (int64_t i = 0; i < r.count * in->channels; i++)
                to[i] = (uint8_t)fminf(value[i] + 0.5f, 255.0f);
        }
    }
}
