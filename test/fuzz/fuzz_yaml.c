/* YAML: what is accepted must print to text that reads back as the same tree. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "io/yaml.h"

static void want(bool ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    QnYamlDoc *doc, *again;
    char *text, *text2, *json, *json2;
    if (qn_yaml_parse("f", data, size, &doc) != QN_OK)
        return 0;
    want(qn_yaml_print(qn_yaml_root(doc), &text) == QN_OK);
    want(qn_yaml_print_json(qn_yaml_root(doc), &json) == QN_OK);
    want(qn_yaml_parse("g", text, strlen(text), &again) == QN_OK);
    want(qn_yaml_print(qn_yaml_root(again), &text2) == QN_OK);
    want(qn_yaml_print_json(qn_yaml_root(again), &json2) == QN_OK);
    want(!strcmp(text, text2) && !strcmp(json, json2));
    int64_t i = 0;
    bool b = false;
    qn_yaml_int(qn_yaml_root(doc), "a", true, 0, 9, &i);
    qn_yaml_bool(qn_yaml_root(doc), "a.b", true, &b);
    static const char *const known[] = { "a", "batch" };
    qn_yaml_check_keys(qn_yaml_root(doc), known, 2);
    qn_yaml_set(doc, "a.b.c=[1, 2]");
    if (memchr(data, '=', size) && size < 200) {
        char assignment[201] = { 0 };
        memcpy(assignment, data, size);
        qn_yaml_set(doc, assignment);
    }
    qn_free(text);
    qn_free(text2);
    qn_free(json);
    qn_free(json2);
    qn_yaml_free(again);
    qn_yaml_free(doc);
    return 0;
}
