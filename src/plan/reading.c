#include "plan/reading.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- sizes ---- */

/* Data sets stand for what their models take. */
static bool is_set(const char *text)
{
    static const char *const sets[] = { "KiTS19", "LibriSpeech", "Criteo",
                                        "mix",    "16.7s audio", "best MxNxK found" };
    for (int i = 0; i < QN_COUNT(sets); i++)
        if (!strncmp(text, sets[i], strlen(sets[i])))
            return true;
    return false;
}

/* A number after a word, and what follows. */
static bool number_after(const char *text, const char *word, int64_t *n, const char **rest)
{
    size_t length = strlen(word);
    char *end;
    if (strncmp(text, word, length) != 0)
        return false;
    text += length + (text[length] == '~');
    *n = strtol(text, &end, 10);
    *rest = end;
    return end != text && *n > 0 && *n < 1 << 20;
}

static bool read_serving(const char *text, QnReadSize *size)
{
    const char *rest;
    size->serves = true;
    if (number_after(text, "in", &size->in, &rest)) {
        if (!strcmp(rest, " (first token)"))
            return true;
        return rest[0] == '/' && number_after(rest + 1, "out", &size->out, &rest);
    }
    size->in = 1;
    if (number_after(text, "pp", &size->in, &rest))
        return true;
    size->in = 16; /* a short question */
    if (number_after(text, "out", &size->out, &rest))
        return true;
    size->in = 1;
    if (number_after(text, "tg", &size->out, &rest))
        return true;
    size->in = 32;
    size->out = 256;
    return !strncmp(text, "tg", 2);
}

static bool read_dims(const char *text, QnReadSize *size)
{
    if (!strncmp(text, "seq", 3))
        text += 3;
    while (size->n < QN_COUNT(size->dim)) {
        char *end;
        long n = strtol(text, &end, 10);
        if (end == text || n < 1 || n >= 1 << 20)
            return false;
        size->dim[size->n++] = n;
        if (!*end)
            return true;
        if (*end != 'x' && *end != '-')
            return false;
        text = end + 1;
    }
    return false;
}

bool qn_read_size(const char *text, QnReadSize *size)
{
    const char *rest;
    *size = (QnReadSize){ 0 };
    if (!text[0] || is_set(text))
        return true;
    if (number_after(text, "tgt", &size->dim[0], &rest) ||
        number_after(text, "src", &size->dim[0], &rest)) {
        size->n = 1;
        return number_after(rest, "/mem", &size->memory, &rest) ||
               number_after(rest, "/tgt", &size->out, &rest);
    }
    if (isdigit((unsigned char)text[0]) || !strncmp(text, "seq", 3))
        return read_dims(text, size);
    return read_serving(text, size);
}

void qn_read_real_length(const char *flag, int64_t *size)
{
    double part = 0;
    const char *at = strstr(flag, "length about ");
    if (!at)
        return;
    if (!strncmp(at + 13, "half", 4))
        part = 0.5 * (double)*size;
    else if (sscanf(at + 13, "%lf", &part) == 1 && part < 1)
        part *= (double)*size;
    if (part >= 1)
        *size = (int64_t)part;
}

/* ---- precisions ---- */

