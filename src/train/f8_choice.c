#include "train/f8_choice.h"

#include "ops/ops.h"
#include "pass/precision.h"
#include "pass/rewrite.h"
#include "train/precision_auto.h"

#include <stdio.h>
#include <string.h>

/* What stands for kernels in the choices. */
#define BY_F8    "fp8"
#define BY_BF16  "bf16"
#define RECORDED "fp8 layer " /* a run's own, by name */

enum { KEY_BYTES = 512 };

bool qn_f8_choice_is_asked(const QnRecipe *r)
{
    return (r->precision == QN_PRECISION_FP8 && r->fp8 == QN_F8_FASTER) ||
           (r->precision == QN_PRECISION_AUTO && r->precision_auto.fp8 == QN_F8_FASTER);
}

static const char *name_of(const QnNode *n)
{
    const char *weight = qn_auto_weight_of(n);
    return weight ? weight : n->name ? n->name : n->op->name;
}

/* ---- keys ---- */

/* A measurement holds for devices of one name. */
static const char *measured_key(QnDevice *d, const QnF8Product *p, char key[KEY_BYTES])
{
    QnDeviceInfo info;
    if (qn_device_info(d, &info) != QN_OK)
        info.name[0] = '\0';
    snprintf(key, KEY_BYTES, "fp8 %lldx%lldx%lld%s%s %s/%d%s %s", (long long)p->m, (long long)p->k,
             (long long)p->n, p->trans_b ? " transposed" : "", p->bias ? " bias" : "", d->env.isa,
             d->env.n_threads, d->env.strict ? "/strict" : "", info.name);
    return key;
}

static const char *recorded_key(const char *name, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, RECORDED "%.400s", name);
    return key;
}

/* false: c has no answer. */
static bool look_up(const QnChoices *c, const char *key, bool *by_f8)
{
    const QnChoice *found = c ? qn_choices_find(c, key) : NULL;
    if (found)
        *by_f8 = !strcmp(found->kernel, BY_F8);
    return found != NULL;
}

/* ---- of a graph ---- */

static QnStatus add_product(QnF8Choice *f, const QnNode *n, QnDevice *d, const QnChoices *c)
{
    char key[KEY_BYTES];
    const char *name = name_of(n);
    for (int64_t i = 0; i < f->n; i++) { /* what reads one weight twice is decided on once */
        if (!strcmp(f->items[i].name, name))
            return QN_OK;
    }
    QN_TRY(QN_GROW(f->items, f->cap, f->n));
    const QnShape *a = &n->in[0]->type.shape, *y = &n->out[0].type.shape;
    QnF8Product p = { .name = qn_arena_strdup(f->arena, name),
                      .m = y->dim[0],
                      .n = y->dim[1],
                      .k = a->dim[1],
                      .trans_b = qn_rewrite_bool(n, "trans_b"),
                      .bias = n->n_in > 2 && n->in[2] };
    if (!p.name)
        return QN_ENOMEM;
    p.is_recorded = look_up(c, recorded_key(name, key), &p.by_f8);
    p.is_measured = !p.is_recorded && look_up(c, measured_key(d, &p, key), &p.by_f8);
    f->items[f->n++] = p;
    return QN_OK;
}

QnStatus qn_f8_choice_new(const QnGraph *g, QnDevice *d, const QnChoices *c, QnF8Choice **out)
{
    QnF8Choice *f = qn_alloc(sizeof *f);
    if (!f)
        return QN_ENOMEM;
    *f = (QnF8Choice){ .arena = qn_arena_new() };
    QnStatus st = f->arena ? QN_OK : QN_ENOMEM;
    QN_GRAPH_EACH(g, n)
    {
        if (st == QN_OK && qn_precision_takes_f8(n))
            st = add_product(f, n, d, c);
    }
    if (st == QN_OK)
        *out = f;
    else
        qn_f8_choice_free(f);
    return st;
}

void qn_f8_choice_free(QnF8Choice *f)
{
    if (!f)
        return;
    qn_arena_free(f->arena);
    qn_free(f->items);
    qn_free(f);
}

bool qn_f8_choice_of(const QnF8Choice *f, const QnChoices *c, const QnNode *n)
{
    char key[KEY_BYTES];
    bool by_f8 = false;
    if (!qn_precision_takes_f8(n))
        return false;
    const char *name = name_of(n);
    for (int64_t i = 0; f && i < f->n; i++) {
        if (!strcmp(f->items[i].name, name))
            return f->items[i].by_f8;
    }
    return look_up(c, recorded_key(name, key), &by_f8) && by_f8;
}

/* ---- a run's own ---- */

QnStatus qn_f8_choice_record(const QnF8Choice *f, QnChoices *c)
{
    char key[KEY_BYTES];
    for (int64_t i = 0; f && i < f->n; i++) {
        const QnF8Product *p = &f->items[i];
        QN_TRY(qn_choices_set(c, recorded_key(p->name, key), p->by_f8 ? BY_F8 : BY_BF16, 0));
    }
    return QN_OK;
}

QnStatus qn_f8_choice_recall(const QnChoices *run, QnChoices *c)
{
    for (int64_t i = 0; i < run->n; i++) {
        const QnChoice *x = &run->items[i];
        if (!strncmp(x->key, RECORDED, strlen(RECORDED)))
            QN_TRY(qn_choices_set(c, x->key, x->kernel, x->ns));
    }
    return QN_OK;
}

void qn_f8_choice_tell(const QnF8Choice *f, char *text, size_t bytes)
{
    int64_t recorded = 0, measured = 0, by_f8 = 0;
    for (int64_t i = 0; i < f->n; i++) {
        recorded += f->items[i].is_recorded;
        measured += f->items[i].is_measured;
        by_f8 += f->items[i].by_f8;
    }
    if (f->n > 0 && recorded + measured == 0)
        snprintf(text, bytes,
                 "no product is in 8 bits: none of %lld has been measured on this device, which "
                 "quern tune RECIPE does",
                 (long long)f->n);
    else
        snprintf(text, bytes, "%lld of %lld products that could be in 8 bits are, %s",
                 (long long)by_f8, (long long)f->n,
                 recorded ? "as when the run began" : "by what was measured on this device");
}

QnStatus qn_f8_choice_set(QnDevice *d, QnChoices *c, QnF8Product *p, const QnF8Time *t)
{
    char key[KEY_BYTES];
    p->is_measured = true;
    p->by_f8 = !t->is_emulated && t->fp8_ns <= QN_F8_GAIN * t->bf16_ns;
    return qn_choices_set(c, measured_key(d, p, key), p->by_f8 ? BY_F8 : BY_BF16,
                          p->by_f8 ? t->fp8_ns : t->bf16_ns);
}
