/* Writes a trained model, or an ONNX model in our words, as an ONNX file. */
#include "cli/model_dims.h"
#include "cli/onnx_plan.h"
#include "cli/run_setup.h"

#include "base/file.h"

#include "onnx/onnx.h"
#include "rt/store.h"
#include "train/model_file.h"

#include <stdio.h>
#include <string.h>

enum { OUTPUT, OPSET, BATCH, FOLD, DIM, OUTSIDE, RANDOM, FORCE, JSON };

static const QnOption options[] = {
    [OUTPUT] = { "--output", 'o', QN_OPTION_TEXT, "FILE.onnx", "where to; needed", 0, 0 },
    [OPSET] = { "--opset", 0, QN_OPTION_INT, "N", "17 to 23; default 23", QN_ONNX_OPSET_LEAST,
                QN_ONNX_OPSET_NEWEST },
    [BATCH] = { "--batch", 0, QN_OPTION_INT, "N", "a fixed batch; default: of any size", 1,
                1 << 24 },
    [DIM] = QN_CLI_DIM_OPTION,
    [FOLD] = { "--fold", 0, QN_OPTION_FLAG, NULL,
               "put batch norms into the convolutions before them", 0, 0 },
    [OUTSIDE] = { "--external-data", 0, QN_OPTION_FLAG, NULL,
                  "weights in FILE.onnx.data (over 2 GB: always)", 0, 0 },
    [RANDOM] = { "--random-weights", 0, QN_OPTION_INT, "SEED",
                 "ONNX: random numbers for weights that ConstantOfShape makes", 0, INT64_MAX },
    [FORCE] = { "--force", 0, QN_OPTION_FLAG, NULL, "replace an existing file", 0, 0 },
    [JSON] = { "--json", 0, QN_OPTION_FLAG, NULL, "a JSON object on stdout", 0, 0 },
};

static QnStatus done(const QnArgs *a, const char *what, int64_t count)
{
    if (!a->json) {
        printf("%s: %lld %s\n", a->text[OUTPUT], (long long)count, what);
        return QN_OK;
    }
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "file", a->text[OUTPUT]);
    qn_json_put_int(&w, what, count);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}

static QnOnnxExportOptions export_options(const QnArgs *a)
{
    return (QnOnnxExportOptions){ .opset = a->text[OPSET] ? a->number[OPSET] : 0,
                                  .outside = a->text[OUTSIDE] != NULL,
                                  .fold = a->text[FOLD] != NULL };
}

static int64_t count_weights(const QnGraph *g)
{
    int64_t n = 0;
    QN_GRAPH_EACH(g, node)
    if (node->op->traits & QN_STATE)
        n += qn_shape_count(&node->out[0].type.shape);
    return n;
}

static QnStatus write_graph(const QnArgs *a, QnGraph *g, const QnStore *store,
                            const QnOnnxExportOptions *o)
{
    QnStatus st = qn_onnx_export(g, store, o, a->text[OUTPUT]);
    return st == QN_EUNSUPPORTED ? qn_fail_prefix("%s", a->positional[0]) : st;
}

/* A model that came from an ONNX file goes back as that file with other weights, or, where opset,
 * batch or folding are asked for, as a graph of ours. */
static QnStatus export_again(const QnArgs *a, const QnSession *s)
{
    QN_TRY(qn_model_file_write(s->file, s->store, a->text[OUTPUT], a->text[OUTSIDE] != NULL));
    return done(a, "weights", qn_model_file_count(s->file));
}

static QnStatus export_run(const QnArgs *a)
{
    static const char *const small = "train.eval.batch=1";
    QnSetup s;
    QnGraph *g = NULL;
    QnOnnxExportOptions o = export_options(a);
    QN_TRY(qn_setup_open_weights(&s, a->positional[0], &small, 1));
    qn_setup_warn_skipped(&s, &a->log);
    o.name = s.recipe->name;
    if (s.session->file && !a->text[OPSET] && !a->text[BATCH] && !a->text[FOLD]) {
        QnStatus again = export_again(a, s.session);
        qn_setup_close(&s);
        return again;
    }
    int64_t batch = a->text[BATCH] ? a->number[BATCH] : s.session->file ? 1 : 0;
    QnStatus st = qn_session_model(s.session, batch, &g);
    if (st == QN_OK)
        st = write_graph(a, g, s.session->store, &o);
    if (st == QN_OK)
        st = done(a, "weights", count_weights(g));
    qn_graph_free(g);
    qn_setup_close(&s);
    return st;
}

