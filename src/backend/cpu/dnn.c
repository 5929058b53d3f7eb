/* What the oneDNN kernels share: primitives, their scratchpads, and reorders around them. */
#include "backend/cpu/dnn.h"

#ifdef QN_HAVE_ONEDNN
#include "backend/cpu/cpu.h"

#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

enum { ALIGN = 64, LEAST_FLOPS = 100000 };

typedef struct Operand {
    int arg, index;
    bool is_output;
    dnnl_memory_t given, own; /* own: in the primitive's format, NULL if it is the given one */
    dnnl_primitive_t reorder; /* given to own, or back */
    size_t offset;            /* of own in the workspace, or in what is packed */
    bool is_packed;           /* own is made once, of a constant */
} Operand;

struct QnDnn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_memory_t scratchpad;
    size_t scratchpad_offset;
    int n_threads; /* the library's primitives are made for a number of threads */
    Operand operands[QN_DNN_MAX_ARG];
    int n;
};

QnStatus qn_dnn_check(dnnl_status_t status, const char *call)
{
    if (status == dnnl_success)
        return QN_OK;
    if (status == dnnl_out_of_memory)
        return qn_fail(QN_ENOMEM, "oneDNN ran out of memory");
    return qn_fail(QN_EUNSUPPORTED, "oneDNN answers %d to %.60s", (int)status, call);
}

/* The library takes its thread count from OpenMP's setting for the calling thread. */
static int set_threads(int n)
{
#ifdef _OPENMP
    int before = omp_get_max_threads();
    omp_set_num_threads(n);
    return before;
#else
    return n;
#endif
}

const char *qn_dnn_refuses(const QnNode *n, const QnKernelEnv *env)
{
    QnDtype d = n->out[0].type.dtype;
    if (strcmp(env->isa, qn_cpu_isa_best()) != 0)
        return "the library chooses the instruction set itself";
    if (d != QN_DTYPE_F32 && (d != QN_DTYPE_BF16 || strcmp(env->isa, "v4") != 0))
        return "takes f32, and bf16 with AVX-512";
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const QnValue *v = i < n->n_in ? n->in[i] : &n->out[i - n->n_in];
        if (v && qn_shape_count(&v->type.shape) <= 0)
            return "a tensor is empty";
    }
    if (d == QN_DTYPE_F32 && qn_cost_of(n).flops < LEAST_FLOPS)
        return "too little work for a library call";
    return NULL;
}

static int dims_of(const QnType *t, int64_t groups, dnnl_dims_t dims, dnnl_dims_t strides)
{
    int64_t s[QN_MAX_RANK];
    int n = 0;
    qn_type_strides(t, s);
    if (groups > 1) {
        dims[n] = groups;
        strides[n++] = s[0] * (t->shape.dim[0] / groups);
    }
    for (int i = 0; i < t->shape.rank; i++) {
        dims[n] = i == 0 && groups > 1 ? t->shape.dim[0] / groups : t->shape.dim[i];
        strides[n++] = s[i];
    }
    return n;
}

static dnnl_data_type_t type_of(const QnType *t)
{
    return t->dtype == QN_DTYPE_F32 ? dnnl_f32 : dnnl_bf16;
}

QnStatus qn_dnn_md(const QnType *t, int64_t groups, dnnl_memory_desc_t *md)
{
    dnnl_dims_t dims, strides;
    int n = dims_of(t, groups, dims, strides);
    QN_DNN(dnnl_memory_desc_init_by_strides(md, n, dims, type_of(t), strides));
    return QN_OK;
}

QnStatus qn_dnn_any(const QnType *t, int64_t groups, dnnl_memory_desc_t *md)
{
    dnnl_dims_t dims, strides;
    int n = dims_of(t, groups, dims, strides);
    QN_DNN(dnnl_memory_desc_init_by_tag(md, n, dims, type_of(t), dnnl_format_tag_any));
    return QN_OK;
}

void qn_dnn_fini(QnPrepared *p)
{
    QnDnn *d = p->state;
    if (!d)
        return;
    for (int i = 0; i < d->n; i++) {
        dnnl_primitive_destroy(d->operands[i].reorder);
        dnnl_memory_destroy(d->operands[i].given);
        dnnl_memory_destroy(d->operands[i].own);
    }
    dnnl_memory_destroy(d->scratchpad);
    dnnl_primitive_destroy(d->primitive);
    dnnl_stream_destroy(d->stream);
    dnnl_engine_destroy(d->engine);
    qn_free(d);
    p->state = NULL;
}

