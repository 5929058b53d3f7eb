/* More decoders, under the names of their released weights: sizes from those files' config.json. */
#include "plan/models/decoder.h"

enum {
    LLAMA = QN_DECODER_GATED | QN_DECODER_RMS,
    QWEN = LLAMA | QN_DECODER_QKV_BIAS,
    GEMMA = LLAMA | QN_DECODER_TIED,
    GEMMA2 = GEMMA | QN_DECODER_POST_NORMS,
    GEMMA3 = GEMMA2 | QN_DECODER_QK_NORM,
    CODER = QN_DECODER_TIED | QN_DECODER_BIAS,
    ONE_NORM = QN_DECODER_PARALLEL | QN_DECODER_NORM_BIAS,
    GPT_OSS = QWEN | QN_DECODER_OUT_BIAS | QN_DECODER_FEED_BIAS,
};

/* layers, width, heads, heads of keys and values, hidden width, words, flags, width of a head */
#define PLAIN(name, l, w, h, kv, hidden, words, flags, head, params)                               \
    {                                                                                              \
        name, &qn_family_decoder, { l, w, h, kv, hidden, words, 0, flags, head }, params,          \
            "released weights"                                                                     \
    }
/* the same where so many percent of the layers see no further than a window */
#define WINDOWED(name, l, w, h, kv, hidden, words, flags, head, window, local, params)             \
    {                                                                                              \
        name, &qn_family_decoder,                                                                  \
            { l, w, h, kv, hidden, words, 0, flags, head, 0, 0, 0, 0, 0, window, local }, params,  \
            "released weights"                                                                     \
    }
/* the same with experts: how many, of a token, what all go through, and the first layer */
#define EXPERTS(name, l, w, h, kv, hidden, words, flags, head, n, active, shared, dense, params)   \
    {                                                                                              \
        name, &qn_family_experts,                                                                  \
            { l, w, h, kv, hidden, words, 0, flags, head, n, active, shared, dense }, params,      \
            "released weights"                                                                     \
    }
#define LEARNED(name, l, w, h, kv, hidden, words, positions, flags, params)                        \
    {                                                                                              \
        name, &qn_family_decoder, { l, w, h, kv, hidden, words, positions, flags }, params,        \
            "released weights"                                                                     \
    }

