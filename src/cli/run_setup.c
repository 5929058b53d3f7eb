#include "cli/run_setup.h"

#include "base/file.h"
#include "rt/tune.h"
#include "train/f8_choice.h"
#include "train/model_file.h"

#include <stdio.h>
#include <string.h>

/* What a run has decided of its numbers goes with it; its kernels are those of this machine. */
static QnStatus recall(QnSetup *s, const char *run)
{
    char path[4096];
    QnChoices *c;
    snprintf(path, sizeof path, "%.4000s/kernels.json", run);
    QN_TRY(qn_choices_read(path, &c));
    QnStatus st = qn_f8_choice_recall(c, s->choices);
    qn_choices_free(c);
    return st;
}

/* run: its folder, or NULL. */
static QnStatus open_session(QnSetup *s, const QnSampleSpec *spec, const char *run,
                             const QnDeviceWish *device, const QnSessionOptions *options)
{
    bool strict = s->recipe->determinism == QN_DETERMINISM_STRICT;
    QN_TRY(qn_cli_open_device(device, s->recipe->threads, strict, &s->device));
    QnSessionOptions o = *options;
    if (!o.choices) {
        QN_TRY(qn_cli_choices(&s->choices));
        o.choices = s->choices;
        if (run && qn_f8_choice_is_asked(s->recipe))
            QN_TRY(recall(s, run));
    }
    QnOnnxProblems problems = { 0 }; /* all are named, before the one line of error */
    o.problems = &problems;
    QnStatus st = qn_session_new(s->recipe, spec, s->device, &o, &s->session);
    if (st == QN_OK && s->session->file)
        s->session->file->problems = NULL;
    if (st != QN_OK && problems.n > 1)
        fputs(qn_str_text(&problems.text), stderr);
    qn_str_fini(&problems.text);
    return st;
}

static QnStatus open_all(QnSetup *s, const char *recipe, const char *run,
                         const char *const *settings, int n_settings, const QnDeviceWish *device,
                         const QnSessionOptions *options)
{
    QN_TRY(qn_recipe_open(recipe, settings, n_settings, &s->recipe));
    QN_TRY(qn_data_open(s->recipe, &s->data));
    return open_session(s, qn_dataset_spec(s->data.train), run, device, options);
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
        st = qn_f8_choice_record(s->session->f8, c);
    if (st == QN_OK)
        st = qn_choices_write(c, path);
    qn_choices_free(c);
    return st;
}

QnStatus qn_setup_open(QnSetup *s, const char *recipe, const char *const *settings, int n_settings,
                       const QnDeviceWish *device, const QnSessionOptions *options)
{
    memset(s, 0, sizeof *s);
    QnStatus st = open_all(s, recipe, NULL, settings, n_settings, device, options);
    if (st != QN_OK)
        qn_setup_close(s);
    return st;
}

void qn_setup_close(QnSetup *s)
{
    qn_session_free(s->session);
    qn_device_close(s->device);
    qn_data_close(&s->data);
    qn_form_fini(&s->form);
    qn_recipe_free(s->recipe);
    qn_choices_free(s->choices);
    memset(s, 0, sizeof *s);
}

QnStatus qn_setup_check_computes(const QnSetup *s)
{
    return qn_cli_check_computes(s->device);
}

static const QnSessionOptions inference = { .inference = true };

/* The run's recipe; the run must have a checkpoint. */
static QnStatus find_recipe(const char *run, char *recipe, size_t bytes)
{
    snprintf(recipe, bytes, "%.4000s/recipe.yaml", run);
    if (!qn_file_exists(recipe))
        return qn_fail(QN_ENOTFOUND,
                       "%s is no run's folder: it has no recipe.yaml; name one that quern train "
                       "wrote into, such as runs/NAME",
                       run);
    if (!qn_checkpoint_exists(run)) /* known before the data are opened */
        return qn_fail(QN_ENOTFOUND, "%s holds no checkpoint yet: quern train --resume goes on",
                       run);
    return QN_OK;
}

