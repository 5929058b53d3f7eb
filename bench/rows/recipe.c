/* Rows of a recipe: the same session, loader and steps that `quern train` has. */
#include "rows.h"

#include "train/data.h"
#include "train/session.h"

#include <stdio.h>

struct RecipeBench {
    const Row *row;
    const MeasureOptions *options;
    QnRecipe *recipe;
    QnTrainData data;
    QnSession *session;
    QnLoader *loader;
    QnBatch first; /* of HOW_STEP, which takes the same one always */
    int64_t step;
};

void recipe_close(RecipeBench *r)
{
    if (!r)
        return;
    qn_loader_free(r->loader);
    qn_session_free(r->session);
    qn_data_close(&r->data);
    qn_recipe_free(r->recipe);
    qn_free(r);
}

static QnStatus open_all(RecipeBench *r, const MeasureOptions *o, QnDevice *d,
                         const QnChoices *choices)
{
    char threads[48];
    const char *settings[] = { threads };
    snprintf(threads, sizeof threads, "train.threads=%d", o->n_threads);
    QN_TRY(qn_recipe_open(o->recipe, settings, 1, &r->recipe));
    QN_TRY(qn_data_open(r->recipe, &r->data));
    QnSessionOptions how = { .choices = choices, .training = true, .profile = o->profile };
    QN_TRY(qn_session_new(r->recipe, qn_dataset_spec(r->data.train), d, &how, &r->session));
    QnLoaderOptions l = { .batch = r->session->batch,
                          .workers = (int)r->recipe->data.workers,
                          .prefetch = (int)r->recipe->data.prefetch,
                          .shuffle = true,
                          .drop_last = true,
                          .seed = (uint64_t)r->recipe->seed };
    QN_TRY(qn_loader_new(r->data.train, &l, &r->loader));
    return r->row->how == HOW_STEP ? qn_loader_next(r->loader, &r->first) : QN_OK;
}

QnStatus recipe_open(const Row *row, const MeasureOptions *o, QnDevice *d, const QnChoices *choices,
                     RecipeBench **out)
{
    RecipeBench *r = qn_alloc(sizeof *r);
    if (!r)
        return QN_ENOMEM;
    *r = (RecipeBench){ .row = row, .options = o };
    QnStatus st = open_all(r, o, d, choices);
    if (st == QN_OK)
        *out = r;
    else
        recipe_close(r);
    return st;
}

QnPlan *recipe_plan(const RecipeBench *r)
{
    return r->session->train_plan;
}

int64_t recipe_steps(const RecipeBench *r)
{
    return r->row->how == HOW_EPOCH ? qn_loader_steps(r->loader) : 1;
}

static QnStatus one_step(RecipeBench *r, QnBatch *b)
{
    QnStepResult result;
    if (r->row->how != HOW_STEP)
        QN_TRY(qn_loader_next(r->loader, b));
    return qn_session_step(r->session, b, r->step++, r->recipe->schedule.lr * 1e-2, &result);
}

QnStatus recipe_run(RecipeBench *r, double *ns)
{
    int64_t n = recipe_steps(r);
    QnBatch b = r->first;
    int64_t t0 = measure_clock_ns(r->options);
    for (int64_t i = 0; i < n; i++)
        QN_TRY(one_step(r, &b));
    *ns = (double)(measure_clock_ns(r->options) - t0);
    return QN_OK;
}
