/* Checkpoints: all states come back bit for bit; what is damaged is passed over and named; only the
 * newest few stay; and what a killed process left is put right. labels: train */
#include "toy.h"

#include "base/file.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECIPE                                                                                     \
    TOY_HEAD TOY_DATA ", " TOY_MLP ", 'train': {'epochs': 1, 'batch': 10, 'lr': 0.1, "             \
                      "'optimizer': {'name': 'adamw', 'weight_decay': 0.1}, 'ema': 0.5}}"

static Toy toy;
static char run_folder[512];

static int group_setup(void **state)
{
    toy_images("a", 40);
    toy_images("b", 20);
    TOY_OPEN(&toy, toy_recipe("r.json", RECIPE), NULL);
    return 0;
}

static int group_teardown(void **state)
{
    toy_close(&toy);
    return 0;
}

static int setup(void **state)
{
    char command[600];
    snprintf(run_folder, sizeof run_folder, "%s", temp_path("run"));
    snprintf(command, sizeof command, "rm -rf %s", run_folder);
    return system(command);
}

static const char *in_run(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "run/%s", name);
    return temp_path(path);
}

/* Every state filled with numbers that depend on `salt`. */
static void fill(uint32_t salt)
{
    for (int64_t i = 0; i < toy.session->store->n; i++) {
        const QnSlot *slot = &toy.session->store->slots[i];
        float *x = malloc((size_t)slot->bytes);
        for (int64_t k = 0; k < slot->bytes / 4; k++)
            x[k] = (float)toy_noise(salt * 1000003 + (uint32_t)(i * 4099 + k)) * 1e-9f;
        assert_ok(qn_store_write(toy.session->store, slot, x));
        free(x);
    }
}

static void assert_filled(uint32_t salt)
{
    for (int64_t i = 0; i < toy.session->store->n; i++) {
        const QnSlot *slot = &toy.session->store->slots[i];
        float *x = malloc((size_t)slot->bytes);
        assert_ok(qn_store_read(toy.session->store, slot, x));
        for (int64_t k = 0; k < slot->bytes / 4; k++)
            assert_true(x[k] ==
                        (float)toy_noise(salt * 1000003 + (uint32_t)(i * 4099 + k)) * 1e-9f);
        free(x);
    }
}

static QnProgress progress_at(int64_t update)
{
    return (QnProgress){ .update = update,
                         .position = { .epoch = 3, .step = 2 },
                         .samples = update * 10,
                         .best_metric = 1.0 / 3,
                         .best_update = update,
                         .bad_evals = 1,
                         .train_seconds = 0.1,
                         .loss_sum = 2.0 / 7,
                         .loss_n = 4,
                         .seed = UINT64_MAX - 1 };
}

/* Saves states filled with the update's number. */
static void save(int64_t update, int64_t keep)
{
    QnProgress p = progress_at(update);
    fill((uint32_t)update);
    assert_ok(qn_checkpoint_save(run_folder, toy.session->store, &p, keep));
}

static int64_t resume(char skipped[1024])
{
    QnArena *arena = qn_arena_new();
    QnProgress p = { .update = -1 };
    bool found;
    const char *text;
    fill(999);
    QnStatus st = qn_checkpoint_resume(run_folder, toy.session->store, &p, 2, arena, &found, &text);
    snprintf(skipped, 1024, "%s", text ? text : "");
    qn_arena_free(arena);
    if (st != QN_OK)
        return -2;
    return found ? p.update : -1;
}

/* Turns one byte of a file. */
static void damage(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    int c = fgetc(f);
    fseek(f, -1, SEEK_CUR);
    fputc(c ^ 0x40, f);
    fclose(f);
}

static void test_states_cover_all(void **state)
{
    static const char *const names[] = { "fc1.weight", "ema.fc1.weight", "optim.m.fc1.weight",
                                         "optim.v.out.bias" };
    for (int i = 0; i < QN_COUNT(names); i++)
        assert_non_null(qn_store_find(toy.session->store, names[i]));
}

