/* CSV: the first byte chooses options, the rest is the text. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "io/csv.h"

/* Every value of a dataset that was accepted must be readable and finite. */
static void read_all(QnDataset *ds)
{
    if (!ds)
        return;
    const QnSampleSpec *s = qn_dataset_spec(ds);
    float *x = qn_alloc(qn_sample_x_bytes(s));
    void *y = qn_alloc(qn_sample_y_bytes(s));
    for (int64_t i = 0; i < qn_dataset_count(ds); i++) {
        if (qn_dataset_get(ds, i, 0, 0, x, y) != QN_OK)
            abort();
        for (int64_t k = 0; k < qn_sample_x_count(s); k++)
            if (!isfinite(x[k]))
                abort();
    }
    if (qn_dataset_validate_labels(ds, false) != QN_OK && s->y_kind == QN_LABEL_CLASS)
        abort();
    qn_free(x);
    qn_free(y);
    qn_dataset_free(ds);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    QnCsvOptions o = { .path = "f",
                       .regression = data[0] & 1,
                       .standardize = data[0] & 2,
                       .fill_missing = data[0] & 4,
                       .header = data[0] >> 3 & 3,
                       .train_fraction = data[0] & 32 ? 0.5 : 1,
                       .target = data[0] & 64 ? "0" : NULL,
                       .standardize_target = data[0] & 128 };
    QnDataset *train = NULL, *test = NULL;
    if (qn_csv_parse(&o, (const char *)data + 1, size - 1, NULL, 0, &train, &test) == QN_OK) {
        read_all(train);
        read_all(test);
    }
    return 0;
}
