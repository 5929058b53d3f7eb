/* Memory of training under other stacks, against published figures and formulas. */
#include "plan/fixture.h"

#include "plan/counts.h"
#include "plan/figures.h"
#include "plan/memory.h"
#include "quern/plan.h"

#include <math.h>

#define HEAD                                                                                       \
    "model,task,gpu,num_gpus,precision,batch_per_gpu,seq_or_res,memory,unit,framework_or_config,"  \
    "source\n"

static void test_terms(void **state)
{
    Fixture *f = *state;
    const QnModel *m;
    QnMemoryRequest r = { .stack = QN_MEMORY_EAGER, .images = true };
    QnCountRequest q = { .train = true, .batch = 64, .unfused = true };
    assert_ok(qn_model_find("resnet50", &m));
    assert_ok(qn_counts_get(f->counts, m, &q, &r.count));
    assert_ok(qn_catalogue_find(&f->catalogue, "RTX 2080 Ti", &r.card));
    QnMemoryTerms t = qn_memory_terms(&r, &f->fleet);
    double sum =
        t.weights + t.gradients + t.optimizer + t.activations + t.workspace + t.context + t.slack;
    assert_true(fabs(sum / t.total - 1) < 1e-9);
    assert_true(fabs(t.weights / (4 * 25.557e6) - 1) < 0.01);
    r.stack = QN_MEMORY_QUERN;
    r.allocated = true;
    QnMemoryTerms own = qn_memory_terms(&r, &f->fleet);
    assert_true(own.activations == r.count->activations && own.total < t.total);
    r.stack = QN_MEMORY_EAGER;
    r.allocated = false;
    r.full = true; /* never more than there is, and nearly all of it */
    QnMemoryTerms full = qn_memory_terms(&r, &f->fleet);
    assert_true(full.total > t.total && full.total <= 11.0 * 1024 * 1024 * 1024);
}

static void test_rows(void **state)
{
    Fixture *f = *state;
    QnFigures s;
    /* Korthikanti et al. 2022, table 5; NVIDIA's ResNet and BERT; reasons */
    static const char text[] = HEAD
        "gpt3_175b,train,A100 SXM4 80GB,64,fp16-amp,,seq2048,66.84,GiB,Megatron-LM activations "
        "per GPU; TP only; no recompute,s\n"
        "gpt3_175b,train,A100 SXM4 80GB,64,fp16-amp,,seq2048,12.35,GiB,Megatron-LM activations "
        "per GPU; seq-par + selective,s\n"
        "gpt3_175b,train,A100 SXM4 80GB,64,fp16-amp,,seq2048,45.5625,GiB,Megatron-LM "
        "parameters+optimizer per GPU,s\n"
        "mtnlg_530b,train,A100 SXM4 80GB,280,fp16-amp,,seq2048,23.08,GiB,Megatron-LM activations "
        "per GPU; seq-par + selective,s\n"
        "bert_base_squad,train,V100 SXM2 32GB,1,fp32,36,seq384,30799,MiB,PyTorch NGC; largest "
        "that fits,s\n"
        "resnet50_v1.5,train,Titan RTX,1,fp32,224,224,23741,MiB,PyTorch NGC; largest that fits,s\n"
        "resnet50_v1.5,train,Titan RTX,1,fp32,224,224,5,furlongs,PyTorch NGC,s\n"
        "abacus,train,Titan RTX,1,fp32,224,224,5,MiB,PyTorch NGC,s\n";
    assert_ptr_equal(qn_figures_kind(text, strlen(text)), &qn_figures_memory);
    assert_ok(qn_figures_parse(&s, &qn_figures_memory, &f->catalogue, f->counts, "m.csv", text,
                               strlen(text)));
    assert_ok(qn_figures_score(&s, &f->fleet, NULL));
    for (int i = 0; i < 6; i++)
        assert_true(s.rows[i].error >= 0 && s.rows[i].error < 0.1);
    assert_true(strstr(s.rows[6].reason, "unit") && strstr(s.rows[7].reason, "no builder"));
    qn_figures_fini(&s);
    assert_fails(qn_figures_parse(&s, &qn_figures_memory, &f->catalogue, f->counts, "m.csv",
                                  HEAD "a,train,T4,0,fp32,1,1,5,GB,c,s\n", sizeof HEAD + 29),
                 QN_EFORMAT, "m.csv:2: num_gpus");
}
