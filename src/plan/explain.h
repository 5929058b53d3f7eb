/* Why an offer is what it is: its step by kinds of work and by operators, and what other settings
 * would make of it. */
#ifndef QN_PLAN_EXPLAIN_H
#define QN_PLAN_EXPLAIN_H

#include "plan/advice.h"

/* Equal kernels, or all kernels of a kind, of one device's step. */
typedef struct QnExplainPart {
    QnWorkKind kind;
    const QnWork *work; /* borrowed from the count; NULL: of all kernels of the kind */
    double count, seconds, flops, bytes;
    double done;                /* of the flops, as fewer multiplications may do (Winograd) */
    double by_limit[QN_LIMITS]; /* seconds; the largest says what holds it back */
    QnLimit limit;
    double flop_share, byte_share; /* of the data sheet's peak rate (done) and bandwidth */
} QnExplainPart;

/* What a device's memory goes to: the terms add up to offer->cost.memory_bytes. */
typedef struct QnMemoryTerm {
    const char *name;
    double bytes;
} QnMemoryTerm;
enum { QN_MEMORY_TERMS = 9 };
/* Gives their number; terms of nothing are left out. The offer has no error. */
int qn_explain_memory(const QnOffer *offer, QnMemoryTerm terms[QN_MEMORY_TERMS]);

/* Another setting, priced for the same job. */
typedef struct QnWhatIf {
    char text[64];
    QnOffer offer; /* with its error, where the device cannot */
} QnWhatIf;

enum { QN_WHAT_IFS = 16 };

typedef struct QnExplain {
    QnJob job;     /* as asked; without a size, of a million items, so that there is a price */
    QnOffer offer; /* for that job */
    QnExplainPart kinds[QN_WORK_KINDS]; /* by kind */
    QnExplainPart *parts;               /* the longest first */
    int64_t n_parts;
    double link_s, step_s; /* communication that is not hidden; the step */
    double rest_s;         /* of the step, in no kernel */
    QnWhatIf what_if[QN_WHAT_IFS];
    int n_what_ifs;
} QnExplain;

/* The offer is one of qn_offer_price for the job, without an error. The counts must outlive the
 * result. */
QnStatus qn_explain_init(QnExplain *e, QnCounts *counts, const QnJob *job, const QnOffer *offer,
                         const QnCoefs *k);
void qn_explain_fini(QnExplain *e);

const char *qn_work_kind_name(QnWorkKind kind);
/* "conv 802816x64x147", "add", of one piece of work. */
void qn_explain_name(const QnWork *w, char *out, size_t bytes);

#endif
