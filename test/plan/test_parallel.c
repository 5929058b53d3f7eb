/* Training on many devices: what must hold of any layout, and published steps of large models. */
#include "plan/fixture.h"

#include "plan/figures.h"
#include "plan/published.h"
#include "quern/plan.h"

#include <math.h>

static QnSplit split_of(Fixture *f, const char *name, int64_t sequence)
{
    const QnModel *m;
    QnSplit s;
    assert_ok(qn_model_find(name, &m));
    assert_ok(qn_split_open(&s, f->arena, f->counts, m, sequence, 1));
    return s;
}

static QnTraining training_on(Fixture *f, const char *name)
{
    QnTraining t = { .numbers = QN_NUMBERS_FP16_AMP, .host = 1, .compression = 1 };
    assert_ok(qn_catalogue_find(&f->catalogue, name, &t.card));
    t.links = qn_links_of(t.card, 0);
    return t;
}

/* A layer of GPT-3: 12 h^2 parameters, 72 s h^2 (1 + s / 6h) flops a sequence and step, 34 s h
 * bytes kept (Narayanan et al. 2021, Korthikanti et al. 2022). */
static void test_split(void **state)
{
    QnSplit s = split_of(*state, "gpt3_175b", 2048);
    double h = 12288, q = 2048, head = 6 * q * h * 51200;
    assert_true(s.layers == 96 && s.width == h);
    assert_true(fabs(s.layer_params / (12 * h * h) - 1) < 0.01);
    assert_true(fabs(s.classes - 51200) < 1);
    assert_true(fabs(s.layer_kept / (34 * q * h) - 1) < 0.02);
    double layers = 96 * 72 * q * h * h * (1 + q / (6 * h));
    assert_true(fabs(s.flops / (layers + head) - 1) < 0.01);
    QnPart one = qn_split_part(&s.layer_forward, 1), four = qn_split_part(&s.layer_forward, 4);
    assert_true(fabs(one.scores / (96 * q * q) - 1) < 1e-6);
    assert_true(fabs(four.gemm / one.gemm - 4) < 1e-6 && four.kernels == one.kernels);
    /* images: nothing to divide but the batch */
    QnSplit r = split_of(*state, "resnet50", 0);
    assert_true(r.layers == 0 && fabs(r.ends_params / 25.56e6 - 1) < 0.01);
}

static QnParallelResult step_of(Fixture *f, const QnSplit *s, const QnSharding *l,
                                const QnTraining *t)
{
    QnParallelResult r;
    assert_ok(qn_parallel_step(s, l, t, &f->fleet, &r));
    double sum = r.compute_s + r.bubble_s + r.tensor_s + r.pipeline_s + r.data_s + r.update_s;
    assert_true(fabs(sum / r.step_s - 1) < 1e-9);
    assert_true(r.mfu > 0 && r.mfu < 1 && r.exposed >= 0 && r.exposed < 1);
    return r;
}

static void test_bubble(void **state)
{
    Fixture *f = *state;
    QnSplit s = split_of(f, "gpt3_175b", 2048);
    QnTraining t = training_on(f, "A100 SXM4 80GB");
    QnSharding l = { 1, 8, 8, 1, .interleave = 1, .micro_batch = 1, .global_batch = 64 };
    QnParallelResult r = step_of(f, &s, &l, &t);
    double ideal = 7.0 / 64; /* (p - 1) / m */
    assert_true(fabs(r.bubble_s / (r.compute_s + r.tensor_s) / ideal - 1) < 0.1);
    l.interleave = 3;
    QnParallelResult i = step_of(f, &s, &l, &t);
    assert_true(fabs(3 * i.bubble_s / r.bubble_s - 1) < 0.01 && i.pipeline_s > r.pipeline_s);
    assert_true(i.memory.activations > r.memory.activations);
}

static void test_degrees(void **state)
{
    Fixture *f = *state;
    QnSplit s = split_of(f, "gpt3_175b", 2048);
    QnTraining t = training_on(f, "A100 SXM4 80GB");
    QnSharding l = { 4, 8, 8, 1, .interleave = 1, .micro_batch = 1, .global_batch = 256 };
    QnParallelResult base = step_of(f, &s, &l, &t);
    assert_true(base.tensor_s > 0 && base.data_s > 0 && base.pipeline_s > 0);
    QnSharding again = l;
    again.recompute = QN_RECOMPUTE_FULL;
    QnParallelResult full = step_of(f, &s, &again, &t);
    double more = full.compute_s / base.compute_s;
    assert_true(more > 1.25 && more < 1.4);
    assert_true(full.memory.activations < base.memory.activations / 5);
    QnSharding zero = l;
    zero.zero = 1;
    QnParallelResult sharded = step_of(f, &s, &zero, &t);
    assert_true(fabs(sharded.memory.optimizer * 4 / base.memory.optimizer - 1) < 1e-9);
    assert_true(sharded.update_s < base.update_s);
    QnSharding sequence = l;
    sequence.sequence_parallel = true;
    assert_true(step_of(f, &s, &sequence, &t).memory.activations < base.memory.activations);
    t.compression = 4;
    assert_true(step_of(f, &s, &l, &t).data_s < base.data_s);
}

