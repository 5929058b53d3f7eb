/* The bytes of a ZIP archive's entries, and their checksum. */
#include "base/mem.h"
#include "io/zip.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#ifdef QN_HAVE_ZLIB
#include <zlib.h>
#endif

static QnStatus entry_fail(const QnZip *z, const QnZipEntry *e, const char *why)
{
    return qn_fail(QN_EFORMAT, "%s: byte %" PRIu64 ": entry '%.200s': %s", qn_zip_path(z),
                   e->offset, e->name, why);
}

#ifdef QN_HAVE_ZLIB

uint32_t qn_zip_crc(uint32_t crc, const void *data, size_t bytes)
{
    const Bytef *p = data;
    uLong c = crc;
    for (; bytes; bytes -= QN_MIN(bytes, (size_t)1 << 30)) {
        uInt n = (uInt)QN_MIN(bytes, (size_t)1 << 30);
        c = crc32(c, p, n);
        p += n;
    }
    return (uint32_t)c;
}

/* zlib's own memory counts as ours. */
static voidpf zlib_alloc(voidpf opaque, uInt items, uInt size)
{
    (void)opaque;
    return qn_alloc_array(items, size);
}

static void zlib_free(voidpf opaque, voidpf p)
{
    (void)opaque;
    qn_free(p);
}

/* Unpacks the first n bytes; whole: there must be no more. */
static QnStatus inflate_some(const QnZip *zip, const QnZipEntry *e, uint8_t *dst, size_t n,
                             bool whole)
{
    z_stream z = { .zalloc = zlib_alloc, .zfree = zlib_free };
    if (inflateInit2(&z, -15) != Z_OK)
        return qn_fail(QN_ENOMEM, "%s: not enough memory to unpack", qn_zip_path(zip));
    QnStatus st = QN_OK;
    size_t in = 0, out = 0;
    int code = Z_OK;
    uint8_t past; /* one byte of room shows that more would come */
    while (code != Z_STREAM_END && (whole || out < n)) {
        bool over = out == n;
        uInt in_now = (uInt)QN_MIN(e->packed_size - in, (uint64_t)INT_MAX);
        uInt out_now = over ? 1 : (uInt)QN_MIN(n - out, (size_t)INT_MAX);
        z.next_in = (z_const Bytef *)(uintptr_t)(e->packed + in);
        z.avail_in = in_now;
        z.next_out = over ? &past : dst + out;
        z.avail_out = out_now;
        code = inflate(&z, Z_NO_FLUSH);
        in += in_now - z.avail_in;
        if (over && !z.avail_out) {
            st = entry_fail(zip, e, "unpacks to more than it declares");
            break;
        }
        out += over ? 0 : out_now - z.avail_out;
        if (code != Z_OK && code != Z_STREAM_END) {
            st = code == Z_MEM_ERROR
                     ? qn_fail(QN_ENOMEM, "%s: not enough memory to unpack", qn_zip_path(zip))
                     : entry_fail(zip, e, "its deflated data are damaged or cut short");
            break;
        }
    }
    if (st == QN_OK && out != n)
        st = entry_fail(zip, e, "unpacks to less than it declares");
    if (st == QN_OK && whole && in != e->packed_size)
        st = entry_fail(zip, e, "holds more than its deflated data");
    inflateEnd(&z);
    return st;
}

#else

uint32_t qn_zip_crc(uint32_t crc, const void *data, size_t bytes)
{
    static const uint32_t table[16] = { 0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                        0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c };
    const uint8_t *p = data;
    crc = ~crc;
    for (size_t i = 0; i < bytes; i++) {
        crc = crc >> 4 ^ table[(crc ^ p[i]) & 15];
        crc = crc >> 4 ^ table[(crc ^ (uint32_t)p[i] >> 4) & 15];
    }
    return ~crc;
}

static QnStatus inflate_some(const QnZip *zip, const QnZipEntry *e, uint8_t *dst, size_t n,
                             bool whole)
{
    (void)dst, (void)n, (void)whole;
    return qn_fail(QN_EUNSUPPORTED,
                   "%s: entry '%.200s' is deflated and this build has no zlib: write the file "
                   "uncompressed (np.savez)",
                   qn_zip_path(zip), e->name);
}

#endif

static QnStatus check_crc(const QnZip *z, const QnZipEntry *e, const void *data)
{
    if (qn_zip_crc(0, data, (size_t)e->size) == e->crc)
        return QN_OK;
    return entry_fail(z, e, "its checksum is wrong: the file is damaged; fetch it again");
}

QnStatus qn_zip_check(const QnZip *z, const QnZipEntry *e)
{
    return check_crc(z, e, e->packed);
}

QnStatus qn_zip_read(const QnZip *z, const QnZipEntry *e, void *dst)
{
    if (e->deflated)
        QN_TRY(inflate_some(z, e, dst, (size_t)e->size, true));
    else if (e->size)
        memcpy(dst, e->packed, (size_t)e->size);
    return check_crc(z, e, dst);
}

QnStatus qn_zip_peek(const QnZip *z, const QnZipEntry *e, void *dst, size_t n)
{
    if (n > e->size)
        return entry_fail(z, e, "is shorter than what it must hold");
    if (e->deflated)
        return inflate_some(z, e, dst, n, false);
    if (n)
        memcpy(dst, e->packed, n);
    return QN_OK;
}
