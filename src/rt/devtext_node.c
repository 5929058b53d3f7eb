/* Any node by the device text of its operator's file: what every backend that compiles text asks.
 */
#include "rt/devtext_impl.h"

/* The type of QN_T: that of the node's 16-bit tensors, if it has any. */
static QnDtype storage_of(const QnNode *n)
{
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const QnValue *v = i < n->n_in ? n->in[i] : &n->out[i - n->n_in];
        if (v && (v->type.dtype == QN_DTYPE_F16 || v->type.dtype == QN_DTYPE_BF16))
            return v->type.dtype;
    }
    return QN_DTYPE_F32;
}

static const char *check_tensors(const QnNode *n)
{
    bool map = n->op->traits & QN_MAP;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const QnValue *v = i < n->n_in ? n->in[i] : &n->out[i - n->n_in];
        if (!v)
            continue;
        if (!qn_devbody_has(n->op, v->type.dtype))
            return "device text computes in f32";
        if (!map && v->type.layout != QN_LAYOUT_PLAIN)
            return "device text reads the plain layout";
    }
    return NULL;
}

const char *qn_devtext_refuses(const QnNode *n)
{
    const char *reason = check_tensors(n);
    if (reason)
        return reason;
    QnDeviceCall call;
    if (n->op->traits & QN_MAP) {
        QnStr text = { 0 };
        QnStatus st = qn_devtext_map(n, &text, &call);
        qn_str_fini(&text);
        return st == QN_OK ? NULL : "a map of it has no device text for these types";
    }
    if (!n->op->device || !n->op->call)
        return "its file has no device text";
    if (n->op->call(n, &call) != QN_OK)
        return "its device text does not cover this case";
    if (!qn_devbody_of(n))
        return NULL;
    QnStr text = { 0 };
    QnStatus st = qn_devtext_product(n, &text);
    qn_str_fini(&text);
    return st == QN_OK ? NULL : "a map of it has no device text for these types or shapes";
}

QnStatus qn_devtext_node(const QnNode *n, QnStr *text, QnDeviceCall *call, QnDtype *storage)
{
    *storage = QN_DTYPE_F32;
    if (n->op->traits & QN_MAP)
        return qn_devtext_map(n, text, call);
    *storage = qn_devbody_of(n) ? n->in[0]->type.dtype : storage_of(n);
    if (qn_devbody_of(n))
        QN_TRY(qn_devtext_product(n, text));
    qn_str_add(text, n->op->device);
    QN_TRY(text->st);
    return n->op->call(n, call);
}
