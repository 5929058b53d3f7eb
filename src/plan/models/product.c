/* One matrix product, which is what devices' best rates are measured with. An example is a matrix
 * of `sequence` rows. */
#include "plan/models.h"

/* size: rows and columns of the right matrix */
static QnValue *step(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    static const QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 };
    QnGraph *g = net->g;
    (void)layers;
    QnShape left = QN_SHAPE(in->batch * in->sequence, m->size[0]);
    QnShape right = QN_SHAPE(m->size[0], m->size[1]);
    QnValue *w = qn_net_param(net, "weight", &right, &init, true);
    QnValue *y = qn_matmul(g, qn_input(g, "x", net->dtype, &left), w, NULL, false, false);
    return in->train ? qn_mean(g, y, QN_INTS(0, 1), false) : y;
}

static const QnFamily squares = { .name = "product", .sequence = 4096, .batch = 1, .step = step };
/* of the sizes that are tried the best ones are about this large */
static const QnFamily best = { .name = "product", .sequence = 8192, .batch = 1, .step = step };

static const QnModel models[] = {
    { "gemm_4096", &squares, { 4096, 4096 }, 16.78, "4096 x 4096" },
    { "gemm_mamf", &best, { 8192, 8192 }, 67.11, "8192 x 8192" },
};

const QnModelList qn_models_product = { models, QN_COUNT(models) };
