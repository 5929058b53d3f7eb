/* Residual nets. size: depth, groups, group width, reduction of squeeze-and-excitation. */
#include "plan/models.h"

static QnValue *build(QnNet *net, const QnModel *m, QnValue *x, int64_t layers)
{
    (void)layers;
    QnResnetSpec spec = { .depth = (int)m->size[0],
                          .outputs = 1000,
                          .groups = m->size[1],
                          .group_width = m->size[2],
                          .squeeze = m->size[3] };
    return qn_nn_resnet(net, x, &spec);
}

static const QnFamily resnet = { .name = "resnet", .image = 224, .build = build };

static const QnModel models[] = {
    { "resnet18", &resnet, { 18 }, 11.690, "torchvision 0.19, after He et al. 2016", 1.814 },
    { "resnet34", &resnet, { 34 }, 21.798, "torchvision 0.19, after He et al. 2016", 3.664 },
    { "resnet50", &resnet, { 50 }, 25.557, "torchvision 0.19, after He et al. 2016", 4.089 },
    { "resnet50_v1.5", &resnet, { 50 }, 25.557, "torchvision 0.19, after He et al. 2016", 4.089 },
    { "resnet101", &resnet, { 101 }, 44.549, "torchvision 0.19, after He et al. 2016", 7.801 },
    { "resnet152", &resnet, { 152 }, 60.193, "torchvision 0.19, after He et al. 2016", 11.514 },
    { "resnet200", &resnet, { 200 }, 64.67, "timm 1.0, after He et al. 2016", 15.007 },
    { "resnext50_32x4d",
      &resnet,
      { 50, 32, 4 },
      25.029,
      "torchvision 0.19, Xie et al. 2017",
      4.23 },
    { "resnext101_32x4d", &resnet, { 101, 32, 4 }, 44.18, "timm 1.0, Xie et al. 2017", 8.01 },
    { "resnext101_32x8d",
      &resnet,
      { 101, 32, 8 },
      88.791,
      "torchvision 0.19, Xie et al. 2017",
      16.414 },
    { "wide_resnet50_2",
      &resnet,
      { 50, 1, 128 },
      68.883,
      "torchvision 0.19, Zagoruyko and Komodakis 2016",
      11.398 },
    { "seresnet50", &resnet, { 50, 0, 0, 16 }, 28.09, "timm 1.0, Hu et al. 2018", 4.09 },
    { "se_resnext101_32x4d", &resnet, { 101, 32, 4, 16 }, 48.96, "timm 1.0, Hu et al. 2018", 8.02 },
};

const QnModelList qn_models_resnet = { models, QN_COUNT(models) };
