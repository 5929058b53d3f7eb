/* Decoders that generate text. size: layers, width, heads, heads of keys and values, hidden width
 * of the feed-forward net, vocabulary, learned positions (0: rotary, which has no weights), flags.
 */
#include "plan/models.h"

#include <stdio.h>

enum { GATED = 1, TIED = 2, BIAS = 4, RMS = 8, PARALLEL = 16 };

static QnValue *norm(QnNet *net, const char *name, QnValue *x, int64_t flags)
{
    return flags & RMS ? qn_nn_rms_norm(net, name, x)
                       : qn_nn_layer_norm(net, name, x, (flags & BIAS) != 0);
}

static QnValue *feed(QnNet *net, QnValue *x, int64_t hidden, int64_t flags)
{
    QnGraph *g = net->g;
    int64_t width = x->type.shape.rank ? x->type.shape.dim[x->type.shape.rank - 1] : 1;
    if (!(flags & GATED))
        return qn_nn_gelu_mlp(net, "mlp", x, hidden, (flags & BIAS) != 0, 0, 0.02);
    qn_net_push(net, "mlp");
    QnValue *gate = qn_silu(g, qn_nn_linear(net, "gate_proj", x, hidden, false));
    QnValue *y = qn_mul(g, gate, qn_nn_linear(net, "up_proj", x, hidden, false));
    y = qn_nn_linear(net, "down_proj", y, width, false);
    qn_net_pop(net);
    return y;
}

static QnValue *layer(QnNet *net, int64_t number, const QnModel *m, QnValue *x)
{
    QnGraph *g = net->g;
    int64_t flags = m->size[7];
    QnAttentionSpec attention = {
        .heads = m->size[2], .kv_heads = m->size[3], .causal = true, .bias = (flags & BIAS) != 0
    };
    char name[24];
    snprintf(name, sizeof name, "%lld", (long long)number);
    qn_net_push(net, name);
    QnValue *n = norm(net, "ln_1", x, flags);
    QnValue *y = qn_add(g, x, qn_nn_attention(net, "attn", n, &attention));
    if (!(flags & PARALLEL)) /* else both halves read the same norm */
        n = norm(net, "ln_2", y, flags);
    y = qn_add(g, y, feed(net, n, m->size[4], flags));
    qn_net_pop(net);
    return y;
}

static QnValue *build(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    QnGraph *g = net->g;
    QnValue *table = NULL, *tokens = x;
    int64_t flags = m->size[7];
    layers = layers ? layers : m->size[0];
    x = qn_nn_embedding(net, "wte", tokens, m->size[5], m->size[1], &table);
    if (m->size[6]) {
        QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 };
        qn_net_push(net, "wpe");
        QnValue *p = qn_net_param(net, "weight", &QN_SHAPE(m->size[6], m->size[1]), &init, true);
        qn_net_pop(net);
        x = qn_add(g, x, qn_slice_axis(g, p, 0, 0, tokens->type.shape.dim[1]));
    }
    qn_net_push(net, "h");
    for (int64_t i = 0; i < layers; i++)
        x = layer(net, i, m, x);
    qn_net_pop(net);
    x = norm(net, "ln_f", x, flags);
    if (flags & TIED)
        return qn_matmul(g, x, table, NULL, false, true);
    return qn_nn_linear(net, "lm_head", x, m->size[5], false);
}

static const QnFamily decoder = { .name = "decoder",
                                  .sequence = 1024,
                                  .build = build,
                                  .layers = 1,
                                  .generates = true,
                                  .adam = true };

enum { LLAMA = GATED | RMS, GPT = TIED | BIAS };

#define GPT2(name, layers, width, heads, params)                                                   \
    {                                                                                              \
        name, &decoder, { layers, width, heads, 0, 4 * (width), 50257, 1024, GPT }, params,        \
            "Radford et al. 2019; counts of the released weights"                                  \
    }
/* Brown et al. 2020 give sizes without the position table's rows. */
#define GPT3(name, layers, width, heads, params, source)                                           \
    {                                                                                              \
        name, &decoder, { layers, width, heads, 0, 4 * (width), 51200, 2048, GPT }, params, source \
    }
