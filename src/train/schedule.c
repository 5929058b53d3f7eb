/* Learning-rate schedules: pure functions of the update's number, so that resuming needs no state.
 */
#include "train/recipe.h"

#include <math.h>

static double cosine_between(double from, double to, double t)
{
    return to + (from - to) * 0.5 * (1 + cos(acos(-1.0) * t));
}

/* t: share of the way, 0 at the first update after warm-up, 1 past the last. */
static double shape(const QnSchedule *s, double t, double epoch)
{
    switch (s->kind) {
    case QN_SCHEDULE_CONSTANT: return s->lr;
    case QN_SCHEDULE_STEP: {
        double lr = s->lr;
        for (int i = 0; i < s->n_marks; i++)
            lr *= epoch >= s->marks[i] ? s->gamma : 1;
        return lr;
    }
    case QN_SCHEDULE_COSINE: return cosine_between(s->lr, s->min_lr, t);
    case QN_SCHEDULE_LINEAR: return s->lr + (s->min_lr - s->lr) * t;
    case QN_SCHEDULE_ONE_CYCLE:
        return t < s->rise ? cosine_between(s->lr / 25, s->lr, t / s->rise)
                           : cosine_between(s->lr, s->lr / 1e4, (t - s->rise) / (1 - s->rise));
    }
    return s->lr;
}

double qn_schedule_lr(const QnSchedule *s, int64_t step, int64_t total, int64_t steps_per_epoch)
{
    double warmup = s->warmup < 1 ? floor(s->warmup * (double)total) : s->warmup;
    if ((double)step < warmup)
        return s->lr * (double)(step + 1) / (warmup + 1);
    double rest = (double)total - warmup;
    double t = rest > 1 ? ((double)step - warmup) / (rest - 1) : 0;
    double epoch = steps_per_epoch > 0 ? (double)step / (double)steps_per_epoch : 0;
    return shape(s, t > 1 ? 1 : t, epoch);
}
