/* What every command that runs a model needs: recipe, data, device, session. */
#ifndef QN_CLI_RUN_SETUP_H
#define QN_CLI_RUN_SETUP_H

#include "cli/cli.h"
#include "train/checkpoint.h"
#include "train/data.h"
#include "train/form.h"
#include "train/session.h"

typedef struct QnSetup {
    QnRecipe *recipe;
    QnTrainData data;
    QnDevice *device;
    QnSession *session;
    QnChoices *choices;
    QnForm form;         /* of qn_setup_open_model */
    const char *skipped; /* of a run: broken checkpoints that were passed over, or NULL */
} QnSetup;

/* Opens everything; on failure all is closed again. settings are --set words, in order. Kernel
 * choices come from options->choices, else from what `quern tune` has left on this machine. */
QnStatus qn_setup_open(QnSetup *s, const char *recipe, const char *const *settings, int n_settings,
                       const QnDeviceWish *device, const QnSessionOptions *options);
void qn_setup_close(QnSetup *s);
/* Refuses the device that only counts. */
QnStatus qn_setup_check_computes(const QnSetup *s);

/* Writes the kernels that the session's plans run to `path`, and which products are in 8 bits where
 * measurement decided on that. */
QnStatus qn_setup_record(const QnSetup *s, const char *path);

/* A trained model without its data: what prediction needs. setup->form says what goes in and out.
 * Its weights are constants of the plan (qn_session_freeze). */
QnStatus qn_setup_open_model(QnSetup *s, const char *run, const char *const *settings,
                             int n_settings, const QnDeviceWish *device);

/* The same for who wants the weights themselves, in the session's store: there is no plan. */
QnStatus qn_setup_open_weights(QnSetup *s, const char *run, const char *const *settings,
                               int n_settings);

/* Warns of broken checkpoints that were passed over: older weights speak. */
void qn_setup_warn_skipped(const QnSetup *s, const QnLog *log);

/* Refuses data that are not of the kind, classes, features and characters that RUN was trained on:
 * all numbers would come out, and mean nothing. */
QnStatus qn_setup_check_data(const QnSetup *s, const char *run);

/* A trained model with its data: RUN is a run's folder (its recipe.yaml and best or newest
 * checkpoint). Weights are constants here too. */
QnStatus qn_setup_open_run(QnSetup *s, const char *run, const char *const *settings, int n_settings,
                           const QnDeviceWish *device);

#endif