static void test_refused(void **state)
{
    Fixture *f = *state;
    QnSplit s = split_of(f, "gpt3_175b", 2048), r = split_of(f, "resnet50", 0);
    QnSharding l = { 4, 1, 1, 1, .interleave = 1, .micro_batch = 3, .global_batch = 64 };
    assert_fails(qn_parallel_check(&s, &l), QN_EARG, "no multiple of 3 x 4");
    l.micro_batch = 1;
    l.pipeline = 128;
    assert_fails(qn_parallel_check(&s, &l), QN_EARG, "for 96 layers");
    l.pipeline = 2;
    assert_fails(qn_parallel_check(&r, &l), QN_EUNSUPPORTED, "by data alone");
    l.pipeline = 1;
    l.zero = 4;
    assert_fails(qn_parallel_check(&s, &l), QN_EARG, "ZeRO stage 4");
}

/* Korthikanti et al. 2022, tables 4 and 5: model FLOP/s utilisation on 64, 280 and 512 A100 within
 * a tenth, with and without recomputing everything. */
static void test_published(void **state)
{
    static const struct {
        const char *model, *framework, *flag;
        int n;
        double seconds;
    } rows[] = {
        { "gpt3_175b", "Megatron-LM full recompute TP8 PP8", "global batch 64", 64, 18.13 },
        { "gpt3_175b", "Megatron-LM seq-par + selective recompute TP8 PP8", "global batch 64", 64,
          13.75 },
        { "mtnlg_530b", "Megatron-LM full recompute TP8 PP35", "global batch 280", 280, 49.05 },
        { "mtnlg_530b", "Megatron-LM seq-par + selective recompute TP8 PP35", "global batch 280",
          280, 37.83 },
        { "gpt_1t", "Megatron-LM full recompute TP8 PP64", "global batch 512", 512, 94.42 },
        { "gpt_1t", "Megatron-LM seq-par + selective recompute TP8 PP64", "global batch 512", 512,
          71.49 },
    };
    Fixture *f = *state;
    QnTraining t = training_on(f, "A100 SXM4 80GB");
    for (int i = 0; i < QN_COUNT(rows); i++) {
        QnPublished p;
        QnPublishedText text = { .card = t.card,
                                 .numbers = QN_NUMBERS_FP16_AMP,
                                 .n_cards = rows[i].n,
                                 .batch = 1,
                                 .sequence = 2048,
                                 .framework = rows[i].framework,
                                 .flag = rows[i].flag };
        assert_ok(qn_model_find(rows[i].model, &text.model));
        assert_null(qn_published_read(&text, f->arena, f->counts, &p));
        QnParallelResult r = step_of(f, &p.split, &p.sharding, &p.training);
        assert_true(fabs(r.step_s / rows[i].seconds - 1) < 0.1);
    }
}

/* MosaicML's table of MPT: fully sharded on up to 512 devices, none of it in the fit. */
static void test_sharded(void **state)
{
    static const struct {
        const char *model, *gpu, *flag;
        int n;
        int64_t batch;
        double tokens_s;
    } rows[] = {
        { "mpt_70b", "H100 SXM5 80GB", "accum=1 gbs=4096 shard=FULL_SHARD act_ckpt=True", 512, 8,
          515636 },
        { "mpt_30b", "H100 SXM5 80GB", "accum=1 gbs=2048 shard=FULL_SHARD act_ckpt=True", 256, 8,
          550022 },
        { "mpt_13b", "A100 SXM4 40GB", "accum=1 gbs=2048 shard=FULL_SHARD act_ckpt=True", 128, 16,
          252444 },
        { "mpt_3b", "A100 SXM4 40GB", "accum=1 gbs=384 shard=FULL_SHARD act_ckpt=False", 64, 6,
          623167 },
    };
    Fixture *f = *state;
    for (int i = 0; i < QN_COUNT(rows); i++) {
        QnPublished p;
        QnPublishedText text = { .numbers = QN_NUMBERS_BF16_AMP,
                                 .n_cards = rows[i].n,
                                 .batch = rows[i].batch,
                                 .sequence = 2048,
                                 .framework = "MosaicML Composer/llm-foundry FSDP",
                                 .flag = rows[i].flag };
        assert_ok(qn_catalogue_find(&f->catalogue, rows[i].gpu, &text.card));
        assert_ok(qn_model_find(rows[i].model, &text.model));
        assert_null(qn_published_read(&text, f->arena, f->counts, &p));
        assert_int_equal(p.sharding.zero, 3);
        QnParallelResult r = step_of(f, &p.split, &p.sharding, &p.training);
        assert_true(fabs(qn_published_tokens(&p) / r.step_s / rows[i].tokens_s - 1) < 0.1);
    }
}

/* Dubey et al. 2024, table 4: Llama 3 405B in 16 bits, 430, 400 and 380 TFLOP/s a device; 16 stages
 * of eight pieces, sequences dealt out evenly. */
