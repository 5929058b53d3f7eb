/* The best layout of a training run on a number of devices, by trying all of them. */
#ifndef QN_PLAN_CLUSTER_H
#define QN_PLAN_CLUSTER_H

#include "plan/parallel.h"
#include "plan/scaling.h"

typedef struct QnClusterJob {
    const QnSplit *split;
    QnTraining training;
    QnCounts *counts;
    const QnCoefs *coefs;
    QnTier tier; /* of models that are not divided */
    int64_t global_batch;
    double items;                     /* tokens, or images, of the run; 0: not asked */
    double mtbf_hours;                /* of one device */
    double store_gbs, store_most_gbs; /* what one node writes of a checkpoint, and all of them */
    double restart_s;                 /* from failure to work, loading aside */
    double usd_hour;                  /* of one device; 0: not known */
    double kw;                        /* of one device with its share of a machine */
} QnClusterJob;

typedef struct QnClusterPoint {
    int n;
    bool found;
    QnSharding layout;
    QnParallelResult step;
    double items_s; /* tokens or images a second */
    int64_t tried;  /* layouts */
    bool any;       /* some layout divides the batch; `least` is the one of least memory */
    QnSharding least;
    QnParallelMemory least_memory;
    /* failures */
    double checkpoint_s, interval_s, lost; /* time of one; between two; share of the time lost */
    double failures_day;
    /* the run; 0 where it is not asked */
    double hours, usd, kwh, failures;
    double efficiency; /* against the first point, by items a second and device */
} QnClusterPoint;

/* Fails where the model or the device is at fault; that nothing fits is no error. */
QnStatus qn_cluster_search(const QnClusterJob *job, int n, QnClusterPoint *out);
/* Daly's interval between checkpoints (2006) of `write_s` with failures every `mtbf_s`, and the
 * share of time that is lost to them, with `restart_s` after each failure. */
double qn_cluster_interval(double write_s, double mtbf_s);
double qn_cluster_lost(double write_s, double interval_s, double restart_s, double mtbf_s);

#endif