static void test_round_trip(void **state)
{
    char skipped[1024];
    QnProgress p, want = progress_at(7);
    save(7, 2);
    assert_int_equal(resume(skipped), 7);
    assert_string_equal(skipped, "");
    assert_filled(7);
    assert_ok(qn_checkpoint_load(in_run("checkpoints/00000007"), toy.session->store, &p));
    assert_int_equal(p.position.epoch, 3);
    assert_int_equal(p.position.step, 2);
    assert_int_equal(p.samples, 70);
    assert_true(p.best_metric == want.best_metric && p.loss_sum == want.loss_sum);
    assert_true(p.train_seconds == want.train_seconds && p.seed == want.seed);
    assert_int_equal(p.bad_evals, 1);
    assert_int_equal(p.loss_n, 4);
}

static void test_no_best_yet(void **state)
{
    QnProgress p = progress_at(1), q;
    p.best_metric = p.loss_sum = NAN;
    assert_ok(qn_checkpoint_save(run_folder, toy.session->store, &p, 2));
    assert_ok(qn_checkpoint_load(in_run("checkpoints/00000001"), toy.session->store, &q));
    assert_true(isnan(q.best_metric) && isnan(q.loss_sum));
}

static void test_keeps_the_newest(void **state)
{
    for (int64_t u = 1; u <= 5; u++)
        save(u, 2);
    assert_false(qn_file_exists(in_run("checkpoints/00000003")));
    assert_true(qn_file_exists(in_run("checkpoints/00000004/index.json")));
    assert_true(qn_file_exists(in_run("checkpoints/00000005/index.json")));
}

static void test_nothing_to_resume(void **state)
{
    char skipped[1024];
    assert_int_equal(resume(skipped), -1);
    assert_false(qn_checkpoint_exists(run_folder));
}

static void test_damage_is_passed_over(void **state)
{
    char skipped[1024];
    static const struct {
        const char *file, *words;
        long at;
    } cases[] = {
        { "checkpoints/00000002/model.safetensors", "SHA-256", -1 },
        { "checkpoints/00000002/model.safetensors", "SHA-256", 3 },
        { "checkpoints/00000002/index.json", "index.json", 0 },
    };
    for (int i = 0; i < QN_COUNT(cases); i++) {
        save(1, 2);
        save(2, 2);
        damage(in_run(cases[i].file), cases[i].at);
        assert_int_equal(resume(skipped), 1);
        assert_contains(skipped, "00000002");
        assert_contains(skipped, cases[i].words);
        assert_filled(1);
        /* the way is free for the run that comes to 2 again, even if it keeps one alone */
        assert_false(qn_file_exists(in_run("checkpoints/00000002")));
    }
}

static void test_missing_and_short_files(void **state)
{
    char skipped[1024];
    save(1, 3);
    save(2, 3);
    save(3, 3);
    assert_int_equal(unlink(in_run("checkpoints/00000003/index.json")), 0);
    assert_int_equal(truncate(in_run("checkpoints/00000002/model.safetensors"), 100), 0);
    assert_int_equal(resume(skipped), 1);
    assert_contains(skipped, "00000003/index.json");
    assert_contains(skipped, "00000002/model.safetensors");
    assert_filled(1);
}

static void test_all_damaged(void **state)
{
    char skipped[1024];
    save(1, 2);
    damage(in_run("checkpoints/00000001/model.safetensors"), -1);
    assert_int_equal(resume(skipped), -2);
    assert_contains(qn_error_last()->text, "00000001");
    assert_true(qn_file_exists(in_run("checkpoints/00000001"))); /* it may be all there is */
}

