/* The catalogue of devices that can be rented or bought: plan/devices.csv, embedded. */
#ifndef QN_PLAN_DEVICE_H
#define QN_PLAN_DEVICE_H

#include "base/mem.h"

/* One device's data sheet. 0: not known, or the device does not have it. Rates are dense. */
typedef struct QnCard {
    const char *name, *vendor, *arch, *kind, *memory, *link, *notes, *source;
    double year, cores, units; /* units: SMs, CUs or cores */
    double boost_mhz, memory_gb, bandwidth_gbs, cache_mb;
    double fp32, tf32, fp16, bf16, fp8, int8, fp64; /* TFLOP/s, int8 TOP/s */
    double tdp_w, link_gbs, pcie_gen, price_usd, cloud_usd;
    const struct QnCalib *calib; /* plan/calib.h: the machine that we run on, as measured */
} QnCard;

typedef struct QnCatalogue {
    QnArena *arena;
    QnCard *cards;
    int n_cards;
    const QnCard *here; /* the machine that we run on; NULL: not asked for */
} QnCatalogue;

/* The embedded catalogue, or one given as text (tests). Every row is checked: what a device must
 * have, ranges, names that occur twice; an error names file and line. */
QnStatus qn_catalogue_open(QnCatalogue *c);
QnStatus qn_catalogue_parse(QnCatalogue *c, const char *path, const char *text, size_t bytes);
/* More rows, of a file with the same columns; on failure the catalogue is as before. */
QnStatus qn_catalogue_add(QnCatalogue *c, const char *path, const char *text, size_t bytes);
void qn_catalogue_fini(QnCatalogue *c);
/* All devices that the name is, or is a part of, in any case, up to `cap`; none is an error, which
 * names what is nearest. */
QnStatus qn_catalogue_matches(const QnCatalogue *c, const char *name, const QnCard **out, int cap,
                              int *n);
/* By name, in any case, "this" where c->here is there; the part that only one name has will do
 * ("a100 sxm4 80"). An error names what is nearest. */
QnStatus qn_catalogue_find(const QnCatalogue *c, const char *name, const QnCard **out);

#endif
