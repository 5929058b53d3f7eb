/* labels: threads
 * What base shares between threads: the allocation counter and the fault counter; and what it must
 * not share: the error record. */
#include "test.h"

#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4, ROUNDS = 2000 };

typedef struct Job {
    int id;
    QnLog *log;
    int failed;
} Job;

static void *work(void *arg)
{
    Job *job = arg;
    char mine[32];
    snprintf(mine, sizeof mine, "thread %d", job->id);
    qn_fail(QN_EARG, "%s", mine);
    for (int i = 0; i < ROUNDS; i++) {
        void *p = qn_alloc(16);
        job->failed += !p;
        qn_free(p);
    }
    for (int i = 0; i < 50; i++)
        qn_log_info(job->log, "message %d of thread %d", i, job->id);
    if (!job->failed && strcmp(qn_error_last()->text, mine) != 0)
        job->failed = -1;
    return NULL;
}

static int run(QnLog *log)
{
    pthread_t threads[THREADS];
    Job jobs[THREADS];
    int failed = 0;
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (Job){ .id = i, .log = log };
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(jobs[i].failed >= 0);
        failed += jobs[i].failed;
    }
    return failed;
}

static void test_counters_lose_nothing(void **state)
{
    uint64_t before = qn_alloc_count();
    assert_int_equal(run(NULL), 0);
    assert_int_equal(qn_alloc_count() - before, THREADS * ROUNDS);
}

static void test_a_fault_hits_exactly_one_thread(void **state)
{
    qn_fault_arm(THREADS * ROUNDS / 2);
    int failed = run(NULL);
    qn_fault_arm(0);
    assert_int_equal(failed, 1);
}

static void test_messages_stay_whole(void **state)
{
    QnLog log;
    FILE *f = tmpfile();
    int lines = 0, i, id;
    char line[128], rest;
    qn_log_init(&log, f, QN_LOG_INFO);
    assert_int_equal(run(&log), 0);
    rewind(f);
    for (; fgets(line, sizeof line, f); lines++)
        assert_int_equal(sscanf(line, "message %d of thread %d%c", &i, &id, &rest), 3);
    fclose(f);
    assert_int_equal(lines, THREADS * 50);
}
