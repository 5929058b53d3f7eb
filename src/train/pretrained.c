#include "train/pretrained.h"

#include "io/weights.h"
#include "nn/names.h"
#include "train/checkpoint.h"
#include "train/model.h"
#include "train/run_folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor of the model, and which of the file's fills it. */
typedef struct Target {
    const char *name; /* without "ema." */
    const QnType *type;
    const QnSlot *slot, *ema;   /* one of them may be NULL */
    int64_t source, ema_source; /* in the file; -1: none */
    bool misshapen;
} Target;

typedef struct Load {
    QnSession *s;
    const QnNameMap *map; /* or NULL */
    QnWeights *w;
    const char *path;
    QnArena *arena;
    Target *targets; /* by name */
    int64_t n, cap;
    bool turned; /* the map's matrices are (in, out) in this file */
    QnPretrained *out;
} Load;

/* ---- what the model wants ---- */

static const char *without_ema(const char *name)
{
    return strncmp(name, "ema.", 4) ? name : name + 4;
}

static Target *find_target(const Load *l, const char *name)
{
    int64_t lo = 0, hi = l->n;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        int order = strcmp(l->targets[mid].name, name);
        if (!order)
            return &l->targets[mid];
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static int compare_targets(const void *a, const void *b)
{
    return strcmp(((const Target *)a)->name, ((const Target *)b)->name);
}

static bool is_of_model(const char *name)
{
    return strncmp(name, "optim.", 6) && strncmp(name, "grad.", 5);
}

/* All states but those of the optimizer; averaged weights go with what they average. */
static QnStatus collect_targets(Load *l)
{
    QnStore *store = l->s->store;
    for (int64_t i = 0; i < qn_store_count(store); i++) {
        const QnSlot *slot = qn_store_at(store, i);
        const char *name = qn_slot_name(slot);
        bool averaged = without_ema(name) != name;
        if (!is_of_model(name) || (averaged && qn_store_find(store, name + 4)))
            continue;
        QN_TRY(QN_GROW(l->targets, l->cap, l->n));
        Target *t = &l->targets[l->n++];
        *t = (Target){
            .name = without_ema(name), .type = qn_slot_type(slot), .source = -1, .ema_source = -1
        };
        const char *ema = averaged ? name : qn_arena_printf(l->arena, "ema.%s", name);
        if (!ema)
            return QN_ENOMEM;
        t->slot = averaged ? NULL : slot;
        t->ema = qn_store_find(store, ema);
    }
    if (l->n)
        qsort(l->targets, (size_t)l->n, sizeof *l->targets, compare_targets);
    return QN_OK;
}

/* ---- what the file has ---- */

/* The model's tensor that a name of the file's means. */
static Target *resolve(const Load *l, const char *name, bool *ignored)
{
    char now[QN_NAME_BYTES];
    *ignored = false;
    if (strlen(name) >= sizeof now)
        return NULL;
    memcpy(now, name, strlen(name) + 1);
    for (int steps = 0; steps < 8; steps++) { /* prefixes in prefixes end somewhere */
        Target *t = find_target(l, now);
        if (t || !qn_names_step(l->map, now, now, ignored) || *ignored)
            return t;
    }
    return NULL;
}

/* The first rows of a longer table of positions will do. */
static bool is_cut(const Load *l, const Target *t, const QnSafetensor *w)
{
    const QnShape *s = &t->type->shape;
    return l->map && l->map->by_position && !strcmp(l->map->by_position, t->name) && s->rank > 0 &&
           w->rank == s->rank && w->dims[0] > s->dim[0];
}

static bool fits(const Load *l, const Target *t, const QnSafetensor *w)
{
    const QnShape *s = &t->type->shape;
    bool turned = l->turned && qn_names_is_turned(l->map, t->name) && s->rank == 2;
    if (w->rank != s->rank || (w->dtype != t->type->dtype &&
                               !(qn_dtype_is_float(w->dtype) && qn_dtype_is_float(t->type->dtype))))
        return false;
    for (int i = is_cut(l, t, w); i < s->rank; i++)
        if (w->dims[i] != s->dim[turned ? 1 - i : i])
            return false;
    return true;
}

static const char *type_text(const QnSafetensor *w, char text[QN_TYPE_TEXT_BYTES])
{
    QnType t = { .dtype = w->dtype, .shape = qn_shape_make(w->rank, w->dims) };
    return qn_type_text(&t, text);
}

static void report_unexpected(Load *l, const QnSafetensor *w, const char *why)
{
    char text[QN_TYPE_TEXT_BYTES];
    l->out->unexpected++;
    qn_str_printf(&l->out->text, "unexpected  %s %s%s\n", w->name, type_text(w, text), why);
}

/* The other name of a tensor that has two, if `name` is one of them. */
static const char *tied_name(const Load *l, const char *name)
{
    for (int i = 0; l->map && l->map->tied[0] && i < 2; i++)
        if (!strcmp(l->map->tied[i], name))
            return l->map->tied[1 - i];
    return NULL;
}

/* Whether the witness lies in the file the other way round. */
static void find_turned(Load *l)
{
    const Target *t = l->map && l->map->witness ? find_target(l, l->map->witness) : NULL;
    for (int64_t i = 0; t && i < qn_weights_count(l->w); i++) {
        bool ignored;
        const QnSafetensor *w = qn_weights_at(l->w, i);
        const QnShape *s = &t->type->shape;
        if (w->rank == 2 && w->dims[0] == s->dim[1] && w->dims[1] == s->dim[0] &&
            w->dims[0] != w->dims[1] && resolve(l, w->name, &ignored) == t)
            l->turned = true;
    }
}

/* Two tensors of the file that must be one: a head that the model ties to its embedding. */
static QnStatus are_equal(Load *l, int64_t a, int64_t b, bool *out)
{
    const QnSafetensor *x = qn_weights_at(l->w, a), *y = qn_weights_at(l->w, b);
    *out = x->dtype == y->dtype && x->rank == y->rank && x->bytes == y->bytes &&
           !memcmp(x->dims, y->dims, sizeof x->dims);
    if (!*out)
        return QN_OK;
    void *p = qn_alloc(x->bytes + 1), *q = qn_alloc(y->bytes + 1);
    QnStatus st = p && q ? qn_weights_read(l->w, a, p) : QN_ENOMEM;
    if (st == QN_OK)
        st = qn_weights_read(l->w, b, q);
    if (st == QN_OK)
        *out = !memcmp(p, q, x->bytes);
    qn_free(p);
    qn_free(q);
    return st;
}

/* The model's end of a rule chain, without the model: "transformer.lm_head.weight" is lm_head's. */
static bool ends_as(const Load *l, const char *name, const char *want)
{
    char now[QN_NAME_BYTES];
    bool ignored = false;
    if (strlen(name) >= sizeof now)
        return false;
    memcpy(now, name, strlen(name) + 1);
    for (int steps = 0; steps < 8 && strcmp(now, want); steps++)
        if (!qn_names_step(l->map, now, now, &ignored) || ignored)
            return false;
    return !strcmp(now, want);
}

/* A tensor that the model knows under its other name alone. */
static QnStatus take_tied(Load *l, int64_t i, bool *taken)
{
    const QnSafetensor *w = qn_weights_at(l->w, i);
    *taken = false;
    for (int k = 0; l->map && l->map->tied[0] && k < 2; k++) {
        Target *t = find_target(l, l->map->tied[1 - k]);
        if (!t || !ends_as(l, w->name, l->map->tied[k]))
            continue;
        if (t->source < 0)
            t->source = i;
        return are_equal(l, t->source, i, taken);
    }
    return QN_OK;
}

static QnStatus match_sources(Load *l)
{
    for (int tied = 0; tied < 2; tied++) /* first all that go by their own name */
        for (int64_t i = 0; i < qn_weights_count(l->w); i++) {
            const QnSafetensor *w = qn_weights_at(l->w, i);
            const char *name = without_ema(w->name);
            bool ignored, taken = false;
            Target *t = resolve(l, name, &ignored);
            if (ignored || (t != NULL) == tied)
                continue;
            if (tied) {
                QN_TRY(take_tied(l, i, &taken));
                if (!taken)
                    report_unexpected(l, w, "");
            } else if (name != w->name) {
                t->ema_source = i;
            } else if (t->source >= 0) {
                report_unexpected(l, w, ", which another tensor is already");
            } else {
                t->source = i;
            }
        }
    return QN_OK;
}

static void check_targets(Load *l)
{
    char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
    for (int64_t i = 0; i < l->n; i++) {
        Target *t = &l->targets[i];
        const char *other = tied_name(l, t->name);
        const Target *o = other ? find_target(l, other) : NULL;
        if (t->source < 0 && o) /* a head of its own that begins as the embedding */
            t->source = o->source;
        if (t->source < 0)
            t->source = t->ema_source;
        if (t->source < 0) {
            l->out->missing++;
            qn_str_printf(&l->out->text, "missing     %s %s\n", t->name, qn_type_text(t->type, b));
            continue;
        }
        const QnSafetensor *w = qn_weights_at(l->w, t->source);
        if (t->ema_source >= 0 && !fits(l, t, qn_weights_at(l->w, t->ema_source)))
            t->ema_source = -1;
        t->misshapen = !fits(l, t, w);
        if (t->misshapen) {
            l->out->misshapen++;
            qn_str_printf(&l->out->text, "other shape %s is %s, the model has %s %s\n", w->name,
                          type_text(w, a), t->name, qn_type_text(t->type, b));
        } else {
            l->out->taken++;
        }
    }
}

/* ---- filling ---- */

static void turn(const void *from, void *to, int64_t rows, int64_t columns, size_t item)
{
    const char *src = from;
    char *dst = to;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            memcpy(dst + (size_t)(c * rows + r) * item, src + (size_t)(r * columns + c) * item,
                   item);
}

static QnStatus fill_slot(Load *l, const Target *t, int64_t source, const QnSlot *slot)
{
    const QnSafetensor *w = qn_weights_at(l->w, source);
    size_t wide = sizeof(double) * (size_t)w->count;
    char *a = qn_alloc(QN_MAX(wide, w->bytes) + 1), *b = qn_alloc(QN_MAX(wide, w->bytes) + 1);
    QnStatus st = a && b ? qn_weights_read(l->w, source, a) : QN_ENOMEM;
    if (st != QN_OK)
        goto done;
    if (l->turned && w->rank == 2 && qn_names_is_turned(l->map, t->name)) {
        turn(a, b, w->dims[0], w->dims[1], qn_dtype_bytes(w->dtype));
        memcpy(a, b, w->bytes);
    }
    if (w->dtype != t->type->dtype) {
        qn_dtype_to_f64(w->dtype, a, (double *)(void *)b, w->count);
        qn_dtype_from_f64(t->type->dtype, (const double *)(void *)b, a, w->count);
    }
    st = qn_store_write(l->s->store, slot, a);
done:
    qn_free(a);
    qn_free(b);
    return st;
}

static QnStatus fill_all(Load *l)
{
    for (int64_t i = 0; i < l->n; i++) {
        const Target *t = &l->targets[i];
        int64_t average = t->ema_source >= 0 ? t->ema_source : t->source;
        if (t->source < 0 || t->misshapen)
            continue;
        if (t->slot)
            QN_TRY(fill_slot(l, t, t->source, t->slot));
        if (t->ema)
            QN_TRY(fill_slot(l, t, average, t->ema));
    }
    return QN_OK;
}

static QnStatus mismatch(const Load *l)
{
    const QnPretrained *p = l->out;
    const char *first = qn_str_text(&p->text);
    return qn_fail(QN_ESHAPE,
                   "%s does not fit the model: missing %" PRId64 ", unexpected %" PRId64
                   ", of another shape %" PRId64 " (the first: %.*s); nothing was changed; "
                   "--init-partial takes the %" PRId64 " that fit",
                   l->path, p->missing, p->unexpected, p->misshapen,
                   (int)QN_MIN(strcspn(first, "\n"), (size_t)300), first, p->taken);
}

static QnStatus load(Load *l, bool partial)
{
    char folder[QN_RUN_PATH_BYTES];
    QnPretrained *p = l->out;
    QN_TRY(qn_run_folder_weights(l->path, folder));
    QN_TRY(qn_checkpoint_verify(folder));
    QN_TRY(qn_weights_open(folder, &l->w));
    snprintf(p->format, sizeof p->format, "%s", qn_weights_format(l->w));
    QN_TRY(collect_targets(l));
    find_turned(l);
    QN_TRY(match_sources(l));
    check_targets(l);
    QN_TRY(p->text.st);
    if (!partial && p->missing + p->unexpected + p->misshapen)
        return mismatch(l);
    if (!p->taken)
        return qn_fail(QN_ESHAPE, "%s: none of its %" PRId64 " tensors fits the model", l->path,
                       qn_weights_count(l->w));
    return fill_all(l);
}

QnStatus qn_pretrained_load(QnSession *s, const char *path, bool partial, QnPretrained *out)
{
    *out = (QnPretrained){ 0 };
    Load l = { .s = s, .map = qn_model_names(s->recipe->model), .path = path, .out = out };
    l.arena = qn_arena_new();
    QnStatus st = l.arena ? load(&l, partial) : QN_ENOMEM;
    qn_weights_close(l.w);
    qn_free(l.targets);
    qn_arena_free(l.arena);
    return st;
}

void qn_pretrained_fini(QnPretrained *p)
{
    qn_str_fini(&p->text);
}