bool qn_read_numbers(const char *text, QnNumbers *numbers, double *weight_bits)
{
    static const struct {
        const char *name;
        QnNumbers numbers;
        double bits;
    } known[] = {
        { "fp32(tf32)", QN_NUMBERS_TF32, 0 },
        { "float32", QN_NUMBERS_FP32, 0 },
        { "single", QN_NUMBERS_FP32, 0 },
        { "amp", QN_NUMBERS_FP16_AMP, 0 },
        { "mixed", QN_NUMBERS_FP16_AMP, 0 },
        { "mixed_float16", QN_NUMBERS_FP16_AMP, 0 },
        { "fp16-mixed", QN_NUMBERS_FP16_AMP, 0 },
        { "amp-fp16", QN_NUMBERS_FP16_AMP, 0 },
        { "amp-bf16", QN_NUMBERS_BF16_AMP, 0 },
        { "bf16-mixed", QN_NUMBERS_BF16_AMP, 0 },
        { "float16", QN_NUMBERS_FP16, 0 },
        { "half", QN_NUMBERS_FP16, 0 },
        { "f16", QN_NUMBERS_FP16, 0 },
        { "bfloat16", QN_NUMBERS_BF16, 0 },
        { "f32", QN_NUMBERS_FP32, 0 },
        { "w8a8", QN_NUMBERS_INT8, 0 },
        { "fp8-rowwise", QN_NUMBERS_FP8, 0 },
        { "fp8-mixed", QN_NUMBERS_FP8, 0 },
        { "fp4", QN_NUMBERS_FP8, 9 }, /* of what is counted half as wide */
        { "nvfp4", QN_NUMBERS_FP8, 9 },
        { "mxfp4", QN_NUMBERS_FP16, 4.25 },
        { "int4", QN_NUMBERS_FP16, 4.25 },
        { "awq", QN_NUMBERS_FP16, 4.25 },
        { "gptq", QN_NUMBERS_FP16, 4.25 },
        { "nf4", QN_NUMBERS_FP16, 4.5 },
        { "q2_k", QN_NUMBERS_FP16, 3.0 },
        { "q3_k_m", QN_NUMBERS_FP16, 3.9 },
        { "q4_0", QN_NUMBERS_FP16, 4.5 },
        { "q4_1", QN_NUMBERS_FP16, 5 },
        { "q4_k_m", QN_NUMBERS_FP16, 4.85 },
        { "q4_k_s", QN_NUMBERS_FP16, 4.6 },
        { "q5_0", QN_NUMBERS_FP16, 5.5 },
        { "q5_1", QN_NUMBERS_FP16, 6 },
        { "q5_k_m", QN_NUMBERS_FP16, 5.7 },
        { "q6_k", QN_NUMBERS_FP16, 6.6 },
        { "q8_0", QN_NUMBERS_FP16, 8.5 },
    };
    *weight_bits = 0;
    for (int i = 0; i < QN_NUMBERS_COUNT; i++) {
        *numbers = (QnNumbers)i;
        if (!strcasecmp(text, qn_numbers_name(*numbers)))
            return true;
    }
    for (int i = 0; i < QN_COUNT(known); i++) {
        *numbers = known[i].numbers;
        *weight_bits = known[i].bits;
        if (!strcasecmp(text, known[i].name))
            return true;
    }
    return false;
}

/* ---- units ---- */

/* "images/sec" is "img/s". */
static void shorten(const char *text, char out[32])
{
    static const char *const words[][2] = { { "images", "img" },    { "image", "img" },
                                            { "imgs", "img" },      { "sentences", "seq" },
                                            { "sequences", "seq" }, { "examples", "samples" },
                                            { "tokens", "tok" },    { "token", "tok" } };
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : strlen(text);
    const char *first = NULL, *rest = slash ? slash : "";
    for (int i = 0; i < QN_COUNT(words) && !first; i++)
        if (strlen(words[i][0]) == n && !strncasecmp(words[i][0], text, n))
            first = words[i][1];
    if (!strcasecmp(rest, "/sec") || !strcasecmp(rest, "/second"))
        rest = "/s";
    if (first)
        snprintf(out, 32, "%s%s", first, rest);
    else
        snprintf(out, 32, "%.*s%s", (int)QN_MIN(n, 20), text, rest);
}

