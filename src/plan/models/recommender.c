/* Recommenders: what a user will like, from tables of what is known of users and things. An example
 * is one pair of them, or in MLPerf Inference a query of several. */
#include "plan/models/text.h"

static QnValue *ids(QnNet *net, const char *name, int64_t n)
{
    return qn_input(net->g, name, QN_DTYPE_I64, &QN_SHAPE(n));
}

/* Linear layers of these widths, the last one without ReLU where it is the score. */
static QnValue *layers_of(QnNet *net, const char *name, QnValue *x, const int64_t *widths, int n,
                          bool score)
{
    qn_net_push(net, name);
    for (int i = 0; i < n; i++) {
        qn_text_push(net, "", i);
        x = qn_nn_linear(net, "fc", x, widths[i], true);
        x = score && i == n - 1 ? x : qn_relu(net->g, x);
        qn_net_pop(net);
    }
    qn_net_pop(net);
    return x;
}

static QnValue *loss_or_score(QnNet *net, const QnStepInput *in, QnValue *x)
{
    if (qn_value_is_poison(x) || !in->train)
        return qn_sigmoid(net->g, x);
    QnValue *wanted = qn_input(net->g, "y", net->dtype, &x->type.shape);
    return qn_bce_with_logits(net->g, x, wanted, QN_REDUCTION_MEAN);
}

/* ---- neural collaborative filtering (He et al. 2017) on MovieLens 20M. size: users, films ---- */

enum { USERS, FILMS, FACTORS = 64, WIDE = 128 };

static QnValue *ncf(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    static const int64_t widths[] = { 256, 128, 64 };
    QnGraph *g = net->g;
    QnValue *user = ids(net, "users", in->batch), *film = ids(net, "films", in->batch);
    (void)layers;
    QnValue *factors =
        qn_mul(g, qn_nn_embedding(net, "mf_user", user, m->size[USERS], FACTORS, NULL),
               qn_nn_embedding(net, "mf_item", film, m->size[FILMS], FACTORS, NULL));
    QnValue *both[] = { qn_nn_embedding(net, "mlp_user", user, m->size[USERS], WIDE, NULL),
                        qn_nn_embedding(net, "mlp_item", film, m->size[FILMS], WIDE, NULL) };
    QnValue *x = layers_of(net, "mlp", qn_concat(g, both, 2, 1), widths, 3, false);
    if (in->train)
        x = qn_nn_dropout(net, x, 0.5);
    x = qn_concat(g, (QnValue *[]){ factors, x }, 2, 1);
    return loss_or_score(net, in, qn_nn_linear(net, "final", x, 1, true));
}

/* ---- DLRM (Naumov et al. 2019) on Criteo's terabyte. size: thousands of rows of all tables, rows
 * that a pair takes of each (their sum is what goes on), layers of the cross net (0: products of
 * all pairs of features), pairs of an example ---- */

enum { THOUSANDS, HOT, CROSS, PAIRS };
enum { TABLES = 26, FEATURE = 128, RANK = 512 };

/* Features (pairs,26,128), sums of the rows that each pair takes of each table. The graph holds
 * just these rows: they are read once and trained where they lie, which libraries do in one kernel.
 */
static QnValue *features(QnNet *net, const QnModel *m, int64_t pairs)
{
    int64_t hot = m->size[HOT], left = 1000 * m->size[THOUSANDS] - pairs * TABLES * hot;
    qn_net_push(net, "tables");
    if (left > 0)
        qn_step_idle(net, "rest", &QN_SHAPE(left, FEATURE));
    QnValue *x = qn_step_rows(net, "read", &QN_SHAPE(pairs, TABLES, hot, FEATURE));
    qn_net_pop(net);
    return qn_sum(net->g, x, QN_INTS(2), false);
}

/* The products of each two of the features (pairs,27,128), with the first: (pairs,480). */
static QnValue *interact(QnNet *net, QnValue *x, QnValue *first, int64_t pairs)
{
    enum { ALL = TABLES + 1, TWOS = ALL * TABLES / 2 };
    QnGraph *g = net->g;
    QnValue *y = qn_matmul(g, x, x, NULL, false, true);
    y = qn_gather(g, qn_reshape(g, y, &QN_SHAPE(pairs, ALL * ALL)), ids(net, "twos", TWOS), 1);
    QnShape one = QN_SHAPE(pairs, 1);
    QnValue *parts[] = { first, y, qn_full(g, 0, y->type.dtype, &one) };
    return qn_concat(g, parts, 3, 1);
}

/* x0 * (W V x + b) + x, a few times (Wang et al. 2021). */
static QnValue *cross(QnNet *net, QnValue *x, int64_t layers)
{
    QnGraph *g = net->g;
    QnValue *x0 = x;
    int64_t width = qn_text_width(x);
    for (int64_t i = 0; i < layers; i++) {
        qn_text_push(net, "cross", i);
        QnValue *y = qn_nn_linear(net, "v", x, RANK, false);
        x = qn_add(g, qn_mul(g, x0, qn_nn_linear(net, "w", y, width, true)), x);
        qn_net_pop(net);
    }
    return x;
}

static QnValue *dlrm(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    static const int64_t bottom[] = { 512, 256, FEATURE }, top[] = { 1024, 1024, 512, 256, 1 };
    QnGraph *g = net->g;
    int64_t pairs = in->batch * QN_MAX(m->size[PAIRS], 1);
    (void)layers;
    QnValue *dense = qn_input(g, "dense", net->dtype, &QN_SHAPE(pairs, 13));
    QnValue *first = layers_of(net, "bottom", dense, bottom, 3, false);
    QnValue *parts[] = { qn_reshape(g, first, &QN_SHAPE(pairs, 1, FEATURE)),
                         features(net, m, pairs) };
    QnValue *x = qn_concat(g, parts, 2, 1);
    if (m->size[CROSS])
        x = cross(net, qn_reshape(g, x, &QN_SHAPE(pairs, (TABLES + 1) * FEATURE)), m->size[CROSS]);
    else
        x = interact(net, x, first, pairs);
    return loss_or_score(net, in, layers_of(net, "top", x, top, 5, true));
}

static const QnFamily ncfs = {
    .name = "ncf", .sequence = 1, .batch = 65536, .step = ncf, .adam = true
};
static const QnFamily dlrms = {
    .name = "dlrm", .sequence = 1, .batch = 8192, .bends = true, .step = dlrm, .plain = true
};
/* a query has 270 pairs on average */
static const QnFamily queries = {
    .name = "dlrm-query", .sequence = 1, .batch = 256, .bends = true, .step = dlrm, .plain = true
};

static const QnModel models[] = {
    { "ncf", &ncfs, { 138493, 26744 }, 31.8, "NVIDIA DeepLearningExamples: 31.8 M" },
    /* tables are cut at 40 million rows; a pair takes 214 rows of 26 tables */
    { "dlrm_dcnv2", &dlrms, { 204185, 8, 3, 1 }, 26136, "MLPerf Training 3.0: rows of the tables" },
    { "dlrm_v2",
      &queries,
      { 204185, 8, 3, 270 },
      26136,
      "MLPerf Training 3.0: rows of the tables" },
    { "dlrm_v1", &dlrms, { 187767, 1, 0, 1 }, 0, "" },
    { "dlrm_large", &dlrms, { 177944, 1, 0, 1 }, 0, "" },
};

const QnModelList qn_models_recommender = { models, QN_COUNT(models) };
