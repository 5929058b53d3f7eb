/* The program's frame: commands, options, exit codes, errors in one line. */
#ifndef QN_CLI_CLI_H
#define QN_CLI_CLI_H

#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "onnx/onnx.h"
#include "rt/select.h"

typedef enum QnExit {
    QN_EXIT_OK = 0,
    QN_EXIT_FAILED = 1,
    QN_EXIT_USAGE = 2,       /* bad usage or bad input */
    QN_EXIT_DIFFERENT = 3,   /* results are not as expected */
    QN_EXIT_UNSUPPORTED = 4, /* a model that has what we do not support */
    QN_EXIT_INTERRUPTED = 130,
} QnExit;

typedef enum QnOptionKind {
    QN_OPTION_FLAG,
    QN_OPTION_TEXT,
    QN_OPTION_INT,  /* min..max */
    QN_OPTION_MANY, /* key=value words up to the next option, or repeated */
} QnOptionKind;

typedef struct QnOption {
    const char *name; /* "--seed"; NULL: the number is another command's */
    char letter;      /* 'o' for -o; 0: none */
    QnOptionKind kind;
    const char *value; /* what stands for it in help: "N" */
    const char *help;
    int64_t min, max;
} QnOption;

enum { QN_ARGS_MAX = 256 };

/* What was given, in the order of the command's option table. */
typedef struct QnArgs {
    const struct QnCommand *command;
    const char *positional[QN_ARGS_MAX];
    int n_positional;
    const char *text[96]; /* by option number; NULL: not given; flags: "" */
    int64_t number[96];
    const char *many[QN_ARGS_MAX];
    int many_of[QN_ARGS_MAX]; /* number of the option that many[i] was given to */
    int n_many;
    int64_t start_ns; /* when the process began */
    bool json;
    QnLog log;
} QnArgs;

typedef struct QnCommand {
    const char *name; /* "plan", or of a command of it "plan devices" */
    const char *summary;
    const char *usage;    /* "RECIPE [options]" */
    const char *examples; /* lines */
    const QnOption *options;
    int n_options;
    int min_positional, max_positional;
    bool hidden;           /* for the developers of Quern: not in help and manual */
    int (*run)(QnArgs *a); /* gives the exit code */
    const struct QnCommand *const
        *subs; /* commands of its own, by its first word; ends with NULL */
} QnCommand;

/* The command of `c` that is called `word`, or NULL. */
const QnCommand *qn_cli_sub(const QnCommand *c, const char *word);

/* Prints this thread's error to stderr in one line (with --json, as an object to stdout too) and
 * gives the exit code that fits its status. */
int qn_cli_fail(const QnArgs *a);

/* The same for commands on ONNX models: first the nodes that are not supported, if that is why
 * (`problems` may be NULL); the code is then QN_EXIT_UNSUPPORTED. */
int qn_cli_fail_model(const QnArgs *a, const QnOnnxProblems *problems);

/* A number of at least 0 that was given to option number `option`. */
QnStatus qn_cli_number(const QnArgs *a, int option, double otherwise, double *out);

/* Prints one JSON object line from a finished writer. */
void qn_cli_print_json(QnStr *text);

/* What --device and --device-memory ask for. */
typedef struct QnDeviceWish {
    const char *name;     /* NULL: the CPU */
    int64_t memory_bytes; /* 0: all */
    const QnLog *log;     /* is told what "auto" has chosen, and what a device lacks; may be NULL */
} QnDeviceWish;
#define QN_DEVICE_HELP        "cpu (default), opencl:0 …, cuda:0 … or auto: the fastest"
#define QN_DEVICE_MEMORY_HELP "of the device that may be used, such as 6G; more lies on the host"

/* The device that it, --threads and determinism name. */
QnStatus qn_cli_open_device(const QnDeviceWish *w, int64_t n_threads, bool strict, QnDevice **out);
/* The same by name alone. */
QnStatus qn_cli_device(const char *name, int64_t n_threads, bool strict, QnDevice **out);

/* A size that was given to option number `option`: bytes, or with K, M, G, T of 1024 each; 0 where
 * it was not. */
QnStatus qn_cli_bytes(const QnArgs *a, int option, int64_t *out);

/* It is not the null device, which is there to be planned for alone. */
QnStatus qn_cli_check_computes(const QnDevice *d);

/* Columns that line up; rows of n cells. */
void qn_cli_table(FILE *out, const char *const *cells, int n_columns, int n_rows,
                  const char *align); /* a letter a column: l or r */

/* What `quern tune` has measured on this machine. */
QnStatus qn_cli_choices(QnChoices **out);

extern const QnCommand *const qn_cli_commands[]; /* ends with NULL */

#endif
