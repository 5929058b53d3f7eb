/* labels: io */
#include "temp.h"

#include "base/mem.h"
#include "io/gz.h"
#include "io/idx.h"

#ifdef QN_HAVE_ZLIB
#include <zlib.h>
#endif

/* Three images of 2 x 3 pixels, and their labels. */
static const uint8_t images[] = {
    0,  0,   8,   3,   0,   0, 0, 3, 0, 0, 0, 2,  0,  0,  0,  3,  0,
    51, 102, 153, 204, 255, 1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60
};
static const uint8_t labels[] = { 0, 0, 8, 1, 0, 0, 0, 3, 2, 0, 1 };

static void test_images_and_labels(void **state)
{
    QnIdxOptions o = { .images_path = temp_file("images", images, sizeof images),
                       .labels_path = temp_file("labels", labels, sizeof labels) };
    QnDataset *ds;
    assert_ok(qn_idx_open(&o, &ds));
    const QnSampleSpec *s = qn_dataset_spec(ds);
    assert_int_equal(qn_dataset_count(ds), 3);
    assert_int_equal(s->x_rank, 3);
    assert_int_equal(s->x_dims[0], 1);
    assert_int_equal(s->x_dims[1], 2);
    assert_int_equal(s->x_dims[2], 3);
    assert_int_equal(s->class_count, 3);
    float x[6];
    int64_t y;
    assert_ok(qn_dataset_get(ds, 0, 0, 0, x, &y));
    for (int i = 0; i < 6; i++)
        assert_float_equal(x[i], (float)i * 0.2f, 1e-6);
    assert_int_equal(y, 2);
    assert_ok(qn_dataset_get(ds, 2, 0, 0, x, &y));
    assert_float_equal(x[5], 60.0f / 255.0f, 1e-6);
    assert_int_equal(y, 1);
    qn_dataset_free(ds);
}

static void test_normalise(void **state)
{
    QnIdxOptions o = { .images_path = temp_file("images", images, sizeof images),
                       .augment = { .normalize_channels = 1, .mean = { 0.4f }, .std = { 0.5f } } };
    QnDataset *ds;
    float x[6];
    assert_ok(qn_idx_open(&o, &ds));
    assert_int_equal(qn_dataset_spec(ds)->y_kind, QN_LABEL_NONE);
    assert_ok(qn_dataset_get(ds, 0, 0, 0, x, NULL));
    for (int i = 0; i < 6; i++)
        assert_float_equal(x[i], ((float)i * 0.2f - 0.4f) / 0.5f, 1e-6);
    qn_dataset_free(ds);
    o.augment.normalize_channels = 3;
    o.augment.std[1] = o.augment.std[2] = 1;
    assert_fails(qn_idx_open(&o, &ds), QN_ESHAPE, "3 means");
}

static void test_numbers_of_every_type(void **state)
{
    static const uint8_t i16[] = { 0, 0, 0x0b, 1, 0, 0, 0, 2, 0xff, 0xfe, 1, 0 };
    static const uint8_t f32[] = { 0, 0, 0x0d, 1, 0, 0, 0, 1, 0x3f, 0xc0, 0, 0 };
    static const uint8_t f64[] = { 0, 0, 0x0e, 1, 0, 0, 0, 1, 0xc0, 4, 0, 0, 0, 0, 0, 0 };
    QnIdx idx;
    assert_ok(qn_idx_parse("a", i16, sizeof i16, &idx));
    assert_true(qn_idx_at(&idx, 0) == -2 && qn_idx_at(&idx, 1) == 256);
    assert_ok(qn_idx_parse("a", f32, sizeof f32, &idx));
    assert_true(qn_idx_at(&idx, 0) == 1.5);
    assert_ok(qn_idx_parse("a", f64, sizeof f64, &idx));
    assert_true(qn_idx_at(&idx, 0) == -2.5);
}

static void test_malformed(void **state)
{
    QnIdx idx;
    uint8_t b[sizeof images];
    for (size_t n = 0; n < sizeof images; n++) /* cut short anywhere */
        assert_fails(qn_idx_parse("a.idx", images, n, &idx), QN_EFORMAT, "a.idx: ");
    assert_fails(qn_idx_parse("a.idx", images, sizeof images - 1, &idx), QN_EFORMAT,
                 "byte 16: the header promises 18 bytes of data, the file holds 17");
    uint8_t longer[sizeof images + 1] = { 0 };
    memcpy(longer, images, sizeof images);
    assert_fails(qn_idx_parse("a.idx", longer, sizeof longer, &idx), QN_EFORMAT,
                 "more than one file");
    memcpy(b, images, sizeof b);
    b[0] = 'P';
    assert_fails(qn_idx_parse("a", b, sizeof b, &idx), QN_EFORMAT, "magic 50000803");
    memcpy(b, images, sizeof b);
    b[2] = 7;
    assert_fails(qn_idx_parse("a", b, sizeof b, &idx), QN_EFORMAT, "not an IDX file");
    memcpy(b, images, sizeof b);
    b[3] = 9;
    assert_fails(qn_idx_parse("a", b, sizeof b, &idx), QN_EFORMAT, "rank 9");
    memcpy(b, images, sizeof b);
    memset(b + 4, 0xff, 12); /* three dims of 2^32-1 */
    assert_fails(qn_idx_parse("a", b, sizeof b, &idx), QN_EFORMAT, "more than 64 bits");
    memcpy(b, images, sizeof b);
    b[7] = 0;
    assert_fails(qn_idx_parse("a", b, sizeof b, &idx), QN_EFORMAT, "dimension 0 is 0");
}

