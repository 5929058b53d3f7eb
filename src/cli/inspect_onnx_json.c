#include "cli/inspect_onnx.h"

static const char *const fates[] = { "made", "not_supported", "needs_elements", "not_reached" };

static QnStatus put_values(QnJsonWriter *w, const char *key, const QnOnnxInfo *info, int64_t n,
                           QnArena *arena)
{
    qn_json_key(w, key);
    qn_json_open_array(w);
    for (int64_t i = 0; i < n; i++) {
        const char *type = qn_inspect_onnx_type(info[i].type, arena);
        QN_TRY(type ? QN_OK : QN_ENOMEM);
        qn_json_open_object(w);
        qn_json_put_string(w, "name", info[i].name);
        qn_json_put_string(w, "type", type);
        qn_json_close(w);
    }
    qn_json_close(w);
    return QN_OK;
}

/* A list: keys may come twice in a file. */
static void put_pairs(QnJsonWriter *w, const QnOnnxModel *m)
{
    qn_json_key(w, "opsets");
    qn_json_open_array(w);
    for (int i = 0; i < m->n_opset; i++) {
        qn_json_open_object(w);
        qn_json_put_string(w, "domain", m->opset[i].domain);
        qn_json_put_int(w, "version", m->opset[i].version);
        qn_json_close(w);
    }
    qn_json_close(w);
    qn_json_key(w, "metadata");
    qn_json_open_array(w);
    for (int64_t i = 0; i < m->n_meta; i++) {
        qn_json_open_object(w);
        qn_json_put_string(w, "key", m->meta[2 * i]);
        qn_json_put_string(w, "value", m->meta[2 * i + 1]);
        qn_json_close(w);
    }
    qn_json_close(w);
}

static void put_layer(QnJsonWriter *w, const QnLayer *l)
{
    qn_json_open_object(w);
    qn_json_put_string(w, "name", l->def->name);
    qn_json_put_string(w, "domain", l->def->domain);
    qn_json_put_string(w, "op", l->def->op);
    qn_json_put_string(w, "output", l->def->n_out ? l->def->out[0] : "");
    qn_json_put_string(w, "state", fates[l->fate]);
    if (l->why)
        qn_json_put_string(w, "why", l->why);
    qn_json_put_string(w, "type", l->type);
    qn_json_put_bool(w, "constant", l->is_constant);
    qn_json_put_int(w, "parameters", l->parameters);
    qn_json_put_int(w, "parameter_bytes", l->weights_bytes);
    qn_json_put_double(w, "flops", l->flops);
    qn_json_put_double(w, "bytes_moved", l->moved);
    qn_json_put_int(w, "result_bytes", l->memory);
    qn_json_close(w);
}

static QnStatus put_all(QnJsonWriter *w, const QnInspectOnnx *v)
{
    const QnOnnxModel *m = v->model;
    qn_json_open_object(w);
    qn_json_put_string(w, "path", m->path);
    qn_json_put_string(w, "format", "ONNX");
    qn_json_put_int(w, "ir_version", m->ir_version);
    qn_json_put_string(w, "producer", m->producer ? m->producer : "");
    qn_json_put_string(w, "producer_version", m->producer_version ? m->producer_version : "");
    put_pairs(w, m);
    QN_TRY(put_values(w, "inputs", m->graph->input, m->graph->n_inputs, v->arena));
    QN_TRY(put_values(w, "outputs", m->graph->output, m->graph->n_outputs, v->arena));
    qn_json_key(w, "nodes");
    qn_json_open_array(w);
    for (int64_t i = 0; i < m->graph->n_nodes; i++)
        put_layer(w, &v->layer[i]);
    qn_json_close(w);
    qn_json_put_int(w, "parameters", v->parameters);
    qn_json_put_int(w, "parameter_bytes", v->weights_bytes);
    qn_json_put_double(w, "flops", v->flops);
    qn_json_put_double(w, "bytes_moved", v->moved);
    if (!v->unplanned) {
        qn_json_put_int(w, "planned_peak_bytes", v->memory.planned_peak_bytes);
        qn_json_put_int(w, "planned_values_bytes", v->memory.arena_bytes);
    }
    if (v->assumed[0])
        qn_json_put_string(w, "assumed_dim", v->assumed);
    qn_json_put_int(w, "not_supported", v->n_refused);
    qn_json_put_int(w, "needs_elements", v->n_open);
    qn_json_close(w);
    return qn_json_end(w);
}

QnStatus qn_inspect_onnx_print_json(const QnInspectOnnx *v)
{
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    QnStatus st = put_all(&w, v);
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}
