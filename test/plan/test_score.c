/* Scores and fits on tables made here. */
#include "plan/fixture.h"

#include "base/str.h"
#include "plan/score.h"
#include "quern/plan.h"

#include <math.h>

#define HEAD                                                                                       \
    "id,model,task,gpu,num_gpus,precision,batch_per_gpu,seq_or_res,throughput,unit,framework,"     \
    "source,flag\n"

static QnStatus parse(Fixture *f, QnMeasuredSet *s, const char *text)
{
    return qn_measured_parse(s, &f->catalogue, f->counts, "m.csv", text, strlen(text));
}

/* One row with this throughput, and what is predicted for it. */
static double predicted(Fixture *f, const char *row, const QnCoefs *k)
{
    QnMeasuredSet s;
    QnScore score;
    char text[1024];
    snprintf(text, sizeof text, HEAD "%s", row);
    assert_ok(parse(f, &s, text));
    assert_ok(qn_score(&s, k, QN_HOLD_OUT_NONE, &score));
    assert_int_equal(score.n_expressed, 1);
    double p = score.rows[0].predicted;
    qn_score_fini(&score);
    qn_measured_fini(&s);
    return p;
}

/* Rows that are 10 % above, 20 % below and just what is predicted: errors of 1/11, 1/4 and 0. */
static void test_arithmetic(void **state)
{
    Fixture *f = *state;
    QnCoefs k;
    QnMeasuredSet s;
    QnScore score;
    char text[2048];
    qn_coefs_start(&k);
    double p = predicted(f, "a,resnet18,infer,RTX 4090,1,fp32,8,224,100,img/s,PyTorch,s,\n", &k);
    double t = predicted(f, "a,resnet18,train,RTX 4090,1,fp32,8,224,100,ms/iter,PyTorch,s,\n", &k);
    snprintf(text, sizeof text,
             HEAD "a,resnet18,infer,RTX 4090,1,fp32,8,224,%.12g,img/s,PyTorch,s,\n"
                  "b,resnet18,infer,RTX 4090,1,fp32,8,224,%.12g,img/s,PyTorch,s,\n"
                  "c,resnet18,train,RTX 4090,1,fp32,8,224,%.12g,ms/iter,PyTorch,s,\n"
                  "d,resnet18,infer,RTX 4090,1,fp32,8,224,1,img/s,PyTorch,s,suspect:wrong\n"
                  "e,no_such_net,infer,RTX 4090,1,fp32,8,224,1,img/s,PyTorch,s,\n"
                  "f,resnet18,infer,RTX 4090,1,fp32,8,224,1,furlongs,PyTorch,s,\n",
             p * 1.1, p * 0.8, t);
    assert_ok(parse(f, &s, text));
    assert_int_equal(s.suspect, 1);
    assert_int_equal(s.n, 5);
    assert_ok(qn_score(&s, &k, QN_HOLD_OUT_NONE, &score));
    assert_int_equal(score.n_expressed, 3);
    assert_true(fabs(score.rows[0].error - 0.1 / 1.1) < 1e-6);
    assert_true(fabs(score.rows[1].error - 0.2 / 0.8) < 1e-6);
    assert_true(score.rows[2].error < 1e-6);
    assert_true(score.rows[3].error < 0 && strstr(score.rows[3].row->reason, "no builder"));
    assert_true(score.rows[4].error < 0 && strstr(score.rows[4].row->reason, "unit"));
    assert_true(fabs(score.all.median - 0.1 / 1.1) < 1e-6);
    assert_true(fabs(score.all.mean - (0.1 / 1.1 + 0.25) / 3) < 1e-6);
    assert_true(score.all.inside == 1 && score.multi.n == 0);
    QnScoreGroup *groups;
    int64_t n;
    assert_ok(qn_score_groups(&score, QN_SCORE_TASK, &groups, &n));
    assert_int_equal(n, 2);
    assert_string_equal(groups[0].name, "infer");
    assert_int_equal(groups[0].n, 2);
    qn_free(groups);
    qn_score_fini(&score);
    qn_measured_fini(&s);
}

/* Devices that share a step shorten it: their latency is not each one's share of it. */
static void test_shared_latency(void **state)
{
    Fixture *f = *state;
    QnCoefs k;
    qn_coefs_start(&k);
    double one = predicted(f,
                           "a,llama_7b,infer,A100 SXM4 80GB,1,fp16,1,in2048 (first token),100,"
                           "ms_first_token,TensorRT-LLM 0.6.1,s,\n",
                           &k);
    double four = predicted(f,
                            "a,llama_7b,infer,A100 SXM4 80GB,4,fp16,1,in2048 (first token),100,"
                            "ms_first_token,TensorRT-LLM 0.6.1,s,\n",
                            &k);
    assert_true(four < one / 2 && four > one / 4);
}

