/* conv, conv_map, conv_dx and conv_dw by oneDNN, directly and by Winograd's algorithm. Directly,
 * channels-last images are taken as they lie; plain ones, weights, and all that Winograd's takes
 * are reordered into the format that the library prefers.
 *
 * Winograd, F(4x4, 3x3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks",
 * 2016: 36 products where the direct sum takes 144. Each input tile and filter goes through a small
 * linear map, which costs accuracy, and C products are added instead of 9 C, which gains some:
 * test/backend/test_winograd.c holds both against float64. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/dnn.h"
#include "backend/cpu/dnn_post.h"
#include "ops/body.h"
#include "ops/ops.h"
#include "ops/window.h"

#include <string.h>

/* Types by role: x, w, y of the convolution, whichever of them the node reads or writes. */
typedef struct ConvTypes {
    const QnType *x, *w, *y, *bias;
} ConvTypes;

static ConvTypes types_of(const QnNode *n)
{
    const QnType *a = &n->in[0]->type, *b = &n->in[1]->type, *o = &n->out[0].type;
    if (n->op == &qn_op_conv)
        return (ConvTypes){ a, b, o, n->n_in > 2 && n->in[2] ? &n->in[2]->type : NULL };
    if (n->op == &qn_op_conv_map)
        return (ConvTypes){ a, b, o, qn_conv_map_split(n) > 2 ? &n->in[2]->type : NULL };
    if (n->op == &qn_op_conv_dx)
        return (ConvTypes){ o, b, a, NULL };
    return (ConvTypes){ b, o, a, NULL };
}

/* A window can lie in the padding alone: release 2.6 then leaves out what follows the products. */
static bool has_empty_windows(const QnNode *n, const QnShape *w)
{
    int axes = w->rank - 2;
    QnConvAttr full = qn_window_conv_full(n->attr, axes);
    for (int i = 0; i < 2 * axes; i++) {
        if (full.pads.v[i] > (w->dim[2 + i % axes] - 1) * full.dilations.v[i % axes])
            return true;
    }
    return false;
}

static const char *conv_accepts(const QnNode *n, const QnKernelEnv *env)
{
    ConvTypes t = types_of(n);
    if (t.w->layout != QN_LAYOUT_PLAIN)
        return "takes only plain weights";
    if (n->op == &qn_op_conv_map && has_empty_windows(n, &t.w->shape))
        return "takes no windows of padding alone";
    const char *why = qn_dnn_refuses(n, env);
    return why || n->op != &qn_op_conv_map
               ? why
               : qn_dnn_post_refuses(n, qn_body_of(n), qn_conv_map_split(n));
}

/* With fewer tiles, reading the transformed filters takes longest; with fewer channels,
 * transforming both images for the gradient by the weights. */
enum { LEAST_TILES = 12, LEAST_DW = 32 * 64 };

/* What the library's Winograd takes: AVX-512, one stride, filters of 3x3, whole vectors of
 * channels, after which at most a ReLU may follow. Release 2.6 computes gradients wrongly where the
 * four pads differ. In images below a tile or two most products are of padding. */
static const char *winograd_accepts(const QnNode *n, const QnKernelEnv *env)
{
    ConvTypes t = types_of(n);
    const QnShape *w = &t.w->shape, *y = &t.y->shape;
    if (t.x->dtype != QN_DTYPE_F32 || strcmp(env->isa, "v4") != 0)
        return "takes f32 with AVX-512";
    if (w->rank != 4 || w->dim[2] != 3 || w->dim[3] != 3)
        return "takes filters of 3 x 3";
    QnConvAttr full = qn_window_conv_full(n->attr, 2);
    for (int i = 0; i < 4; i++) {
        if (full.strides.v[i % 2] != 1 || full.dilations.v[i % 2] != 1)
            return "takes stride and dilation 1";
        if (full.pads.v[i] > 1 || full.pads.v[i] != full.pads.v[0])
            return "takes equal pads of 0 or 1";
    }
    if (full.groups != 1 || w->dim[0] % 16 || w->dim[1] % 16)
        return "takes one group and multiples of 16 channels";
    if (y->dim[2] < 7 || y->dim[3] < 7 ||
        y->dim[0] * ((y->dim[2] + 3) / 4) * ((y->dim[3] + 3) / 4) < LEAST_TILES)
        return "takes images of 7 x 7 and 12 tiles of 4 x 4 at least";
    if (n->op == &qn_op_conv_dw && w->dim[0] * w->dim[1] < LEAST_DW)
        return "takes 32 x 64 channels at least";
    if (n->op == &qn_op_conv_map) {
        const QnBody *b = qn_body_of(n);
        if (b->n_instr != 1 || b->instr[0].op != &qn_op_relu)
            return "takes no other map than relu";
    }
    return conv_accepts(n, env);
}

