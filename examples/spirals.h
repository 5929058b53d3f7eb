/* What train.c and predict.c share: a made-up problem, and the network for it. */
#ifndef SPIRALS_H
#define SPIRALS_H

#include <quern/quern.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLASSES = 3, POINTS = 600, HIDDEN = 64 };

/* Prints what went wrong and ends the program: fine for an example. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        if ((call) != QN_OK) {                                                                     \
            fprintf(stderr, "%s\n", qn_error_last()->text);                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Points of three arms of a spiral, and the arm that each lies on. */
static inline void make_spirals(float x[POINTS][2], int64_t y[POINTS], unsigned seed)
{
    for (int i = 0; i < POINTS; i++) {
        seed = seed * 1664525u + 1013904223u;
        double noise = (double)(seed >> 8) / (1 << 24) - 0.5;
        double r = (double)(i / CLASSES) / (POINTS / CLASSES);
        double angle = 4 * r + 6.2831853 * (i % CLASSES) / CLASSES + 0.4 * noise;
        x[i][0] = (float)(r * cos(angle));
        x[i][1] = (float)(r * sin(angle));
        y[i] = i % CLASSES;
    }
}

/* Scores (n, CLASSES) of points x (n, 2). Parameters are states of the graph: the same names in a
 * graph for training and one for prediction are the same tensors. */
static inline QnValue *build_model(QnGraph *g, QnNet *net, QnValue *x)
{
    QnValue *h = qn_tanh(g, qn_nn_linear(net, "fc1", x, HIDDEN, true));
    h = qn_tanh(g, qn_nn_linear(net, "fc2", h, HIDDEN, true));
    return qn_nn_linear(net, "out", h, CLASSES, true);
}

/* A graph made ready for the device and planned. */
static inline QnPlan *compile(QnGraph *g, QnDevice *d, QnStore *s)
{
    QnPipelineOptions o = { .level = QN_O2,
                            .keep_inputs = true,
                            .keep = qn_device_has_kernel,
                            .keep_ctx = d,
                            .tuned = qn_device_is_tuned,
                            .tuned_ctx = d };
    QnPlan *p;
    TRY(qn_pipeline_run(g, &o));
    TRY(qn_store_add(s, g));
    TRY(qn_store_alloc(s));
    TRY(qn_plan_new(g, d, s, NULL, &p));
    return p;
}

static inline double accuracy(float scores[POINTS][CLASSES], int64_t y[POINTS])
{
    int right = 0;
    for (int i = 0; i < POINTS; i++) {
        int best = 0;
        for (int k = 1; k < CLASSES; k++)
            best = scores[i][k] > scores[i][best] ? k : best;
        right += best == y[i];
    }
    return (double)right / POINTS;
}

#endif
