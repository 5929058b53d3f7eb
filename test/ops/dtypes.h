/* One node run by the reference kernel on elements as they lie in memory. */
#ifndef QN_TEST_OPS_DTYPES_H
#define QN_TEST_OPS_DTYPES_H

#include "test.h"

#include "backend/cpu/cpu.h"
#include "ops/ops.h"
#include "ops/util.h"

#include <math.h>

QN_UNUSED static QnValue *give(QnGraph *g, QnDtype dtype, QnShape s)
{
    char name[24];
    snprintf(name, sizeof name, "x%lld", (long long)g->n_nodes);
    return qn_input(g, name, dtype, &s);
}

/* Every kernel of the CPU that takes the node must give these bytes; in and want are by input and
 * output. */
QN_UNUSED static void want_bytes(QnGraph *g, const QnNode *n, const void *const *in,
                                 const void *const *want)
{
    QnKernelEnv env = { .n_threads = 1, .isa = qn_cpu_isa_best() };
    int ran = 0;
    assert_ok(qn_graph_check(g));
    for (int i = 0; i < qn_backend_cpu.n_kernels; i++) {
        const QnKernel *k = qn_backend_cpu.kernels[i];
        if ((k->op && k->op != n->op) || (k->accepts && k->accepts(n, &env)))
            continue;
        QnPrepared p = { .kernel = k, .node = n, .env = &env };
        void *out[QN_MAX_OUT];
        size_t bytes[QN_MAX_OUT];
        assert_ok(k->prepare ? k->prepare(&p) : QN_OK);
        void *work = qn_alloc_aligned(p.workspace_bytes + 64);
        for (int j = 0; j < n->n_out; j++) {
            bytes[j] = (size_t)qn_type_bytes(&n->out[j].type);
            out[j] = qn_alloc_aligned(bytes[j] + 64);
            memset(out[j], 0xa5, bytes[j]);
        }
        assert_ok(k->run(&p, in, out, work));
        for (int j = 0; j < n->n_out; j++) {
            for (size_t b = 0; b < bytes[j]; b++) {
                unsigned got = ((unsigned char *)out[j])[b];
                unsigned right = ((const unsigned char *)want[j])[b];
                if (got != right)
                    fail_msg("%s (%s) by %s: byte %zu of output %d is %02x, not %02x", n->op->name,
                             n->n_in ? qn_dtype_name(n->in[n->n_in - 1]->type.dtype) : "", k->name,
                             b, j, got, right);
            }
            qn_free_aligned(out[j], bytes[j] + 64);
        }
        qn_free_aligned(work, p.workspace_bytes + 64);
        if (k->fini)
            k->fini(&p);
        ran++;
    }
    assert_true(ran > 0);
}

#endif
