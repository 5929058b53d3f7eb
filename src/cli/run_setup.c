#include "cli/run_setup.h"

#include "base/file.h"
#include "rt/tune.h"

#include <stdio.h>
#include <string.h>

static QnStatus open_all(QnSetup *s, const char *recipe, const char *const *settings,
                         int n_settings, const char *device, const QnSessionOptions *options)
{
    QN_TRY(qn_recipe_open(recipe, settings, n_settings, &s->recipe));
    QN_TRY(qn_data_open(s->recipe, &s->data));
    bool strict = s->recipe->determinism == QN_DETERMINISM_STRICT;
    QN_TRY(qn_cli_device(device, s->recipe->threads, strict, &s->device));
    QnSessionOptions o = *options;
    if (!o.choices) {
        char path[4096];
        QN_TRY(qn_cli_cache_path("kernels.json", path, sizeof path));
        QN_TRY(qn_choices_read(path, &s->choices));
        o.choices = s->choices;
    }
    return qn_session_new(s->recipe, qn_dataset_spec(s->data.train), s->device, &o, &s->session);
}

QnStatus qn_setup_record(const QnSetup *s, const char *path)
{
    const QnPlan *plans[] = { s->session->train_plan, s->session->update_plan,
                              s->session->eval_plan };
    QnChoices *c = qn_choices_new();
    QnStatus st = c ? QN_OK : QN_ENOMEM;
    for (int i = 0; st == QN_OK && i < QN_COUNT(plans); i++) {
        if (plans[i])
            st = qn_plan_record(plans[i], c);
    }
    if (st == QN_OK)
        st = qn_choices_write(c, path);
    qn_choices_free(c);
    return st;
}

QnStatus qn_setup_open(QnSetup *s, const char *recipe, const char *const *settings, int n_settings,
                       const char *device, const QnSessionOptions *options)
{
    memset(s, 0, sizeof *s);
    QnStatus st = open_all(s, recipe, settings, n_settings, device, options);
    if (st != QN_OK)
        qn_setup_close(s);
    return st;
}

void qn_setup_close(QnSetup *s)
{
    qn_session_free(s->session);
    qn_device_close(s->device);
    qn_data_close(&s->data);
    qn_recipe_free(s->recipe);
    qn_choices_free(s->choices);
    memset(s, 0, sizeof *s);
}

QnStatus qn_setup_open_run(QnSetup *s, const char *run, const char *const *settings, int n_settings,
                           const char *device)
{
    char recipe[4096];
    memset(s, 0, sizeof *s);
    snprintf(recipe, sizeof recipe, "%.4000s/recipe.yaml", run);
    if (!qn_file_exists(recipe))
        return qn_fail(QN_ENOTFOUND, "%s is no run's folder: it has no recipe.yaml", run);
    if (!qn_checkpoint_exists(run)) /* known before the data are opened */
        return qn_fail(QN_ENOTFOUND, "%s holds no checkpoint yet: quern train --resume goes on",
                       run);
    QN_TRY(qn_setup_open(s, recipe, settings, n_settings, device, &(QnSessionOptions){ 0 }));
    QnStatus st = qn_checkpoint_load_run(run, s->session->store, s->recipe->arena, &s->skipped);
    if (st != QN_OK)
        qn_setup_close(s);
    return st;
}
