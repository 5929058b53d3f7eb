#include "plan/models.h"

#include "plan/names.h"

#include <strings.h>

static const QnModelList *const lists[] = {
    /* clang-format off */
    &qn_models_resnet,
    &qn_models_cnn,
    &qn_models_inception,
    &qn_models_inverted,
    &qn_models_hybrid,
    &qn_models_levit,
    &qn_models_cait,
    &qn_models_convnext,
    &qn_models_maxvit,
    &qn_models_swin,
    &qn_models_beit,
    &qn_models_vit,
    &qn_models_nfnet,
    &qn_models_regnet,
    &qn_models_branches,
    &qn_models_mobile,
    &qn_models_decoder,
    &qn_models_checkpoints,
    &qn_models_electra,
    &qn_models_mamba,
    &qn_models_latent,
    &qn_models_transformer_xl,
    &qn_models_recommender,
    &qn_models_speech,
    &qn_models_forecast,
    &qn_models_synthesis,
    &qn_models_hifigan,
    &qn_models_diffusion,
    &qn_models_product,
    &qn_models_translation,
    &qn_models_answer,
    &qn_models_waveglow,
    &qn_models_encoder,
    &qn_models_unet,
    &qn_models_ssd,
    &qn_models_retinanet,
    &qn_models_rcnn,
    &qn_models_efficientdet,
    &qn_models_yolo,
    &qn_models_darknet,
    &qn_models_pose,
    &qn_models_se3,
    /* clang-format on */
};

const QnModel *qn_model_at(int i)
{
    for (int k = 0; k < QN_COUNT(lists) && i >= 0; k++) {
        if (i < lists[k]->n)
            return &lists[k]->models[i];
        i -= lists[k]->n;
    }
    return NULL;
}

QnStatus qn_model_find(const char *name, const QnModel **out)
{
    const char *names[1024];
    int n = 0;
    for (const QnModel *m; n < QN_COUNT(names) && (m = qn_model_at(n)); n++) {
        names[n] = m->name;
        if (!strcasecmp(m->name, name)) {
            *out = m;
            return QN_OK;
        }
    }
    for (int i = 0; i < n; i++) { /* "Llama-2 7B" */
        if (qn_name_is(names[i], name)) {
            *out = qn_model_at(i);
            return QN_OK;
        }
    }
    return qn_names_unknown("model", name, names, n,
                            "'quern plan models' lists those that are known");
}
