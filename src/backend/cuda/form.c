#include "backend/cuda/form.h"

#include <string.h>

#include "backend/cuda/host.h"

enum {
    AUX_ALIGN = 8,    /* elements: what the leading dimension of an auxiliary matrix divides by */
    ROW_ALIGN_F8 = 16 /* bytes: what every row of a product of 8 bits divides by */
};

static bool is_of(const QnNode *n, const char *op)
{
    return !strcmp(n->op->name, op);
}

bool qn_cuda_form_is_product(const QnNode *n)
{
    return is_of(n, "matmul") || is_of(n, "matmul_map") || is_of(n, "matmul_sums") ||
           is_of(n, "matmul_f8");
}

static const void *field_of(const QnNode *n, const char *name)
{
    for (int i = 0; i < n->op->n_fields; i++) {
        if (!strcmp(n->op->fields[i].name, name))
            return (const char *)n->attr + n->op->fields[i].offset;
    }
    return NULL;
}

static bool flag_of(const QnNode *n, const char *name)
{
    const bool *f = field_of(n, name);
    return f && *f;
}

/* ---- the product ---- */

static bool is_known(const QnShape *s)
{
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] < 0)
            return false;
    }
    return true;
}

/* Whether the operand's batch axes are those of y (*full), or none; false: some of both. */
static bool batch_of(const QnShape *s, const QnShape *y, bool *full)
{
    bool same = true, none = true;
    for (int i = 3; i <= y->rank; i++) {
        int64_t d = i <= s->rank ? s->dim[s->rank - i] : 1, of_y = y->dim[y->rank - i];
        same = same && d == of_y;
        none = none && d == 1;
    }
    *full = same;
    return same || none;
}

static const char *find_product(const QnNode *n, QnCudaProduct *p)
{
    const QnShape *a = &n->in[0]->type.shape, *b = &n->in[1]->type.shape;
    const QnShape *y = &n->out[0].type.shape;
    bool full_a, full_b;
    *p = (QnCudaProduct){ .trans_a = flag_of(n, "trans_a"),
                          .trans_b = flag_of(n, "trans_b") || is_of(n, "matmul_f8"),
                          .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
                          .dtype_a = n->in[0]->type.dtype,
                          .dtype_b = n->in[1]->type.dtype,
                          .dtype = n->out[0].type.dtype };
    if (!is_known(a) || !is_known(b) || !is_known(y))
        return "its shape is symbolic";
    p->m = y->dim[y->rank - 2];
    p->n = y->dim[y->rank - 1];
    p->k = a->dim[a->rank - (p->trans_a ? 2 : 1)];
    p->batch = 1;
    for (int i = 0; i < y->rank - 2; i++)
        p->batch *= y->dim[i];
    if (!batch_of(a, y, &full_a) || !batch_of(b, y, &full_b))
        return "cublasLt's batches are at one stride, and some axes are broadcast";
    p->stride_a = full_a ? p->m * p->k : 0;
    p->stride_b = full_b ? p->k * p->n : 0;
    if (!full_b && full_a && !p->trans_a) { /* one weight for all: rows of one matrix */
        p->m *= p->batch;
        p->batch = 1;
    }
    if (p->m == 0 || p->n == 0 || p->k == 0 || p->batch == 0)
        return "cublasLt takes no empty matrices";
    if (p->batch > INT32_MAX)
        return "cublasLt takes fewer than 2^31 matrices";
    return NULL;
}

static const char *add_bias(const QnNode *n, int input, QnCudaForm *f)
{
    const QnShape *c = &n->in[input]->type.shape, *y = &n->out[0].type.shape;
    bool is_row = c->rank > 0 && c->dim[c->rank - 1] == y->dim[y->rank - 1];
    for (int i = 0; i < c->rank - 1; i++)
        is_row = is_row && c->dim[i] == 1;
    if (!is_row)
        return "cublasLt adds a bias that is one row";
    f->product.epilogue = CUBLASLT_EPILOGUE_BIAS;
    f->bias_in = input;
    return NULL;
}

/* NVIDIA, cuBLAS library, cublasLtMatmul: what its kernels for 8 bits require. */
static const char *add_f8(const QnNode *n, QnCudaForm *f)
{
    const QnCudaProduct *p = &f->product;
    int64_t row_bytes = p->n * (p->dtype == QN_DTYPE_F32 ? 4 : 2);
    f->scale_a_in = 2;
    f->scale_b_in = 3;
    if (p->dtype_a == QN_DTYPE_F8E5M2 && p->dtype_b == QN_DTYPE_F8E5M2)
        return "cublasLt does not multiply f8e5m2 by f8e5m2";
    if (p->k % ROW_ALIGN_F8 || row_bytes % ROW_ALIGN_F8)
        return "cublasLt's products of 8 bits want rows that divide by 16 bytes";
    if (n->n_in <= 4)
        return NULL;
    return p->dtype == QN_DTYPE_F32 ? "cublasLt adds no f32 bias to a product of 8 bits"
                                    : add_bias(n, 4, f);
}

