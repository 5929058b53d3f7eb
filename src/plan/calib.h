/* What this machine reaches, measured through Quern's own kernels, and the time of counted work by
 * it. `quern plan --calibrate` measures (plan/calibrate.h); here it is kept and used. */
#ifndef QN_PLAN_CALIB_H
#define QN_PLAN_CALIB_H

#include "plan/cost.h"

enum {
    QN_CALIB_FEATURES = 6,
    QN_CALIB_GROUPS = 64,
    QN_CALIB_POINTS = 40,
};

/* Seconds of one kernel are the sum of c[i] * feature i: a constant, FLOPs, and for products FLOPs
 * by each of their sides (what edges cost) and bytes, for other work bytes by how far they lie. */
typedef struct QnCalibGroup {
    char name[40]; /* of products the kernel, else the operator; "product" and "other" for those
                    * that were not met */
    double c[QN_CALIB_FEATURES];
    int64_t samples;
    double error; /* median of |log(fitted / measured)| */
} QnCalibGroup;

/* A point of an efficiency curve. */
typedef struct QnCalibPoint {
    char op[16];
    double size, flops, bytes,
        seconds; /* of one run; size: the side of a product, channels, bytes */
} QnCalibPoint;

typedef struct QnCalib {
    char cpu[96], isa[16];
    int n_threads;
    double memory_bytes, cache_bytes;
    double peak_flops, bandwidth; /* the best that was seen, a second */
    QnCalibGroup groups[QN_CALIB_GROUPS];
    int n_groups;
    QnCalibPoint points[QN_CALIB_POINTS];
    int n_points;
    double node_s, step_s; /* besides the kernels: of each, of a step */
    double median, spread; /* |log(predicted / measured)| of steps that the fit has not seen: the
                            * median, and what 80 % of them lie within */
    int64_t n_steps;       /* steps that the two are of */
    double jpeg_s;         /* seconds that a core takes to decode 500 x 375 pixels; 0: no decoder */
    double watts;          /* while computing; 0: the machine does not say */
    double usd_per_hour;   /* as given; 0: not */
    QnDevice *device;      /* borrowed; whoever reads the file opens it */
    const QnChoices *choices;          /* of kernels, as they were measured; borrowed, or NULL */
    const struct QnResiduals *earlier; /* plan/residual.h; borrowed, or NULL */
} QnCalib;

void qn_calib_features(const QnCalib *c, const QnWork *w, double f[QN_CALIB_FEATURES]);
/* The names of the groups that the work belongs to, the narrowest first. */
enum { QN_CALIB_NAMES = 3, QN_CALIB_NAME = 40 };
void qn_calib_group_names(const QnWork *w, char names[QN_CALIB_NAMES][QN_CALIB_NAME]);
/* Of one kernel; its launch is what does not depend on its size. */
QnWorkCost qn_calib_work(const QnCalib *c, const QnWork *w);

/* As qn_cost_steps: of one device under Quern in float32; an error says what was not measured. */
QnStatus qn_calib_steps(const QnCount *prompt, const QnCount *count, double times,
                        const QnCostRequest *r, QnCostResult *out);

/* What a device is called where runs are kept. c: NULL if it was not measured. */
void qn_calib_device_name(const QnCalib *c, const QnDevice *d, char *out, size_t bytes);

/* The machine as a device of the catalogue, "this machine", with card->calib set. */
QnCard qn_calib_card(const QnCalib *c);

QnStatus qn_calib_write(const QnCalib *c, const char *path);
/* QN_ENOTFOUND with what to do if there is no such file; a damaged one is an error that names it.
 */
QnStatus qn_calib_read(const char *path, QnCalib *out);

#endif
