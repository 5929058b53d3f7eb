/* Bodies of maps as straight-line code over tiles that stay in the first-level cache, each
 * instruction one vectorised loop. A tile is a run of the result's memory; operands that are
 * broadcast or lie in another order are gathered into a register first. */
#ifndef QN_BACKEND_CPU_TAPE_H
#define QN_BACKEND_CPU_TAPE_H

#include "backend/cpu/convert.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/stream.h"

enum { QN_TAPE_TILE = 512, QN_TAPE_MAX_INSTR = 64, QN_TAPE_MAX_OPERAND = 32 };
enum { QN_TAPE_MAX_REG = QN_TAPE_MAX_INSTR + QN_TAPE_MAX_OPERAND };

typedef enum QnTapeAccess {
    QN_TAPE_CONTIGUOUS,
    QN_TAPE_SCALAR,
    QN_TAPE_PERIODIC, /* the same for every tile, such as one value a channel of channels-last
                       * images */
    QN_TAPE_ROW,      /* likewise, of more channels than a tile has elements: read as it lies */
    QN_TAPE_STRIDED
} QnTapeAccess;

typedef struct QnTapeOperand {
    QnTapeAccess access;
    QnDtype dtype;
    int64_t stride[QN_MAX_RANK]; /* by collapsed axis of the result; strided */
} QnTapeOperand;

typedef struct QnTapeInstr {
    QnTileFn *fn;
    int arg[QN_MAP_MAX_IN]; /* registers */
    int n_arg, to;          /* register */
    int out;                /* output it is stored to, -1: none */
    QnDtype round;          /* what a later instruction reads is of this type; F32: as it is */
    float param[QN_MAP_MAX_PARAM];
} QnTapeInstr;

typedef struct QnTape {
    const QnConvertFns *convert;
    int n_in, n_instr, n_out, n_reg;
    int rank;     /* collapsed */
    int64_t step; /* tiles begin at its multiples */
    bool fetches; /* operands, ahead of the tile that needs them */
    int64_t dim[QN_MAX_RANK], count;
    QnTapeOperand in[QN_TAPE_MAX_OPERAND];
    QnDtype out_dtype[QN_TAPE_MAX_OPERAND];
    QnStreamFn *stream[QN_TAPE_MAX_OPERAND]; /* outputs that are written past the caches */
    QnTapeInstr instr[QN_TAPE_MAX_INSTR];
} QnTape;

/* NULL if the body can run on operands of these types, else the reason that kernels give. */
const char *qn_tape_refuses(const QnBody *b, const QnType *const *in, const QnKernelEnv *env);
/* y: shape and layout of the result. Tiles that are run begin at multiples of `step`; 0: at those
 * of t->step, which is chosen then, and as long. */
void qn_tape_init(QnTape *t, const QnKernelEnv *env, const QnBody *b, const QnType *const *in,
                  const QnType *y, int64_t step);
/* Floats of registers that one worker needs. */
static inline int64_t qn_tape_floats(const QnTape *t)
{
    return (int64_t)t->n_reg * QN_TAPE_TILE;
}

/* Once for a worker, before its first tile: operands that are the same for all. */
void qn_tape_begin(const QnTape *t, const void *const *in, float *registers);
/* Elements [i, i+n) of the result's memory, n <= QN_TAPE_TILE. `out` NULL: output 0 is not stored;
 * where it stands in f32 is returned, for as long as registers and operands last. An output may be
 * the memory of an operand of its type that is walked as it lies. qn_stream_end follows the last
 * tile of a worker. */
const float *qn_tape_run(const QnTape *t, const void *const *in, void *const *out, float *registers,
                         int64_t i, int64_t n);

#endif
