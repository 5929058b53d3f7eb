/* ai.onnx.preview.training: steps of optimizers, and gradients. */
#include "onnx/importer.h"
#include "onnx/mapping.h"
#include "ops/ops.h"

#include <string.h>

#define TRAINING "ai.onnx.preview.training"

/* ---- optimizers: R (rate), T (steps so far), then the tensors, their gradients, their states ---
 */

typedef struct Step {
    int tensors, states; /* per tensor: states */
    QnValue *rate, *count, *is_first;
} Step;

static QnStatus begin(QnOnnxNode *n, int states, Step *s)
{
    const QnType *r = qn_onnx_type(n, 0), *t = qn_onnx_type(n, 1);
    int each = 2 + states;
    if (n->n_in < 2 + each || (n->n_in - 2) % each)
        return qn_fail(QN_EFORMAT, "%d inputs; it takes two and %d for each tensor", n->n_in, each);
    if (!r || !t || !qn_dtype_is_float(r->dtype) || qn_shape_count(&r->shape) != 1 ||
        qn_shape_count(&t->shape) != 1)
        return qn_fail(QN_ESHAPE, "inputs 0 and 1, rate and steps so far, must be one number each");
    s->tensors = (n->n_in - 2) / each;
    s->states = states;
    s->rate = qn_reshape(n->g, qn_onnx_in(n, 0), &(QnShape){ 0 });
    QnValue *count = qn_reshape(n->g, qn_onnx_in(n, 1), &(QnShape){ 0 });
    s->count = qn_cast(n->g, count, r->dtype);
    s->is_first = qn_equal(n->g, s->count, qn_scalar_like(n->g, s->count, 0));
    return QN_OK;
}

/* Tensor i (what 0), its gradient (1), its states. */
static QnValue *part(QnOnnxNode *n, const Step *s, int what, int i)
{
    return qn_onnx_in(n, 2 + what * s->tensors + i);
}

static QnStatus give(QnOnnxNode *n, const Step *s, int what, int i, QnValue *v)
{
    return qn_onnx_out(n, what * s->tensors + i, v);
}

/* g + norm_coefficient x */
static QnValue *regular(QnOnnxNode *n, QnValue *g, QnValue *x)
{
    double c = qn_onnx_float(n, "norm_coefficient", 0);
    return c == 0 ? g : qn_add(n->g, g, qn_mul_scalar(n->g, x, c));
}

static QnStatus import_momentum(QnOnnxNode *n)
{
    QnGraph *g = n->g;
    Step s;
    double alpha = qn_onnx_float(n, "alpha", 0), beta = qn_onnx_float(n, "beta", 1);
    bool nesterov = qn_onnx_is(n, "mode", "nesterov", "standard");
    if (!nesterov && !qn_onnx_is(n, "mode", "standard", "standard"))
        return qn_onnx_refuse(n, "mode other than 'standard' and 'nesterov'");
    QN_TRY(begin(n, 1, &s));
    QnValue *fresh =
        qn_where(g, s.is_first, qn_scalar_like(g, s.rate, 1), qn_scalar_like(g, s.rate, beta));
    for (int i = 0; i < s.tensors; i++) {
        QnValue *x = part(n, &s, 0, i), *d = regular(n, part(n, &s, 1, i), x);
        QnDtype t = qn_value_type(x)->dtype;
        QnValue *v = qn_add(g, qn_mul_scalar(g, part(n, &s, 2, i), alpha),
                            qn_mul(g, d, qn_cast(g, fresh, t)));
        QnValue *by = nesterov ? qn_add(g, d, qn_mul_scalar(g, v, alpha)) : v;
        QN_TRY(give(n, &s, 0, i, qn_sub(g, x, qn_mul(g, by, qn_cast(g, s.rate, t)))));
        QN_TRY(give(n, &s, 1, i, v));
    }
    return QN_OK;
}

static QnStatus import_adagrad(QnOnnxNode *n)
{
    QnGraph *g = n->g;
    Step s;
    double epsilon = qn_onnx_float(n, "epsilon", 1e-6);
    QN_TRY(begin(n, 1, &s));
    QnValue *decay = qn_mul_scalar(g, s.count, qn_onnx_float(n, "decay_factor", 0));
    QnValue *rate = qn_div(g, s.rate, qn_add_scalar(g, decay, 1));
    for (int i = 0; i < s.tensors; i++) {
        QnValue *x = part(n, &s, 0, i), *d = regular(n, part(n, &s, 1, i), x);
        QnValue *h = qn_add(g, part(n, &s, 2, i), qn_mul(g, d, d));
        QnValue *by = qn_div(g, d, qn_add_scalar(g, qn_sqrt(g, h), epsilon));
        by = qn_mul(g, by, qn_cast(g, rate, qn_value_type(x)->dtype));
        QN_TRY(give(n, &s, 0, i, qn_sub(g, x, by)));
        QN_TRY(give(n, &s, 1, i, h));
    }
    return QN_OK;
}