/* Same nodes, other weights. */
static QnStatus randomize(const QnArgs *a, QnOnnxModel *m)
{
    int64_t count;
    QN_TRY(qn_onnx_randomize(m, (uint64_t)a->number[RANDOM], &count));
    if (count == 0)
        return qn_fail(QN_EUSAGE, "%s: no weight of it is made by ConstantOfShape", m->path);
    QN_TRY(qn_onnx_write(m, a->text[OUTPUT], a->text[OUTSIDE] != NULL));
    return done(a, "random_weights", count);
}

static QnStatus export_imported(const QnArgs *a, const QnOnnxModel *m, QnDevice *d)
{
    QnGraph *g = NULL;
    QnCliDims dims;
    QN_TRY(qn_cli_dims(a, DIM, m, &dims));
    QnOnnxImportOptions i = { .states = true,
                              .batch = a->text[BATCH] ? a->number[BATCH] : 0,
                              .dim = dims.name,
                              .length = dims.length,
                              .n_dim = dims.n };
    QnOnnxExportOptions o = export_options(a);
    QnStore *store = qn_store_new(d);
    QnStatus st = store ? qn_onnx_import(m, d, &i, &g, NULL) : QN_ENOMEM;
    if (st == QN_OK)
        st = qn_store_add(store, g);
    if (st == QN_OK)
        st = qn_store_alloc(store);
    if (st == QN_OK)
        st = qn_onnx_fill(m, store);
    o.name = m->graph->name[0] ? m->graph->name : NULL;
    if (st == QN_OK)
        st = write_graph(a, g, store, &o);
    if (st == QN_OK)
        st = done(a, "weights", count_weights(g));
    qn_store_free(store);
    qn_graph_free(g);
    return st;
}

static QnStatus export_file(const QnArgs *a)
{
    QnOnnxModel *m;
    QnDevice *d = NULL;
    QN_TRY(qn_onnx_read(a->positional[0], &m));
    QnStatus st = QN_OK;
    if (a->text[RANDOM]) {
        st = randomize(a, m);
    } else {
        st = qn_cli_device(NULL, 0, false, &d);
        if (st == QN_OK)
            st = export_imported(a, m, d);
    }
    qn_device_close(d);
    qn_onnx_free(m);
    return st;
}

static int run(QnArgs *a)
{
    bool is_file = qn_cli_is_onnx(a->positional[0]);
    QnStatus st = QN_OK;
    if (!a->text[OUTPUT])
        st = qn_fail(QN_EUSAGE, "export needs a file to write: --output model.onnx");
    else if (!a->text[FORCE] && qn_file_exists(a->text[OUTPUT]))
        st = qn_fail(QN_EUSAGE, "%s is there already; --force replaces it", a->text[OUTPUT]);
    else if (a->text[RANDOM] && !is_file)
        st = qn_fail(QN_EUSAGE, "--random-weights is for ONNX models");
    else if (a->text[DIM] && (!is_file || a->text[RANDOM]))
        st = qn_fail(QN_EUSAGE, "--dim is for ONNX models that are written in our words");
    if (st == QN_OK)
        st = is_file ? export_file(a) : export_run(a);
    return st == QN_OK ? QN_EXIT_OK : qn_cli_fail_model(a, NULL);
}

const QnCommand qn_cmd_export = {
    .name = "export",
    .summary = "Write a trained model as an ONNX file",
    .usage = "RUN|MODEL.onnx -o FILE.onnx [options]",
    .examples = "  quern export runs/fashion-mnist-demo -o demo.onnx\n"
                "  quern export runs/gpt -o gpt.onnx --opset 17 --batch 1\n"
                "  quern export light_resnet50.onnx --random-weights 1 -o resnet50.onnx\n"
                "  quern export model.onnx --dim batch=1 --dim seq=128 -o fixed.onnx\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