#ifdef QN_HAVE_ONEDNN

typedef struct ConvDescs {
    dnnl_alg_kind_t algorithm;
    dnnl_memory_desc_t x, w, y, bias;       /* as they lie */
    dnnl_memory_desc_t any_x, any_w, any_y; /* as the library may have them */
    dnnl_dims_t strides, dilations, begin, end;
} ConvDescs;

static QnStatus images(const QnType *t, bool as_they_lie, dnnl_memory_desc_t *given,
                       dnnl_memory_desc_t *any)
{
    QN_TRY(qn_dnn_md(t, 1, given));
    if (t->layout == QN_LAYOUT_PLAIN || !as_they_lie)
        return qn_dnn_any(t, 1, any);
    *any = *given;
    return QN_OK;
}

/* Products of a gathered element at least: with fewer, gathering costs more than it gains. */
enum { LEAST_FILTERS = 1024 };

/* Whether filters of 1 x 1 pass over some pixels of channels-last images and read the others whole.
 * The library has no description of pixels the last of which would end behind the image. */
static bool skips_pixels(const QnNode *n, const ConvTypes *t, const QnConvAttr *full)
{
    const QnShape *w = &t->w->shape, *x = &t->x->shape, *y = &t->y->shape;
    const int64_t *step = full->strides.v, *pad = full->pads.v;
    if (n->op == &qn_op_conv_dx || t->x->layout != QN_LAYOUT_CHANNELS_LAST || w->rank != 4 ||
        w->dim[2] != 1 || w->dim[3] != 1 || full->groups != 1 || w->dim[0] < LEAST_FILTERS)
        return false;
    return step[0] * step[1] > 1 && !(pad[0] | pad[1] | pad[2] | pad[3]) &&
           y->dim[2] * step[0] <= x->dim[2] && y->dim[3] * step[1] <= x->dim[3];
}

/* Then the pixels that are read are gathered first, by the turn of an operand into another format,
 * and the convolution has stride 1, at which the library is faster. */
static QnStatus gather_pixels(const ConvTypes *t, const QnConvAttr *full, ConvDescs *d)
{
    const int64_t *x = t->x->shape.dim, *y = t->y->shape.dim, *s = full->strides.v;
    dnnl_dims_t dims = { x[0], x[1], y[2], y[3] };
    dnnl_dims_t step = { x[1] * x[2] * x[3], 1, s[0] * x[3] * x[1], s[1] * x[1] };
    QN_DNN(dnnl_memory_desc_init_by_strides(&d->x, 4, dims, d->x.data_type, step));
    QN_DNN(dnnl_memory_desc_init_by_tag(&d->any_x, 4, dims, d->x.data_type, dnnl_nhwc));
    d->strides[0] = d->strides[1] = 1;
    return QN_OK;
}

static QnStatus descs_of(const QnNode *n, const ConvTypes *t, ConvDescs *d)
{
    const QnConvAttr *a = n->attr;
    int spatial = t->x->shape.rank - 2;
    QnConvAttr full = qn_window_conv_full(a, spatial);
    bool direct = d->algorithm == dnnl_convolution_direct;
    QN_TRY(images(t->x, direct, &d->x, &d->any_x));
    QN_TRY(images(t->y, direct, &d->y, &d->any_y));
    QN_TRY(qn_dnn_md(t->w, full.groups, &d->w));
    QN_TRY(qn_dnn_any(t->w, full.groups, &d->any_w));
    if (t->bias)
        QN_TRY(qn_dnn_md(t->bias, 1, &d->bias));
    for (int i = 0; i < spatial; i++) {
        d->strides[i] = full.strides.v[i];
        d->dilations[i] = full.dilations.v[i] - 1;
        d->begin[i] = full.pads.v[i];
        d->end[i] = full.pads.v[spatial + i];
    }
    return direct && skips_pixels(n, t, &full) ? gather_pixels(t, &full, d) : QN_OK;
}

