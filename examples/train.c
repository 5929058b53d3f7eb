/* Trains a small network and saves its weights: train [FILE]. The whole training step, from the
 * points to the update of the last parameter, is one graph and one plan. */
#include "spirals.h"

enum { STEPS = 400 };

static QnGraph *build_step(void)
{
    QnGraph *g = qn_graph_new();
    QnNet *net = qn_net_new(g, true);
    if (!g || !net)
        exit(1);
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(POINTS, 2));
    QnValue *y = qn_input(g, "y", QN_DTYPE_I64, &QN_SHAPE(POINTS));
    QnValue *lr = qn_input(g, "lr", QN_DTYPE_F32, &(QnShape){ 0 });
    QnValue *step = qn_input(g, "step", QN_DTYPE_I64, &(QnShape){ 0 });

    QnValue *scores = build_model(g, net, x);
    QnValue *loss = qn_cross_entropy(g, scores, y, 0, -100, QN_REDUCTION_MEAN);
    TRY(qn_graph_output(g, "scores", scores));
    TRY(qn_graph_output(g, "loss", loss));

    QnOptim adamw = { .name = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8 };
    TRY(qn_optim_minimise(net, &adamw, loss, lr, step, NULL));
    TRY(qn_graph_check(g)); /* one check for all that was built */
    qn_net_free(net);
    return g;
}

int main(int argc, char **argv)
{
    static float x[POINTS][2], scores[POINTS][CLASSES];
    static int64_t y[POINTS];
    make_spirals(x, y, 1);

    QnDevice *device;
    TRY(qn_device_open_named("cpu", NULL, &device));
    QnStore *store = qn_store_new(device);
    QnGraph *graph = build_step();
    QnPlan *plan = compile(graph, device, store);
    TRY(qn_store_fill(store, 42));
    printf("memory planned: %lld bytes\n", (long long)qn_plan_memory(plan).planned_peak_bytes);

    float loss, lr = 0.01f;
    for (int64_t step = 0; step < STEPS; step++) {
        TRY(qn_plan_write(plan, "x", x, sizeof x));
        TRY(qn_plan_write(plan, "y", y, sizeof y));
        TRY(qn_plan_write(plan, "lr", &lr, sizeof lr));
        TRY(qn_plan_write(plan, "step", &step, sizeof step));
        TRY(qn_plan_run(plan));
        TRY(qn_plan_read(plan, "loss", &loss, sizeof loss));
        if (step % 100 == 0 || step == STEPS - 1)
            printf("step %3lld  loss %.4f\n", (long long)step, (double)loss);
    }
    TRY(qn_plan_read(plan, "scores", scores, sizeof scores));
    double share = accuracy(scores, y);
    printf("accuracy %.3f\n", share);
    TRY(qn_store_save(store, NULL, argc > 1 ? argv[1] : "spirals.safetensors"));

    qn_plan_free(plan);
    qn_store_free(store);
    qn_device_close(device);
    qn_graph_free(graph);
    return share > 0.95 ? 0 : 1;
}
