#include "train/checkpoint.h"

#include "base/json.h"
#include "io/safetensors.h"
#include "train/run_folder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FORMAT_VERSION = 1, INDEX_LIMIT = 1 << 20, MOST_TRIES = 8 };

/* ---- writing ---- */

static QnStatus write_model(const char *path, const QnStore *store)
{
    QnSafetensor *t = qn_alloc_array((size_t)store->n + 1, sizeof *t);
    QnSafetensorsWriter *w = NULL;
    void *bytes = NULL;
    QnStatus st = t ? QN_OK : QN_ENOMEM;
    if (st)
        goto done;
    size_t most = 1;
    for (int64_t i = 0; i < store->n; i++) {
        const QnSlot *slot = &store->slots[i];
        t[i] = (QnSafetensor){ .name = slot->name,
                               .dtype = slot->type.dtype,
                               .rank = slot->type.shape.rank };
        memcpy(t[i].dims, slot->type.shape.dim, sizeof t[i].dims);
        most = QN_MAX(most, (size_t)slot->bytes);
    }
    if (!(bytes = qn_alloc(most)))
        QN_TRY_DONE(QN_ENOMEM);
    QnSafetensorsText meta = { "format", "quern" };
    QN_TRY_DONE(qn_safetensors_create(path, t, store->n, &meta, 1, &w));
    for (int64_t i; (i = qn_safetensors_next(w)) >= 0;) {
        QN_TRY_DONE(qn_store_read(store, &store->slots[i], bytes));
        QN_TRY_DONE(qn_safetensors_write(w, bytes, (size_t)store->slots[i].bytes));
    }
    st = qn_safetensors_commit(w);
    w = NULL;
done:
    qn_safetensors_discard(w);
    qn_free(bytes);
    qn_free(t);
    return st;
}

static QnStatus file_digest(const char *path, char hex[QN_SHA256_HEX])
{
    QnFileMap map;
    unsigned char digest[QN_SHA256_BYTES];
    QnSha256 sha;
    QN_TRY(qn_file_map(path, &map));
    qn_sha256_init(&sha);
    qn_sha256_update(&sha, map.data, map.bytes);
    qn_sha256_final(&sha, digest);
    qn_sha256_hex(digest, hex);
    qn_file_unmap(&map);
    return QN_OK;
}

static QnStatus write_index(const char *path, const char *digest, const QnProgress *p)
{
    QnStr text = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &text, 2);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "format", "quern checkpoint");
    qn_json_put_int(&w, "version", FORMAT_VERSION);
    qn_json_put_string(&w, "model_sha256", digest);
    qn_json_put_int(&w, "update", p->update);
    qn_json_put_int(&w, "epoch", (int64_t)p->position.epoch);
    qn_json_put_int(&w, "step", p->position.step);
    qn_json_put_int(&w, "samples", p->samples);
    qn_json_put_double(&w, "best_metric", p->best_metric);
    qn_json_put_int(&w, "best_update", p->best_update);
    qn_json_put_int(&w, "bad_evals", p->bad_evals);
    if (p->fell_back)
        qn_json_put_bool(&w, "fell_back_to_fp32", true);
    qn_json_put_double(&w, "train_seconds", p->train_seconds);
    qn_json_put_double(&w, "loss_sum", p->loss_sum);
    qn_json_put_int(&w, "loss_n", p->loss_n);
    qn_json_put_int(&w, "seed", (int64_t)p->seed);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        st = qn_file_write_atomic(path, qn_str_text(&text), text.n);
    qn_str_fini(&text);
    return st;
}

static QnStatus write_folder(const char *folder, const QnStore *store, const QnProgress *p)
{
    char path[QN_RUN_PATH_BYTES], digest[QN_SHA256_HEX];
    QN_TRY(qn_file_make_dirs(folder));
    QN_TRY(qn_run_folder_join(path, folder, "model.safetensors"));
    QN_TRY(write_model(path, store));
    QN_TRY(file_digest(path, digest));
    QN_TRY(qn_run_folder_join(path, folder, "index.json"));
    QN_TRY(write_index(path, digest, p));
    return qn_file_sync_dir(folder);
}