static QnStatus forward(const ConvDescs *d, dnnl_prop_kind_t kind, bool bias,
                        dnnl_convolution_desc_t *c)
{
    QN_DNN(dnnl_dilated_convolution_forward_desc_init(c, kind, d->algorithm, &d->any_x, &d->any_w,
                                                      bias ? &d->bias : NULL, &d->any_y, d->strides,
                                                      d->dilations, d->begin, d->end));
    return QN_OK;
}

static QnStatus prepare_forward(QnPrepared *p, const ConvTypes *t, const ConvDescs *d)
{
    const QnNode *n = p->node;
    QnDnnArg args[QN_DNN_MAX_ARG] = { { DNNL_ARG_SRC, d->x, 0, false },
                                      { DNNL_ARG_WEIGHTS, d->w, 1, false },
                                      { DNNL_ARG_DST, d->y, 0, true },
                                      { DNNL_ARG_BIAS, d->bias, 2, false } };
    int n_args = t->bias ? 4 : 3;
    dnnl_convolution_desc_t c;
    dnnl_post_ops_t post = NULL;
    QN_TRY(forward(d, dnnl_forward_inference, t->bias != NULL, &c));
    QnStatus st = QN_OK;
    if (n->op == &qn_op_conv_map) {
        QN_DNN(dnnl_post_ops_create(&post));
        st = qn_dnn_post_add(n, qn_body_of(n), qn_conv_map_split(n), post, args, &n_args);
    }
    if (st == QN_OK)
        st = qn_dnn_prepare(p, &c, NULL, post, args, n_args);
    dnnl_post_ops_destroy(post);
    return st;
}

static QnStatus prepare(QnPrepared *p, dnnl_alg_kind_t algorithm)
{
    const QnNode *n = p->node;
    ConvTypes t = types_of(n);
    ConvDescs d = { .algorithm = algorithm };
    dnnl_convolution_desc_t hint, c;
    QN_TRY(descs_of(n, &t, &d));
    if (n->op == &qn_op_conv || n->op == &qn_op_conv_map)
        return prepare_forward(p, &t, &d);
    QN_TRY(forward(&d, dnnl_forward_training, false, &hint));
    if (n->op == &qn_op_conv_dx) {
        QnDnnArg args[] = { { DNNL_ARG_DIFF_DST, d.y, 0, false },
                            { DNNL_ARG_WEIGHTS, d.w, 1, false },
                            { DNNL_ARG_DIFF_SRC, d.x, 0, true } };
        QN_DNN(dnnl_dilated_convolution_backward_data_desc_init(
            &c, d.algorithm, &d.any_x, &d.any_w, &d.any_y, d.strides, d.dilations, d.begin, d.end));
        return qn_dnn_prepare(p, &c, &hint, NULL, args, 3);
    }
    QnDnnArg args[] = { { DNNL_ARG_DIFF_DST, d.y, 0, false },
                        { DNNL_ARG_SRC, d.x, 1, false },
                        { DNNL_ARG_DIFF_WEIGHTS, d.w, 0, true } };
    QN_DNN(dnnl_dilated_convolution_backward_weights_desc_init(&c, d.algorithm, &d.any_x, &d.any_w,
                                                               NULL, &d.any_y, d.strides,
                                                               d.dilations, d.begin, d.end));
    return qn_dnn_prepare(p, &c, &hint, NULL, args, 3);
}

static QnStatus prepare_by(QnPrepared *p, dnnl_alg_kind_t algorithm)
{
    QnDnn *d;
    QnStatus st = qn_dnn_new(p, &d);
    if (st == QN_OK)
        st = prepare(p, algorithm);
    if (st != QN_OK)
        qn_dnn_fini(p);
    return st;
}

