/* External tensors: files of the model's own folder, and of no other place. */
#include "base/compiler.h"
#include "base/file.h"
#include "base/mem.h"

#ifdef QN_HAVE_ONNX
#include "io/onnx_file.h"
#include "io/onnx_read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each part of the path is opened by itself and no link is followed, so that nobody can put one in
 * between the check and the use. */
static QnStatus open_below(const char *folder, const char *location, int *out)
{
    char part[256];
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return qn_fail(QN_EIO, "the model's folder %s cannot be opened: %s", folder,
                       strerror(errno));
    for (const char *p = location;;) {
        size_t n = strcspn(p, "/");
        bool last = !p[n];
        if (n == 0 || n >= sizeof part || (n == 1 && p[0] == '.') ||
            (n == 2 && p[0] == '.' && p[1] == '.')) {
            close(fd);
            return qn_fail(QN_EFORMAT,
                           "location '%s' is not a plain path inside the model's folder", location);
        }
        memcpy(part, p, n);
        part[n] = 0;
        int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (last ? O_NONBLOCK : O_DIRECTORY);
        int below = openat(fd, part, flags);
        int why = errno;
        close(fd);
        if (below < 0)
            return qn_fail(why == ELOOP || why == ENOTDIR ? QN_EFORMAT
                           : why == ENOENT                ? QN_ENOTFOUND
                                                          : QN_EIO,
                           "location '%s': '%s' cannot be opened: %s", location, part,
                           why == ELOOP ? "it is a symbolic link" : strerror(why));
        fd = below;
        if (last)
            break;
        p += n + 1;
    }
    *out = fd;
    return QN_OK;
}

static QnStatus map_file(int fd, const char *location, QnOnnxMapped *m)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return qn_fail(QN_EIO, "location '%s': %s", location, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return qn_fail(QN_EFORMAT, "location '%s' is no regular file", location);
    if (info.st_nlink > 1)
        return qn_fail(QN_EFORMAT,
                       "location '%s' has a second name (a hard link), which may lie "
                       "outside the model's folder; copy the file",
                       location);
    m->bytes = (size_t)info.st_size;
    m->data = NULL;
    if (m->bytes == 0)
        return QN_OK;
    void *p = mmap(NULL, m->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return qn_fail(QN_EIO, "location '%s' cannot be mapped: %s", location, strerror(errno));
    m->data = p;
    return QN_OK;
}

static QnStatus find_or_map(QnOnnxReader *r, const char *location, const QnOnnxMapped **out)
{
    QnOnnxFile *f = r->owner;
    for (int64_t i = 0; i < f->n_mapped; i++)
        if (!strcmp(f->mapped[i].location, location)) {
            *out = &f->mapped[i];
            return QN_OK;
        }
    int fd = -1;
    QN_TRY(QN_GROW(f->mapped, f->cap_mapped, f->n_mapped));
    QN_TRY(open_below(r->folder, location, &fd));
    QnOnnxMapped m = { .location = qn_arena_strdup(r->arena, location) };
    QnStatus st = m.location ? map_file(fd, location, &m) : QN_ENOMEM;
    close(fd);
    QN_TRY(st);
    f->mapped[f->n_mapped] = m;
    *out = &f->mapped[f->n_mapped++];
    return QN_OK;
}

QnStatus qn_onnx_external(QnOnnxReader *r, const char *location, uint64_t offset, uint64_t length,
                          const unsigned char **data, uint64_t *bytes)
{
    const QnOnnxMapped *m;
    if (!r->owner || !r->folder)
        return qn_fail(QN_EFORMAT, "location '%s': tensors in other files are not taken here",
                       location);
    QN_TRY(find_or_map(r, location, &m));
    if (offset > m->bytes || length > m->bytes - offset)
        return qn_fail(QN_EFORMAT, "location '%s' has %zu bytes; %llu at offset %llu are asked for",
                       location, m->bytes, (unsigned long long)length, (unsigned long long)offset);
    *data = m->data ? m->data + offset : (const unsigned char *)"";
    *bytes = length;
    return QN_OK;
}
#endif
