/* The constants of a plan: written once when it is made, and packed where kernels want them so. */
#include "ir/eval.h"
#include "rt/plan_impl.h"

#include <string.h>

static bool is_constant(const QnNode *n)
{
    return (n->op->traits & QN_LEAF) && !(n->op->traits & (QN_INPUT | QN_STATE));
}

bool qn_prepared_is_constant(const QnPrepared *p, int input)
{
    return p->node->in[input] && is_constant(p->node->in[input]->node);
}

/* ---- elements on the host -------------------------------------------------------------------- */

typedef struct Host {
    const void *p;
    void *own; /* to be freed; NULL: borrowed from the node */
} Host;

/* Data that are written in the node as they go to the device. */
static const QnData *written(const QnNode *n)
{
    for (int i = 0; i < n->op->n_fields; i++) {
        const QnAttrField *f = &n->op->fields[i];
        if (f->kind == QN_ATTR_DATA)
            return (const QnData *)(const void *)((const char *)n->attr + f->offset);
    }
    return NULL;
}

static QnStatus evaluate(const QnNode *n, Host *out)
{
    const QnType *t = &n->out[0].type;
    int64_t count = qn_shape_count(&t->shape), bytes = qn_type_bytes(t);
    double *wide = qn_alloc_array((size_t)count + 1, sizeof *wide);
    void *narrow = qn_alloc((size_t)bytes + 1);
    QnStatus st = wide && narrow ? QN_OK : QN_ENOMEM;
    if (st)
        goto done;
    bool bits = qn_eval_is_bits(n, t, -1);
    QN_TRY_DONE(qn_eval_node(n, NULL, &wide, bits));
    if (bits)
        memcpy(narrow, wide, (size_t)bytes);
    else
        qn_dtype_from_f64(t->dtype, wide, narrow, count);
    *out = (Host){ narrow, narrow };
    narrow = NULL;
done:
    qn_free(wide);
    qn_free(narrow);
    return st;
}

static QnStatus elements(const QnNode *n, Host *out)
{
    const QnData *d = written(n);
    if (d && n->out[0].type.layout == QN_LAYOUT_PLAIN &&
        d->bytes == (size_t)qn_type_bytes(&n->out[0].type)) {
        *out = (Host){ .p = d->p };
        return QN_OK;
    }
    return evaluate(n, out);
}

/* ---- which are packed ------------------------------------------------------------------------ */

static int64_t round_up(const QnPlan *p, int64_t bytes)
{
    int64_t align = qn_device_align(p->device);
    return (bytes + align - 1) / align * align;
}

/* Reads of each block that are no packing; blocks without any are not stored. */
static QnStatus find_unread(QnPlan *p)
{
    const QnGraph *g = p->graph;
    QnBlocks *b = &p->blocks;
    int64_t *reads = qn_alloc_array((size_t)b->n + 1, sizeof *reads);
    int64_t *packs = qn_alloc_array((size_t)b->n + 1, sizeof *packs);
    if (!reads || !packs) {
        qn_free(reads);
        qn_free(packs);
        return QN_ENOMEM;
    }
    for (int64_t i = 0; i < p->n_steps; i++) {
        const QnPrepared *k = &p->steps[i].prepared;
        for (int in = 0; in < k->node->n_in; in++) {
            if (!k->node->in[in])
                continue;
            bool packed = in < 64 && (k->packs >> in & 1);
            (packed ? packs : reads)[b->of[k->node->in[in]->id]]++;
        }
    }
    for (int64_t i = 0; i < g->n_outputs; i++)
        reads[b->of[g->outputs[i].value->id]]++;
    QN_GRAPH_EACH(g, n)
    {
        for (int in = 0; (n->op->traits & QN_EFFECT) && in < n->n_in; in++)
            reads[b->of[n->in[in]->id]]++;
    }
    for (int64_t i = 0; i < b->n; i++)
        if (b->blocks[i].place == QN_PLACE_CONSTANT && packs[i] && !reads[i])
            b->blocks[i].place = QN_PLACE_NOWHERE;
    qn_free(reads);
    qn_free(packs);
    return QN_OK;
}

QnStatus qn_constants_place(QnPlan *p, int64_t *bytes)
{
    QnBlocks *b = &p->blocks;
    *bytes = 0;
    QN_TRY(find_unread(p));
    for (int64_t i = 0; i < b->n; i++) {
        if (b->blocks[i].place != QN_PLACE_CONSTANT)
            continue;
        b->blocks[i].offset = *bytes;
        *bytes += round_up(p, b->blocks[i].bytes);
    }
    for (int64_t i = 0; i < p->n_steps; i++) {
        if (!p->steps[i].prepared.packed_bytes)
            continue;
        p->steps[i].packed_offset = *bytes;
        *bytes += round_up(p, (int64_t)p->steps[i].prepared.packed_bytes);
    }
    return QN_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static QnStatus write_one(QnPlan *p, const QnNode *n)
{
    const QnBlock *k = &p->blocks.blocks[p->blocks.of[n->out[0].id]];
    Host host;
    if (k->place != QN_PLACE_CONSTANT)
        return QN_OK;
    QN_TRY(elements(n, &host));
    QnStatus st = p->device->backend->write(p->device, p->constants + k->offset, host.p,
                                            (size_t)qn_type_bytes(&n->out[0].type));
    qn_free(host.own);
    return st;
}

static QnStatus pack(QnPlan *p, QnPlanRun *s)
{
    QnPrepared *k = &s->prepared;
    Host host[64] = { { 0 } };
    const void *in[64] = { 0 };
    QnStatus st = QN_OK;
    k->packed = p->constants + s->packed_offset;
    for (int i = 0; st == QN_OK && i < k->node->n_in && i < 64; i++) {
        if (!(k->packs >> i & 1))
            continue;
        st = elements(k->node->in[i]->node, &host[i]);
        in[i] = host[i].p;
    }
    if (st == QN_OK)
        st = k->kernel->pack(k, in, k->packed);
    for (int i = 0; i < 64; i++)
        qn_free(host[i].own);
    return st;
}

QnStatus qn_constants_write(QnPlan *p)
{
    if (p->device->backend->only_counts)
        return QN_OK;
    QN_GRAPH_EACH(p->graph, n)
    {
        if (is_constant(n))
            QN_TRY(write_one(p, n));
    }
    for (int64_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].prepared.packed_bytes)
            QN_TRY(pack(p, &p->steps[i]));
    }
    return QN_OK;
}