static QnStatus conv_prepare(QnPrepared *p)
{
    return prepare_by(p, dnnl_convolution_direct);
}

static QnStatus winograd_prepare(QnPrepared *p)
{
    return prepare_by(p, dnnl_convolution_winograd);
}

#else

static QnStatus conv_prepare(QnPrepared *p)
{
    (void)p;
    return qn_fail(QN_EUNSUPPORTED, "Quern was built without oneDNN");
}

static QnStatus winograd_prepare(QnPrepared *p)
{
    return conv_prepare(p);
}
#endif

const QnKernel qn_kernel_conv_onednn = {
    .name = "onednn.conv",
    .backend = "cpu",
    .op = &qn_op_conv,
    .rank = 70,
    .flags = QN_KERNEL_LIBRARY,
    .accepts = conv_accepts,
    .prepare = conv_prepare,
    .run = qn_dnn_run,
    .pack = qn_dnn_pack,
    .fini = qn_dnn_fini,
};

const QnKernel qn_kernel_conv_map_onednn = {
    .name = "onednn.conv_map",
    .backend = "cpu",
    .op = &qn_op_conv_map,
    .rank = 70,
    .flags = QN_KERNEL_LIBRARY,
    .accepts = conv_accepts,
    .prepare = conv_prepare,
    .run = qn_dnn_run,
    .pack = qn_dnn_pack,
    .fini = qn_dnn_fini,
};

const QnKernel qn_kernel_conv_dx_onednn = {
    .name = "onednn.conv_dx",
    .backend = "cpu",
    .op = &qn_op_conv_dx,
    .rank = 70,
    .flags = QN_KERNEL_LIBRARY,
    .accepts = conv_accepts,
    .prepare = conv_prepare,
    .run = qn_dnn_run,
    .pack = qn_dnn_pack,
    .fini = qn_dnn_fini,
};

const QnKernel qn_kernel_conv_dw_onednn = {
    .name = "onednn.conv_dw",
    .backend = "cpu",
    .op = &qn_op_conv_dw,
    .rank = 70,
    .flags = QN_KERNEL_LIBRARY,
    .accepts = conv_accepts,
    .prepare = conv_prepare,
    .run = qn_dnn_run,
    .pack = qn_dnn_pack,
    .fini = qn_dnn_fini,
};

const QnKernel qn_kernel_conv_onednn_winograd = {
    .name = "onednn.conv_winograd",
    .backend = "cpu",
    .op = &qn_op_conv,
    .rank = 75,
    .flags = QN_KERNEL_LIBRARY,
    .accepts = winograd_accepts,
    .prepare = winograd_prepare,
    .run = qn_dnn_run,
    .pack = qn_dnn_pack,
    .fini = qn_dnn_fini,
};

const QnKernel qn_kernel_conv_map_onednn_winograd = {
    .name = "onednn.conv_map_winograd",
    .backend = "cpu",
    .op = &qn_op_conv_map,
    .rank = 75,
    .flags = QN_KERNEL_LIBRARY,
    .accepts = winograd_accepts,
    .prepare = winograd_prepare,
    .run = qn_dnn_run,
    .pack = qn_dnn_pack,
    .fini = qn_dnn_fini,
};

const QnKernel qn_kernel_conv_dx_onednn_winograd = {
    .name = "onednn.conv_dx_winograd",
    .backend = "cpu",
    .op = &qn_op_conv_dx,
    .rank = 75,
    .flags = QN_KERNEL_LIBRARY,
    .accepts = winograd_accepts,
    .prepare = winograd_prepare,
    .run = qn_dnn_run,
    .pack = qn_dnn_pack,
    .fini = qn_dnn_fini,
};

const QnKernel qn_kernel_conv_dw_onednn_winograd = {
    .name = "onednn.conv_dw_winograd",
    .backend = "cpu",
    .op = &qn_op_conv_dw,
    .rank = 75,
    .flags = QN_KERNEL_LIBRARY,
    .accepts = winograd_accepts,
    .prepare = winograd_prepare,
    .run = qn_dnn_run,
    .pack = qn_dnn_pack,
    .fini = qn_dnn_fini,
};
