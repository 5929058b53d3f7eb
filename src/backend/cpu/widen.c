#include "backend/cpu/widen.h"

#include "backend/cpu/convert.h"
#include "backend/cpu/cpu.h"

enum { MOST = 8, GRAIN = 16384 }; /* inputs and outputs of a node */

static bool is_half(const QnType *t)
{
    return t->dtype == QN_DTYPE_F16 || t->dtype == QN_DTYPE_BF16;
}

/* Input i, then outputs; NULL: an absent input. */
static const QnType *type_at(const QnNode *n, int i)
{
    const QnValue *v = i < n->n_in ? n->in[i] : &n->out[i - n->n_in];
    return v ? &v->type : NULL;
}

const char *qn_widen_refuses(const QnNode *n)
{
    if (n->n_in > MOST || n->n_out > MOST)
        return "has too many operands";
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const QnType *t = type_at(n, i);
        if (t && t->dtype == QN_DTYPE_F64)
            return "takes f32, f16 and bf16";
    }
    return NULL;
}

static size_t wide_bytes(const QnType *t)
{
    if (!t || !is_half(t))
        return 0;
    return ((size_t)qn_shape_count(&t->shape) * sizeof(float) + 63) / 64 * 64;
}

static size_t bytes_at(const QnNode *n, int i, unsigned keep)
{
    return keep >> i & 1 ? 0 : wide_bytes(type_at(n, i));
}

static size_t all_bytes(const QnNode *n, unsigned keep)
{
    size_t sum = 0;
    for (int i = 0; i < n->n_in + n->n_out; i++)
        sum += bytes_at(n, i, keep);
    return sum;
}

void qn_widen_prepare(QnPrepared *p)
{
    qn_widen_prepare_but(p, 0);
}

void qn_widen_prepare_but(QnPrepared *p, unsigned keep)
{
    size_t more = all_bytes(p->node, keep);
    if (more)
        p->workspace_bytes = (p->workspace_bytes + 63) / 64 * 64 + more;
}

typedef struct Convert {
    const QnConvertFns *fns;
    QnDtype dtype;
    const void *from;
    void *to;
    bool narrow;
    int64_t n, n_parts;
} Convert;

static void convert_part(void *ctx, int64_t part)
{
    const Convert *c = ctx;
    int64_t i = qn_cpu_part_begin(c->n, c->n_parts, part);
    int64_t n = qn_cpu_part_begin(c->n, c->n_parts, part + 1) - i;
    size_t half = (size_t)i * sizeof(uint16_t), full = (size_t)i * sizeof(float);
    if (c->narrow)
        c->fns->from_f32(c->dtype, (const void *)((const char *)c->from + full),
                         (char *)c->to + half, n);
    else
        c->fns->to_f32(c->dtype, (const char *)c->from + half, (void *)((char *)c->to + full), n);
}

static void convert(const QnPrepared *p, const QnType *t, const void *from, void *to, bool narrow)
{
    int n_threads = qn_cpu_threads(p);
    Convert c = { qn_convert_find(p->env->isa), t->dtype, from, to, narrow, 0, 0 };
    c.n = qn_shape_count(&t->shape);
    c.n_parts = qn_cpu_parts(n_threads, c.n, GRAIN);
    qn_cpu_parallel(n_threads, c.n_parts, convert_part, &c);
}

QnStatus qn_widen_run(const QnPrepared *p, const void *const *in, void *const *out, void *workspace,
                      QnRunFn *fn)
{
    return qn_widen_run_but(p, in, out, workspace, 0, fn);
}

QnStatus qn_widen_run_but(const QnPrepared *p, const void *const *in, void *const *out,
                          void *workspace, unsigned keep, QnRunFn *fn)
{
    const QnNode *n = p->node;
    const void *in32[MOST];
    void *out32[MOST];
    size_t all = all_bytes(n, keep);
    if (!all)
        return fn(p, in, out, workspace);
    char *at = (char *)workspace + p->workspace_bytes - all;
    for (int i = 0; i < n->n_in; i++) {
        size_t bytes = bytes_at(n, i, keep);
        in32[i] = bytes ? at : in[i];
        if (bytes)
            convert(p, type_at(n, i), in[i], at, false);
        at += bytes;
    }
    for (int i = 0; i < n->n_out; i++) {
        size_t bytes = bytes_at(n, n->n_in + i, keep);
        out32[i] = bytes ? at : out[i];
        at += bytes;
    }
    QN_TRY(fn(p, in32, out32, workspace));
    for (int i = 0; i < n->n_out; i++) {
        if (bytes_at(n, n->n_in + i, keep))
            convert(p, type_at(n, n->n_in + i), out32[i], out[i], true);
    }
    return QN_OK;
}
