/* What the device text of 8-bit operands shares: tools/gen_ops puts this file in place of its
 * #include where it embeds an operator's text. */
#ifndef QN_OPS_F8_TILE_H
#define QN_OPS_F8_TILE_H

/* The largest power of two that brings |x| to no more than `most`, from their exponents: without
 * a division, which devices round as they like. */
QN_SCALAR float qn_f8_scale_of(float x, float most)
{
    qn_uint a = qn_bits(x) & 0x7fffffffu, m = qn_bits(most);
    int e = (int)(m >> 23) - (int)(a >> 23) - ((a & 0x7fffffu) > (m & 0x7fffffu));
    e = e < -60 ? -60 : e > 60 ? 60 : e;
    float s = qn_from_bits((qn_uint)(127 + e) << 23);
    return a > 0x0d800000u && a < 0x7f800000u ? s : 1.0f; /* 2^-100; infinity */
}

#ifdef QN_DEVICE
/* As a fold: NaN stays. */
QN_SCALAR float qn_f8_larger(float a, float b)
{
    return a > b || a != a ? a : b;
}

/* What part[0..256) holds, folded into part[0] by a group of 256. */
QN_SCALAR void qn_f8_fold(QN_LOCAL float *part)
{
    const int lid = qn_lid();
    QN_SYNC();
    for (int h = 128; h > 0; h /= 2) {
        if (lid < h)
            part[lid] = qn_f8_larger(part[lid], part[lid + h]);
        QN_SYNC();
    }
}

/* What counts as a largest element: not infinity, not NaN. */
#define QN_F8_IS_SOUND(a) ((a) < 1e38f)
#endif

#endif