/* Writes beside `final` and moves it there; an older folder of that name gives way at the end. */
static QnStatus write_and_place(const char *final, const QnStore *store, const QnProgress *p)
{
    char fresh[QN_RUN_PATH_BYTES], old[QN_RUN_PATH_BYTES];
    snprintf(fresh, sizeof fresh, "%.4000s.part", final);
    snprintf(old, sizeof old, "%.4000s.old", final);
    qn_run_folder_remove(fresh);
    qn_run_folder_remove(old);
    QnStatus st = write_folder(fresh, store, p);
    if (st == QN_OK && qn_file_exists(final))
        st = qn_file_rename(final, old);
    if (st == QN_OK)
        st = qn_file_rename(fresh, final);
    if (st != QN_OK) {
        QnError error = *qn_error_last();
        if (!qn_file_exists(final) && qn_file_exists(old))
            rename(old, final);
        qn_run_folder_remove(fresh);
        return qn_error_adopt(&error);
    }
    qn_run_folder_remove(old);
    return QN_OK;
}

QnStatus qn_checkpoint_save(const char *run, const QnStore *store, const QnProgress *p,
                            int64_t keep)
{
    char folder[QN_RUN_PATH_BYTES];
    qn_run_folder_at(folder, run, p->update);
    QN_TRY(write_and_place(folder, store, p));
    return qn_run_folder_prune(run, p->update, keep);
}

QnStatus qn_checkpoint_save_best(const char *run, const QnStore *store, const QnProgress *p)
{
    char folder[QN_RUN_PATH_BYTES];
    QN_TRY(qn_run_folder_join(folder, run, "best"));
    return write_and_place(folder, store, p);
}

/* ---- reading ---- */

static QnStatus need_int(const QnJson *o, const char *key, int64_t *out)
{
    const QnJson *v;
    QN_TRY(qn_json_need(o, key, QN_JSON_INT, &v));
    *out = v->integer;
    return QN_OK;
}

static double number_or_nan(const QnJson *o, const char *key)
{
    const QnJson *v = qn_json_find(o, key);
    bool is = v && (v->type == QN_JSON_INT || v->type == QN_JSON_DOUBLE);
    return is ? qn_json_double(v) : NAN;
}

static QnStatus parse_index(const QnJson *o, QnProgress *p, const char **digest)
{
    const QnJson *v;
    int64_t version, epoch, seed;
    v = qn_json_find(o, "format");
    if (!v || v->type != QN_JSON_STRING || strcmp(v->string, "quern checkpoint"))
        return qn_fail(QN_EFORMAT, "is no index of a Quern checkpoint");
    QN_TRY(need_int(o, "version", &version));
    if (version != FORMAT_VERSION)
        return qn_fail(QN_EFORMAT, "checkpoint version %lld; this Quern reads %d",
                       (long long)version, FORMAT_VERSION);
    QN_TRY(qn_json_need(o, "model_sha256", QN_JSON_STRING, &v));
    *digest = v->string;
    QN_TRY(need_int(o, "update", &p->update));
    QN_TRY(need_int(o, "epoch", &epoch));
    QN_TRY(need_int(o, "step", &p->position.step));
    QN_TRY(need_int(o, "samples", &p->samples));
    QN_TRY(need_int(o, "best_update", &p->best_update));
    QN_TRY(need_int(o, "bad_evals", &p->bad_evals));
    QN_TRY(need_int(o, "loss_n", &p->loss_n));
    QN_TRY(need_int(o, "seed", &seed));
    if (p->update < 0 || epoch < 0 || p->position.step < 0 || p->samples < 0 || p->loss_n < 0 ||
        p->bad_evals < 0 || p->best_update < 0 || p->best_update > p->update)
        return qn_fail(QN_EFORMAT, "a count is out of range");
    p->position.epoch = (uint64_t)epoch;
    p->seed = (uint64_t)seed;
    p->best_metric = number_or_nan(o, "best_metric");
    v = qn_json_find(o, "fell_back_to_fp32"); /* older ones have none */
    p->fell_back = v && v->type == QN_JSON_BOOL && v->boolean;
    QN_TRY(qn_json_need(o, "train_seconds", QN_JSON_DOUBLE, &v));
    p->train_seconds = qn_json_double(v);
    p->loss_sum = number_or_nan(o, "loss_sum"); /* a loss in fp16 may have been no number */
    return QN_OK;
}

static QnStatus read_index(const char *folder, QnArena *arena, QnProgress *p, const char **digest)
{
    char path[QN_RUN_PATH_BYTES], *text;
    size_t bytes;
    const QnJson *o;
    QN_TRY(qn_run_folder_join(path, folder, "index.json"));
    QN_TRY(qn_file_read(path, INDEX_LIMIT, &text, &bytes));
    QnStatus st = qn_json_parse(arena, text, bytes, &o);
    qn_free(text);
    if (st == QN_OK)
        st = parse_index(o, p, digest);
    return st == QN_OK ? QN_OK : qn_fail_prefix("%s", path);
}

