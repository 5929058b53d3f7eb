/* Nets that find and outline things: their work against published figures, and steps of training
 * of one model a family. */
#include "test.h"

#include "plan/counts.h"
#include "quern/plan.h"

#include <math.h>
#include <string.h>

static const QnModel *model(const char *name)
{
    const QnModel *m = NULL;
    assert_ok(qn_model_find(name, &m));
    return m;
}

/* Operations of products and convolutions, backward as well. */
static double products(const QnCount *c)
{
    double sum = 0;
    for (int64_t i = 0; i < c->n_work; i++)
        sum += c->work[i].kind >= QN_WORK_MOVE ? 0 : c->work[i].flops * c->work[i].count;
    return sum;
}

static void count(const char *name, const QnCountRequest *r, QnCount *c)
{
    QnDevice *d = NULL;
    assert_ok(qn_device_open_named("null", NULL, &d));
    assert_ok(qn_count_model(model(name), r, d, c));
    qn_device_close(d);
}

/* A step of training is about three passes forward, and holds gradients. */
static void test_training(void **state)
{
    static const struct {
        const char *name;
        QnCountRequest request;
    } cases[] = {
        { "unet_medical", { .image = 188 } },        { "unet_segmentation", { .image = 64 } },
        { "unet3d_medical", { .image = 64 } },       { "nnunet2d", { .image = 64 } },
        { "ssd300_resnet50", { .image = 300 } },     { "ssd_mobilenet_v1", { .image = 300 } },
        { "ssd_mobilenet_v2", { .image = 300 } },    { "retinanet_resnext50", { .image = 128 } },
        { "ssd320_resnet50_fpn", { .image = 128 } }, { "vnet", { .image = 16 } },
    };
    for (int i = 0; i < QN_COUNT(cases); i++) {
        QnCountRequest r = cases[i].request;
        QnCount forward, step, mixed;
        r.batch = 2;
        count(cases[i].name, &r, &forward);
        r.train = true;
        count(cases[i].name, &r, &step);
        r.low = 1;
        count(cases[i].name, &r, &mixed);
        double times = products(&step) / products(&forward);
        if (!(times > 2 && times < 3.05) || !(step.gradients > 0))
            fail_msg("%s: training is %.3g times the pass forward", cases[i].name, times);
        qn_count_fini(&forward);
        if (products(&mixed) != products(&step))
            fail_msg("%s: mixed precision has other products", cases[i].name);
        qn_count_fini(&step);
        qn_count_fini(&mixed);
    }
}

