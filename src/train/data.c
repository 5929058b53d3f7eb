#include "train/data.h"

#include "io/csv.h"
#include "io/folder.h"
#include "io/idx.h"
#include "io/image.h"
#include "io/npy_set.h"

#include <errno.h>
#include <string.h>

static QnStatus open_idx(const QnRecipeData *d, const QnDataPart *part, bool training,
                         int64_t n_classes, QnDataset **out)
{
    QnIdxOptions o = {
        .images_path = part->x,
        .labels_path = part->y,
        .augment = training ? d->augment : qn_augment_without_random(&d->augment),
        .class_names = d->classes,
        .class_count = d->n_classes ? d->n_classes : n_classes,
    };
    return qn_idx_open(&o, out);
}

/* "photos.tar:inside/folder" names a folder in an archive. */
static QnStatus open_folder(QnRecipe *r, const QnDataPart *part, bool training,
                            const QnDataset *like, QnDataset **out)
{
    const QnRecipeData *d = &r->data;
    char *path = qn_arena_strdup(r->arena, part->x);
    if (!path)
        return QN_ENOMEM;
    char *colon = strstr(path, ".tar:");
    QnFolderOptions o = {
        .path = path,
        .augment = training ? d->augment : qn_augment_without_random(&d->augment),
        .cache = d->cache,
        .channels = d->augment.normalize_channels == 1 ? 1 : 3,
        .class_names = d->classes,
        .class_count = d->n_classes,
    };
    if (colon) {
        colon[4] = '\0';
        o.inside = colon + 5;
    }
    if (like && !o.class_names) {
        o.class_names = (const char *const *)like->class_names;
        o.class_count = like->spec.class_count;
    }
    return qn_folder_open(&o, out);
}

static QnStatus open_csv(const QnRecipe *r, QnTrainData *out)
{
    const QnRecipeData *d = &r->data;
    QnCsvOptions o = {
        .path = d->train.x,
        .target_path = d->train.y,
        .target = d->target,
        .drop = d->drop,
        .regression = r->task == QN_TASK_REGRESS,
        .standardize = d->standardize,
        .standardize_target = d->standardize_target,
        .fill_missing = d->fill_missing,
        .train_fraction = d->train_fraction > 0 ? d->train_fraction : 0.8,
        .split_seed = (uint64_t)r->seed,
    };
    return qn_csv_open(&o, &out->train, &out->test);
}

static QnStatus open_text(const QnRecipe *r, QnTrainData *out)
{
    const QnRecipeData *d = &r->data;
    QnTextOptions o = {
        .path = d->train.x,
        .kind = d->bytes ? QN_VOCAB_BYTES : QN_VOCAB_CHARS,
        .window = d->window,
        .train_fraction = d->train_fraction,
    };
    return qn_text_open(&o, &out->train, &out->test, &out->vocab);
}

static QnStatus open_npy(const QnRecipe *r, const QnDataPart *part, int64_t n_classes,
                         QnDataset **out)
{
    QnNpySetOptions o = {
        .x_path = part->x,
        .y_path = part->y,
        .regression = r->task == QN_TASK_REGRESS,
        .class_names = r->data.classes,
        .class_count = r->data.n_classes ? r->data.n_classes : n_classes,
    };
    return qn_npy_set_open(&o, out);
}

/* One part by its format; training: with the random augmentations. like (may be NULL) fixes the
 * classes. */
static QnStatus open_part(QnRecipe *r, const QnDataPart *part, bool training, const QnDataset *like,
                          QnDataset **out)
{
    int64_t n_classes = like ? like->spec.class_count : 0;
    switch (r->data.format) {
    case QN_DATA_IDX: return open_idx(&r->data, part, training, n_classes, out);
    case QN_DATA_FOLDER: return open_folder(r, part, training, like, out);
    default: return open_npy(r, part, n_classes, out);
    }
}

