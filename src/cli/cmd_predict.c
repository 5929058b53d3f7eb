#include "cli/run_setup.h"

#include "io/image.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TOP, DEVICE, JSON };

static const QnOption options[] = {
    [TOP] = { "--top", 0, QN_OPTION_INT, "K", "so many classes an input; default 3", 1, 1000 },
    [DEVICE] = { "--device", 0, QN_OPTION_TEXT, "NAME", "cpu (default)", 0, 0 },
    [JSON] = { "--json", 0, QN_OPTION_FLAG, NULL, "one JSON object an input", 0, 0 },
};

/* An image file as the model's training pictures were treated. */
static QnStatus read_image(const QnSetup *s, const char *path, float *x)
{
    const QnSampleSpec *spec = qn_dataset_spec(s->data.train);
    QnAugment augment = qn_augment_without_random(&s->recipe->data.augment);
    QnImage image = { 0 };
    int64_t height, width;
    if (spec->x_kind != QN_FEATURE_F32 || spec->x_rank != 3)
        return qn_fail(QN_EUNSUPPORTED, "predict takes image files; this model was trained on "
                                        "other data");
    QN_TRY(qn_image_read(path, (int)spec->x_dims[0], &image));
    QnPixels pixels = qn_image_pixels(&image);
    if (augment.resize_height == 0 && augment.crop_height == 0) { /* fit what is not the size */
        augment.resize_height = spec->x_dims[1];
        augment.resize_width = spec->x_dims[2];
    }
    QnStatus st =
        qn_augment_check(&augment, pixels.height, pixels.width, pixels.channels, &height, &width);
    if (st == QN_OK && (height != spec->x_dims[1] || width != spec->x_dims[2]))
        st = qn_fail(QN_ESHAPE, "%s: comes out as %lld x %lld, the model takes %lld x %lld", path,
                     (long long)height, (long long)width, (long long)spec->x_dims[1],
                     (long long)spec->x_dims[2]);
    if (st == QN_OK)
        qn_augment_apply(&augment, &pixels, 0, 0, 0, x);
    qn_image_fini(&image);
    return st;
}

static const char *class_name(const QnSetup *s, int64_t k, char text[24])
{
    const char *name = qn_dataset_class_name(s->data.train, k);
    if (!name)
        snprintf(text, 24, "%lld", (long long)k);
    return name ? name : text;
}

/* softmax in place; largest first in order[0..top) */
static void rank_classes(double *p, int64_t n, int64_t *order, int64_t top)
{
    double most = p[0], sum = 0;
    for (int64_t i = 1; i < n; i++)
        most = fmax(most, p[i]);
    for (int64_t i = 0; i < n; i++)
        sum += p[i] = exp(p[i] - most);
    for (int64_t i = 0; i < n; i++)
        p[i] /= sum;
    for (int64_t k = 0; k < top; k++) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++) {
            bool taken = false;
            for (int64_t j = 0; j < k; j++)
                taken |= order[j] == i;
            if (!taken && (best < 0 || p[i] > p[best]))
                best = i;
        }
        order[k] = best;
    }
}

static QnStatus print(const QnArgs *a, const QnSetup *s, const char *path, double *p, int64_t n)
{
    int64_t order[1000], top = QN_MIN(a->text[TOP] ? a->number[TOP] : 3, n);
    char number[24];
    rank_classes(p, n, order, top);
    if (!a->json) {
        printf("%s:", path);
        for (int64_t k = 0; k < top; k++)
            printf("%s %s %.3f", k ? "," : "", class_name(s, order[k], number), p[order[k]]);
        printf("\n");
        return QN_OK;
    }
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "file", path);
    qn_json_key(&w, "classes");
    qn_json_open_array(&w);
    for (int64_t k = 0; k < top; k++) {
        qn_json_open_object(&w);
        qn_json_put_string(&w, "class", class_name(s, order[k], number));
        qn_json_put_double(&w, "probability", p[order[k]]);
        qn_json_close(&w);
    }
    qn_json_close(&w);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}

static QnStatus predict_one(const QnArgs *a, QnSetup *s, const char *path, float *x, void *y,
                            double *p)
{
    QnEvalResult r;
    int64_t index = 0;
    QN_TRY(read_image(s, path, x));
    QnBatch b = { .x = x, .y = y, .indices = &index, .count = 1 };
    QN_TRY(qn_session_eval(s->session, &b, &r));
    for (int64_t i = 0; i < r.outputs; i++)
        p[i] = r.logits[i];
    return print(a, s, path, p, r.outputs);
}

static int run(QnArgs *a)
{
    QnSetup s;
    static const char *const small = "train.eval.batch=1";
    if (qn_setup_open_run(&s, a->positional[0], &small, 1, a->text[DEVICE]) != QN_OK)
        return qn_cli_fail(a);
    if (s.skipped)
        qn_log_at(&a->log, QN_LOG_WARN, "%s", s.skipped);
    const QnSampleSpec *spec = qn_dataset_spec(s.data.train);
    QnStatus st = s.recipe->task == QN_TASK_CLASSIFY
                      ? QN_OK
                      : qn_fail(QN_EUNSUPPORTED, "predict needs a model that classifies");
    float *x = qn_alloc(qn_sample_x_bytes(spec));
    void *y = qn_alloc(qn_sample_y_bytes(spec));
    double *p = qn_alloc_array((size_t)spec->class_count + 1, sizeof *p);
    if (st == QN_OK && (!x || !y || !p))
        st = QN_ENOMEM;
    int code = st == QN_OK ? QN_EXIT_OK : qn_cli_fail(a);
    for (int i = 1; st == QN_OK && i < a->n_positional; i++) {
        if (predict_one(a, &s, a->positional[i], x, y, p) != QN_OK)
            code = qn_cli_fail(a); /* and go on with the next file */
    }
    qn_free(x);
    qn_free(y);
    qn_free(p);
    qn_setup_close(&s);
    return code;
}

const QnCommand qn_cmd_predict = {
    .name = "predict",
    .summary = "Classify image files with a trained model",
    .usage = "RUN FILE… [options]",
    .examples = "  quern predict runs/fashion-mnist-demo photo.png\n"
                "  quern predict runs/pets *.jpg --top 1 --json\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 2,
    .max_positional = QN_ARGS_MAX,
    .run = run,
};
