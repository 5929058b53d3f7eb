/* Writes pickles and PyTorch files as torch.save does, and as it never would. */
#ifndef QN_TEST_IO_PICKLE_MAKE_H
#define QN_TEST_IO_PICKLE_MAKE_H

#include "zip_make.h"

#define PK_PROTO        "\x80\x02"
#define PK_ORDERED_DICT "ccollections\nOrderedDict\n)R"

QN_UNUSED static void pk_text(QnStr *s, const char *text)
{
    qn_str_add(s, "X");
    zip_put(s, strlen(text), 4);
    qn_str_add(s, text);
}

QN_UNUSED static void pk_int(QnStr *s, int64_t v)
{
    qn_str_add(s, "\x8a\x08");
    zip_put(s, (uint64_t)v, 8);
}

QN_UNUSED static void pk_ints(QnStr *s, const int64_t *v, int n)
{
    qn_str_add(s, "(");
    for (int i = 0; i < n; i++)
        pk_int(s, v[i]);
    qn_str_add(s, "t");
}

/* A tensor as the pickle has it. */
typedef struct PkTensor {
    const char *storage, *key; /* "FloatStorage", "0" */
    int64_t elements, offset;
    int rank;
    int64_t dims[9], strides[9];
    bool parameter;
} PkTensor;

QN_UNUSED static void pk_tensor(QnStr *s, const PkTensor *t)
{
    if (t->parameter)
        qn_str_add(s, "ctorch._utils\n_rebuild_parameter\n(");
    qn_str_add(s, "ctorch._utils\n_rebuild_tensor_v2\n((");
    pk_text(s, "storage");
    qn_str_printf(s, "ctorch\n%s\n", t->storage);
    pk_text(s, t->key);
    pk_text(s, "cpu");
    pk_int(s, t->elements);
    qn_str_add(s, "tQ");
    pk_int(s, t->offset);
    pk_ints(s, t->dims, t->rank);
    pk_ints(s, t->strides, t->rank);
    qn_str_add(s, "\x89" PK_ORDERED_DICT "tR");
    if (t->parameter)
        qn_str_add(s, "\x88" PK_ORDERED_DICT "tR");
}

/* The archive around a pickle: storages "0", "1", … */
typedef struct PkStorage {
    const void *data;
    size_t n;
} PkStorage;

QN_UNUSED static void pk_archive(ZipMake *z, const void *pickle, size_t n,
                                 const PkStorage *storages, int n_storages)
{
    char name[40];
    zip_add(z, &(ZipEntry){ .name = "archive/data.pkl", .data = pickle, .n = n });
    zip_add(z, &(ZipEntry){ .name = "archive/byteorder", .data = "little", .n = 6 });
    for (int i = 0; i < n_storages; i++) {
        snprintf(name, sizeof name, "archive/data/%d", i);
        zip_add(z, &(ZipEntry){ .name = name, .data = storages[i].data, .n = storages[i].n });
    }
    zip_add(z, &(ZipEntry){ .name = "archive/version", .data = "3\n", .n = 2 });
    zip_end(z, true);
}

#endif