static void test_llama(void **state)
{
    static const struct {
        int data, context;
        int64_t sequence, batch;
        double mfu;
    } rows[] = { { 64, 1, 8192, 2048, 0.43 },
                 { 128, 1, 8192, 2048, 0.41 },
                 { 8, 16, 131072, 128, 0.38 } };
    Fixture *f = *state;
    QnTraining t = training_on(f, "H100 SXM5 80GB");
    t.numbers = QN_NUMBERS_BF16_AMP;
    t.flash = t.tuned = t.overlap = true;
    t.host = 0.3;
    for (int i = 0; i < QN_COUNT(rows); i++) {
        QnSplit s = split_of(f, "llama3.1_405b", rows[i].sequence);
        QnSharding l = { .data = rows[i].data,
                         .tensor = 8,
                         .pipeline = 16,
                         .context = rows[i].context,
                         .zero = 1,
                         .interleave = 8,
                         .sequence_parallel = true,
                         .micro_batch = 1,
                         .global_batch = rows[i].batch };
        QnParallelResult r = step_of(f, &s, &l, &t);
        /* they count the causal half of attention */
        double skipped =
            s.layer_forward.slope.attention_full + s.layer_backward.slope.attention_full;
        double mfu = r.mfu * (1 - (double)s.layers * skipped / 2 / s.flops);
        print_message("%d devices: MFU %.3f, published %.2f\n", 128 * l.data * l.context, mfu,
                      rows[i].mfu);
        assert_true(fabs(mfu / rows[i].mfu - 1) < 0.1);
    }
}

static void test_texts(void **state)
{
    Fixture *f = *state;
    QnTraining t = training_on(f, "H100 SXM5 80GB");
    QnPublished p;
    QnPublishedText text = { .card = t.card,
                             .numbers = QN_NUMBERS_FP8,
                             .n_cards = 256,
                             .batch = 16,
                             .sequence = 2048,
                             .framework = "torchtitan FSDP32 TP8 asyncTP compile fullAC",
                             .flag = "" };
    assert_ok(qn_model_find("gpt3_175b", &text.model));
    assert_true(qn_published_is_divided(text.framework));
    assert_false(qn_published_is_divided("MLPerf HTTP2 STP4 CPU"));
    assert_null(qn_published_read(&text, f->arena, f->counts, &p));
    assert_true(p.sharding.data == 32 && p.sharding.tensor == 8 && p.sharding.zero == 3);
    assert_true(p.sharding.overlap_tensor && p.sharding.recompute == QN_RECOMPUTE_FULL);
    assert_true(p.sharding.global_batch == 512 && p.training.flash && p.training.host < 1);
    text.framework = "Megatron-LM TP7 PP3";
    assert_non_null(qn_published_read(&text, f->arena, f->counts, &p));
    text.framework = "Megatron-LM TP8 DP2 PP16";
    text.flag = "gbs=1536 h=12288";
    assert_null(qn_published_read(&text, f->arena, f->counts, &p));
    assert_true(p.sharding.data == 2 && p.sharding.global_batch == 1536);
}

/* A table that other coefficients predict exactly: the score is 0, and bad rows are refused. */
static void test_table(void **state)
{
    Fixture *f = *state;
    QnFigures s;
    QnFigureSum sum;
    const char *head = "num_gpus,global_batch,micro_batch,hidden,heads,layers,seq,tp,dp,pp,iter_ms,"
                       "system\n";
    char text[1024];
    snprintf(text, sizeof text, "%s8,64,4,2048,16,16,1024,2,2,2,100,single-node A100\n", head);
    assert_ptr_equal(qn_figures_kind(text, strlen(text)), &qn_figures_parallel);
    assert_ok(qn_figures_parse(&s, &qn_figures_parallel, &f->catalogue, f->counts, "p.csv", text,
                               strlen(text)));
    assert_ok(qn_figures_score(&s, &f->fleet, NULL));
    double ms = s.rows[0].predicted;
    assert_true(ms > 200 && ms < 2000);
    qn_figures_fini(&s);
    snprintf(text, sizeof text,
             "%s8,64,4,2048,16,16,1024,2,2,2,%.12g,single-node A100\n"
             "8,64,4,2048,16,16,1024,2,2,2,5,abacus\n",
             head, ms);
    assert_ok(qn_figures_parse(&s, &qn_figures_parallel, &f->catalogue, f->counts, "p.csv", text,
                               strlen(text)));
    assert_ok(qn_figures_score(&s, &f->fleet, NULL));
    assert_ok(qn_figures_sum(&s, &f->fleet, 0, NULL, &sum));
    assert_true(sum.n == 2 && sum.expressed == 1 && sum.mean < 1e-9 && sum.inside == 1);
    qn_figures_fini(&s);
    snprintf(text, sizeof text, "%s9,64,4,2048,16,16,1024,2,2,2,100,single-node A100\n", head);
    assert_fails(qn_figures_parse(&s, &qn_figures_parallel, &f->catalogue, f->counts, "p.csv", text,
                                  strlen(text)),
                 QN_EFORMAT, "p.csv:2: tp x dp x pp is 8");
}
