/* What a run was predicted to take, beside what it takes: time, energy, money. Without a
 * calibration of this machine (quern plan --calibrate) only what --price makes of the time that has
 * gone. */
#ifndef QN_CLI_TRAIN_FORECAST_H
#define QN_CLI_TRAIN_FORECAST_H

#include "cli/run_setup.h"
#include "plan/forecast.h"
#include "train/loop.h"

typedef struct QnRunForecast {
    QnForecast f;
    double usd_per_hour;          /* of --price, else the calibration's; 0: not known */
    double update_items;          /* samples */
    int64_t n_updates, per_epoch; /* updates */
    double total_s, epoch_s;      /* predicted, evaluations in total_s; 0: not known */
    bool keep;                    /* residuals are read and written */
} QnRunForecast;

/* price: of an hour, or below 0: not given. A calibration or residuals that cannot be read are left
 * out with a warning. */
void qn_run_forecast_init(QnRunForecast *r, const QnSetup *s, double price, bool keep,
                          const QnLog *log);

/* Lines before the run; nothing where nothing is known. */
void qn_run_forecast_start(const QnRunForecast *r, FILE *out);
/* Energy and money so far and to go, with two spaces before; "" where nothing is known.
 * to_go_s < 0: not known. */
const char *qn_run_forecast_spent(const QnRunForecast *r, double so_far_s, double to_go_s,
                                  char out[160]);
/* The same as members of an object. */
void qn_run_forecast_spent_json(const QnRunForecast *r, double so_far_s, double to_go_s,
                                QnJsonWriter *w);
/* Predicted beside measured, after the run. */
void qn_run_forecast_end(const QnRunForecast *r, const QnTrainResult *t, double so_far_s,
                         FILE *out);
void qn_run_forecast_end_json(const QnRunForecast *r, const QnTrainResult *t, double so_far_s,
                              QnJsonWriter *w);
/* Keeps what the run took, for the next prediction; a failure is a warning. */
void qn_run_forecast_keep(const QnRunForecast *r, const QnSetup *s, const QnTrainResult *t,
                          const QnLog *log);

/* The file of residuals. */
QnStatus qn_residual_path(char *out, size_t bytes);

#endif