static void test_files_that_do_not_fit(void **state)
{
    static const uint8_t two[] = { 0, 0, 8, 1, 0, 0, 0, 2, 2, 0 };
    const char *i = temp_file("images", images, sizeof images);
    const char *l = temp_file("labels", labels, sizeof labels);
    const char *t = temp_file("two", two, sizeof two);
    QnDataset *ds;
    assert_fails(qn_idx_open(&(QnIdxOptions){ .images_path = i, .labels_path = t }, &ds),
                 QN_EFORMAT, "2 labels");
    assert_fails(qn_idx_open(&(QnIdxOptions){ .images_path = l, .labels_path = i }, &ds),
                 QN_EFORMAT, "looks like a file of labels");
    assert_fails(qn_idx_open(&(QnIdxOptions){ .images_path = i, .labels_path = i }, &ds),
                 QN_EFORMAT, "looks like a file of images");
    assert_fails(qn_idx_open(&(QnIdxOptions){ .images_path = temp_path("none") }, &ds),
                 QN_ENOTFOUND, "none");
    QnIdxOptions few = { .images_path = i, .labels_path = l, .class_count = 2 };
    assert_ok(qn_idx_open(&few, &ds)); /* found before step 0, not here */
    assert_fails(qn_dataset_validate_labels(ds, false), QN_EARG, "label 2 is out of range");
    qn_dataset_free(ds);
}

#ifdef QN_HAVE_ZLIB
static size_t pack(const void *data, size_t size, uint8_t *out, size_t cap)
{
    z_stream z = { 0 };
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}
#endif

static void test_gzip(void **state)
{
#ifndef QN_HAVE_ZLIB
    skip_because("built without zlib");
#else
    uint8_t packed[512], *out;
    size_t n = pack(images, sizeof images, packed, sizeof packed / 2), size;
    QnDataset *ds;
    assert_ok(qn_idx_open(&(QnIdxOptions){ .images_path = temp_file("i.gz", packed, n) }, &ds));
    assert_int_equal(qn_dataset_count(ds), 3);
    qn_dataset_free(ds);
    for (size_t cut = 2; cut < n; cut++)
        assert_fails(qn_gz_unpack("i.gz", packed, cut, 1000, &out, &size), QN_EFORMAT, "i.gz: ");
    assert_fails(qn_gz_unpack("i.gz", packed, n - 9, 1000, &out, &size), QN_EFORMAT, "cut short");
    uint8_t bad[512];
    memcpy(bad, packed, n);
    bad[n - 6] ^= 1; /* the checksum */
    assert_fails(qn_gz_unpack("i.gz", bad, n, 1000, &out, &size), QN_EFORMAT, "broken gzip data");
    assert_fails(qn_gz_unpack("i.gz", packed, n, 10, &out, &size), QN_EFORMAT, "limit of 10");
    assert_ok(qn_gz_unpack("i.gz", packed, n, sizeof images, &out, &size));
    assert_int_equal(size, sizeof images);
    qn_free(out);
    memcpy(bad, packed, n); /* two members make one file */
    memcpy(bad + n, packed, n);
    assert_ok(qn_gz_unpack("i.gz", bad, 2 * n, 1000, &out, &size));
    assert_int_equal(size, 2 * sizeof images);
    assert_memory_equal(out + sizeof images, images, sizeof images);
    qn_free(out);
    bad[n] = 'x';
    assert_fails(qn_gz_unpack("i.gz", bad, 2 * n, 1000, &out, &size), QN_EFORMAT, "something else");
#endif
}

static void test_fashion_mnist(void **state)
{
    const char *folder = "/usr/share/datasets/fashion-mnist";
    char i[128], l[128];
    snprintf(i, sizeof i, "%s/t10k-images-idx3-ubyte.gz", folder);
    snprintf(l, sizeof l, "%s/t10k-labels-idx1-ubyte.gz", folder);
    if (access(i, R_OK))
        skip_because("no %s (Debian's dataset-fashion-mnist)", i);
#ifndef QN_HAVE_ZLIB
    skip_because("built without zlib");
#endif
    QnDataset *ds;
    assert_ok(qn_idx_open(&(QnIdxOptions){ .images_path = i, .labels_path = l }, &ds));
    assert_int_equal(qn_dataset_count(ds), 10000);
    assert_int_equal(qn_dataset_spec(ds)->class_count, 10);
    assert_ok(qn_dataset_validate_labels(ds, true));
    double sum = 0;
    float x[784];
    int64_t y, counts[10] = { 0 };
    for (int64_t k = 0; k < 10000; k++) {
        assert_ok(qn_dataset_get(ds, k, 0, 0, x, &y));
        counts[y]++;
        for (int p = 0; p < 784; p++)
            sum += (double)x[p];
    }
    for (int c = 0; c < 10; c++)
        assert_int_equal(counts[c], 1000);
    assert_float_equal(sum / 7840000, 0.2868, 1e-3); /* the published mean of the test images */
    qn_dataset_free(ds);
}