/* Multiply-adds against figures for images of other sizes than a model's own. */
static void test_published_work(void **state)
{
    static const struct {
        const char *name;
        int64_t height, width;
        int size, value;      /* size[size] is set to value: published for a variant; -1: none */
        double gmacs, within; /* 0: within 1 % */
        const char *source;
        int64_t detections; /* where it is said */
    } cases[] = {
        { "retinanet_R50_1x", 800, 1280, 5, 1, 239.32, 0, "MMDetection 2, retinanet_r50_fpn" },
        { "retinanet_R101_3x", 800, 1280, 5, 1, 315.39, 0, "MMDetection 2, retinanet_r101_fpn" },
        { "faster_r-cnn_R50-FPN_1x", 800, 1280, 5, 0, 207.07, 0, "MMDetection 2" },
        { "faster_r-cnn_R101-FPN_3x", 800, 1280, 5, 0, 283.14, 0, "MMDetection 2" },
        /* means over pictures of COCO */
        { "faster_r-cnn_R50-FPN_1x", 0, 0, -1, 0, 180, 0.02, "Carion et al. 2020, table 1" },
        { "faster_r-cnn_R101-FPN_3x", 0, 0, -1, 0, 246, 0.02, "Carion et al. 2020, table 1" },
        /* with additions of elements, which are no products */
        { "efficientdet_d0", 0, 0, -1, 0, 2.54, 0.02, "Tan et al. 2020, table 2" },
        { "efficientdet_d4", 0, 0, -1, 0, 55, 0.02, "Tan et al. 2020, table 2" },
        { "yolov5n", 0, 0, -1, 0, 4.5 / 2, 0, "Ultralytics" },
        { "yolov5s", 0, 0, -1, 0, 16.5 / 2, 0, "Ultralytics" },
        { "yolov5m", 0, 0, -1, 0, 49.0 / 2, 0, "Ultralytics" },
        { "yolov5l", 0, 0, -1, 0, 109.1 / 2, 0, "Ultralytics" },
        { "yolov5x", 0, 0, -1, 0, 205.7 / 2, 0, "Ultralytics" },
        { "yolov5l6", 640, 640, -1, 0, 111.4 / 2, 0, "Ultralytics" },
        { "yolov5l-seg", 0, 0, -1, 0, 147.7 / 2, 0, "Ultralytics" },
        { "yolov5l_cls", 0, 0, -1, 0, 8.5 / 2, 0.02, "Ultralytics, with norms" },
        { "yolov8n", 0, 0, -1, 0, 8.7 / 2, 0, "Ultralytics" },
        { "yolov8x", 0, 0, -1, 0, 257.8 / 2, 0, "Ultralytics" },
        { "yolov3_416", 0, 0, -1, 0, 65.9 / 2, 0, "Darknet" },
        { "yolov3_spp_608", 0, 0, -1, 0, 141.5 / 2, 0, "Darknet" },
        { "yolov3_tiny_416", 0, 0, -1, 0, 5.6 / 2, 0, "Darknet" },
        { "yolov4_608", 0, 0, -1, 0, 128.5 / 2, 0, "Darknet" },
        { "yolov4_416", 0, 0, -1, 0, 60.1 / 2, 0, "Darknet" },
        { "yolov4_csp_512", 0, 0, -1, 0, 77 / 2.0, 0, "Darknet" },
        { "yolov4_csp_512", 640, 640, -1, 0, 120 / 2.0, 0, "Darknet" },
        { "yolov4_tiny_416", 0, 0, -1, 0, 6.9 / 2, 0, "Darknet" },
        { "yolov4x_mish_640", 0, 0, -1, 0, 221 / 2.0, 0, "Darknet" },
        { "maskrcnn_r50_fpn", 800, 1280, 5, 2, 260.14, 0, "MMDetection 2", 100 },
    };
    QnDevice *d = NULL;
    int wrong = 0;
    assert_ok(qn_device_open_named("null", NULL, &d));
    for (int i = 0; i < QN_COUNT(cases); i++) {
        QnModel m = *model(cases[i].name);
        QnCountRequest r = { .batch = 1, .image = cases[i].height, .width = cases[i].width };
        QnCount c;
        if (cases[i].size >= 0)
            m.size[cases[i].size] = cases[i].value;
        if (cases[i].detections)
            m.size[6] = cases[i].detections;
        assert_ok(qn_count_model(&m, &r, d, &c));
        double off = c.macs / 1e9 / cases[i].gmacs - 1;
        if (!(fabs(off) < (cases[i].within > 0 ? cases[i].within : 0.01))) {
            print_message("%s: %.2f G multiply-adds, %.2f published (%s): %+.2f %%\n",
                          cases[i].name, c.macs / 1e9, cases[i].gmacs, cases[i].source, 100 * off);
            wrong++;
        }
        qn_count_fini(&c);
    }
    qn_device_close(d);
    assert_int_equal(wrong, 0);
}

/* An error says which sizes would do. */
static void test_sizes(void **state)
{
    static const struct {
        const char *name;
        int64_t image;
        const char *text;
    } cases[] = {
        { "yolov4_416", 100, "multiples of 32 pixels" },
        { "nnunet3d", 100, "100 x 100 x 100: this model takes multiples of 32 pixels" },
        { "unet_medical", 100, "at least 188" },
        { "ssd300_resnet50", 256, "at least 257" },
    };
    QnDevice *d = NULL;
    assert_ok(qn_device_open_named("null", NULL, &d));
    for (int i = 0; i < QN_COUNT(cases); i++) {
        QnCountRequest r = { .batch = 1, .image = cases[i].image };
        QnCount c;
        assert_int_equal(qn_count_model(model(cases[i].name), &r, d, &c), QN_ESHAPE);
        assert_non_null(strstr(qn_error_last()->text, cases[i].text));
    }
    qn_device_close(d);
}

static double launches(const QnCount *c)
{
    double sum = 0;
    for (int64_t i = 0; i < c->n_work; i++)
        sum += c->work[i].count;
    return sum;
}

/* A batch that is drawn through two others has the work, and the small kernels of each image, of
 * one that is counted. */
static void test_drawn_batches(void **state)
{
    static const char *const names[] = { "maskrcnn_r50_fpn", "ssd300_resnet50", "3d_unet_kits19" };
    QnDevice *d = NULL;
    assert_ok(qn_device_open_named("null", NULL, &d));
    QnCounts *counts = qn_counts_new(d);
    assert_non_null(counts);
    for (int i = 0; i < QN_COUNT(names); i++) {
        QnCountRequest r = { .batch = 5, .train = i < 2 };
        const QnCount *drawn;
        QnCount counted;
        assert_ok(qn_counts_get(counts, model(names[i]), &r, &drawn));
        assert_ok(qn_count_model(model(names[i]), &r, d, &counted));
        assert_true(fabs(drawn->flops / counted.flops - 1) < 0.01);
        assert_true(fabs(drawn->bytes / counted.bytes - 1) < 0.02);
        assert_true(fabs(launches(drawn) - launches(&counted)) < 0.5);
        qn_count_fini(&counted);
    }
    qn_counts_free(counts);
    qn_device_close(d);
}