/* sqrt(1 - beta^T) / (1 - alpha^T), 1 before the first step. */
static QnValue *unbiased(QnGraph *g, const Step *s, double alpha, double beta)
{
    QnValue *one = qn_scalar_like(g, s->rate, 1);
    QnValue *t = qn_where(g, s->is_first, one, s->count);
    QnValue *a = qn_sub(g, one, qn_pow(g, qn_scalar_like(g, t, alpha), t));
    QnValue *b = qn_sub(g, one, qn_pow(g, qn_scalar_like(g, t, beta), t));
    return qn_where(g, s->is_first, one, qn_div(g, qn_sqrt(g, b), a));
}

static QnStatus import_adam(QnOnnxNode *n)
{
    QnGraph *g = n->g;
    Step s;
    double alpha = qn_onnx_float(n, "alpha", 0.9), beta = qn_onnx_float(n, "beta", 0.999);
    double epsilon = qn_onnx_float(n, "epsilon", 1e-6);
    double after = 1 - qn_onnx_float(n, "norm_coefficient_post", 0);
    QN_TRY(begin(n, 2, &s));
    QnValue *rate = qn_mul(g, s.rate, unbiased(g, &s, alpha, beta));
    for (int i = 0; i < s.tensors; i++) {
        QnValue *x = part(n, &s, 0, i), *d = regular(n, part(n, &s, 1, i), x);
        QnValue *v =
            qn_add(g, qn_mul_scalar(g, part(n, &s, 2, i), alpha), qn_mul_scalar(g, d, 1 - alpha));
        QnValue *h = qn_add(g, qn_mul_scalar(g, part(n, &s, 3, i), beta),
                            qn_mul_scalar(g, qn_mul(g, d, d), 1 - beta));
        QnValue *by = qn_div(g, v, qn_add_scalar(g, qn_sqrt(g, h), epsilon));
        by = qn_mul(g, by, qn_cast(g, rate, qn_value_type(x)->dtype));
        QnValue *y = qn_sub(g, x, by);
        QN_TRY(give(n, &s, 0, i, after == 1 ? y : qn_mul_scalar(g, y, after)));
        QN_TRY(give(n, &s, 1, i, v));
        QN_TRY(give(n, &s, 2, i, h));
    }
    return QN_OK;
}

/* ---- Gradient -------------------------------------------------------------------------------- */

static QnStatus find_name(const QnOnnxNode *n, QnText name, QnItem **item)
{
    const QnImporter *m = n->importer;
    char text[512];
    if (name.n >= sizeof text)
        return qn_onnx_refuse(n, "names of more than %zu bytes", sizeof text - 1);
    memcpy(text, name.s, name.n);
    text[name.n] = '\0';
    if (!qn_scope_find(m->scope, text, item) || !*item)
        return qn_fail(QN_EFORMAT, "'%s' is not made before the gradient is asked for", text);
    return QN_OK;
}

/* Inputs are the names that the attribute lists: at other values the graph between would have to be
 * walked once more. */
static QnStatus check_names(const QnOnnxNode *n, const QnOnnxAttr *names, int first)
{
    for (int64_t i = 0; i < names->n; i++) {
        QnItem *item;
        QN_TRY(find_name(n, names->strings[i], &item));
        if (first + i >= n->n_in || n->in[first + i] != item)
            return qn_onnx_refuse(n, "the gradient at other values than those of '%.*s' itself",
                                  (int)QN_MIN(names->strings[i].n, 80), names->strings[i].s);
    }
    return QN_OK;
}

static QnStatus import_gradient(QnOnnxNode *n)
{
    const QnOnnxAttr *xs = qn_onnx_attr(n, "xs"), *zs = qn_onnx_attr(n, "zs");
    const QnOnnxAttr *of = qn_onnx_attr(n, "y");
    QnItem *y;
    if (!xs || xs->kind != QN_ONNX_STRINGS || !xs->n || !of || of->kind != QN_ONNX_STRING ||
        (zs && zs->kind != QN_ONNX_STRINGS))
        return qn_fail(QN_EFORMAT, "attributes 'xs' and 'y' must give names");
    QN_TRY(check_names(n, xs, 0));
    if (zs)
        QN_TRY(check_names(n, zs, (int)xs->n));
    QN_TRY(find_name(n, of->s, &y));
    if (n->epoch)
        return qn_onnx_refuse(n, "gradients through elements that only a run can tell");
    int count = (int)xs->n;
    QnValue **wrt = qn_arena_array(n->arena, (size_t)count, sizeof(QnValue *));
    QnValue **grad = qn_arena_array(n->arena, (size_t)count, sizeof(QnValue *));
    if (!wrt || !grad)
        return QN_ENOMEM;
    for (int i = 0; i < count; i++)
        wrt[i] = qn_onnx_in(n, i);
    QN_TRY(qn_grad(n->g, qn_item_value(n->g, n->epoch, y), wrt, count, grad));
    for (int i = 0; i < count; i++)
        QN_TRY(qn_onnx_out(n, i, grad[i]));
    return QN_OK;
}

const QnOnnxMap qn_onnx_training[] = {
    { "Momentum", TRAINING, 1, 0, import_momentum, NULL },
    { "Adagrad", TRAINING, 1, 0, import_adagrad, NULL },
    { "Adam", TRAINING, 1, 0, import_adam, NULL },
    { "Gradient", TRAINING, 1, 0, import_gradient, NULL },
    { 0 },
};
