/* matmul by oneDNN; transposed operands are strides. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/dnn.h"
#include "ops/ops.h"

static bool same_batch(const QnShape *a, const QnShape *y)
{
    bool same = a->rank == y->rank;
    for (int i = 0; same && i < y->rank - 2; i++)
        same = a->dim[i] == y->dim[i];
    return same;
}

/* Of a bias: nothing but the last axis. */
static bool is_row(const QnShape *b, const QnShape *y)
{
    bool row = b->rank >= 1 && b->dim[b->rank - 1] == y->dim[y->rank - 1];
    for (int i = 0; i < b->rank - 1; i++)
        row &= b->dim[i] == 1;
    return row;
}

static const char *matmul_accepts(const QnNode *n, const QnKernelEnv *env)
{
    const QnShape *y = &n->out[0].type.shape;
    if (!same_batch(&n->in[0]->type.shape, y) || !same_batch(&n->in[1]->type.shape, y))
        return "batches are broadcast";
    if (n->n_in > 2 && n->in[2] && !is_row(&n->in[2]->type.shape, y))
        return "the bias is not one row";
    const char *why = qn_cpu_need_plain(n);
    return why ? why : qn_dnn_refuses(n, env);
}

#ifdef QN_HAVE_ONEDNN

/* A stored matrix that may be meant transposed. */
static QnStatus matrix(const QnType *t, bool trans, dnnl_memory_desc_t *md)
{
    dnnl_dims_t dims, strides;
    int64_t tight[QN_MAX_RANK];
    int r = t->shape.rank;
    qn_shape_strides(&t->shape, tight);
    for (int i = 0; i < r; i++) {
        int from = i < r - 2 || !trans ? i : i == r - 2 ? r - 1 : r - 2;
        dims[i] = t->shape.dim[from];
        strides[i] = tight[from];
    }
    QN_DNN(dnnl_memory_desc_init_by_strides(
        md, r, dims, t->dtype == QN_DTYPE_F32 ? dnnl_f32 : dnnl_bf16, strides));
    return QN_OK;
}

static QnStatus prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    bool bias = n->n_in > 2 && n->in[2];
    QnDnnArg args[4] = { { DNNL_ARG_SRC, .index = 0 },
                         { DNNL_ARG_WEIGHTS, .index = 1 },
                         { DNNL_ARG_DST, .index = 0, .is_output = true },
                         { DNNL_ARG_BIAS, .index = 2 } };
    dnnl_matmul_desc_t d;
    dnnl_memory_desc_t b;
    QN_TRY(matrix(&n->in[0]->type, *(const bool *)qn_cpu_attr(n, "trans_a"), &args[0].md));
    QN_TRY(matrix(&n->in[1]->type, *(const bool *)qn_cpu_attr(n, "trans_b"), &args[1].md));
    QN_TRY(matrix(&n->out[0].type, false, &args[2].md));
    if (bias) {
        QnType row = { .dtype = n->in[2]->type.dtype, .shape = n->out[0].type.shape };
        for (int i = 0; i < row.shape.rank - 1; i++)
            row.shape.dim[i] = 1;
        QN_TRY(matrix(&row, false, &args[3].md));
    }
    b = args[1].md;
    if (qn_prepared_is_constant(p, 1)) /* in blocks of the library's, once, not in every run */
        QN_DNN(dnnl_memory_desc_init_by_tag(&b, b.ndims, b.dims, b.data_type, dnnl_format_tag_any));
    QN_DNN(dnnl_matmul_desc_init(&d, &args[0].md, &b, bias ? &args[3].md : NULL, &args[2].md));
    return qn_dnn_prepare(p, &d, NULL, NULL, args, bias ? 4 : 3);
}

static QnStatus matmul_prepare(QnPrepared *p)
{
    QnDnn *d;
    QnStatus st = qn_dnn_new(p, &d);
    if (st == QN_OK)
        st = prepare(p);
    if (st != QN_OK)
        qn_dnn_fini(p);
    return st;
}

#else

static QnStatus matmul_prepare(QnPrepared *p)
{
    (void)p;
    return qn_fail(QN_EUNSUPPORTED, "Quern was built without oneDNN");
}
#endif

const QnKernel qn_kernel_matmul_onednn = {
    .name = "onednn.matmul",
    .backend = "cpu",
    .op = &qn_op_matmul,
    .rank = 70,
    .flags = QN_KERNEL_LIBRARY,
    .accepts = matmul_accepts,
    .prepare = matmul_prepare,
    .run = qn_dnn_run,
    .pack = qn_dnn_pack,
    .fini = qn_dnn_fini,
};