QnStatus qn_dnn_new(QnPrepared *p, QnDnn **out)
{
    QnDnn *d = p->state = qn_alloc(sizeof *d);
    if (!d)
        return QN_ENOMEM;
    *out = d;
    d->n_threads = qn_cpu_threads(p);
    QN_DNN(dnnl_engine_create(&d->engine, dnnl_cpu, 0));
    QN_DNN(dnnl_stream_create(&d->stream, d->engine, dnnl_stream_default_flags));
    return QN_OK;
}

static size_t room(QnPrepared *p, size_t bytes)
{
    size_t at = p->workspace_bytes;
    p->workspace_bytes += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

static size_t packed_room(QnPrepared *p, size_t bytes)
{
    size_t at = p->packed_bytes;
    p->packed_bytes += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

static QnStatus reorder_of(QnDnn *d, Operand *o, const dnnl_memory_desc_t *from,
                           const dnnl_memory_desc_t *to)
{
    dnnl_primitive_desc_t pd;
    QN_DNN(dnnl_reorder_primitive_desc_create(&pd, from, d->engine, to, d->engine, NULL));
    dnnl_status_t st = dnnl_primitive_create(&o->reorder, pd);
    dnnl_primitive_desc_destroy(pd);
    return qn_dnn_check(st, "dnnl_primitive_create(reorder)");
}

static QnStatus add_operand(QnPrepared *p, const_dnnl_primitive_desc_t pd, const QnDnnArg *a)
{
    QnDnn *d = p->state;
    Operand *o = &d->operands[d->n++];
    const dnnl_memory_desc_t *want =
        dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, a->arg);
    *o = (Operand){ .arg = a->arg, .index = a->index, .is_output = a->is_output };
    QN_DNN(dnnl_memory_create(&o->given, &a->md, d->engine, DNNL_MEMORY_NONE));
    if (!want)
        return qn_fail(QN_EINTERNAL, "oneDNN does not know its argument %d", a->arg);
    if (dnnl_memory_desc_equal(want, &a->md))
        return QN_OK;
    QN_DNN(dnnl_memory_create(&o->own, want, d->engine, DNNL_MEMORY_NONE));
    size_t bytes = dnnl_memory_desc_get_size(want);
    o->is_packed = !a->is_output && a->index < 64 && qn_prepared_is_constant(p, a->index);
    o->offset = o->is_packed ? packed_room(p, bytes) : room(p, bytes);
    if (o->is_packed)
        p->packs |= UINT64_C(1) << a->index;
    return a->is_output ? reorder_of(d, o, want, &a->md) : reorder_of(d, o, &a->md, want);
}

static QnStatus make(QnPrepared *p, const_dnnl_primitive_desc_t pd, const QnDnnArg *args,
                     int n_args)
{
    QnDnn *d = p->state;
    QN_DNN(dnnl_primitive_create(&d->primitive, pd));
    for (int i = 0; i < n_args; i++)
        QN_TRY(add_operand(p, pd, &args[i]));
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    QN_DNN(dnnl_memory_create(&d->scratchpad, md, d->engine, DNNL_MEMORY_NONE));
    d->scratchpad_offset = room(p, dnnl_memory_desc_get_size(md));
    return QN_OK;
}

static QnStatus describe(QnPrepared *p, const_dnnl_op_desc_t desc, const_dnnl_op_desc_t hint,
                         dnnl_primitive_attr_t attr, const QnDnnArg *args, int n_args)
{
    QnDnn *d = p->state;
    dnnl_primitive_desc_t hint_pd = NULL, pd = NULL;
    QN_DNN(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user));
    if (hint)
        QN_DNN(dnnl_primitive_desc_create(&hint_pd, hint, attr, d->engine, NULL));
    dnnl_status_t made = dnnl_primitive_desc_create(&pd, desc, attr, d->engine, hint_pd);
    QnStatus st = qn_dnn_check(made, "dnnl_primitive_desc_create");
    if (st == QN_OK)
        st = make(p, pd, args, n_args);
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_desc_destroy(hint_pd);
    return st;
}