static void test_index_of_another_kind(void **state)
{
    static const char *const texts[] = {
        "{}", "[]", "{\"format\": \"quern checkpoint\", \"version\": 99}",
        "{\"format\": \"quern checkpoint\", \"version\": 1, \"model_sha256\": \"x\", "
        "\"update\": -1, \"epoch\": 0, \"step\": 0, \"samples\": 0, \"best_update\": 0, "
        "\"bad_evals\": 0, \"loss_n\": 0, \"seed\": 0, \"train_seconds\": 0, \"loss_sum\": 0}"
    };
    for (int i = 0; i < QN_COUNT(texts); i++) {
        save(1, 2);
        temp_file("run/checkpoints/00000001/index.json", texts[i], strlen(texts[i]));
        assert_fails(qn_checkpoint_load(in_run("checkpoints/00000001"), toy.session->store, NULL),
                     QN_EFORMAT, "index.json");
    }
}

/* The loader names state and both shapes where the model has changed. */
static void test_other_model(void **state)
{
    Toy other;
    save(1, 2);
    TOY_OPEN(&other, temp_path("r.json"), "model.hidden=[13]", NULL);
    assert_fails(qn_checkpoint_load(in_run("checkpoints/00000001"), other.session->store, NULL),
                 QN_ESHAPE, "fc1");
    toy_close(&other);
    TOY_OPEN(&other, temp_path("r.json"), "model.hidden=[12, 12]", NULL);
    assert_fails(qn_checkpoint_load(in_run("checkpoints/00000001"), other.session->store, NULL),
                 QN_ENOTFOUND, "fc2");
    toy_close(&other);
}

/* Killed between two steps of putting a checkpoint in place. */
static void test_leftovers(void **state)
{
    char skipped[1024];
    save(1, 2);
    save(2, 2);
    assert_int_equal(rename(in_run("checkpoints/00000002"), in_run("checkpoints/00000002.old")), 0);
    mkdir(in_run("checkpoints/00000002.part"), 0777);
    temp_file("run/checkpoints/00000002.part/model.safetensors.tmp-1-0", "x", 1);
    assert_int_equal(resume(skipped), 2);
    assert_filled(2);
    assert_string_equal(skipped, "");
    assert_false(qn_file_exists(in_run("checkpoints/00000002.part")));
    assert_false(qn_file_exists(in_run("checkpoints/00000002.old")));
    mkdir(in_run("checkpoints/00000002.old"), 0777); /* its successor is in place */
    assert_int_equal(resume(skipped), 2);
    assert_false(qn_file_exists(in_run("checkpoints/00000002.old")));
}

/* An unfinished folder of the same name does not leave its files in the next one. */
static void test_part_is_not_reused(void **state)
{
    qn_file_make_dirs(in_run("checkpoints/00000003.part"));
    temp_file("run/checkpoints/00000003.part/model.safetensors.tmp-1-0", "x", 1);
    save(3, 2);
    assert_false(qn_file_exists(in_run("checkpoints/00000003/model.safetensors.tmp-1-0")));
}

static void test_foreign_files_stay(void **state)
{
    char skipped[1024];
    for (int64_t u = 1; u <= 2; u++)
        save(u, 5);
    temp_file("run/checkpoints/notes.txt", "x", 1);
    mkdir(in_run("checkpoints/3-tries"), 0777);
    temp_file("run/checkpoints/00000001/mine.txt", "x", 1);
    save(3, 1);
    assert_true(qn_file_exists(in_run("checkpoints/notes.txt")));
    assert_true(qn_file_exists(in_run("checkpoints/3-tries")));
    assert_true(qn_file_exists(in_run("checkpoints/00000001/mine.txt")));
    assert_false(qn_file_exists(in_run("checkpoints/00000002")));
    assert_int_equal(resume(skipped), 3);
}