bool qn_read_unit(const char *text, QnReadUnit *unit)
{
    char name[32];
    shorten(text, name);
    static const struct {
        const char *name;
        QnReadUnit unit;
    } known[] = {
        { "img/s", { .items = QN_READ_EXAMPLES } },
        { "seq/s", { .items = QN_READ_EXAMPLES } },
        { "samples/s", { .items = QN_READ_EXAMPLES } },
        { "items/s", { .items = QN_READ_EXAMPLES } },
        { "volumes/s", { .items = QN_READ_EXAMPLES } },
        { "utt/s", { .items = QN_READ_EXAMPLES } },
        { "req/s", { .items = QN_READ_EXAMPLES } },
        { "qps", { .items = QN_READ_EXAMPLES } },
        { "fps", { .items = QN_READ_EXAMPLES } },
        { "tok/s", { .items = QN_READ_TOKENS } },
        { "audio_samples/s", { .items = QN_READ_TOKENS } },
        { "mel_frames/s", { .items = QN_READ_TOKENS } },
        { "tok/s/GPU", { .items = QN_READ_TOKENS, .of_one = true } },
        { "img/s/GPU", { .items = QN_READ_EXAMPLES, .of_one = true } },
        { "samples/s/GPU", { .items = QN_READ_EXAMPLES, .of_one = true } },
        { "TFLOPS", { .items = QN_READ_TFLOP, .of_one = true } },
        { "ms/batch", { true, false, false, QN_READ_STEPS, 1e3 } },
        { "ms/iter", { true, false, false, QN_READ_STEPS, 1e3 } },
        { "ms", { true, false, false, QN_READ_STEPS, 1e3 } },
        { "s/iter", { true, false, false, QN_READ_STEPS, 1 } },
        { "ms/img", { true, true, false, QN_READ_EXAMPLES, 1e3 } },
        { "s/img", { true, true, false, QN_READ_EXAMPLES, 1 } },
        { "ms_p90_latency", { true, true, false, QN_READ_EXAMPLES, 1e3 } },
        { "ms_latency", { true, true, false, QN_READ_EXAMPLES, 1e3 } },
        { "ms/tok", { true, true, false, QN_READ_TOKENS, 1e3 } },
        { "ms_first_token", { true, true, true, QN_READ_STEPS, 1e3 } },
    };
    for (int i = 0; i < QN_COUNT(known); i++) {
        *unit = known[i].unit;
        if (!strcasecmp(name, known[i].name))
            return true;
    }
    return false;
}

/* ---- stacks ---- */

/* The first text that the name has decides. */
QnTier qn_measured_tier(const char *framework)
{
    static const struct {
        const char *text;
        QnTier tier;
    } known[] = {
        { "torch.compile", QN_TIER_COMPILED },
        { "inductor", QN_TIER_COMPILED },
        { "XLA", QN_TIER_COMPILED },
        { "JAX", QN_TIER_COMPILED },
        { "MLPerf Training", QN_TIER_FUSED },
        { "TensorRT", QN_TIER_TENSORRT },
        { "TRT", QN_TIER_TENSORRT },
        { "vLLM", QN_TIER_TENSORRT },
        { "SGLang", QN_TIER_TENSORRT },
        { "LMDeploy", QN_TIER_TENSORRT },
        { "FasterTransformer", QN_TIER_TENSORRT },
        { "MLPerf Inference", QN_TIER_TENSORRT },
        { "Megatron", QN_TIER_MEGATRON },
        { "NeMo", QN_TIER_MEGATRON },
        { "MosaicML", QN_TIER_MEGATRON },
        { "torchtitan", QN_TIER_MEGATRON },
        { "nanoGPT", QN_TIER_MEGATRON },
        { "FSDP", QN_TIER_MEGATRON },
        { "llama.cpp", QN_TIER_LLAMA_CPP },
        { "ollama", QN_TIER_LLAMA_CPP },
        { "ExLlama", QN_TIER_LLAMA_CPP },
        { "MLC-LLM", QN_TIER_LLAMA_CPP },
        { "abana", QN_TIER_HABANA },
        { "torch7", QN_TIER_OLD },
        { "Caffe", QN_TIER_OLD },
        { "PyTorch 0.", QN_TIER_OLD },
        { "PyTorch 1.0", QN_TIER_OLD },
        { "ensorFlow 1.x", QN_TIER_OLD },
        { "ensorflow 1.", QN_TIER_OLD },
        { "nhwc", QN_TIER_CHANNELS },
        { "channels_last", QN_TIER_CHANNELS },
        { "NGC 20.01", QN_TIER_EAGER },
        { "NGC 22.09", QN_TIER_EAGER },
        { "PyTorch 20.", QN_TIER_CHANNELS },
        { "PyTorch 21.", QN_TIER_CHANNELS },
        { "PyTorch 22.", QN_TIER_CHANNELS },
        { "PyTorch NGC", QN_TIER_CHANNELS },
        { "ensorFlow", QN_TIER_TENSORFLOW },
        { "ensorflow", QN_TIER_TENSORFLOW },
        { "tf_cnn_benchmarks", QN_TIER_TENSORFLOW },
        { "MXNet", QN_TIER_TENSORFLOW },
        { "Paddle", QN_TIER_TENSORFLOW },
    };
    for (int i = 0; i < QN_COUNT(known); i++)
        if (strstr(framework, known[i].text))
            return known[i].tier;
    return QN_TIER_EAGER;
}