static QnStatus load_slot(const QnSafetensors *file, QnStore *store, const QnSlot *slot, void *tmp)
{
    const QnSafetensor *t = qn_safetensors_find(file, slot->name);
    const QnShape *s = &slot->type.shape;
    if (!t)
        return qn_fail(QN_ENOTFOUND, "holds no state '%s'", slot->name);
    if (t->dtype != slot->type.dtype || t->rank != s->rank ||
        memcmp(t->dims, s->dim, (size_t)s->rank * sizeof *t->dims)) {
        char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
        QnType got = { .dtype = t->dtype, .shape = qn_shape_make(t->rank, t->dims) };
        return qn_fail(QN_ESHAPE, "state '%s' is %s, the model has %s", slot->name,
                       qn_type_text(&got, a), qn_type_text(&slot->type, b));
    }
    memcpy(tmp, t->data, t->bytes);
    return qn_store_write(store, slot, tmp);
}

static QnStatus load_model(const char *path, QnStore *store)
{
    QnSafetensors *file = NULL;
    size_t most = 1;
    for (int64_t i = 0; i < store->n; i++)
        most = QN_MAX(most, (size_t)store->slots[i].bytes);
    void *tmp = qn_alloc(most);
    QnStatus st = tmp ? qn_safetensors_open(path, &file) : QN_ENOMEM;
    for (int64_t i = 0; st == QN_OK && i < store->n; i++) {
        st = load_slot(file, store, &store->slots[i], tmp);
        if (st != QN_OK)
            qn_fail_prefix("%s", path);
    }
    qn_safetensors_free(file);
    qn_free(tmp);
    return st;
}

static QnStatus check_digest(const char *folder, const char *expected, char path[QN_RUN_PATH_BYTES])
{
    char digest[QN_SHA256_HEX];
    QN_TRY(qn_run_folder_join(path, folder, "model.safetensors"));
    QN_TRY(file_digest(path, digest));
    if (!strcmp(digest, expected))
        return QN_OK;
    return qn_fail(QN_EFORMAT, "%s: its SHA-256 is not the one in index.json; the file is damaged",
                   path);
}

QnStatus qn_checkpoint_load(const char *folder, QnStore *store, QnProgress *p)
{
    QnArena *arena = qn_arena_new();
    char path[QN_RUN_PATH_BYTES];
    const char *expected = NULL;
    QnProgress progress = { 0 };
    QnStatus st = arena ? read_index(folder, arena, &progress, &expected) : QN_ENOMEM;
    if (st == QN_OK)
        st = check_digest(folder, expected, path);
    if (st == QN_OK)
        st = load_model(path, store);
    if (st == QN_OK && p)
        *p = progress;
    qn_arena_free(arena);
    return st;
}

/* A folder with another program's index.json, or none, is no checkpoint. */
static bool is_checkpoint(const char *folder, QnArena *arena)
{
    char path[QN_RUN_PATH_BYTES], *text;
    size_t bytes;
    const QnJson *o = NULL;
    if (qn_run_folder_join(path, folder, "index.json") != QN_OK || !qn_file_exists(path) ||
        qn_file_read(path, INDEX_LIMIT, &text, &bytes) != QN_OK)
        return false;
    QnStatus st = qn_json_parse(arena, text, bytes, &o);
    const QnJson *v = st == QN_OK ? qn_json_find(o, "format") : NULL;
    qn_free(text);
    return v && v->type == QN_JSON_STRING && !strcmp(v->string, "quern checkpoint");
}

QnStatus qn_checkpoint_verify(const char *folder)
{
    QnArena *arena = qn_arena_new();
    char path[QN_RUN_PATH_BYTES];
    const char *expected = NULL;
    QnProgress progress = { 0 };
    QnStatus st = arena ? QN_OK : QN_ENOMEM;
    if (st == QN_OK && is_checkpoint(folder, arena)) {
        st = read_index(folder, arena, &progress, &expected);
        if (st == QN_OK)
            st = check_digest(folder, expected, path);
    }
    qn_arena_free(arena);
    return st;
}