/* Sums of an operand along what is multiplied: the library's first operand is b. */
static const char *add_operand_sums(const QnNode *n, QnCudaForm *f)
{
    QnCudaProduct *p = &f->product;
    if (p->batch > 1)
        return "cublasLt sums the operand of one product";
    p->epilogue = flag_of(n, "of_a") ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_BGRADA;
    f->bias_out = 1;
    return NULL;
}

/* ---- the maps ---- */

/* Of what the library computes with. */
static bool is_float(QnDtype d)
{
    return d == QN_DTYPE_F32 || d == QN_DTYPE_F16 || d == QN_DTYPE_BF16;
}

static bool is_same_shape(const QnShape *a, const QnShape *b)
{
    return a->rank == b->rank && !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]);
}

/* Operand k behind casts between floats: the library computes in f32 and rounds once. */
static int behind_casts(const QnBody *b, int k)
{
    while (k >= b->n_in) {
        const QnBodyInstr *x = &b->instr[k - b->n_in];
        if (strcmp(x->op->name, "cast") || !is_float(x->dtype))
            break;
        k = x->arg[0];
    }
    return k;
}

/* Whether body operand k is a whole tensor of the result's type, and which input. */
static bool is_whole(const QnNode *n, int first, int k, int *input)
{
    *input = first + k - 1;
    return k > 0 && *input < n->n_in && n->in[*input]->type.dtype == n->out[0].type.dtype &&
           is_same_shape(&n->in[*input]->type.shape, &n->out[0].type.shape);
}

static const char *add_map(const QnNode *n, const QnBody *b, QnCudaForm *f)
{
    static const char no[] = "cublasLt has no such epilogue";
    QnCudaProduct *p = &f->product;
    int first = f->bias_in >= 0 ? 3 : 2, last = behind_casts(b, b->n_in + b->out[0]), arg[3];
    if (last < b->n_in)
        return no;
    const QnBodyInstr *x = &b->instr[last - b->n_in];
    for (int i = 0; i < x->op->n_in; i++)
        arg[i] = behind_casts(b, x->arg[i]);
    if (!strcmp(x->op->name, "relu") && arg[0] == 0) {
        p->epilogue = f->bias_in >= 0 ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    } else if (!strcmp(x->op->name, "gelu_tanh") && arg[0] == 0) {
        p->epilogue = f->bias_in >= 0 ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    } else if (!strcmp(x->op->name, "gelu_tanh_grad") && arg[0] == 0 && f->bias_in < 0 &&
               is_whole(n, first, arg[1], &f->aux_in)) {
        p->epilogue = CUBLASLT_EPILOGUE_DGELU;
    } else if (!strcmp(x->op->name, "add") && (arg[0] == 0 || arg[1] == 0) &&
               is_whole(n, first, arg[arg[0] == 0], &f->sum_in)) {
        return NULL;
    } else {
        f->aux_in = f->sum_in = -1;
        return no;
    }
    return NULL;
}

/* What else the node gives: the product before the maps, sums for a bias. */
static const char *add_outputs(const QnNode *n, QnCudaForm *f)
{
    QnCudaProduct *p = &f->product;
    if (flag_of(n, "keep")) {
        if (!(p->epilogue & CUBLASLT_EPILOGUE_GELU))
            return "cublasLt keeps what goes into GELU alone";
        p->epilogue =
            f->bias_in >= 0 ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
        f->aux_out = 1;
    }
    if (flag_of(n, "sums")) {
        if (p->epilogue != CUBLASLT_EPILOGUE_DGELU)
            return "cublasLt sums what comes of a gradient alone";
        p->epilogue = CUBLASLT_EPILOGUE_DGELU_BGRAD;
        f->bias_out = n->n_out - 1;
    }
    bool aux = f->aux_in >= 0 || f->aux_out >= 0;
    if (aux && (p->batch > 1 || p->n % AUX_ALIGN))
        return "cublasLt's auxiliary matrix is one, of rows that divide by 8";
    return NULL;
}

static const char *find_form(const QnNode *n, QnCudaForm *f)
{
    const QnBody *const *body = field_of(n, "body");
    bool has_bias = body ? flag_of(n, "bias") : n->n_in > 2 && n->in[2];
    const char *why = find_product(n, &f->product);
    if (why)
        return why;
    if (is_of(n, "matmul_f8"))
        return add_f8(n, f);
    if (f->product.dtype_a != f->product.dtype)
        return "cublasLt is asked for results of its operands' type";
    if (is_of(n, "matmul_sums"))
        return add_operand_sums(n, f);
    why = has_bias ? add_bias(n, 2, f) : NULL;
    if (!why && body)
        why = add_map(n, *body, f);
    return why ? why : add_outputs(n, f);
}

const char *qn_cuda_form_of(const QnNode *n, QnCudaForm *f)
{
    *f = (QnCudaForm){ .bias_in = -1,
                       .aux_in = -1,
                       .sum_in = -1,
                       .scale_a_in = -1,
                       .scale_b_in = -1,
                       .aux_out = -1,
                       .bias_out = -1 };
    return find_form(n, f);
}
