#include "cli/far_memory.h"

#include "io/csv.h"
#include "io/image.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { TOP, DEVICE, JSON };

static const QnOption options[] = {
    [TOP] = { "--top", 0, QN_OPTION_INT, "K", "so many classes an input; default 3", 1, 1000 },
    [DEVICE] = { "--device", 0, QN_OPTION_TEXT, "NAME", QN_DEVICE_HELP, 0, 0 },
    [JSON] = { "--json", 0, QN_OPTION_FLAG, NULL, "one JSON object an input", 0, 0 },
};

/* One sample of an input file. */
typedef struct Input {
    const char *path;
    int64_t row; /* of a table, from 0; -1: the file is one sample */
} Input;

/* An image file as the model's training pictures were treated. */
static QnStatus read_image(const QnSetup *s, const char *path, float *x)
{
    const QnSampleSpec *spec = &s->form.spec;
    QnAugment augment = qn_augment_without_random(&s->recipe->data.augment);
    QnImage image = { 0 };
    int64_t height, width;
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return qn_fail(QN_EUSAGE, "%s is a folder; name its files: %s/*.jpg", path, path);
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

/* A table of the training's columns; targets may be there and are left out. */
static QnStatus open_table(const QnSetup *s, const char *path, QnDataset **out)
{
    const QnRecipeData *d = &s->recipe->data;
    QnDataset *none = NULL;
    QnCsvOptions o = { .path = path,
                       .target = d->train.y ? NULL : d->target,
                       .drop = d->drop,
                       .regression = s->recipe->task == QN_TASK_REGRESS,
                       .standardize = d->standardize,
                       .fill_missing = d->fill_missing,
                       .train_fraction = 1,
                       .no_target = true,
                       .given_count = s->form.n_features,
                       .given_mean = s->form.mean,
                       .given_deviation = s->form.deviation };
    return qn_csv_open(&o, out, &none);
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

static void put_input(QnJsonWriter *w, const Input *in)
{
    qn_json_put_string(w, "file", in->path);
    if (in->row >= 0)
        qn_json_put_int(w, "row", in->row);
}

static QnStatus finish_line(QnJsonWriter *w, QnStr *line)
{
    qn_json_close(w);
    QnStatus st = qn_json_end(w);
    if (st == QN_OK)
        qn_cli_print_json(line);
    qn_str_fini(line);
    return st;
}

static void print_name(const Input *in)
{
    printf("%s", in->path);
    if (in->row >= 0)
        printf(" row %lld", (long long)in->row);
    printf(":");
}

static QnStatus print_classes(const QnArgs *a, const QnSetup *s, const Input *in, double *p,
                              int64_t n)
{
    int64_t order[1000], top = QN_MIN(a->text[TOP] ? a->number[TOP] : 3, n);
    char number[24];
    rank_classes(p, n, order, top);
    if (!a->json) {
        print_name(in);
        for (int64_t k = 0; k < top; k++)
            printf("%s %s %.3f", k ? "," : "", qn_form_class(&s->form, order[k], number),
                   p[order[k]]);
        printf("\n");
        return QN_OK;
    }
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    put_input(&w, in);
    qn_json_key(&w, "classes");
    qn_json_open_array(&w);
    for (int64_t k = 0; k < top; k++) {
        qn_json_open_object(&w);
        qn_json_put_string(&w, "class", qn_form_class(&s->form, order[k], number));
        qn_json_put_double(&w, "probability", p[order[k]]);
        qn_json_close(&w);
    }
    qn_json_close(&w);
    return finish_line(&w, &line);
}

/* Regression: in the units of the targets. */
static QnStatus print_values(const QnArgs *a, const QnSetup *s, const Input *in, double *p,
                             int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        p[i] = p[i] * s->form.target_deviation[i] + s->form.target_mean[i];
    if (!a->json) {
        print_name(in);
        for (int64_t i = 0; i < n; i++)
            printf(" %.6g", p[i]);
        printf("\n");
        return QN_OK;
    }
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    put_input(&w, in);
    qn_json_key(&w, "values");
    qn_json_open_array(&w);
    for (int64_t i = 0; i < n; i++)
        qn_json_add_double(&w, p[i]);
    qn_json_close(&w);
    return finish_line(&w, &line);
}

typedef struct Buffers {
    float *x;
    void *y;
    double *p;
} Buffers;

static QnStatus predict_one(const QnArgs *a, QnSetup *s, const Input *in, const Buffers *b)
{
    QnEvalResult r;
    int64_t index = 0;
    QnBatch batch = { .x = b->x, .y = b->y, .indices = &index, .count = 1 };
    QN_TRY(qn_session_eval(s->session, &batch, &r));
    for (int64_t i = 0; i < r.outputs; i++)
        b->p[i] = r.logits[i];
    return s->recipe->task == QN_TASK_REGRESS ? print_values(a, s, in, b->p, r.outputs)
                                              : print_classes(a, s, in, b->p, r.outputs);
}

static QnStatus predict_table(const QnArgs *a, QnSetup *s, const char *path, const Buffers *b)
{
    QnDataset *table;
    QN_TRY(open_table(s, path, &table));
    QnStatus st = qn_form_check_features(&s->form, table);
    for (int64_t i = 0; st == QN_OK && i < qn_dataset_count(table); i++) {
        st = qn_dataset_get(table, i, 0, 0, b->x, b->y);
        if (st == QN_OK)
            st = predict_one(a, s, &(Input){ path, i }, b);
    }
    qn_dataset_free(table);
    return st;
}

static QnStatus predict_file(const QnArgs *a, QnSetup *s, const char *path, const Buffers *b)
{
    const QnSampleSpec *spec = &s->form.spec;
    if (s->form.n_features)
        return predict_table(a, s, path, b);
    if (spec->x_kind != QN_FEATURE_F32 || spec->x_rank != 3)
        return qn_fail(QN_EUNSUPPORTED, "predict takes images and tables; this model was trained "
                                        "on other data");
    QN_TRY(read_image(s, path, b->x));
    return predict_one(a, s, &(Input){ path, -1 }, b);
}

static int run(QnArgs *a)
{
    QnSetup s;
    static const char *const small = "train.eval.batch=1";
    if (qn_setup_open_model(&s, a->positional[0], &small, 1,
                            &(QnDeviceWish){ .name = a->text[DEVICE], .log = &a->log }) != QN_OK)
        return qn_cli_fail(a);
    qn_setup_warn_skipped(&s, &a->log);
    qn_far_warn(&s, &a->log);
    const QnSampleSpec *spec = &s.form.spec;
    QnStatus st =
        s.recipe->task != QN_TASK_LANGUAGE
            ? QN_OK
            : qn_fail(QN_EUSAGE, "a language model generates: quern generate %s", a->positional[0]);
    Buffers b = { .x = qn_alloc(qn_sample_x_bytes(spec)),
                  .y = qn_alloc(qn_sample_y_bytes(spec)),
                  .p = qn_alloc_array((size_t)(spec->class_count + spec->y_count) + 1,
                                      sizeof(double)) };
    if (st == QN_OK && (!b.x || !b.y || !b.p))
        st = QN_ENOMEM;
    int code = st == QN_OK ? QN_EXIT_OK : qn_cli_fail(a);
    for (int i = 1; st == QN_OK && i < a->n_positional; i++) {
        if (predict_file(a, &s, a->positional[i], &b) != QN_OK)
            code = qn_cli_fail(a); /* and go on with the next file */
    }
    qn_free(b.x);
    qn_free(b.y);
    qn_free(b.p);
    qn_setup_close(&s);
    return code;
}

const QnCommand qn_cmd_predict = {
    .name = "predict",
    .summary = "Run a trained model on image files or tables",
    .usage = "RUN FILE… [options]",
    .examples = "  quern predict runs/fashion-mnist-demo photo.png\n"
                "  quern predict runs/pets *.jpg --top 1 --json\n"
                "  quern predict runs/diabetes new-patients.csv\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 2,
    .max_positional = QN_ARGS_MAX,
    .run = run,
};