/* A run that its self-test let go on in fp32 is one of fp32, whatever its recipe asks for. */
static QnStatus load_checkpoint(QnSetup *s, const char *run, QnStatus st)
{
    QnProgress p = { 0 };
    if (st == QN_OK)
        st = qn_setup_check_computes(s);
    if (st == QN_OK)
        st = qn_checkpoint_load_run(run, s->session->store, &p, s->recipe->arena, &s->skipped);
    if (st == QN_OK && p.fell_back && s->session->precision != QN_PRECISION_FP32)
        st = qn_session_set_precision(s->session, QN_PRECISION_FP32);
    return st;
}

/* Weights become constants. Closes everything where st is an error or this fails. */
static QnStatus freeze(QnSetup *s, QnStatus st)
{
    if (st == QN_OK)
        st = qn_session_freeze(s->session);
    if (st != QN_OK)
        qn_setup_close(s);
    return st;
}

void qn_setup_warn_skipped(const QnSetup *s, const QnLog *log)
{
    if (s->skipped)
        qn_log_at(log, QN_LOG_WARN, "%s", s->skipped);
}

static QnStatus check_vocabulary(const QnSetup *s, const char *run)
{
    char path[4096], *was = NULL, *now = NULL;
    QnVocab *vocab;
    snprintf(path, sizeof path, "%.4000s/vocab.json", run);
    if (!s->data.vocab || !qn_file_exists(path))
        return QN_OK;
    QN_TRY(qn_vocab_load(path, &vocab));
    QnStatus st = qn_vocab_print(vocab, &was);
    if (st == QN_OK)
        st = qn_vocab_print(s->data.vocab, &now);
    if (st == QN_OK && strcmp(was, now))
        st = qn_fail(QN_ESHAPE,
                     "%s: its characters are not those of %s: the text is not the one that the "
                     "model was trained on; give that one, or train anew",
                     s->data.train->name, path);
    qn_free(was);
    qn_free(now);
    qn_vocab_free(vocab);
    return st;
}

QnStatus qn_setup_check_data(const QnSetup *s, const char *run)
{
    char path[4096];
    QnForm form;
    QN_TRY(check_vocabulary(s, run));
    snprintf(path, sizeof path, "%.4000s/data.json", run);
    if (qn_file_exists(path)) {
        QN_TRY(qn_form_read(path, &form));
        QnStatus st = qn_form_check(&form, &s->data);
        qn_form_fini(&form);
        QN_TRY(st);
    }
    return QN_OK;
}

QnStatus qn_setup_open_run(QnSetup *s, const char *run, const char *const *settings, int n_settings,
                           const QnDeviceWish *device)
{
    char recipe[4096];
    memset(s, 0, sizeof *s);
    QN_TRY(find_recipe(run, recipe, sizeof recipe));
    QnStatus st = open_all(s, recipe, run, settings, n_settings, device, &inference);
    if (st == QN_OK)
        st = qn_setup_check_data(s, run);
    return freeze(s, load_checkpoint(s, run, st));
}

static QnStatus open_weights(QnSetup *s, const char *run, const char *const *settings,
                             int n_settings, const QnDeviceWish *device)
{
    char recipe[4096], form[4096];
    memset(s, 0, sizeof *s);
    QN_TRY(find_recipe(run, recipe, sizeof recipe));
    snprintf(form, sizeof form, "%.4000s/data.json", run);
    QnStatus st = qn_recipe_open(recipe, settings, n_settings, &s->recipe);
    if (st == QN_OK)
        st = qn_form_read(form, &s->form);
    if (st == QN_OK)
        st = open_session(s, &s->form.spec, run, device, &inference);
    return load_checkpoint(s, run, st);
}

QnStatus qn_setup_open_model(QnSetup *s, const char *run, const char *const *settings,
                             int n_settings, const QnDeviceWish *device)
{
    return freeze(s, open_weights(s, run, settings, n_settings, device));
}

QnStatus qn_setup_open_weights(QnSetup *s, const char *run, const char *const *settings,
                               int n_settings)
{
    QnStatus st = open_weights(s, run, settings, n_settings, &(QnDeviceWish){ 0 });
    if (st != QN_OK)
        qn_setup_close(s);
    return st;
}
