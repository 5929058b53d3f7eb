/* The passes over a graph, and the table of them that a graph goes through before it is planned. A
 * pass changes the graph in place, leaves it valid, and says in `report` what it did. */
#ifndef QN_PASS_PIPELINE_H
#define QN_PASS_PIPELINE_H

#include "ir/graph.h"

typedef enum QnLevel {
    QN_O0, /* only what a device needs: composites are lowered */
    QN_O1, /* what never hurts */
    QN_O2, /* everything */
} QnLevel;

typedef struct QnPipelineReport {
    int64_t nodes_before, nodes_after;
    int64_t fused_groups, fused_maps;
    double fused_bytes_saved; /* reads and writes of memory that fusion removes */
    int64_t recomputed_nodes; /* clones that stand before late uses */
    int64_t peak_bytes_before, peak_bytes_after; /* of recompute and schedule; see pass/live.h */
    bool scheduled;                              /* a new order was taken */
} QnPipelineReport;

typedef struct QnPipelineOptions {
    QnLevel level;
    const char *off;   /* names of passes to leave out, "fuse,cse"; NULL: none */
    bool verify;       /* check the graph after each pass (always done in debug builds) */
    bool fast_math;    /* identities that NaN and infinity break, such as x*0 = 0 */
    bool keep_inputs;  /* input nodes stay though nothing uses them */
    bool keep_states;  /* state nodes likewise */
    int64_t fold_most; /* elements of a result that is computed at compile time; 0: 1,024 */
    /* optional: whether a composite node stays as it is, because the device has a kernel for it.
     * NULL: those with a reference stay. */
    bool (*keep)(void *ctx, const QnNode *n);
    void *keep_ctx;
    /* optional: called with the text of the graph after each pass, and first with "input" */
    void (*dump)(void *ctx, const char *pass, const char *text);
    void *dump_ctx;
    int64_t memory_budget_bytes; /* recompute until the peak fits; 0: no recomputation */
    QnPipelineReport *report;    /* optional */
} QnPipelineOptions;

typedef QnStatus QnPass(QnGraph *g, const QnPipelineOptions *o);

typedef struct QnPassEntry {
    const char *name;
    QnPass *run;
    QnLevel level; /* the lowest at which it runs */
} QnPassEntry;

/* The table, in order; a pass may stand in it more than once. */
const QnPassEntry *qn_pipeline_passes(int *n);
/* NULL: no such pass. */
const QnPassEntry *qn_pipeline_find(const char *name);

/* Runs the table. An error names the pass; the graph is then no longer of use. A name in `off` that
 * no pass has is an error. */
QnStatus qn_pipeline_run(QnGraph *g, const QnPipelineOptions *o);

QnPass qn_pass_lower;    /* composites become what they are made of, unless the device wants them */
QnPass qn_pass_fold;     /* constants are computed, arithmetic identities applied */
QnPass qn_pass_simplify; /* reshape, transpose, expand, cast: fewer of them */
QnPass qn_pass_cse;      /* equal computations are done once */
QnPass qn_pass_dce;      /* what no output needs goes */
QnPass qn_pass_epilogue; /* an addition after matmul or conv becomes its bias */
QnPass qn_pass_recompute; /* cheap values are computed again rather than kept, to fit a budget */
QnPass qn_pass_fuse;      /* maps in one pass over memory */
QnPass qn_pass_schedule;  /* the order of nodes with the lowest peak of memory */

#endif
