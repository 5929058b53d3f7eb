#include "ops/draw.h"

/* Streams of operators have bit 31 set, so that they never meet those of loaders and initialisers,
 * which are small numbers. */
QnDraw qn_draw_new(int64_t step, int64_t seed, int64_t stream)
{
    uint64_t low = (uint64_t)stream & 0x7fffffffu;
    return (QnDraw){ (uint64_t)seed, (uint64_t)step << 32 | UINT64_C(0x80000000) | low };
}

QnDraw qn_draw_from(const QnType *key_type, const double *key, int64_t stream)
{
    bool seeded = qn_shape_count(&key_type->shape) > 1;
    return qn_draw_new((int64_t)key[0], seeded ? (int64_t)key[1] : 0, stream);
}

uint32_t qn_draw_word(const QnDraw *d, int64_t i)
{
    uint32_t block[4];
    qn_rng_u32x4(d->seed, d->stream, (uint64_t)i / 4, block);
    return block[i % 4];
}

uint64_t qn_draw_threshold(double p)
{
    return (uint64_t)(p * 0x1p32);
}

QnStatus qn_draw_check_key(const char *op, const QnType *key)
{
    bool fits = key->shape.rank == 0 || (key->shape.rank == 1 && key->shape.dim[0] == 2);
    if (key->dtype != QN_DTYPE_I64 || !fits) {
        char text[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "%s: the key is %s, must be i64[] (step) or i64[2] (step, seed)",
                       op, qn_type_text(key, text));
    }
    return QN_OK;
}

void qn_draw_call(const char *kernel, int64_t count, const QnType *key, int64_t stream,
                  QnDeviceCall *c)
{
    *c = (QnDeviceCall){ .kernel = kernel, .n_groups = (count + 3) / 4 };
    qn_device_int(c, count);
    qn_device_int(c, qn_shape_count(&key->shape));
    qn_device_int(c, stream);
}
