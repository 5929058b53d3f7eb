/* Runs an ONNX model twice on inputs of ones and says what comes out: onnx MODEL.onnx [BATCH]. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        if ((call) != QN_OK) {                                                                     \
            fprintf(stderr, "%s\n", qn_error_last()->text);                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void set_ones(QnModel *m, int64_t i, int64_t batch)
{
    QnType type;
    TRY(qn_model_input_type(m, i, batch, &type));
    int64_t n = qn_shape_count(&type.shape);
    double *ones = calloc((size_t)n + 1, sizeof *ones);
    void *data = malloc((size_t)qn_type_bytes(&type) + 1); /* kept: the model borrows it */
    if (!ones || !data)
        exit(1);
    for (int64_t k = 0; k < n; k++)
        ones[k] = 1;
    qn_dtype_from_f64(type.dtype, ones, data, n);
    free(ones);
    TRY(qn_model_set(m, qn_model_input_name(m, i), &type, data));
}

int main(int argc, char **argv)
{
    QnDevice *device;
    QnModel *m;
    if (argc < 2) {
        fprintf(stderr, "usage: onnx MODEL.onnx [BATCH]\n");
        return 2;
    }
    TRY(qn_device_open_named("cpu", NULL, &device));
    TRY(qn_model_open(argv[1], device, &m));
    for (int64_t i = 0; qn_model_input_name(m, i); i++)
        set_ones(m, i, argc > 2 ? atoi(argv[2]) : 0);
    TRY(qn_model_run(m)); /* compiles */
    TRY(qn_model_run(m)); /* runs what was compiled */
    for (int64_t i = 0; qn_model_output_name(m, i); i++) {
        char text[QN_TYPE_TEXT_BYTES];
        const void *data;
        QnType type;
        TRY(qn_model_get(m, qn_model_output_name(m, i), &type, &data));
        printf("%s: %s", qn_model_output_name(m, i), qn_type_text(&type, text));
        for (int64_t k = 0; k < qn_shape_count(&type.shape) && k < 4; k++) {
            double v;
            size_t size = qn_dtype_bytes(type.dtype);
            qn_dtype_to_f64(type.dtype, (const char *)data + (size_t)k * size, &v, 1);
            printf(" %g", v);
        }
        printf("\n");
    }
    qn_model_close(m);
    qn_device_close(device);
    return 0;
}