/* Both parts from one source: opened twice, so that the test part is not augmented at random. */
static QnStatus split(QnRecipe *r, QnTrainData *out)
{
    const QnRecipeData *d = &r->data;
    double share = d->train_fraction > 0 ? d->train_fraction : 0.9;
    QnDataset *unused = NULL;
    QN_TRY(open_part(r, &d->train, true, NULL, &out->base[0]));
    if (share >= 1) {
        out->train = out->base[0];
        out->base[0] = NULL;
        return QN_OK;
    }
    QN_TRY(open_part(r, &d->train, false, out->base[0], &out->base[1]));
    QN_TRY(qn_dataset_split(out->base[0], share, (uint64_t)r->seed, &out->train, &unused));
    qn_dataset_free(unused);
    unused = NULL;
    QN_TRY(qn_dataset_split(out->base[1], share, (uint64_t)r->seed, &unused, &out->test));
    qn_dataset_free(unused);
    return QN_OK;
}

static QnStatus open_parts(QnRecipe *r, QnTrainData *out)
{
    const QnRecipeData *d = &r->data;
    if (d->format == QN_DATA_CSV)
        return open_csv(r, out);
    if (d->format == QN_DATA_TEXT)
        return open_text(r, out);
    if (!d->test.x)
        return split(r, out);
    QN_TRY(open_part(r, &d->train, true, NULL, &out->train));
    return open_part(r, &d->test, false, out->train, &out->test);
}

static QnStatus check(const QnRecipe *r, const QnTrainData *d)
{
    static const QnLabelKind wanted[] = { QN_LABEL_CLASS, QN_LABEL_VECTOR, QN_LABEL_TOKENS };
    static const char *const names[] = { "class labels", "numbers as targets", "tokens" };
    if (d->train->spec.y_kind != wanted[r->task])
        return qn_fail(QN_EUSAGE,
                       "%s: the task needs %s, the data has others; see task: and "
                       "data.format",
                       r->path, names[r->task]);
    if (r->task == QN_TASK_CLASSIFY && d->train->spec.class_count == 1)
        return qn_fail(QN_EUSAGE, "%s: data.train has one class only, '%s': %s", r->path,
                       qn_dataset_class_name(d->train, 0) ? qn_dataset_class_name(d->train, 0)
                                                          : "0",
                       r->data.format == QN_DATA_FOLDER
                           ? "name the folder that holds the classes' folders, in an archive as "
                             "photos.tar:folder"
                           : "there is nothing to tell apart");
    if (d->train->count < r->batch)
        return qn_fail(QN_EUSAGE,
                       "%s: train.batch is %lld, but there are only %lld samples: make it smaller",
                       r->path, (long long)r->batch, (long long)d->train->count);
    if (!d->test && (r->early_stop || r->keep_best))
        return qn_fail(QN_EUSAGE, "%s: train.%s needs test data: data.test, or a train_fraction",
                       r->path, r->early_stop ? "early_stop" : "keep_best");
    const QnSampleSpec *a = &d->train->spec, *b = d->test ? &d->test->spec : a;
    if (a->x_kind != b->x_kind || a->x_rank != b->x_rank || a->y_kind != b->y_kind ||
        a->y_count != b->y_count ||
        memcmp(a->x_dims, b->x_dims, (size_t)a->x_rank * sizeof *a->x_dims) ||
        a->class_count < b->class_count)
        return qn_fail(QN_EUSAGE,
                       "%s: data.test: the samples differ from the training samples in shape, "
                       "targets or classes",
                       r->path);
    QN_TRY(qn_dataset_validate_labels(d->train, false));
    return d->test ? qn_dataset_validate_labels(d->test, false) : QN_OK;
}

QnStatus qn_data_open(QnRecipe *r, QnTrainData *out)
{
    memset(out, 0, sizeof *out);
    QnStatus st = open_parts(r, out);
    if (st == QN_ENOTFOUND && strstr(qn_error_last()->text, strerror(ENOENT))) {
        QnError e = *qn_error_last();
        st = qn_fail(e.code, "%s (named in %s; --set data.train=… or data.test=… give others)",
                     e.text, r->path);
    }
    if (st == QN_OK)
        st = check(r, out);
    if (st != QN_OK)
        qn_data_close(out);
    return st;
}

void qn_data_close(QnTrainData *d)
{
    qn_dataset_free(d->train);
    qn_dataset_free(d->test);
    qn_dataset_free(d->base[0]);
    qn_dataset_free(d->base[1]);
    qn_vocab_free(d->vocab);
    memset(d, 0, sizeof *d);
}