#define MPT(name, layers, width, heads, params)                                                    \
    {                                                                                              \
        name, &decoder, { layers, width, heads, 0, 4 * (width), 50368, 2048, TIED }, params,       \
            "MosaicML llm-foundry"                                                                 \
    }

static const QnModel models[] = {
    GPT2("gpt2_124m", 12, 768, 12, 124.44),
    GPT2("gpt2", 12, 768, 12, 124.44),
    GPT2("gpt2_medium", 24, 1024, 16, 354.82),
    GPT2("gpt2_large", 36, 1280, 20, 774.03),
    GPT2("gpt2_1558m", 48, 1600, 25, 1557.61),
    GPT2("gpt2_xl", 48, 1600, 25, 1557.61),
    GPT2("gpt2-xl", 48, 1600, 25, 1557.61),
    GPT3("gpt_1.7b", 24, 2304, 24, 1652, "Narayanan et al. 2021, equation 2"),
    GPT3("gpt_3.6b", 30, 3072, 32, 3562, "Narayanan et al. 2021, equation 2"),
    GPT3("gpt_7.5b", 36, 4096, 32, 7500, "Narayanan et al. 2021, table 1"),
    GPT3("gpt_18.4b", 40, 6144, 48, 18400, "Narayanan et al. 2021, table 1"),
    GPT3("gpt_39.1b", 48, 8192, 64, 39100, "Narayanan et al. 2021, table 1"),
    GPT3("gpt_76.1b", 60, 10240, 80, 76100, "Narayanan et al. 2021, table 1"),
    GPT3("gpt_145.6b", 80, 12288, 96, 145600, "Narayanan et al. 2021, table 1"),
    GPT3("gpt_310.1b", 96, 16384, 128, 310100, "Narayanan et al. 2021, table 1"),
    GPT3("gpt_529.6b", 105, 20480, 128, 529600, "Narayanan et al. 2021, table 1"),
    GPT3("gpt_1t", 128, 25600, 160, 1008000, "Narayanan et al. 2021, table 1"),
    GPT3("mtnlg_530b", 105, 20480, 128, 530000, "Smith et al. 2022"),
    GPT3("gpt3_175b", 96, 12288, 96, 174600, "Brown et al. 2020, table 2.1"),
    GPT3("gpt_175b", 96, 12288, 96, 174600, "Brown et al. 2020, table 2.1"),
    MPT("mpt_125m", 12, 768, 12, 125.31),
    MPT("mpt_350m", 24, 1024, 16, 355.99),
    MPT("mpt_760m", 24, 1536, 12, 760.47),
    MPT("mpt_1b", 24, 2048, 16, 1315.95),
    MPT("mpt_3b", 32, 2560, 20, 2651.84),
    MPT("mpt_7b", 32, 4096, 32, 6658.86),
    MPT("mpt-7b", 32, 4096, 32, 6658.86),
    MPT("mpt_13b", 40, 5120, 40, 12853.95),
    MPT("mpt_30b", 48, 7168, 64, 29975.21),
    MPT("mpt-30b", 48, 7168, 64, 29975.21),
    MPT("mpt_70b", 80, 8192, 64, 64862.44),
    { "gptj_6b",
      &decoder,
      { 28, 4096, 16, 0, 16384, 50400, 0, BIAS | PARALLEL },
      6050,
      "Wang and Komatsuzaki 2021" },
    { "gpt-j-6b",
      &decoder,
      { 28, 4096, 16, 0, 16384, 50400, 0, BIAS | PARALLEL },
      6050,
      "Wang and Komatsuzaki 2021" },
    { "gpt_neox_20b",
      &decoder,
      { 44, 6144, 64, 0, 24576, 50432, 0, BIAS },
      20554,
      "Black et al. 2022" },
    { "gpt-neox-20b",
      &decoder,
      { 44, 6144, 64, 0, 24576, 50432, 0, BIAS },
      20554,
      "Black et al. 2022" },
    { "llama_7b",
      &decoder,
      { 32, 4096, 32, 0, 11008, 32000, 0, LLAMA },
      6738,
      "Touvron et al. 2023" },
    { "llama_13b",
      &decoder,
      { 40, 5120, 40, 0, 13824, 32000, 0, LLAMA },
      13016,
      "Touvron et al. 2023" },
    { "llama2_7b",
      &decoder,
      { 32, 4096, 32, 0, 11008, 32000, 0, LLAMA },
      6738,
      "Touvron et al. 2023" },
    { "llama-2-7b-hf",
      &decoder,
      { 32, 4096, 32, 0, 11008, 32000, 0, LLAMA },
      6738,
      "Touvron et al. 2023" },
    { "llama2_13b",
      &decoder,
      { 40, 5120, 40, 0, 13824, 32000, 0, LLAMA },
      13016,
      "Touvron et al. 2023" },
    { "codellama_13b",
      &decoder,
      { 40, 5120, 40, 0, 13824, 32016, 0, LLAMA },
      13016,
      "Roziere et al. 2023" },
    { "codellama_34b",
      &decoder,
      { 48, 8192, 64, 8, 22016, 32000, 0, LLAMA },
      33744,
      "Roziere et al. 2023" },
    { "codellama-34b-hf",
      &decoder,
      { 48, 8192, 64, 8, 22016, 32000, 0, LLAMA },
      33744,
      "Roziere et al. 2023" },
    { "llama_70b",
      &decoder,
      { 80, 8192, 64, 8, 28672, 32000, 0, LLAMA },
      68977,
      "Touvron et al. 2023" },
    { "llama2_70b",
      &decoder,
      { 80, 8192, 64, 8, 28672, 32000, 0, LLAMA },
      68977,
      "Touvron et al. 2023" },
    { "llama-2-70b-hf",
      &decoder,
      { 80, 8192, 64, 8, 28672, 32000, 0, LLAMA },
      68977,
      "Touvron et al. 2023" },
    { "llama3_8b",
      &decoder,
      { 32, 4096, 32, 8, 14336, 128256, 0, LLAMA },
      8030,
      "Grattafiori et al. 2024" },
    { "llama3.1_8b",
      &decoder,
      { 32, 4096, 32, 8, 14336, 128256, 0, LLAMA },
      8030,
      "Grattafiori et al. 2024" },
    { "meta-llama-3-8b",
      &decoder,
      { 32, 4096, 32, 8, 14336, 128256, 0, LLAMA },
      8030,
      "Grattafiori et al. 2024" },
    { "llama3_70b",
      &decoder,
      { 80, 8192, 64, 8, 28672, 128256, 0, LLAMA },
      70554,
      "Grattafiori et al. 2024" },
    { "llama3.1_70b",
      &decoder,
      { 80, 8192, 64, 8, 28672, 128256, 0, LLAMA },
      70554,
      "Grattafiori et al. 2024" },
    { "llama3.3_70b",
      &decoder,
      { 80, 8192, 64, 8, 28672, 128256, 0, LLAMA },
      70554,
      "Grattafiori et al. 2024" },
    { "llama3.1_405b",
      &decoder,
      { 126, 16384, 128, 8, 53248, 128256, 0, LLAMA },
      405853,
      "Grattafiori et al. 2024" },
    { "llama3.2_1b",
      &decoder,
      { 16, 2048, 32, 8, 8192, 128256, 0, LLAMA | TIED },
      1235.8,
      "Meta's model card" },
    { "llama3.2_3b",
      &decoder,
      { 28, 3072, 24, 8, 8192, 128256, 0, LLAMA | TIED },
      3212.7,
      "Meta's model card" },
    { "mistral-7b-v0.1",
      &decoder,
      { 32, 4096, 32, 8, 14336, 32000, 0, LLAMA },
      7242,
      "Jiang et al. 2023" },
    { "mistral-7b-instruct-v0.2",
      &decoder,
      { 32, 4096, 32, 8, 14336, 32000, 0, LLAMA },
      7242,
      "Jiang et al. 2023" },
    { "falcon-180b",
      &decoder,
      { 80, 14848, 232, 8, 59392, 65024, 0, TIED | PARALLEL },
      179522,
      "Almazrouei et al. 2023" },
    { "falcon_180b",
      &decoder,
      { 80, 14848, 232, 8, 59392, 65024, 0, TIED | PARALLEL },
      179522,
      "Almazrouei et al. 2023" },
};

const QnModelList qn_models_decoder = { models, QN_COUNT(models) };