/* For evaluation: the best where there is one, else the newest that is whole. */
static void test_load_run(void **state)
{
    QnArena *arena = qn_arena_new();
    const char *skipped;
    QnProgress p = progress_at(1);
    assert_fails(qn_checkpoint_load_run(run_folder, toy.session->store, NULL, arena, &skipped),
                 QN_ENOTFOUND, "no checkpoint");
    save(1, 2);
    save(2, 2);
    fill(99);
    assert_ok(qn_checkpoint_load_run(run_folder, toy.session->store, NULL, arena, &skipped));
    assert_filled(2);
    fill(50);
    assert_ok(qn_checkpoint_save_best(run_folder, toy.session->store, &p));
    fill(51);
    assert_ok(qn_checkpoint_save_best(run_folder, toy.session->store, &p)); /* replaces it */
    fill(99);
    assert_ok(qn_checkpoint_load_run(run_folder, toy.session->store, NULL, arena, &skipped));
    assert_filled(51);
    assert_null(skipped);
    assert_int_equal(rename(in_run("best"), in_run("best.old")), 0);
    fill(99);
    assert_ok(qn_checkpoint_load_run(run_folder, toy.session->store, NULL, arena, &skipped));
    assert_filled(51);
    damage(in_run("best.old/model.safetensors"), -1);
    damage(in_run("checkpoints/00000002/model.safetensors"), -1);
    assert_ok(qn_checkpoint_load_run(run_folder, toy.session->store, NULL, arena, &skipped));
    assert_filled(1);
    assert_contains(skipped, "best.old");
    assert_contains(skipped, "00000002");
    assert_true(qn_file_exists(in_run("checkpoints/00000002"))); /* reading removes nothing */
    damage(in_run("checkpoints/00000001/model.safetensors"), -1);
    assert_int_not_equal(
        qn_checkpoint_load_run(run_folder, toy.session->store, NULL, arena, &skipped), QN_OK);
    assert_contains(qn_error_last()->text, "00000001");
    qn_arena_free(arena);
}

/* While its index is read, the only checkpoint goes and another comes. */
static void replace_while_read(const char *fifo, const char *index)
{
    FILE *f = fopen(fifo, "w"); /* waits for the reader */
    bool ok =
        f && fputs(index, f) >= 0 && remove(in_run("checkpoints/00000001/model.safetensors")) == 0;
    ok = ok && rename(in_run("later"), in_run("checkpoints/00000002")) == 0;
    _exit(f && fclose(f) == 0 && ok ? 0 : 1);
}

static void test_load_run_that_trains(void **state)
{
    const char *skipped;
    char *index, *fifo = qn_strdup(in_run("checkpoints/00000001/index.json"));
    size_t bytes;
    int status;
    QnArena *arena = qn_arena_new();
    save(2, 2);
    assert_int_equal(rename(in_run("checkpoints/00000002"), in_run("later")), 0);
    save(1, 2);
    assert_ok(qn_file_read(fifo, 1 << 20, &index, &bytes));
    assert_int_equal(remove(fifo), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    pid_t pid = fork();
    if (pid == 0)
        replace_while_read(fifo, index);
    assert_ok(qn_checkpoint_load_run(run_folder, toy.session->store, NULL, arena, &skipped));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_filled(2);
    assert_null(skipped);
    qn_free(index);
    qn_free(fifo);
    qn_arena_free(arena);
}

/* The digest speaks of the model alone, and of every bit of it. */
static void test_digest(void **state)
{
    char a[QN_SHA256_HEX], b[QN_SHA256_HEX];
    QnStore *store = toy.session->store;
    const QnSlot *bias = qn_store_find(store, "out.bias"),
                 *m = qn_store_find(store, "optim.m.out.bias");
    float x[TOY_CLASSES] = { 1, 2, 3, 4 };
    fill(1);
    assert_ok(qn_store_write(store, bias, x));
    assert_ok(qn_checkpoint_digest(store, a));
    assert_ok(qn_store_write(store, m, x));
    assert_ok(qn_checkpoint_digest(store, b));
    assert_string_equal(a, b);
    x[3] = nextafterf(4, 5);
    assert_ok(qn_store_write(store, bias, x));
    assert_ok(qn_checkpoint_digest(store, b));
    assert_string_not_equal(a, b);
}
