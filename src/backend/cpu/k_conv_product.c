/* conv, conv_dx and conv_dw of one pixel at a time (kernels of 1, no padding) in the channels-last
 * layout: products of (pixels, channels) and the weights, (M,C). With strides the pixels that count
 * are copied together first, or from there to their places. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/product.h"
#include "ops/ops.h"
#include "ops/window.h"

#include <string.h>

static bool is_one_pixel(const QnWindow *w)
{
    bool one = true;
    for (int d = 0; d < 3; d++)
        one &= w->k[d] == 1 && w->pad[d] == 0 && (w->out[d] - 1) * w->stride[d] < w->in[d];
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

typedef struct OnePixel {
    QnProduct product;
    QnConvGeom g;
    size_t pixel; /* bytes of a pixel of the larger images: conv's x */
    bool apart;   /* which lie together in the workspace */
} OnePixel;

static QnStatus conv_prepare(QnPrepared *p)
{
    QnMatmul of = product_of(p->node);
    OnePixel *s = p->state = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    qn_product_init(&s->product, &of, qn_gemm_find(p->env->isa), p->env->n_threads);
    s->g = geometry(p->node);
    const QnWindow *w = &s->g.w;
    s->pixel = (size_t)s->g.c * qn_dtype_bytes(of.gemm.dtype);
    s->apart = w->in[0] != w->out[0] || w->in[1] != w->out[1] || w->in[2] != w->out[2];
    p->workspace_bytes = qn_product_workspace(&s->product);
    if (s->apart)
        p->workspace_bytes += (size_t)(s->g.n * w->out[0] * w->out[1] * w->out[2]) * s->pixel + 64;
    return QN_OK;
}

static void conv_fini(QnPrepared *p)
{
    qn_free(p->state);
}

typedef struct Rows {
    const OnePixel *s;
    const char *from;
    char *to;
} Rows;

/* Pixels of one row of the smaller images, from the larger ones. */
static void gather_row(void *ctx, int64_t row)
{
    const Rows *r = ctx;
    const QnWindow *w = &r->s->g.w;
    size_t pixel = r->s->pixel;
    int64_t o1 = row % w->out[1], o0 = row / w->out[1] % w->out[0], n = row / w->out[1] / w->out[0];
    int64_t first = ((n * w->in[0] + o0 * w->stride[0]) * w->in[1] + o1 * w->stride[1]) * w->in[2];
    for (int64_t o = 0; o < w->out[2]; o++)
        memcpy(r->to + (size_t)(row * w->out[2] + o) * pixel,
               r->from + (size_t)(first + o * w->stride[2]) * pixel, pixel);
}

/* Where along axis d an element of the larger images comes from; -1: nowhere. */
static int64_t source(const QnWindow *w, int d, int64_t i)
{
    return i % w->stride[d] || i / w->stride[d] >= w->out[d] ? -1 : i / w->stride[d];
}

/* One row of the larger images: zeros between the pixels of the smaller ones. */
static void scatter_row(void *ctx, int64_t row)
{
    const Rows *r = ctx;
    const QnWindow *w = &r->s->g.w;
    size_t pixel = r->s->pixel;
    int64_t n = row / w->in[1] / w->in[0], o1 = source(w, 1, row % w->in[1]);
    int64_t o0 = source(w, 0, row / w->in[1] % w->in[0]);
    char *to = r->to + (size_t)(row * w->in[2]) * pixel;
    if (o0 < 0 || o1 < 0) {
        memset(to, 0, (size_t)w->in[2] * pixel);
        return;
    }
    for (int64_t i = 0; i < w->in[2]; i++, to += pixel) {
        int64_t o2 = source(w, 2, i);
        if (o2 < 0)
            memset(to, 0, pixel);
        else
            memcpy(to,
                   r->from +
                       (size_t)(((n * w->out[0] + o0) * w->out[1] + o1) * w->out[2] + o2) * pixel,
                   pixel);
    }
}

static QnStatus conv_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const OnePixel *s = p->state;
    const QnWindow *w = &s->g.w;
    const char *operand[] = { in[0], in[1], p->node->n_in > 2 ? in[2] : NULL, out[0] };
    size_t used = (qn_product_workspace(&s->product) + 63) / 64 * 64;
    char *together = (char *)workspace + used;
    int threads = qn_cpu_threads(p), back = p->node->op == &qn_op_conv_dx;
    int x = p->node->op == &qn_op_conv_dw; /* where it stands among the inputs */
    if (s->apart && back) {
        operand[3] = together;
    } else if (s->apart) {
        Rows r = { s, in[x], together };
        qn_cpu_parallel(threads, s->g.n * w->out[0] * w->out[1], gather_row, &r);
        operand[x] = together;
    }
    qn_product_run(&s->product, threads, operand, workspace);
    if (s->apart && back) {
        Rows r = { s, together, out[0] };
        qn_cpu_parallel(threads, s->g.n * w->in[0] * w->in[1], scatter_row, &r);
    }
    return QN_OK;
}

const QnKernel qn_kernel_conv_product = {
    .name = "cpu.conv.product",
    .backend = "cpu",
    .op = &qn_op_conv,
    .rank = 55, /* behind the gathering one where nothing was measured */
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = conv_accepts,
    .prepare = conv_prepare,
    .run = conv_run,
    .fini = conv_fini,
};

const QnKernel qn_kernel_conv_dx_product = {
    .name = "cpu.conv_dx.product",
    .backend = "cpu",
    .op = &qn_op_conv_dx,
    .rank = 55, /* behind the gathering one where nothing was measured */
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = conv_accepts,
    .prepare = conv_prepare,
    .run = conv_run,
    .fini = conv_fini,
};

const QnKernel qn_kernel_conv_dw_product = {
    .name = "cpu.conv_dw.product",
    .backend = "cpu",
    .op = &qn_op_conv_dw,
    .rank = 55, /* behind the gathering one where nothing was measured */
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = conv_accepts,
    .prepare = conv_prepare,
    .run = conv_run,
    .fini = conv_fini,
};
