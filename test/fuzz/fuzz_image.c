/* JPEG and PNG: what is accepted has all its pixels. */
#include <stdint.h>

#include "io/image.h"
#include "io/resize.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    QnImage image = { 0 };
    int64_t height, width;
    int channels;
    qn_image_read_size("f", data, size, &height, &width, &channels);
    for (int c = 1; c <= 3; c += 2) {
        if (qn_image_decode("f", data, size, c, &image) != QN_OK)
            continue;
        unsigned sum = 0;
        for (int64_t i = 0; i < image.height * image.width * c; i++)
            sum += image.data[i];
        volatile unsigned sink = sum;
        (void)sink;
        QnPixels p = qn_image_pixels(&image);
        uint8_t small[7 * 5 * 3];
        if (image.height * image.width < 1 << 16)
            qn_resize_image(&p, 7, 5, small);
    }
    qn_image_fini(&image);
    return 0;
}
