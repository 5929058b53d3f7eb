/* Builds a graph by hand, prints it, differentiates it, reads it back from its text, and runs both:
 * the gradient of Rosenbrock's function at a few points. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4 };

#define TRY(call)                                                                                  \
    do {                                                                                           \
        if ((call) != QN_OK) {                                                                     \
            fprintf(stderr, "%s\n", qn_error_last()->text);                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* f = (1 - x)^2 + 100 (y - x^2)^2, and its derivatives by x and y. */
static QnGraph *build(void)
{
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(N));
    QnValue *y = qn_input(g, "y", QN_DTYPE_F32, &QN_SHAPE(N));
    QnValue *a = qn_square(g, qn_add_scalar(g, qn_neg(g, x), 1));
    QnValue *b = qn_square(g, qn_sub(g, y, qn_square(g, x)));
    QnValue *f = qn_add(g, a, qn_mul_scalar(g, b, 100));
    QnValue *d[2];
    TRY(qn_grad(g, f, (QnValue *[]){ x, y }, 2, d));
    TRY(qn_graph_output(g, "f", f));
    TRY(qn_graph_output(g, "df/dx", d[0]));
    TRY(qn_graph_output(g, "df/dy", d[1]));
    TRY(qn_graph_check(g));
    return g;
}

static void run(QnGraph *g, QnDevice *d, float out[3][N])
{
    const float x[N] = { 1, 0, -1, 2 }, y[N] = { 1, 0, 1, 3 };
    QnPlan *p;
    TRY(qn_pipeline_run(g, &(QnPipelineOptions){ .level = QN_O2 }));
    TRY(qn_plan_new(g, d, NULL, NULL, &p));
    TRY(qn_plan_write(p, "x", x, sizeof x));
    TRY(qn_plan_write(p, "y", y, sizeof y));
    TRY(qn_plan_run(p));
    TRY(qn_plan_read(p, "f", out[0], sizeof out[0]));
    TRY(qn_plan_read(p, "df/dx", out[1], sizeof out[1]));
    TRY(qn_plan_read(p, "df/dy", out[2], sizeof out[2]));
    for (int i = 0; i < N; i++)
        printf("f(%g, %g) = %g   df/dx = %g   df/dy = %g\n", (double)x[i], (double)y[i],
               (double)out[0][i], (double)out[1][i], (double)out[2][i]);
    qn_plan_free(p);
}

int main(void)
{
    float built[3][N], read[3][N];
    char *text;
    QnDevice *device;
    QnGraph *copy, *g = build();
    TRY(qn_graph_print_text(g, &text));
    fputs(text, stdout);
    TRY(qn_graph_parse(text, strlen(text), qn_op_find, &copy));
    TRY(qn_device_open_named("cpu", NULL, &device));
    run(g, device, built);
    run(copy, device, read);
    qn_device_close(device);
    qn_graph_free(copy);
    qn_graph_free(g);
    qn_free(text);
    return memcmp(built, read, sizeof built) != 0;
}
