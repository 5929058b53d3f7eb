/* labels: io threads */
#include "pack.h"
#include "temp.h"

#include <pthread.h>

#include "base/mem.h"
#include "io/folder.h"
#include "io/loader.h"

#ifdef QN_HAVE_PNG
#define NEED_PNG() ((void)0)
#else
#define NEED_PNG()                          skip_because("built without libpng")
#define PNG_FORMAT_RGB                      0
#define png_pack(p, h, w, format, out, cap) ((void)(p), (size_t)0)
#endif

/* A 6 x 4 image of one colour. */
static size_t flat(uint8_t red, uint8_t *out, size_t cap)
{
    uint8_t pixels[6 * 4 * 3];
    for (int i = 0; i < 24; i++)
        memcpy(pixels + 3 * i, ((uint8_t[]){ red, 100, 200 }), 3);
    return png_pack(pixels, 6, 4, PNG_FORMAT_RGB, out, cap);
}

static void put_file(const char *folder, const char *name, const void *data, size_t n)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

/* ROOT/pics/{bird,ant}/… with three sound images, and things that are not images. */
static const char *make_folder(const char *name)
{
    const char *root = temp_path(name);
    char path[600];
    uint8_t png[512];
    static const char *const folders[] = { "", "/pics", "/pics/bird", "/pics/ant", "/pics/.git" };
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s%s", root, folders[i]);
        mkdir(path, 0777);
    }
    put_file(root, "pics/bird/b.png", png, flat(30, png, sizeof png));
    put_file(root, "pics/ant/z.PNG", png, flat(20, png, sizeof png));
    put_file(root, "pics/ant/a.png", png, flat(10, png, sizeof png));
    put_file(root, "pics/ant/.hidden.png", "x", 1);
    put_file(root, "pics/ant/notes.txt", "x", 1);
    put_file(root, "pics/readme.png", "x", 1);
    snprintf(path, sizeof path, "%s/pics/ant/folder.png", root);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/pics/ant/pipe.png", root); /* to open it would wait for ever */
    mkfifo(path, 0666);
    return root;
}

static void make_tar(QnStr *tar)
{
    uint8_t png[512];
    tar_add(tar, "pics/bird/b.png", '0', png, flat(30, png, sizeof png));
    tar_add(tar, "pics/ant/z.PNG", '0', png, flat(20, png, sizeof png));
    tar_add(tar, "pics/ant/a.png", '0', png, flat(10, png, sizeof png));
    tar_add(tar, "pics/ant/.hidden.png", '0', "x", 1);
    tar_add(tar, "pics/ant/notes.txt", '0', "x", 1);
    tar_add(tar, "pics/readme.png", '0', "x", 1);
    tar_add(tar, "other/c/x.png", '0', "x", 1);
    tar_end(tar);
}

static void check_contents(QnDataset *ds)
{
    float x[72];
    int64_t y;
    assert_int_equal(qn_dataset_count(ds), 3);
    const QnSampleSpec *s = qn_dataset_spec(ds);
    assert_true(s->x_rank == 3 && s->x_dims[0] == 3 && s->x_dims[1] == 6 && s->x_dims[2] == 4);
    assert_string_equal(qn_dataset_class_name(ds, 0), "ant");
    assert_string_equal(qn_dataset_class_name(ds, 1), "bird");
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 3; i++) {
            assert_ok(qn_dataset_get(ds, i, 0, 0, x, &y));
            assert_int_equal(y, i == 2);
            assert_float_equal(x[0], (float)(10 * i + 10) / 255, 1e-6);
            assert_float_equal(x[71], 200.0 / 255, 1e-6);
        }
    assert_ok(qn_dataset_validate_labels(ds, true));
}

