/* Values of ONNX models in files: inputs that are given, results that are kept. */
#ifndef QN_CLI_MODEL_VALUES_H
#define QN_CLI_MODEL_VALUES_H

#include "cli/cli.h"
#include "onnx/onnx.h"

/* What is given to a model's inputs: in[i] for input i, NULL where nothing was and an initialiser
 * or the type (optional) permits it. `folder` (may be NULL) has input_0.pb …; then come the words
 * "NAME=FILE" of option number `option`, which go before the folder's. An error lists the model's
 * inputs. */
QnStatus qn_cli_model_inputs(const QnArgs *a, int option, const QnOnnxModel *m, const char *folder,
                             QnArena *arena, QnItem **in);

/* --data's folder is there and, unless n is 0, has one of WHAT_0.pb … WHAT_n-1.pb. */
QnStatus qn_cli_check_folder(const char *folder, const char *what, int64_t n);
/* No name stands twice among the words of option number `option`. */
QnStatus qn_cli_check_once(const QnArgs *a, int option);

/* The words alone; inputs that are not given stay NULL. */
QnStatus qn_cli_some_inputs(const QnArgs *a, int option, const QnOnnxModel *m, QnArena *arena,
                            QnItem **in);

/* A tensor from a .npy file. */
QnStatus qn_cli_read_npy(const char *path, QnArena *arena, QnItem **out);

/* FOLDER/NAME.EXTENSION, with ".NUMBER" before it if it is not negative; characters that lead
 * elsewhere are replaced. */
QnStatus qn_cli_output_path(const char *folder, const char *name, int64_t number,
                            const char *extension, char *out, size_t bytes);

/* Writes a value there: NAME.npy, of a sequence NAME.0.npy …. What .npy does not hold (strings,
 * element types of its own) is written as NAME.pb, a TensorProto. */
QnStatus qn_cli_write_item(const char *folder, const char *name, const QnItem *item);
/* Reads what another program or the above has written for `name`; `like` says of what kind it is.
 * *out is NULL where there is no file. */
QnStatus qn_cli_read_item(const char *folder, const char *name, const QnItem *like, QnArena *arena,
                          QnItem **out);

#endif