static const QnModel models[] = {
    PLAIN("baichuan2-7b-chat", 32, 4096, 32, 0, 11008, 125696, LLAMA, 0, 7506),
    PLAIN("baichuan2-13b-chat", 40, 5120, 40, 0, 13696, 125696, LLAMA | QN_DECODER_LINEAR, 0,
          13897),
    PLAIN("bloomz-7b1", 30, 4096, 32, 0, 16384, 250880,
          CODER | QN_DECODER_LINEAR | QN_DECODER_FIRST_NORM, 0, 7069),
    PLAIN("c4ai-command-r-v01", 40, 8192, 64, 0, 22528, 256000,
          QN_DECODER_GATED | QN_DECODER_TIED | QN_DECODER_PARALLEL, 0, 34981),
    PLAIN("chatglm2-6b", 28, 4096, 32, 2, 13696, 65024, QWEN, 0, 6244),
    PLAIN("chatglm3-6b", 28, 4096, 32, 2, 13696, 65024, QWEN, 0, 6244),
    PLAIN("codegen2-1b", 16, 2048, 16, 0, 8192, 51200,
          ONE_NORM | QN_DECODER_FEED_BIAS | QN_DECODER_HEAD_BIAS, 0, 1015),
    /* heads of keys and values are 1, 2 or 4, by layer */
    PLAIN("decilm-7b", 32, 4096, 32, 2, 14336, 32000, LLAMA, 0, 7044),
    PLAIN("deepseek_r1_distill_14b", 48, 5120, 40, 8, 13824, 152064, QWEN, 0, 14770),
    PLAIN("falcon-7b", 32, 4544, 71, 1, 18176, 65024, ONE_NORM | QN_DECODER_TIED, 0, 6922),
    PLAIN("falcon-40b", 60, 8192, 128, 8, 32768, 65024,
          ONE_NORM | QN_DECODER_TWO_NORMS | QN_DECODER_TIED, 0, 41303),
    PLAIN("gemma_2b", 18, 2048, 8, 1, 16384, 256000, GEMMA, 256, 2506),
    PLAIN("gemma-7b", 28, 3072, 16, 0, 24576, 256000, GEMMA, 256, 8538),
    WINDOWED("gemma-2-9b", 42, 3584, 16, 8, 14336, 256000, GEMMA2, 256, 4096, 50, 9242),
    WINDOWED("gemma-2-27b", 46, 4608, 32, 16, 36864, 256000, GEMMA2, 128, 4096, 50, 27227),
    /* of Gemma 3 the text model; what sees images is apart */
    WINDOWED("gemma-3-4b-it", 34, 2560, 8, 4, 10240, 262208, GEMMA3, 256, 1024, 83, 3880),
    WINDOWED("gemma-3-12b-it", 48, 3840, 16, 8, 15360, 262208, GEMMA3, 256, 1024, 83, 11766),
    WINDOWED("gemma-3-27b-it", 62, 5376, 32, 16, 21504, 262208, GEMMA3, 128, 1024, 83, 27009),
    LEARNED("gpt-neo-2.7b", 32, 2560, 20, 0, 10240, 50257, 2048,
            QN_DECODER_TIED | QN_DECODER_OUT_BIAS | QN_DECODER_FEED_BIAS | QN_DECODER_NORM_BIAS,
            2651),
    { "gpt_oss_20b",
      &qn_family_experts,
      { 24, 2880, 64, 8, 2880, 201088, 0, GPT_OSS, 64, 32, 4, 0, 0, 0, 128, 50 },
      20915,
      "released weights" },
    { "gpt-oss-20b-bf16",
      &qn_family_experts,
      { 24, 2880, 64, 8, 2880, 201088, 0, GPT_OSS, 64, 32, 4, 0, 0, 0, 128, 50 },
      20915,
      "released weights" },
    EXPERTS("mixtral-8x7b", 32, 4096, 32, 8, 14336, 32000, LLAMA, 0, 8, 2, 0, 0, 46703),
    EXPERTS("mixtral-8x7b-v0.1", 32, 4096, 32, 8, 14336, 32000, LLAMA, 0, 8, 2, 0, 0, 46703),
    PLAIN("persimmon-8b-base", 36, 4096, 64, 0, 16384, 262144, QN_DECODER_BIAS | QN_DECODER_QK_NORM,
          0, 9400),
    PLAIN("phi-2", 32, 2560, 32, 0, 10240, 51200, ONE_NORM | QN_DECODER_BIAS | QN_DECODER_HEAD_BIAS,
          0, 2780),
    PLAIN("qwen1.5-7b", 32, 4096, 32, 0, 11008, 151936, QWEN, 0, 7721),
    PLAIN("qwen2-7b", 28, 3584, 28, 4, 18944, 152064, QWEN, 0, 7616),
    PLAIN("qwen2.5-7b", 28, 3584, 28, 4, 18944, 152064, QWEN, 0, 7616),
    PLAIN("qwen3-8b", 36, 4096, 32, 8, 12288, 151936, LLAMA | QN_DECODER_QK_NORM, 128, 8191),
    PLAIN("qwen3_8b", 36, 4096, 32, 8, 12288, 151936, LLAMA | QN_DECODER_QK_NORM, 128, 8191),
    EXPERTS("qwen1.5-moe-a2.7b", 24, 2048, 16, 0, 1408, 151936, QWEN, 0, 60, 4, 5632, 0, 14316),
    EXPERTS("qwen3-30b-a3b", 48, 2048, 32, 4, 768, 151936, LLAMA | QN_DECODER_QK_NORM, 128, 128, 8,
            0, 0, 30532),
    PLAIN("stablelm-2-12b", 40, 5120, 32, 8, 13824, 100352,
          QN_DECODER_GATED | QN_DECODER_PARALLEL | QN_DECODER_QK_NORM, 0, 12143),
    /* adapters of rank 16; sequences are packed to 8,192 tokens */
    { "llama2_70b_lora",
      &qn_family_adapted,
      { 80, 8192, 64, 8, 28672, 32000, 0, LLAMA, 0, 0, 0, 0, 0, 16 },
      69021,
      "Touvron et al. 2023, and MLPerf Training 4.0's adapters" },
    LEARNED("starcoder", 40, 6144, 48, 1, 24576, 49152, 8192, CODER, 15517),
    PLAIN("starcoder2-3b", 30, 3072, 24, 2, 12288, 49152, CODER, 0, 3030),
    /* positions are waves without weights */
    PLAIN("xglm-1.7b", 24, 2048, 16, 0, 8192, 256008, CODER | QN_DECODER_LINEAR, 0, 1733),
};

const QnModelList qn_models_checkpoints = { models, QN_COUNT(models) };
