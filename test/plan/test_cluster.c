/* The search for layouts: what it finds is allowed and fits, and nothing that fits is missed. */
#include "test.h"

#include "plan/cluster.h"
#include "quern/plan.h"

#include <math.h>
#include <time.h>

typedef struct Fixture {
    QnDevice *device;
    QnCatalogue catalogue;
    QnCoefs coefs;
    QnArena *arena;
    QnSplit split;
    QnClusterJob job;
} Fixture;

static int setup(void **state)
{
    Fixture *f = calloc(1, sizeof *f);
    *state = f;
    assert_ok(qn_device_open_named("null", NULL, &f->device));
    assert_ok(qn_catalogue_open(&f->catalogue));
    assert_ok(qn_coefs_open(&f->coefs));
    f->job.counts = qn_counts_new(f->device);
    f->arena = qn_arena_new();
    return f->job.counts && f->arena ? 0 : -1;
}

static int teardown(void **state)
{
    Fixture *f = *state;
    qn_counts_free(f->job.counts);
    qn_arena_free(f->arena);
    qn_catalogue_fini(&f->catalogue);
    qn_device_close(f->device);
    free(f);
    return 0;
}

static QnClusterJob *job_of(Fixture *f, const char *model, const char *gpu, int64_t batch)
{
    const QnModel *m;
    QnClusterJob *job = &f->job;
    assert_ok(qn_model_find(model, &m));
    assert_ok(qn_split_open(&f->split, f->arena, job->counts, m, m->family->image ? 0 : 1024, 1));
    job->training = (QnTraining){ .numbers = QN_NUMBERS_FP16_AMP,
                                  .flash = true,
                                  .overlap = true,
                                  .host = 0.3,
                                  .compression = 1 };
    assert_ok(qn_catalogue_find(&f->catalogue, gpu, &job->training.card));
    job->training.links = qn_links_of(job->training.card, 0);
    job->split = &f->split;
    job->coefs = &f->coefs;
    job->global_batch = batch;
    job->mtbf_hours = 50000;
    job->store_gbs = 2;
    job->store_most_gbs = 500;
    job->restart_s = 300;
    return job;
}

static void test_layouts(void **state)
{
    QnClusterJob *job = job_of(*state, "gpt3_175b", "A100 SXM4 80GB", 1536);
    double before = 0;
    for (int n = 64; n <= 16384; n *= 4) {
        QnClusterPoint p;
        QnParallelResult again;
        assert_ok(qn_cluster_search(job, n, &p));
        assert_true(p.found && p.step.fits && p.tried > 10);
        assert_int_equal(p.layout.data * p.layout.tensor * p.layout.pipeline * p.layout.context, n);
        assert_ok(qn_parallel_check(job->split, &p.layout));
        assert_ok(
            qn_parallel_step(job->split, &p.layout, &job->training, &job->coefs->fleet, &again));
        assert_true(again.step_s == p.step.step_s);
        assert_true(p.items_s > before && p.step.mfu > 0.15 && p.step.mfu < 0.75);
        before = p.items_s;
    }
}

static void test_best(void **state)
{
    QnClusterJob *job = job_of(*state, "gpt2_xl", "A100 SXM4 80GB", 512);
    QnClusterPoint p;
    QnParallelResult r;
    assert_ok(qn_cluster_search(job, 16, &p));
    /* no other layout of one micro-batch and no pipeline is faster and fits */
    for (int t = 1; t <= 8; t *= 2) {
        QnSharding l = { .data = 16 / t,
                         .tensor = t,
                         .pipeline = 1,
                         .context = 1,
                         .interleave = 1,
                         .sequence_parallel = t > 1,
                         .overlap_tensor = true,
                         .micro_batch = 4,
                         .global_batch = 512 };
        assert_ok(qn_parallel_step(job->split, &l, &job->training, &job->coefs->fleet, &r));
        assert_true(!r.fits || r.step_s >= p.step.step_s);
    }
}

static void test_none(void **state)
{
    QnClusterJob *job = job_of(*state, "gpt3_175b", "A100 SXM4 80GB", 1536);
    QnClusterPoint p;
    assert_ok(qn_cluster_search(job, 8, &p));
    assert_true(!p.found && p.any && p.least_memory.total > 2 * 80e9);
    job->global_batch = 7;
    assert_ok(qn_cluster_search(job, 10, &p)); /* five layouts of 96 layers; 7 is in ones */
    assert_true(!p.found);
    assert_fails(qn_cluster_search(job, 0, &p), QN_EARG, "at least 1");
}

static void test_images(void **state)
{
    QnClusterJob *job = job_of(*state, "resnet50", "V100 SXM2 16GB", 2048);
    QnClusterPoint one, many;
    job->tier = QN_TIER_TENSORFLOW;
    assert_ok(qn_cluster_search(job, 1, &one));
    assert_ok(qn_cluster_search(job, 32, &many));
    assert_true(one.found && many.found && many.layout.data == 32);
    double efficiency = many.items_s / one.items_s / 32;
    assert_true(efficiency > 0.3 && efficiency < 1);
}

/* Young's first order, Daly's next; and the interval is where least is lost. */
static void test_failures(void **state)
{
    double write = 60, mtbf = 4 * 3600, best = qn_cluster_interval(write, mtbf);
    assert_true(fabs(best / sqrt(2 * write * mtbf) - 1) < 0.1);
    double lost = qn_cluster_lost(write, best, 300, mtbf);
    assert_true(lost < qn_cluster_lost(write, best * 2, 300, mtbf));
    assert_true(lost < qn_cluster_lost(write, best / 2, 300, mtbf));
    assert_true(lost > 0.05 && lost < 0.2);
    assert_true(qn_cluster_lost(write, best, 300, 100) == 1);
    assert_true(qn_cluster_interval(1000, 10) == 10);
    QnClusterJob *job = job_of(*state, "gpt3_175b", "H100 SXM5 80GB", 2048);
    QnClusterPoint few, many;
    job->items = 300e9;
    job->usd_hour = 2;
    assert_ok(qn_cluster_search(job, 256, &few));
    assert_ok(qn_cluster_search(job, 4096, &many));
    assert_true(many.lost > few.lost && many.hours < few.hours && many.usd > few.usd);
    assert_true(fabs(few.usd - 2 * 256 * few.hours) < 1e-6 * few.usd);
}

/* All of 8 to 16,384 in a fraction of a second. */
static void test_speed(void **state)
{
    QnClusterJob *job = job_of(*state, "gpt3_175b", "H100 SXM5 80GB", 2048);
    clock_t start = clock();
    for (int n = 8; n <= 16384; n *= 2) {
        QnClusterPoint p;
        assert_ok(qn_cluster_search(job, n, &p));
    }
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 10);
}