static void test_bad_tables(void **state)
{
    Fixture *f = *state;
    QnMeasuredSet s;
    assert_fails(parse(f, &s, "id,model\n"), QN_EFORMAT, "m.csv:1");
    assert_fails(parse(f, &s, HEAD "a,resnet18,infer\n"), QN_EFORMAT, "m.csv:2: 3 cells");
    assert_fails(parse(f, &s, HEAD "a,resnet18,infer,T4,1,fp32,8,224,fast,img/s,P,s,\n"),
                 QN_EFORMAT, "'throughput'");
    assert_fails(parse(f, &s, HEAD "a,resnet18,infer,T4,0,fp32,8,224,5,img/s,P,s,\n"), QN_EFORMAT,
                 "num_gpus");
}

/* timm's later results are of nets whose parallel convolutions are added up. */
static void test_deployed(void **state)
{
    Fixture *f = *state;
    QnMeasuredSet s;
    assert_ok(parse(f, &s,
                    HEAD "a,repvgg_b0,infer,RTX 4090,1,fp32,8,224,1,img/s,"
                         "timm PyTorch 2.4 cu124 nchw,s,\n"
                         "b,repvgg_b0,infer,RTX 4090,1,fp32,8,224,1,img/s,"
                         "timm PyTorch 2.9.1 cu130 nchw,s,\n"));
    assert_int_equal(s.n, 2);
    assert_int_equal((int)(s.rows[0].count->params / 1e4), 1581);
    assert_int_equal((int)(s.rows[1].count->params / 1e4), 1433);
    qn_measured_fini(&s);
}

static void test_tiers(void **state)
{
    assert_int_equal(qn_measured_tier("timm PyTorch 2.4 nchw torch.compile"), QN_TIER_COMPILED);
    assert_int_equal(qn_measured_tier("timm PyTorch 2.4 cu124 nhwc"), QN_TIER_CHANNELS);
    assert_int_equal(qn_measured_tier("TensorRT-LLM 1.0"), QN_TIER_TENSORRT);
    assert_int_equal(qn_measured_tier("TensorFlow 20.06 +XLA"), QN_TIER_COMPILED);
    assert_int_equal(qn_measured_tier("PyTorch"), QN_TIER_EAGER);
}

/* A table that other coefficients predict exactly. */
static void add_rows(Fixture *f, const QnCoefs *k, QnStr *text)
{
    static const char *const models[] = { "resnet50", "vgg11", "bert_base_squad", "densenet121" };
    static const char *const cards[] = { "RTX 4090", "A100 SXM4 40GB", "V100 SXM2 16GB" };
    static const char *const tasks[] = { "train", "infer" };
    qn_str_add(text, HEAD);
    for (int i = 0; i < QN_COUNT(models) * QN_COUNT(cards) * QN_COUNT(tasks); i++) {
        const char *model = models[i % 4], *card = cards[i / 4 % 3], *task = tasks[i / 12];
        char row[256];
        snprintf(row, sizeof row, "x,%s,%s,%s,1,fp32,16,,1,samples/s,PyTorch,s,\n", model, task,
                 card);
        double p = predicted(f, row, k);
        qn_str_printf(text, "x%d,%s,%s,%s,1,fp32,16,,%.12g,samples/s,PyTorch,s,\n", i, model, task,
                      card, p);
    }
}

static void test_fit(void **state)
{
    Fixture *f = *state;
    QnCoefs truth, start, fitted;
    QnMeasuredSet s;
    QnScore before, after;
    QnStr text = { 0 }, table = { 0 }, again = { 0 };
    qn_coefs_start(&start);
    qn_coefs_start(&truth);
    truth.tier[QN_TIER_EAGER][QN_COEF_CONV] *= 0.5;
    truth.tier[QN_TIER_EAGER][QN_COEF_MOVE] *= 0.6;
    truth.tier[QN_TIER_EAGER][QN_COEF_STEP_US] *= 4;
    add_rows(f, &truth, &text);
    assert_ok(parse(f, &s, qn_str_text(&text)));
    assert_ok(qn_fit(&s, NULL, &table));
    assert_ok(qn_fit(&s, NULL, &again));
    assert_string_equal(qn_str_text(&table), qn_str_text(&again));
    assert_ok(qn_coefs_parse(&fitted, "fit", qn_str_text(&table), table.n));
    assert_ok(qn_score(&s, &start, QN_HOLD_OUT_NONE, &before));
    assert_ok(qn_score(&s, &fitted, QN_HOLD_OUT_NONE, &after));
    assert_true(before.all.mean > 0.25);
    assert_true(after.all.mean < 0.06);
    qn_score_fini(&before);
    qn_score_fini(&after);
    qn_measured_fini(&s);
    qn_str_fini(&text);
    qn_str_fini(&table);
    qn_str_fini(&again);
}
