#include "rt/select.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

QnChoices *qn_choices_new(void)
{
    QnChoices *c = qn_alloc(sizeof *c);
    if (!c)
        return NULL;
    c->arena = qn_arena_new();
    if (!c->arena) {
        qn_free(c);
        return NULL;
    }
    return c;
}

void qn_choices_free(QnChoices *c)
{
    if (!c)
        return;
    qn_free(c->items);
    qn_arena_free(c->arena);
    qn_free(c);
}

/* Index of the key, or where it would go. */
static int64_t lower_bound(const QnChoices *c, const char *key, bool *found)
{
    int64_t lo = 0, hi = c->n;
    while (lo < hi) {
        int64_t mid = (lo + hi) / 2;
        if (strcmp(c->items[mid].key, key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *found = lo < c->n && !strcmp(c->items[lo].key, key);
    return lo;
}

QnStatus qn_choices_set(QnChoices *c, const char *key, const char *kernel, double ns)
{
    bool found;
    int64_t i = lower_bound(c, key, &found);
    const char *name = qn_arena_strdup(c->arena, kernel);
    if (!name)
        return QN_ENOMEM;
    if (!found) {
        QN_TRY(QN_GROW(c->items, c->cap, c->n));
        const char *copy = qn_arena_strdup(c->arena, key);
        if (!copy)
            return QN_ENOMEM;
        memmove(&c->items[i + 1], &c->items[i], (size_t)(c->n - i) * sizeof *c->items);
        c->n++;
        c->items[i].key = copy;
    }
    c->items[i].kernel = name;
    c->items[i].ns = ns;
    return QN_OK;
}

const QnChoice *qn_choices_find(const QnChoices *c, const char *key)
{
    bool found;
    int64_t i = lower_bound(c, key, &found);
    return found ? &c->items[i] : NULL;
}

const char *qn_select_key(const QnDevice *d, const QnNode *n, char buf[QN_SELECT_KEY_BYTES])
{
    int used = snprintf(buf, QN_SELECT_KEY_BYTES, "%s.%d %016" PRIx64 " %s/%d%s", n->op->name,
                        n->op->version, qn_attr_hash(n->op, n->attr), d->env.isa, d->env.n_threads,
                        d->env.strict ? "/strict" : "");
    for (int i = 0; i < n->n_in + n->n_out && used < QN_SELECT_KEY_BYTES; i++) {
        const QnValue *v = i < n->n_in ? n->in[i] : &n->out[i - n->n_in];
        char type[QN_TYPE_TEXT_BYTES];
        used += snprintf(buf + used, (size_t)(QN_SELECT_KEY_BYTES - used), "%s%s",
                         i == n->n_in ? "->" : " ", v ? qn_type_text(&v->type, type) : "-");
    }
    return buf;
}

const char *qn_select_reason(const QnDevice *d, const QnKernel *k, const QnNode *n)
{
    if (k->op && k->op != n->op)
        return "another operator's";
    if (d->env.strict && !(k->flags & QN_KERNEL_ANY_THREADS))
        return "its result may depend on the thread count, and determinism is strict";
    return k->accepts ? k->accepts(n, &d->env) : NULL;
}

static QnStatus fail_no_kernel(const QnDevice *d, const QnNode *n)
{
    char list[512] = "";
    size_t used = 0;
    for (int i = 0; i < d->backend->n_kernels && used < sizeof list - 1; i++) {
        const QnKernel *k = d->backend->kernels[i];
        if (k->op == n->op || (!k->op && used == 0)) {
            int w = snprintf(list + used, sizeof list - used, "%s%s: %s", used ? "; " : "", k->name,
                             qn_select_reason(d, k, n));
            used += QN_MIN((size_t)w, sizeof list - used);
        }
    }
    return qn_fail(QN_EUNSUPPORTED, "node %s%s%s: no kernel of %s can run it (%s)", n->op->name,
                   n->name ? " at " : "", n->name ? n->name : "", d->backend->name,
                   used ? list : "none is written for it");
}

QnStatus qn_select(const QnDevice *d, const QnNode *n, const QnChoices *choices,
                   const QnKernel **out)
{
    const QnChoice *choice = NULL;
    if (choices) {
        char key[QN_SELECT_KEY_BYTES];
        choice = qn_choices_find(choices, qn_select_key(d, n, key));
    }
    const QnKernel *best = NULL;
    for (int i = 0; i < d->backend->n_kernels; i++) {
        const QnKernel *k = d->backend->kernels[i];
        bool chosen = choice && !strcmp(choice->kernel, k->name);
        if ((k->op && k->op != n->op) || (!chosen && best && best->rank >= k->rank))
            continue;
        if (qn_select_reason(d, k, n))
            continue;
        best = k;
        if (chosen)
            break;
    }
    *out = best;
    return best ? QN_OK : fail_no_kernel(d, n);
}

bool qn_device_has_kernel(void *device, const QnNode *n)
{
    const QnDevice *d = device;
    for (int i = 0; i < d->backend->n_kernels; i++) {
        const QnKernel *k = d->backend->kernels[i];
        bool its_own = k->op ? k->op == n->op : k->rank > 0; /* the reference is nobody's own */
        if (its_own && !qn_select_reason(d, k, n))
            return true;
    }
    return false;
}

bool qn_device_is_tuned(void *device, const QnNode *n)
{
    const QnKernel *k;
    return qn_select(device, n, NULL, &k) == QN_OK && k->rank > 10;
}

/* -1: no kernel. */
static int best_rank(const QnDevice *d, const QnNode *n)
{
    int best = -1;
    for (int i = 0; i < d->backend->n_kernels; i++) {
        const QnKernel *k = d->backend->kernels[i];
        if (k->rank > best && (!k->op || k->op == n->op) && !qn_select_reason(d, k, n))
            best = k->rank;
    }
    return best;
}

bool qn_device_prefers(void *device, const QnNode *one, const QnNode *part)
{
    const QnDevice *d = device;
    int rank = best_rank(d, one);
    return rank > 0 && rank >= best_rank(d, part);
}
