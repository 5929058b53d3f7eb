#include "base/file.h"
#include "base/fault.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every system call goes through one of these, so that a test can make any of them fail. */
static bool fault(void)
{
    if (!qn_fault_hit())
        return false;
    errno = EIO;
    return true;
}

static int open_file(const char *path, int flags, mode_t mode)
{
    int fd;
    do
        fd = fault() ? -1 : open(path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

static ssize_t read_some(int fd, void *data, size_t bytes)
{
    ssize_t n;
    do
        n = fault() ? -1 : read(fd, data, QN_MIN(bytes, (size_t)1 << 30));
    while (n < 0 && errno == EINTR);
    return n;
}

static int write_all(int fd, const void *data, size_t bytes)
{
    const char *p = data;
    while (bytes) {
        ssize_t n = fault() ? -1 : write(fd, p, QN_MIN(bytes, (size_t)1 << 30));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        p += n;
        bytes -= (size_t)n;
    }
    return 0;
}

/* Whether the path is to blame, not the machine. */
static QnStatus code_of(int number)
{
    switch (number) {
    case ENOENT: return QN_ENOTFOUND;
    case EISDIR:
    case ENOTDIR:
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
    case ENAMETOOLONG: return QN_EARG;
    default: return QN_EIO;
    }
}

static QnStatus fail_errno(const char *path, const char *what)
{
    QnStatus code = code_of(errno);
    char text[128];
    const char *reason = strerror_r(errno, text, sizeof text); /* GNU's form */
    return qn_fail(code, "%s: cannot %s: %s", path, what, reason);
}

static QnStatus too_big(const char *path, size_t max_bytes)
{
    return qn_fail(QN_EFORMAT, "%s: larger than the %zu bytes expected at most", path, max_bytes);
}

static QnStatus read_fd(int fd, const char *path, size_t max_bytes, char **data, size_t *bytes)
{
    QnStatus st = QN_OK;
    struct stat info;
    char *buffer = NULL;
    size_t n = 0, cap = 4096;
    if (fault() || fstat(fd, &info) < 0)
        return fail_errno(path, "look at");
    if (S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return fail_errno(path, "read");
    }
    if (S_ISREG(info.st_mode)) {
        if (info.st_size < 0 || (uint64_t)info.st_size > max_bytes)
            return too_big(path, max_bytes);
        cap = (size_t)info.st_size + 1;
    }
    for (;;) {
        if (!buffer || n + 1 >= cap) { /* a pipe, or a file that grew: double what there is */
            cap = buffer ? cap * 2 : cap + 1;
            char *p = qn_realloc(buffer, cap);
            if (!p) {
                st = QN_ENOMEM;
                goto done;
            }
            buffer = p;
        }
        ssize_t got = read_some(fd, buffer + n, cap - n - 1);
        if (got < 0) {
            st = fail_errno(path, "read");
            goto done;
        }
        if (got == 0)
            break;
        n += (size_t)got;
        if (n > max_bytes) {
            st = too_big(path, max_bytes);
            goto done;
        }
    }
    buffer[n] = '\0';
    *data = buffer;
    *bytes = n;
    return QN_OK;
done:
    qn_free(buffer);
    return st;
}

QnStatus qn_file_read(const char *path, size_t max_bytes, char **data, size_t *bytes)
{
    int fd = open_file(path, O_RDONLY, 0);
    if (fd < 0)
        return fail_errno(path, "open");
    QnStatus st = read_fd(fd, path, max_bytes, data, bytes);
    close(fd);
    return st;
}

QnStatus qn_file_map(const char *path, QnFileMap *map)
{
    struct stat info;
    QnStatus st = QN_OK;
    int fd = open_file(path, O_RDONLY | O_NONBLOCK, 0); /* a FIFO would wait for a writer */
    if (fd < 0)
        return fail_errno(path, "open");
    if (fault() || fstat(fd, &info) < 0) {
        st = fail_errno(path, "look at");
    } else if (!S_ISREG(info.st_mode)) {
        st = qn_fail(QN_EARG, "%s: cannot map: not a regular file", path);
    } else if (info.st_size == 0) {
        *map = (QnFileMap){ .data = (const unsigned char *)"", .bytes = 0 };
    } else {
        void *p =
            fault() ? MAP_FAILED : mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            st = fail_errno(path, "map");
        else
            *map = (QnFileMap){ .data = p, .bytes = (size_t)info.st_size };
    }
    close(fd);
    return st;
}

void qn_file_unmap(QnFileMap *map)
{
    if (map->bytes)
        munmap((void *)(uintptr_t)map->data, map->bytes);
    *map = (QnFileMap){ 0 };
}

QnStatus qn_file_create(QnFileOut *out, const char *path)
{
    size_t room = strlen(path) + 40;
    struct stat info;
    *out = (QnFileOut){ .fd = -1 };
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        return qn_fail(QN_EARG, "%s: cannot write: not a regular file, which would replace it",
                       path);
    QnFileOut made = { .fd = -1, .path = qn_strdup(path), .temporary = qn_alloc(room) };
    QnStatus st = QN_ENOMEM;
    if (!made.path || !made.temporary)
        goto done;
    errno = EEXIST; /* a name that a killed process left behind is passed over */
    for (int i = 0; made.fd < 0 && errno == EEXIST && i < 1000; i++) {
        snprintf(made.temporary, room, "%s.tmp-%ld-%d", path, (long)getpid(), i);
        made.fd = open_file(made.temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
    }
    if (made.fd < 0) {
        st = fail_errno(path, "create");
        goto done;
    }
    *out = made;
    return QN_OK;
done:
    qn_free(made.path);
    qn_free(made.temporary);
    *out = (QnFileOut){ .fd = -1 };
    return st;
}

QnStatus qn_file_write(QnFileOut *out, const void *data, size_t bytes)
{
    if (write_all(out->fd, data, bytes) < 0)
        return fail_errno(out->path, "write");
    out->bytes += bytes;
    return QN_OK;
}

static QnStatus sync_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return qn_file_sync_dir(".");
    size_t n = slash == path ? 1 : (size_t)(slash - path);
    char *dir = qn_alloc(n + 1);
    if (!dir)
        return QN_ENOMEM;
    memcpy(dir, path, n);
    QnStatus st = qn_file_sync_dir(dir);
    qn_free(dir);
    return st;
}

QnStatus qn_file_commit(QnFileOut *out)
{
    QnStatus st = QN_OK;
    if (fault() || fsync(out->fd) < 0) {
        st = fail_errno(out->path, "sync");
        goto done;
    }
    int closed = close(out->fd);
    out->fd = -1;
    if (closed < 0) {
        st = fail_errno(out->path, "close");
        goto done;
    }
    if (fault() || rename(out->temporary, out->path) < 0) {
        st = fail_errno(out->path, "replace");
        goto done;
    }
    qn_free(out->temporary); /* has become the file: nothing to remove */
    out->temporary = NULL;
    st = sync_parent(out->path);
done:
    qn_file_discard(out);
    return st;
}

void qn_file_discard(QnFileOut *out)
{
    if (out->temporary && out->fd >= 0)
        close(out->fd);
    if (out->temporary)
        unlink(out->temporary);
    qn_free(out->temporary);
    qn_free(out->path);
    *out = (QnFileOut){ .fd = -1 };
}

QnStatus qn_file_write_atomic(const char *path, const void *data, size_t bytes)
{
    QnFileOut out;
    QN_TRY(qn_file_create(&out, path));
    QnStatus st = qn_file_write(&out, data, bytes);
    if (st != QN_OK) {
        qn_file_discard(&out);
        return st;
    }
    return qn_file_commit(&out);
}

QnStatus qn_file_append(const char *path, const void *data, size_t bytes)
{
    int fd = open_file(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0)
        return fail_errno(path, "open");
    QnStatus st = write_all(fd, data, bytes) < 0 ? fail_errno(path, "write") : QN_OK;
    if (close(fd) < 0 && st == QN_OK)
        st = fail_errno(path, "close");
    return st;
}

bool qn_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

QnStatus qn_file_make_dirs(const char *path)
{
    char *copy = qn_strdup(path);
    if (!copy)
        return QN_ENOMEM;
    QnStatus st = QN_OK;
    for (char *p = copy + 1; copy[0]; p++) {
        bool last = *p == '\0';
        if (*p != '/' && !last)
            continue;
        *p = '\0';
        struct stat info;
        if (fault() || (mkdir(copy, 0777) < 0 && errno != EEXIST)) {
            st = fail_errno(copy, "make the folder");
            break;
        }
        if (last) {
            if (stat(copy, &info) < 0 || !S_ISDIR(info.st_mode))
                st = qn_fail(QN_EARG, "%s: exists and is not a folder", copy);
            break;
        }
        *p = '/';
    }
    qn_free(copy);
    return st;
}

QnStatus qn_file_rename(const char *from, const char *to)
{
    if (fault() || rename(from, to) < 0)
        return fail_errno(to, "rename another file to it");
    return sync_parent(to);
}

QnStatus qn_file_sync(const char *path)
{
    int fd = open_file(path, O_RDONLY, 0);
    if (fd < 0)
        return fail_errno(path, "open");
    QnStatus st = fault() || fsync(fd) < 0 ? fail_errno(path, "sync") : QN_OK;
    close(fd);
    return st;
}

QnStatus qn_file_sync_dir(const char *path)
{
    int fd = open_file(path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return fail_errno(path, "open the folder");
    QnStatus st = QN_OK;
    if ((fault() || fsync(fd) < 0) && errno != EINVAL) /* some file systems cannot: no loss */
        st = fail_errno(path, "sync the folder");
    close(fd);
    return st;
}
