/* Bounds of what a model may take: its file may be small and ask for the world. */
#include "onnx/importer.h"

#include "base/compiler.h"

#include <unistd.h>

enum { NODES_MOST = 1 << 28, GRAPH_CUT = 1 << 16, GRAPH_MOST = 1 << 21, ARENA_LEAST = 256 << 20 };

static int64_t machine_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    int64_t bytes;
    return pages > 0 && size > 0 && !qn_mul_overflow((int64_t)pages, (int64_t)size, &bytes)
               ? bytes
               : INT64_MAX / 4;
}

void qn_importer_limit(QnImporter *m, const QnOnnxLimits *l)
{
    m->most_bytes = l && l->bytes > 0 ? l->bytes : machine_bytes();
    m->most_nodes = l && l->nodes > 0 ? l->nodes : NODES_MOST;
    m->blocks.most = (uint64_t)m->most_bytes;
    qn_arena_limit(m->arena,
                   (size_t)(l && l->bytes > 0 ? l->bytes : QN_MAX(m->most_bytes / 4, ARENA_LEAST)));
    qn_arena_limit(m->graph->arena, (size_t)m->most_bytes);
}

QnStatus qn_importer_step(QnImporter *m)
{
    if (++m->n_run > m->most_nodes)
        return qn_fail(QN_EUNSUPPORTED, "over %lld nodes and turns of loops; at most so many run",
                       (long long)m->most_nodes);
    if (m->graph->n_nodes > GRAPH_MOST)
        return qn_fail(QN_EUNSUPPORTED, "loops unroll to a graph of over %d nodes", GRAPH_MOST);
    if (m->is_fed && m->graph->n_nodes > GRAPH_CUT)
        return qn_importer_cut(m, NULL);
    return QN_OK;
}

/* Dims beside a 0 count too: strides and loops are made of them. */
static bool is_within(const QnImporter *m, const QnType *t)
{
    int64_t bytes = (int64_t)QN_MAX(qn_dtype_bytes(t->dtype), 1);
    for (int i = 0; i < t->shape.rank; i++)
        if (qn_mul_overflow(bytes, QN_MAX(t->shape.dim[i], 1), &bytes))
            return false;
    return bytes <= m->most_bytes;
}

QnStatus qn_importer_check(QnImporter *m, const QnNode *last)
{
    char text[QN_TYPE_TEXT_BYTES];
    for (const QnNode *n = m->graph->last; n && n != last; n = n->prev)
        for (int i = 0; i < n->n_out; i++)
            if (!is_within(m, &n->out[i].type))
                return qn_fail(
                    QN_ENOMEM, "a value %s of %s is over the %lld bytes that it may take",
                    qn_type_text(&n->out[i].type, text), n->op->name, (long long)m->most_bytes);
    return QN_OK;
}
