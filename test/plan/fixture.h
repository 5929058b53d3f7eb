/* What most tests of the planner begin with: a device that only counts, the catalogue, the
 * coefficients of both fits. */
#ifndef QN_TEST_PLAN_FIXTURE_H
#define QN_TEST_PLAN_FIXTURE_H

#include "test.h"

#include "plan/coef.h"
#include "plan/counts.h"
#include "plan/fleet.h"
#include "quern/plan.h"

typedef struct Fixture {
    QnDevice *device;
    QnCounts *counts;
    QnCatalogue catalogue;
    QnCoefs coefs;
    QnFleet fleet;
    QnArena *arena;
} Fixture;

static QN_UNUSED int setup(void **state)
{
    Fixture *f = calloc(1, sizeof *f);
    *state = f;
    assert_ok(qn_device_open_named("null", NULL, &f->device));
    assert_ok(qn_catalogue_open(&f->catalogue));
    assert_ok(qn_coefs_open(&f->coefs));
    assert_ok(qn_fleet_open(&f->fleet));
    f->counts = qn_counts_new(f->device);
    f->arena = qn_arena_new();
    return f->counts && f->arena ? 0 : -1;
}

static QN_UNUSED int teardown(void **state)
{
    Fixture *f = *state;
    qn_counts_free(f->counts);
    qn_arena_free(f->arena);
    qn_catalogue_fini(&f->catalogue);
    qn_device_close(f->device);
    free(f);
    return 0;
}

#endif