static void test_on_disk_and_in_a_tar(void **state)
{
    NEED_PNG();
    QnStr tar = { 0 };
    make_tar(&tar);
    const char *root = make_folder("disk"), *archive = temp_file("pics.tar", tar.s, tar.n);
    for (int cache = 0; cache < 2; cache++)
        for (int packed = 0; packed < 2; packed++) {
            QnFolderOptions o = { .path = packed ? archive : root,
                                  .inside = packed ? "pics/" : "pics",
                                  .cache = cache };
            QnDataset *ds;
            assert_ok(qn_folder_open(&o, &ds));
            check_contents(ds);
            char place[600];
            qn_dataset_place(ds, 2, place, sizeof place);
            assert_contains(place, packed ? "pics.tar: pics/bird/b.png" : "/pics/bird/b.png");
            uint64_t before = qn_alloc_count();
            float x[72];
            int64_t y;
            for (int i = 0; i < 30; i++)
                assert_ok(qn_dataset_get(ds, i % 3, 0, 0, x, &y));
            assert_int_equal(qn_alloc_count(), before);
            qn_dataset_free(ds);
        }
    qn_str_fini(&tar);
}

static void test_given_classes_and_wrong_paths(void **state)
{
    NEED_PNG();
    const char *root = make_folder("given");
    QnDataset *ds;
    static const char *const names[] = { "cat", "bird", "ant" };
    QnFolderOptions o = { .path = root, .inside = "pics", .class_names = names, .class_count = 3 };
    int64_t y;
    assert_ok(qn_folder_open(&o, &ds));
    assert_ok(qn_dataset_get_label(ds, 0, &y));
    assert_int_equal(y, 1);
    assert_fails(qn_dataset_validate_labels(ds, true), QN_EARG, "class 0 (cat) has no sample");
    qn_dataset_free(ds);
    o.class_count = 2;
    assert_fails(qn_folder_open(&o, &ds), QN_EARG, "class 'ant'");
    o = (QnFolderOptions){ .path = root, .inside = "nowhere" };
    assert_fails(qn_folder_open(&o, &ds), QN_ENOTFOUND, "nowhere");
    o.inside = "pics/ant";
    assert_fails(qn_folder_open(&o, &ds), QN_ENOTFOUND, "no class folder");
    o = (QnFolderOptions){ .path = root, .inside = "pics", .channels = 2 };
    assert_fails(qn_folder_open(&o, &ds), QN_EARG, "2 channels");
}

static void test_broken_and_odd_images(void **state)
{
    NEED_PNG();
    const char *root = make_folder("broken");
    uint8_t png[512], pixels[300] = { 0 };
    size_t n = flat(90, png, sizeof png);
    put_file(root, "pics/ant/b.png", png, n - 20);
    put_file(root, "pics/ant/c.png", png, 0);
    put_file(root, "pics/ant/d.png", png, png_pack(pixels, 5, 7, PNG_FORMAT_RGB, png, sizeof png));
    QnFolderOptions o = { .path = root, .inside = "pics" };
    QnDataset *ds;
    float x[72];
    int64_t y;
    assert_ok(qn_folder_open(&o, &ds));
    assert_int_equal(qn_dataset_count(ds), 6);
    assert_fails(qn_dataset_get(ds, 1, 0, 0, x, &y), QN_EFORMAT, "pics/ant/b.png: byte ");
    assert_fails(qn_dataset_get(ds, 2, 0, 0, x, &y), QN_EFORMAT, "c.png: the file is empty");
    assert_fails(qn_dataset_get(ds, 3, 0, 0, x, &y), QN_EFORMAT,
                 "d.png: 7x5 pixels, the first image gives 4x6");
    QnLoader *l;
    QnBatch b;
    QnLoaderOptions lo = { .batch = 6, .broken = QN_BROKEN_DROP };
    assert_ok(qn_loader_new(ds, &lo, &l));
    assert_ok(qn_loader_next(l, &b));
    assert_int_equal(b.count, 3);
    assert_int_equal(qn_dataset_skip_count(ds), 3);
    QnSkip skip;
    assert_ok(qn_dataset_skip_at(ds, 0, &skip));
    assert_contains(skip.text, "b.png");
    qn_free(skip.text);
    qn_loader_free(l);
    qn_dataset_free(ds);
    o.augment = (QnAugment){ .resize_height = 3, .resize_width = 3 }; /* one size for all */
    assert_ok(qn_folder_open(&o, &ds));
    assert_ok(qn_dataset_get(ds, 3, 0, 0, x, &y));
    qn_dataset_free(ds);
    o.augment = (QnAugment){ .crop_height = 6, .crop_width = 4 };
    assert_ok(qn_folder_open(&o, &ds));
    assert_fails(qn_dataset_get(ds, 3, 0, 0, x, &y), QN_EFORMAT, "crop 6x4 is larger");
    qn_dataset_free(ds);
}

