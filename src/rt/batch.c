#include "rt/batch.h"

#include "rt/devtext.h"
#include "rt/memplan.h"
#include "rt/plan_impl.h"

#include <string.h>

/* A step's launch from text. */
typedef struct Launch {
    QnStr text;
    QnDeviceCall call;
    QnDtype storage;
} Launch;

static void launch_fini(Launch *l)
{
    qn_str_fini(&l->text);
}

/* false: it cannot be part of another launch. */
static bool launch_of(const QnPlanRun *s, Launch *l)
{
    *l = (Launch){ 0 };
    if (!(s->prepared.kernel->flags & QN_KERNEL_TEXT))
        return false;
    if (qn_devtext_node(s->prepared.node, &l->text, &l->call, &l->storage) == QN_OK && l->call.at &&
        l->call.group_size == 0 && !l->call.has_work)
        return true;
    qn_error_clear();
    launch_fini(l);
    return false;
}

static const QnValue *tensor(const QnNode *n, int i)
{
    return i < n->n_out ? &n->out[i] : n->in[i - n->n_out];
}

/* Whether one kernel serves both: its text, and the types of its arguments. */
static bool are_alike(const Launch *a, const QnNode *x, const Launch *b, const QnNode *y)
{
    if (a->storage != b->storage || x->n_in != y->n_in || x->n_out != y->n_out ||
        a->call.n_arg != b->call.n_arg || strcmp(a->call.at, b->call.at) ||
        strcmp(qn_str_text(&a->text), qn_str_text(&b->text)))
        return false;
    for (int i = 0; i < x->n_out + x->n_in; i++) {
        const QnValue *v = tensor(x, i), *w = tensor(y, i);
        if (!v || !w || v->type.dtype != w->type.dtype)
            return false;
    }
    return true;
}

static int64_t row_words(const QnNode *n, const QnDeviceCall *call)
{
    return 1 + n->n_out + n->n_in + call->n_arg;
}

/* Steps from `first` on that are alike: how many. */
static int64_t run_length(const QnPlan *p, int64_t first, const Launch *l)
{
    const QnNode *x = p->steps[first].prepared.node;
    int64_t n = 1;
    for (; first + n < p->n_steps; n++) {
        Launch next;
        if (!launch_of(&p->steps[first + n], &next))
            break;
        bool alike = are_alike(l, x, &next, p->steps[first + n].prepared.node);
        launch_fini(&next);
        if (!alike)
            break;
    }
    return n;
}

static int64_t round_up(int64_t bytes)
{
    return (bytes + QN_ARENA_ALIGN - 1) / QN_ARENA_ALIGN * QN_ARENA_ALIGN;
}

QnStatus qn_batches_find(QnPlan *p, int64_t *bytes)
{
    QnBatches *b = &p->batches;
    if (!p->device->backend->batch_new)
        return QN_OK;
    for (int64_t i = 0; i < p->n_steps;) {
        Launch l;
        if (!launch_of(&p->steps[i], &l)) {
            i++;
            continue;
        }
        QnBatch run = { .first = i, .n = run_length(p, i, &l), .table_offset = round_up(*bytes) };
        run.row_words = row_words(p->steps[i].prepared.node, &l.call);
        launch_fini(&l);
        i += run.n;
        if (run.n == 1)
            continue;
        QN_TRY(QN_GROW(b->items, b->cap, b->n));
        b->items[b->n++] = run;
        *bytes = run.table_offset + run.n * run.row_words * 8;
    }
    return QN_OK;
}

/* ---- what may share a launch ---- */

static const char *address(const QnPlanRun *s, int i)
{
    int n_out = s->prepared.node->n_out;
    return i < n_out ? s->out[i] : s->in[i - n_out];
}

/* Whether a writes what b reads or writes. */
static bool disturbs(const QnPlanRun *a, const QnPlanRun *b)
{
    const QnNode *x = a->prepared.node, *y = b->prepared.node;
    for (int i = 0; i < x->n_out; i++) {
        const char *from = address(a, i), *to = from + qn_type_bytes(&x->out[i].type);
        for (int k = 0; k < y->n_out + y->n_in; k++) {
            const char *at = address(b, k);
            if (at < to && from < at + qn_type_bytes(&tensor(y, k)->type))
                return true;
        }
    }
    return false;
}

static int64_t independent_steps(const QnPlan *p, int64_t first, int64_t most)
{
    for (int64_t n = 1; n < most; n++) {
        for (int64_t i = 0; i < n; i++) {
            const QnPlanRun *a = &p->steps[first + i], *b = &p->steps[first + n];
            if (disturbs(a, b) || disturbs(b, a))
                return n;
        }
    }
    return most;
}

/* ---- text and table ---- */

/* Behind the steps' text: the row of a group by halving, then the call that the row describes. */
static void print_kernel(const QnNode *n, const QnDeviceCall *call, QnStr *s)
{
    int word = 1;
    qn_str_printf(s,
                  "#line 1 \"batch\"\n"
                  "QN_KERNEL qn_batch(QN_GLOBAL const qn_long *table, qn_long n_rows)\n{\n"
                  "qn_long lo = 0, hi = n_rows - 1;\n"
                  "while (lo < hi) {\n"
                  "qn_long mid = (lo + hi + 1) / 2;\n"
                  "if (table[mid * %lld] <= qn_group())\nlo = mid;\nelse\nhi = mid - 1;\n}\n"
                  "QN_GLOBAL const qn_long *row = table + lo * %lld;\n"
                  "%s((qn_group() - row[0]) * qn_group_size() + qn_lid()",
                  (long long)row_words(n, call), (long long)row_words(n, call), call->at);
    for (int i = 0; i < n->n_out + n->n_in; i++)
        qn_str_printf(s, ", (QN_GLOBAL %sqn_%s *)row[%d]", i < n->n_out ? "" : "const ",
                      qn_dtype_name(tensor(n, i)->type.dtype), word++);
    for (int i = 0; i < call->n_arg; i++)
        qn_str_printf(s, call->arg[i].is_float ? ", qn_from_bits((qn_uint)row[%d])" : ", row[%d]",
                      word++);
    qn_str_add(s, ");\n}\n");
}