/* Adds this thread's error to the list of what was passed over. */
static void pass_over(QnArena *arena, const char **skipped)
{
    *skipped = qn_arena_printf(arena, "%s%s%s", *skipped ? *skipped : "", *skipped ? "; " : "",
                               qn_error_last()->text);
}

static QnStatus load_newest(const char *run, QnStore *store, QnProgress *p, QnArena *arena,
                            bool *found, const char **skipped)
{
    char folder[QN_RUN_PATH_BYTES];
    int64_t *list, n;
    *found = false;
    QN_TRY(qn_run_folder_list(run, &list, &n));
    QnStatus st = QN_OK;
    for (int64_t i = 0; i < n && !*found; i++) {
        qn_run_folder_at(folder, run, list[i]);
        st = qn_checkpoint_load(folder, store, p);
        *found = st == QN_OK;
        if (st == QN_ENOMEM)
            break;
        if (st != QN_OK)
            pass_over(arena, skipped);
    }
    qn_free(list);
    return *found || n == 0 ? QN_OK : st; /* all are broken: the oldest one's error */
}

QnStatus qn_checkpoint_resume(const char *run, QnStore *store, QnProgress *p, int64_t keep,
                              QnArena *arena, bool *found, const char **skipped)
{
    char best[QN_RUN_PATH_BYTES];
    *skipped = NULL;
    qn_run_folder_tidy(run);
    QN_TRY(load_newest(run, store, p, arena, found, skipped));
    if (*found)
        return qn_run_folder_prune(run, p->update, keep);
    if (qn_run_folder_join(best, run, "best") == QN_OK)
        qn_run_folder_remove(best); /* of a run that never came to its first checkpoint */
    return QN_OK;
}

static QnStatus load_best(const char *run, QnStore *store, QnProgress *p, QnArena *arena,
                          const char **skipped)
{
    char folder[QN_RUN_PATH_BYTES];
    bool found;
    *skipped = NULL;
    QN_TRY(qn_run_folder_best(run, folder, &found));
    if (found) {
        QnStatus st = qn_checkpoint_load(folder, store, p);
        if (st == QN_OK || st == QN_ENOMEM)
            return st;
        pass_over(arena, skipped);
    }
    QN_TRY(load_newest(run, store, p, arena, &found, skipped));
    return found      ? QN_OK
           : *skipped ? qn_fail(QN_EFORMAT, "%s", *skipped)
                      : qn_fail(QN_ENOTFOUND, "%s holds no checkpoint; is it a run's folder?", run);
}

/* A run that trains on removes and replaces what is being read. */
QnStatus qn_checkpoint_load_run(const char *run, QnStore *store, QnProgress *p, QnArena *arena,
                                const char **skipped)
{
    QnStatus st;
    for (int tries = 0;; tries++) {
        uint64_t seen = qn_run_folder_stamp(run);
        st = load_best(run, store, p, arena, skipped);
        if (!*skipped || st == QN_ENOMEM || tries == MOST_TRIES || qn_run_folder_stamp(run) == seen)
            return st;
    }
}

bool qn_checkpoint_exists(const char *run)
{
    char folder[QN_RUN_PATH_BYTES];
    int64_t *list = NULL, n = 0;
    bool found = false;
    if (qn_run_folder_best(run, folder, &found) == QN_OK && !found &&
        qn_run_folder_list(run, &list, &n) == QN_OK)
        found = n > 0;
    qn_free(list);
    return found;
}

static bool is_model_state(const char *name)
{
    return strncmp(name, "optim.", 6) && strncmp(name, "grad.", 5);
}

QnStatus qn_checkpoint_digest(const QnStore *store, char hex[QN_SHA256_HEX])
{
    QnSha256 sha;
    unsigned char digest[QN_SHA256_BYTES];
    qn_sha256_init(&sha);
    for (int64_t i = 0; i < store->n; i++) {
        const QnSlot *slot = &store->slots[i];
        if (!is_model_state(slot->name))
            continue;
        void *bytes = qn_alloc((size_t)slot->bytes + 1);
        QnStatus st = bytes ? qn_store_read(store, slot, bytes) : QN_ENOMEM;
        if (st == QN_OK) {
            qn_sha256_update(&sha, slot->name, strlen(slot->name) + 1);
            qn_sha256_update(&sha, bytes, (size_t)slot->bytes);
        }
        qn_free(bytes);
        QN_TRY(st);
    }
    qn_sha256_final(&sha, digest);
    qn_sha256_hex(digest, hex);
    return QN_OK;
}