static void test_cached_images_need_no_file(void **state)
{
    NEED_PNG();
    const char *root = make_folder("cached");
    QnDataset *ds;
    float x[72];
    int64_t y;
    for (int cache = 0; cache < 2; cache++) {
        make_folder("cached");
        assert_ok(qn_folder_open(
            &(QnFolderOptions){ .path = root, .inside = "pics", .cache = cache }, &ds));
        assert_ok(qn_dataset_get(ds, 2, 0, 0, x, &y));
        unlink(temp_path("cached/pics/bird/b.png"));
        if (cache)
            assert_ok(qn_dataset_get(ds, 2, 0, 0, x, &y));
        else
            assert_fails(qn_dataset_get(ds, 2, 0, 0, x, &y), QN_ENOTFOUND, "b.png: cannot open");
        assert_float_equal(x[0], 30.0 / 255, 1e-6);
        qn_dataset_free(ds);
    }
}

/* Many threads read the same images, cached and not: all see the same values. */
static void test_threads_share_a_dataset(void **state)
{
    NEED_PNG();
    const char *root = make_folder("threads");
    for (int cache = 0; cache < 2; cache++) {
        QnFolderOptions o = { .path = root,
                              .inside = "pics",
                              .cache = cache,
                              .cache_limit_bytes = 150 /* two images */ };
        QnDataset *ds;
        QnLoader *l;
        QnBatch b;
        assert_ok(qn_folder_open(&o, &ds));
        QnLoaderOptions lo = { .batch = 3, .workers = 4 };
        assert_ok(qn_loader_new(ds, &lo, &l));
        for (int i = 0; i < 50; i++) {
            assert_ok(qn_loader_next(l, &b));
            for (int k = 0; k < 3; k++)
                assert_float_equal(((const float *)b.x)[72 * k], (float)(10 * k + 10) / 255, 1e-6);
        }
        qn_loader_free(l);
        qn_dataset_free(ds);
    }
}

static void test_cifar_from_its_tar(void **state)
{
    const char *path = "../shared/data/cifar10-jpeg-12k.tar";
    if (access(path, R_OK))
        skip_because("no %s", path);
#ifndef QN_HAVE_JPEG
    skip_because("built without libjpeg");
#endif
    static float x[3 * 32 * 32];
    QnDataset *ds;
    QnFolderOptions o = { .path = path, .inside = "cifar10/train" };
    assert_ok(qn_folder_open(&o, &ds));
    assert_int_equal(qn_dataset_count(ds), 10000);
    assert_int_equal(qn_dataset_spec(ds)->class_count, 10);
    assert_string_equal(qn_dataset_class_name(ds, 9), "truck");
    assert_ok(qn_dataset_validate_labels(ds, true));
    double sum = 0;
    int64_t y;
    for (int64_t i = 0; i < 10000; i += 10) {
        assert_ok(qn_dataset_get(ds, i, 0, 0, x, &y));
        assert_int_equal(y, i / 1000);
        for (int k = 0; k < 3072; k++)
            sum += (double)x[k];
    }
    assert_float_equal(sum / 3072000, 0.473, 0.01); /* CIFAR-10's mean over its channels */
    qn_dataset_free(ds);
    o.inside = "cifar10/test";
    assert_ok(qn_folder_open(&o, &ds));
    assert_int_equal(qn_dataset_count(ds), 2000);
    qn_dataset_free(ds);
}