QnStatus qn_dnn_prepare(QnPrepared *p, const_dnnl_op_desc_t desc, const_dnnl_op_desc_t hint,
                        const_dnnl_post_ops_t post, const QnDnnArg *args, int n_args)
{
    dnnl_primitive_attr_t attr;
    QnStatus st = QN_OK;
    QN_DNN(dnnl_primitive_attr_create(&attr));
    int before = set_threads(((const QnDnn *)p->state)->n_threads);
    if (post)
        st = qn_dnn_check(dnnl_primitive_attr_set_post_ops(attr, post), "set_post_ops");
    if (st == QN_OK)
        st = describe(p, desc, hint, attr, args, n_args);
    set_threads(before);
    dnnl_primitive_attr_destroy(attr);
    return st;
}

static QnStatus reorder(const QnDnn *d, const Operand *o)
{
    dnnl_memory_t from = o->is_output ? o->own : o->given;
    dnnl_memory_t to = o->is_output ? o->given : o->own;
    dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, to } };
    QN_DNN(dnnl_primitive_execute(o->reorder, d->stream, 2, args));
    return QN_OK;
}

static QnStatus execute(const QnPrepared *p, const void *const *in, void *const *out,
                        char *workspace)
{
    const QnDnn *d = p->state;
    dnnl_exec_arg_t args[QN_DNN_MAX_ARG + 1];
    for (int i = 0; i < d->n; i++) {
        const Operand *o = &d->operands[i];
        union { /* the library never writes to what it reads */
            const void *read;
            void *any;
        } at = { .read = o->is_output ? out[o->index] : in[o->index] };
        char *own = o->is_packed ? p->packed : workspace;
        QN_DNN(dnnl_memory_set_data_handle(o->given, at.any));
        if (o->own)
            QN_DNN(dnnl_memory_set_data_handle(o->own, own + o->offset));
        if (o->own && !o->is_output && !o->is_packed)
            QN_TRY(reorder(d, o));
        args[i] = (dnnl_exec_arg_t){ o->arg, o->own ? o->own : o->given };
    }
    QN_DNN(dnnl_memory_set_data_handle(d->scratchpad, workspace + d->scratchpad_offset));
    args[d->n] = (dnnl_exec_arg_t){ DNNL_ARG_SCRATCHPAD, d->scratchpad };
    QN_DNN(dnnl_primitive_execute(d->primitive, d->stream, d->n + 1, args));
    for (int i = 0; i < d->n; i++) {
        if (d->operands[i].own && d->operands[i].is_output)
            QN_TRY(reorder(d, &d->operands[i]));
    }
    return QN_OK;
}

QnStatus qn_dnn_run(const QnPrepared *p, const void *const *in, void *const *out, void *workspace)
{
    int before = set_threads(((const QnDnn *)p->state)->n_threads);
    QnStatus st = execute(p, in, out, workspace);
    set_threads(before);
    return st;
}

static QnStatus pack(const QnDnn *d, const void *const *in, char *packed)
{
    for (int i = 0; i < d->n; i++) {
        const Operand *o = &d->operands[i];
        union {
            const void *read;
            void *any;
        } at = { .read = in[o->index] };
        if (!o->is_packed)
            continue;
        QN_DNN(dnnl_memory_set_data_handle(o->given, at.any));
        QN_DNN(dnnl_memory_set_data_handle(o->own, packed + o->offset));
        QN_TRY(reorder(d, o));
    }
    return QN_OK;
}

QnStatus qn_dnn_pack(const QnPrepared *p, const void *const *in, void *packed)
{
    int before = set_threads(((const QnDnn *)p->state)->n_threads);
    QnStatus st = pack(p->state, in, packed);
    set_threads(before);
    return st;
}
#else

const char *qn_dnn_refuses(const QnNode *n, const QnKernelEnv *env)
{
    (void)n;
    (void)env;
    return "Quern was built without oneDNN";
}

QnStatus qn_dnn_run(const QnPrepared *p, const void *const *in, void *const *out, void *workspace)
{
    (void)p;
    (void)in;
    (void)out;
    (void)workspace;
    return qn_fail(QN_EUNSUPPORTED, "Quern was built without oneDNN");
}

QnStatus qn_dnn_pack(const QnPrepared *p, const void *const *in, void *packed)
{
    return qn_dnn_run(p, in, NULL, packed);
}

void qn_dnn_fini(QnPrepared *p)
{
    (void)p;
}
#endif
