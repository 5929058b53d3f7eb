#include "ops/matmul.h"
#include "ops/util.h"

int64_t qn_matmul_length(const QnNode *n, bool trans_a)
{
    const QnShape *a = &n->in[0]->type.shape;
    return a->dim[a->rank - (trans_a ? 2 : 1)];
}

static void swap_last(int64_t *s, int rank)
{
    int64_t t = s[rank - 1];
    s[rank - 1] = s[rank - 2];
    s[rank - 2] = t;
}

static void batch_args(QnDeviceCall *c, const int64_t *v, int rank, int64_t fill)
{
    for (int i = 0; i < 6; i++)
        qn_device_int(c, i < 8 - rank ? fill : v[i - (8 - rank)]);
}

QnStatus qn_matmul_tiles(const QnNode *n, bool trans_a, bool trans_b, const char *kernel,
                         QnDeviceCall *c)
{
    const QnShape *y = &n->out[0].type.shape;
    int rank = y->rank;
    if (!qn_dtype_is_float(n->in[0]->type.dtype))
        return qn_fail(QN_EUNSUPPORTED, "%s: the device text is for floating point", n->op->name);
    int64_t s[2][QN_MAX_RANK], rows = y->dim[rank - 2], cols = y->dim[rank - 1], batch = 1;
    for (int i = 0; i < 2; i++)
        qn_util_spread_strides(&n->in[i]->type.shape, rank, s[i]);
    if (trans_a)
        swap_last(s[0], rank);
    if (trans_b)
        swap_last(s[1], rank);
    for (int i = 0; i < rank - 2; i++)
        batch *= y->dim[i];
    *c = (QnDeviceCall){ .kernel = kernel,
                         .n_groups = batch * ((rows + 63) / 64) * ((cols + 63) / 64),
                         .group_size = QN_GROUP,
                         .run = { rank - 2, rank - 1 },
                         .bias_axis = rank - 1 };
    batch_args(c, y->dim, rank, 1);
    batch_args(c, s[0], rank, 0);
    batch_args(c, s[1], rank, 0);
    qn_device_int(c, rows);
    qn_device_int(c, cols);
    qn_device_int(c, qn_matmul_length(n, trans_a));
    qn_device_int(c, s[0][rank - 2]);
    qn_device_int(c, s[0][rank - 1]);
    qn_device_int(c, s[1][rank - 2]);
    qn_device_int(c, s[1][rank - 1]);
    return QN_OK;
}

void qn_matmul_tiles_bias(const QnNode *n, QnDeviceCall *c)
{
    int rank = n->out[0].type.shape.rank;
    int64_t s[QN_MAX_RANK];
    qn_util_spread_strides(&n->in[2]->type.shape, rank, s);
    batch_args(c, s, rank, 0);
    qn_device_int(c, s[rank - 2]);
    qn_device_int(c, s[rank - 1]);
}
