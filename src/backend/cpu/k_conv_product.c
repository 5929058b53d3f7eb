/* conv, conv_dx and conv_dw of one pixel at a time (kernels of 1, strides of 1, no padding) in the
 * channels-last layout: products of (pixels, channels) and the weights, (M,C). */
#include "backend/cpu/cpu.h"
#include "backend/cpu/product.h"
#include "ops/ops.h"
#include "ops/window.h"

static bool is_one_pixel(const QnWindow *w)
{
    bool one = true;
    for (int d = 0; d < 3; d++)
        one &= w->k[d] == 1 && w->stride[d] == 1 && w->in[d] == w->out[d] && w->pad[d] == 0;
    return one;
}

static QnConvGeom geometry(const QnNode *n)
{
    const QnShape *in0 = &n->in[0]->type.shape, *in1 = &n->in[1]->type.shape;
    const QnShape *out = &n->out[0].type.shape;
    if (n->op == &qn_op_conv)
        return qn_window_conv(n->attr, in0, in1, out);
    return n->op == &qn_op_conv_dx ? qn_window_conv(n->attr, out, in1, in0)
                                   : qn_window_conv(n->attr, in1, out, in0);
}

static const char *conv_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    bool dw = n->op == &qn_op_conv_dw;
    QnDtype d = n->out[0].type.dtype;
    const QnType *weights = dw ? &n->out[0].type : &n->in[1]->type;
    const QnType *images[] = { &n->in[0]->type, dw ? &n->in[1]->type : &n->out[0].type };
    if (d != QN_DTYPE_F32 && d != QN_DTYPE_F16 && d != QN_DTYPE_BF16)
        return "takes f32, f16 and bf16";
    if (weights->layout != QN_LAYOUT_PLAIN)
        return "takes only plain weights";
    if (images[0]->layout != QN_LAYOUT_CHANNELS_LAST || images[1]->layout != images[0]->layout)
        return "takes only images in channels-last order";
    QnConvGeom g = geometry(n);
    return g.groups == 1 && is_one_pixel(&g.w) ? NULL : "takes windows of one pixel";
}

/* Of conv x and w, of conv_dx dy and w, of conv_dw dy and x. */
static QnMatmul product_of(const QnNode *n)
{
    QnConvGeom g = geometry(n);
    int64_t pixels = g.n * g.w.out[0] * g.w.out[1] * g.w.out[2];
    QnMatmul m = { .n_batch = 1 };
    m.gemm = (QnGemm){ .m = pixels, .n = g.m, .k = g.c, .dtype = n->out[0].type.dtype };
    m.gemm.am = m.gemm.bn = g.c; /* conv: w (M,C) is turned */
    m.gemm.ak = m.gemm.bk = m.gemm.bias_n = 1;
    if (n->op == &qn_op_conv_dx) {
        m.gemm.n = g.c;
        m.gemm.k = m.gemm.am = g.m;
        m.gemm.bk = g.c;
        m.gemm.bn = 1;
    } else if (n->op == &qn_op_conv_dw) {
        m.gemm.m = m.gemm.ak = g.m; /* dy (pixels,M) is turned */
        m.gemm.n = m.gemm.bk = g.c;
        m.gemm.k = pixels;
        m.gemm.am = m.gemm.bn = 1;
    }
    m.gemm.cm = m.gemm.n;
    return m;
}

static QnStatus conv_prepare(QnPrepared *p)
{
    QnMatmul of = product_of(p->node);
    return qn_product_prepare(p, &of);
}

const QnKernel qn_kernel_conv_product = {
    .name = "cpu.conv.product",
    .backend = "cpu",
    .op = &qn_op_conv,
    .rank = 55, /* behind the gathering one where nothing was measured */
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = conv_accepts,
    .prepare = conv_prepare,
    .run = qn_product_run_node,
    .fini = qn_product_fini,
};

const QnKernel qn_kernel_conv_dx_product = {
    .name = "cpu.conv_dx.product",
    .backend = "cpu",
    .op = &qn_op_conv_dx,
    .rank = 55, /* behind the gathering one where nothing was measured */
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = conv_accepts,
    .prepare = conv_prepare,
    .run = qn_product_run_node,
    .fini = qn_product_fini,
};

const QnKernel qn_kernel_conv_dw_product = {
    .name = "cpu.conv_dw.product",
    .backend = "cpu",
    .op = &qn_op_conv_dw,
    .rank = 55, /* behind the gathering one where nothing was measured */
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = conv_accepts,
    .prepare = conv_prepare,
    .run = qn_product_run_node,
    .fini = qn_product_fini,
};