static int64_t groups_of(const QnDeviceCall *call)
{
    return (call->n_groups + QN_BATCH_ITEMS - 1) / QN_BATCH_ITEMS;
}

static void fill_row(const QnPlanRun *s, const QnDeviceCall *call, int64_t first_group,
                     int64_t *row)
{
    const QnNode *n = s->prepared.node;
    *row++ = first_group;
    for (int i = 0; i < n->n_out + n->n_in; i++)
        *row++ = (int64_t)(intptr_t)address(s, i);
    for (int i = 0; i < call->n_arg; i++) {
        float real = (float)call->arg[i].f;
        uint32_t bits;
        memcpy(&bits, &real, sizeof bits);
        *row++ = call->arg[i].is_float ? (int64_t)bits : call->arg[i].i;
    }
}

typedef struct Table {
    int64_t *words;
    const void **pointers;
    int64_t n_groups, n_pointers;
} Table;

static QnStatus fill_table(const QnPlan *p, const QnBatch *b, Table *t)
{
    const QnNode *n = p->steps[b->first].prepared.node;
    int n_tensors = n->n_out + n->n_in;
    t->words = qn_alloc_array((size_t)(b->n * b->row_words), sizeof *t->words);
    t->pointers = qn_alloc_array((size_t)(b->n * n_tensors), sizeof *t->pointers);
    if (!t->words || !t->pointers)
        return QN_ENOMEM;
    for (int64_t i = 0; i < b->n; i++) {
        const QnPlanRun *s = &p->steps[b->first + i];
        Launch l;
        if (!launch_of(s, &l))
            return qn_fail(QN_ENOMEM, "%s: no memory for its text", s->prepared.node->op->name);
        fill_row(s, &l.call, t->n_groups, t->words + i * b->row_words);
        t->n_groups += groups_of(&l.call);
        launch_fini(&l);
        for (int k = 0; k < n_tensors; k++)
            t->pointers[t->n_pointers++] = address(s, k);
    }
    return QN_OK;
}

/* The launch of a batch whose steps are independent; none if the device refuses. */
static QnStatus make_launch(QnPlan *p, QnBatch *b, Launch *l)
{
    const QnBackend *device = p->device->backend;
    Table t = { 0 };
    char *table = p->constants + b->table_offset;
    QnStatus st = fill_table(p, b, &t);
    if (st == QN_OK)
        st = device->write(p->device, table, t.words, (size_t)(b->n * b->row_words) * 8);
    if (st == QN_OK) {
        QnBatchLaunch launch = { .text = qn_str_text(&l->text),
                                 .storage = l->storage,
                                 .table = table,
                                 .n_rows = b->n,
                                 .n_groups = t.n_groups,
                                 .pointers = t.pointers,
                                 .n_pointers = t.n_pointers };
        if (t.n_groups && device->batch_new(p->device, &launch, &b->launch) != QN_OK)
            qn_error_clear();
    }
    qn_free(t.words);
    qn_free(t.pointers);
    return st;
}

static QnStatus make_batch(QnPlan *p, QnBatch *b)
{
    Launch l;
    if (!launch_of(&p->steps[b->first], &l))
        return QN_OK;
    print_kernel(p->steps[b->first].prepared.node, &l.call, &l.text);
    QnStatus st = l.text.st == QN_OK ? make_launch(p, b, &l) : l.text.st;
    launch_fini(&l);
    return st;
}

/* The part of a run from its step `at` on, as far as its steps are independent. */
static QnBatch part(const QnPlan *p, const QnBatch *run, int64_t at)
{
    QnBatch b = *run;
    b.first += at;
    b.table_offset += at * run->row_words * 8;
    b.n = independent_steps(p, b.first, run->n - at);
    return b;
}

QnStatus qn_batches_make(QnPlan *p)
{
    QnBatches runs = p->batches;
    QnStatus st = QN_OK;
    p->batches = (QnBatches){ 0 };
    for (int64_t i = 0; i < runs.n && st == QN_OK; i++) {
        for (int64_t at = 0; at < runs.items[i].n && st == QN_OK;) {
            QnBatches *b = &p->batches;
            QnBatch next = part(p, &runs.items[i], at);
            at += next.n;
            if (next.n == 1)
                continue;
            st = QN_GROW(b->items, b->cap, b->n);
            if (st == QN_OK)
                st = make_batch(p, &next);
            if (next.launch)
                b->items[b->n++] = next;
        }
    }
    qn_free(runs.items);
    return st;
}

void qn_batches_free(QnPlan *p)
{
    for (int64_t i = 0; i < p->batches.n; i++) {
        if (p->batches.items[i].launch)
            p->device->backend->batch_free(p->device, p->batches.items[i].launch);
    }
    qn_free(p->batches.items);
}

const QnBatch *qn_batch_at(const QnPlan *p, int64_t step)
{
    int64_t lo = 0, hi = p->batches.n;
    while (lo < hi) {
        int64_t mid = (lo + hi) / 2;
        if (p->batches.items[mid].first < step)
            lo = mid + 1;
        else
            hi = mid;
    }
    const QnBatch *b = lo < p->batches.n ? &p->batches.items[lo] : NULL;
    return b && b->first == step ? b : NULL;
}
