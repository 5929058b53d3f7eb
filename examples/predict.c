/* Loads the weights that train.c has saved and draws what the network thinks: predict [FILE]. */
#include "spirals.h"

enum { WIDTH = 60, HEIGHT = 20 }; /* 1,200 points in two batches of POINTS */

static QnGraph *build(void)
{
    QnGraph *g = qn_graph_new();
    QnNet *net = qn_net_new(g, false);
    if (!g || !net)
        exit(1);
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(POINTS, 2));
    TRY(qn_graph_output(g, "scores", build_model(g, net, x)));
    TRY(qn_graph_check(g));
    qn_net_free(net);
    return g;
}

static void draw(QnPlan *plan)
{
    static float x[POINTS][2], scores[POINTS][CLASSES];
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        x[i % POINTS][0] = (float)(i % WIDTH) / (WIDTH - 1) * 2 - 1;
        x[i % POINTS][1] = 1 - (float)(i / WIDTH) / (HEIGHT - 1) * 2; /* rows of text go down */
        if (i % POINTS != POINTS - 1)
            continue;
        TRY(qn_plan_write(plan, "x", x, sizeof x));
        TRY(qn_plan_run(plan));
        TRY(qn_plan_read(plan, "scores", scores, sizeof scores));
        for (int k = 0; k < POINTS; k++) {
            const float *s = scores[k];
            putchar(s[0] > s[1] && s[0] > s[2] ? '.' : s[1] > s[2] ? 'o' : '#');
            if (k % WIDTH == WIDTH - 1)
                putchar('\n');
        }
    }
}

int main(int argc, char **argv)
{
    static float x[POINTS][2], scores[POINTS][CLASSES];
    static int64_t y[POINTS];
    make_spirals(x, y, 99); /* points that training has not seen */

    QnDevice *device;
    TRY(qn_device_open_named("cpu", NULL, &device));
    QnStore *store = qn_store_new(device);
    QnGraph *graph = build();
    QnPlan *plan = compile(graph, device, store);
    int64_t n_loaded;
    TRY(qn_store_load(store, argc > 1 ? argv[1] : "spirals.safetensors", &n_loaded));
    if (n_loaded != qn_store_count(store)) {
        fprintf(stderr, "the file lacks some of the model's tensors\n");
        return 1;
    }

    draw(plan);
    TRY(qn_plan_write(plan, "x", x, sizeof x));
    TRY(qn_plan_run(plan));
    TRY(qn_plan_read(plan, "scores", scores, sizeof scores));
    double share = accuracy(scores, y);
    printf("accuracy on new points %.3f\n", share);

    qn_plan_free(plan);
    qn_store_free(store);
    qn_device_close(device);
    qn_graph_free(graph);
    return share > 0.9 ? 0 : 1;
}
