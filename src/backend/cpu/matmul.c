#include "backend/cpu/matmul.h"
#include "backend/cpu/cpu.h"

#include <string.h>

/* Strides of an operand along the axes of y, 0 where it is broadcast. */
static void operand_strides(const QnShape *s, int rank, int64_t out[QN_MAX_RANK])
{
    int64_t tight[QN_MAX_RANK];
    qn_shape_strides(s, tight);
    memset(out, 0, QN_MAX_RANK * sizeof *out);
    for (int i = 0; i < s->rank; i++)
        out[rank - s->rank + i] = s->dim[i] == 1 ? 0 : tight[i];
}

/* Steps of rows and columns of a stored matrix that may be meant transposed. */
static void matrix_steps(const QnShape *s, bool trans, int64_t *row, int64_t *column)
{
    int64_t wide = s->dim[s->rank - 1];
    *row = trans ? 1 : wide;
    *column = trans ? wide : 1;
}

QnMatmul qn_matmul_of(const QnNode *n)
{
    const QnShape *a = &n->in[0]->type.shape, *b = &n->in[1]->type.shape;
    const QnShape *y = &n->out[0].type.shape;
    const bool trans_a = *(const bool *)qn_cpu_attr(n, "trans_a");
    int rank = y->rank;
    QnMatmul m = { .rank = rank - 2, .n_batch = 1 };
    QnGemm *g = &m.gemm;
    g->dtype = n->out[0].type.dtype;
    g->m = y->dim[rank - 2];
    g->n = g->cm = y->dim[rank - 1];
    g->k = a->dim[a->rank - (trans_a ? 2 : 1)];
    matrix_steps(a, trans_a, &g->am, &g->ak);
    matrix_steps(b, *(const bool *)qn_cpu_attr(n, "trans_b"), &g->bk, &g->bn);
    operand_strides(a, rank, m.stride[0]);
    operand_strides(b, rank, m.stride[1]);
    if (n->n_in > 2 && n->in[2]) {
        operand_strides(&n->in[2]->type.shape, rank, m.stride[2]);
        g->bias_m = m.stride[2][rank - 2];
        g->bias_n = m.stride[2][rank - 1];
    }
    operand_strides(y, rank, m.stride[3]);
    for (int i = 0; i < m.rank; i++)
        m.n_batch *= m.dim[i] = y->dim[i];
    return m;
}

QnGemm qn_matmul_at(const QnMatmul *m, int64_t batch, const char *const operand[4])
{
    QnGemm g = m->gemm;
    int64_t bytes = (int64_t)qn_dtype_bytes(g.dtype), at[4] = { 0 };
    for (int d = m->rank - 1; d >= 0; d--) {
        for (int k = 0; k < 4; k++)
            at[k] += batch % m->dim[d] * m->stride[k][d];
        batch /= m->dim[d];
    }
    g.a = operand[0] + at[0] * bytes;
    g.b = operand[1] + at[1] * bytes;
    g.bias = operand[2] ? operand[2] + at[2] * bytes : NULL;
    g.c = (void *)(operand[3] + at[3] * bytes);
    return g;
}

QnMatmulRowsFn *qn_matmul_rows_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return qn_matmul_rows_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}

QnMatmulColumnsFn *qn_matmul_columns_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return qn_matmul_columns_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}

QnMatmulThinFns qn_matmul_thin_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return (QnMatmulThinFns){ qn_matmul_thin_pack_##name, qn_matmul_thin_##name,               \
                                  qn_matmul_thin_width_##name };
    QN_ISA_LIST(QN_X)
#undef QN_X
    return (QnMatmulThinFns){ 0 };
}

const QnGemmFns *qn_matmul_bf16_find(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return qn_matmul_bf16_##name.block ? &qn_matmul_bf16_##name : NULL;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return NULL;
}
