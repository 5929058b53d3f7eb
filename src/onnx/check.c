#include "onnx/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The first difference is kept. */
static QN_PRINTF(2, 3) void note(QnDifference *d, const char *fmt, ...)
{
    va_list args;
    if (!d->is_equal)
        return;
    d->is_equal = false;
    va_start(args, fmt);
    vsnprintf(d->text, sizeof d->text, fmt, args);
    va_end(args);
}

static const char *place(const QnShape *s, int64_t i, char buf[160])
{
    int64_t at[QN_MAX_RANK] = { 0 };
    size_t n = 0;
    for (int k = s->rank - 1; k >= 0; k--) {
        at[k] = i % s->dim[k];
        i /= s->dim[k];
    }
    buf[n++] = '[';
    for (int k = 0; k < s->rank; k++)
        n += (size_t)snprintf(buf + n, 160 - n, "%s%lld", k ? "," : "", (long long)at[k]);
    snprintf(buf + n, 160 - n, "]");
    return buf;
}

static bool is_close(double got, double want, const QnTolerance *tol)
{
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want);
    if (isinf(got) || isinf(want))
        return got == want;
    return fabs(got - want) <= tol->atol + tol->rtol * fabs(want);
}

static void compare_text(const QnTensor *a, const QnTensor *b, const char *name, QnDifference *d)
{
    char where[160];
    for (int64_t i = 0; i < qn_shape_count(&b->type.shape); i++) {
        size_t n = a->text[i].n; /* memcmp takes no NULL, an empty string may be one */
        if (n == b->text[i].n && (n == 0 || !memcmp(a->text[i].s, b->text[i].s, n)))
            continue;
        d->n_different++;
        note(d, "output '%s' at %s is \"%.*s\", expected \"%.*s\"", name,
             place(&b->type.shape, i, where), (int)QN_MIN(a->text[i].n, 80), a->text[i].s,
             (int)QN_MIN(b->text[i].n, 80), b->text[i].s);
    }
}

static void note_worst(QnDifference *d, double got, double want, const QnShape *s, int64_t i)
{
    double error = fabs(got - want);
    if (isnan(got) && isnan(want))
        return;
    error = isnan(error) ? INFINITY : error;
    if (d->worst.at[0] && !(error > d->worst.error))
        return;
    d->worst.error = error;
    d->worst.got = got;
    d->worst.want = want;
    place(s, i, d->worst.at);
}

static void compare_numbers(const QnTensor *a, const QnTensor *b, const QnTolerance *tol,
                            const char *name, QnDifference *d)
{
    char where[160];
    size_t size = qn_dtype_bytes(b->type.dtype);
    bool exact = !qn_dtype_is_float(b->type.dtype);
    /* bf16 has 8 significant bits: neighbours differ by 2^-8 to 2^-7 of the number. Results that
     * were cut off and results that were rounded, as both are found, differ by one such step. */
    QnTolerance wide = { fmax(tol->rtol, 0x1p-7), tol->atol };
    if (b->type.dtype == QN_DTYPE_BF16)
        tol = &wide;
    for (int64_t i = 0; i < qn_shape_count(&b->type.shape); i++) {
        const char *pa = (const char *)a->data + (size_t)i * size;
        const char *pb = (const char *)b->data + (size_t)i * size;
        double x, y;
        if (!memcmp(pa, pb, size))
            continue;
        qn_dtype_to_f64(a->type.dtype, pa, &x, 1);
        qn_dtype_to_f64(b->type.dtype, pb, &y, 1);
        if (isfinite(x) && isfinite(y))
            d->largest = fmax(d->largest, fabs(x - y));
        note_worst(d, x, y, &b->type.shape, i);
        if (!exact && is_close(x, y, tol))
            continue;
        d->n_different++;
        note(d, "output '%s' at %s is %.9g, expected %.9g", name, place(&b->type.shape, i, where),
             x, y);
    }
}

static bool types_agree(const QnTensor *a, const QnTensor *b, const char *name, QnDifference *d)
{
    char ta[QN_TYPE_TEXT_BYTES], tb[QN_TYPE_TEXT_BYTES];
    if (!a->text == !b->text && qn_shape_is_equal(&a->type.shape, &b->type.shape) &&
        (a->text || a->type.dtype == b->type.dtype))
        return true;
    note(d, "output '%s' is %s%s, expected %s%s", name, a->text ? "strings " : "",
         qn_type_text(&a->type, ta), b->text ? "strings " : "", qn_type_text(&b->type, tb));
    return false;
}

void qn_item_compare(const QnItem *got, const QnItem *want, const QnTolerance *tol,
                     const char *name, QnDifference *d)
{
    static const char *const kinds[] = { "a tensor", "a sequence", "an optional" };
    if (!got || got->kind != want->kind || got->n != want->n) {
        if (got && want->kind == QN_ITEM_OPTIONAL && want->n == 1 && got->kind == QN_ITEM_TENSOR) {
            qn_item_compare(got, want->item[0], tol, name, d);
            return;
        }
        note(d, "output '%s' is %s of %lld, expected %s of %lld", name,
             got ? kinds[got->kind] : "nothing", got ? (long long)got->n : 0, kinds[want->kind],
             (long long)want->n);
        return;
    }
    for (int64_t i = 0; i < want->n; i++)
        qn_item_compare(got->item[i], want->item[i], tol, name, d);
    if (want->kind != QN_ITEM_TENSOR || !types_agree(got->known, want->known, name, d))
        return;
    d->n_compared += qn_shape_count(&want->known->type.shape);
    if (want->known->text)
        compare_text(got->known, want->known, name, d);
    else
        compare_numbers(got->known, want->known, tol, name, d);
}

/* ---- random results -------------------------------------------------------------------------- */

static void moments(const QnTensor *t, double *mean, double *deviation)
{
    int64_t n = qn_shape_count(&t->type.shape);
    size_t size = qn_dtype_bytes(t->type.dtype);
    double sum = 0, square = 0, v;
    for (int64_t i = 0; i < n; i++) {
        qn_dtype_to_f64(t->type.dtype, (const char *)t->data + (size_t)i * size, &v, 1);
        sum += v;
        square += v * v;
    }
    *mean = n ? sum / (double)n : 0;
    *deviation = n ? sqrt(fmax(square / (double)n - *mean * *mean, 0)) : 0;
}

/* Two means of n draws each of deviation s differ by s sqrt(2/n) on the average; six times that,
 * and a floor for what has hardly any spread, is one chance in 10^8 for n of some hundred. */
void qn_item_compare_random(const QnItem *got, const QnItem *want, const char *name,
                            QnDifference *d)
{
    double m1, m2, s1, s2;
    if (!got || got->kind != QN_ITEM_TENSOR || want->kind != QN_ITEM_TENSOR || got->known->text) {
        note(d, "output '%s' is no tensor of numbers", name);
        return;
    }
    if (!types_agree(got->known, want->known, name, d))
        return;
    int64_t n = QN_MAX(qn_shape_count(&want->known->type.shape), 1);
    moments(got->known, &m1, &s1);
    moments(want->known, &m2, &s2);
    double most = 6 * fmax(s1, s2) * sqrt(2 / (double)n) + 1e-6;
    if (!(fabs(m1 - m2) <= most) || (n > 30 && !(fabs(s1 - s2) <= most)))
        note(d, "output '%s' has mean %.5g and deviation %.5g, expected %.5g and %.5g", name, m1,
             s1, m2, s2);
}
