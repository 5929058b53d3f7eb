/* The operator descriptor: all that the rest of Quern knows of an operator. One file in src/ops
 * defines one `const QnOp`; its address is the operator's identity. */
#ifndef QN_IR_OP_H
#define QN_IR_OP_H

#include "ir/shape.h"
#include "quern/graph.h"

struct QnOnnxMap; /* ops/onnx.h */
struct QnOnnxPut; /* ops/onnx_put.h */

enum { QN_MAX_OUT = 32, QN_MAX_IN = 1024, QN_SAMPLE_IN = 9 };

/* ---- attributes ------------------------------------------------------------------------------ */

typedef enum QnAttrKind {
    QN_ATTR_INT,    /* int64_t */
    QN_ATTR_FLOAT,  /* double */
    QN_ATTR_BOOL,   /* bool */
    QN_ATTR_ENUM,   /* int, index into .names */
    QN_ATTR_DTYPE,  /* QnDtype */
    QN_ATTR_STRING, /* const char *, never NULL after emission */
    QN_ATTR_INTS,   /* QnInts */
    QN_ATTR_DIMS,   /* QnDims: may hold symbols */
    QN_ATTR_DATA,   /* QnData */
    QN_ATTR_BODY,   /* const QnBody *: a fused group of maps */
} QnAttrKind;

/* Element data of a constant: row-major, of the dtype that the operator's attributes name. */
typedef struct QnData {
    size_t bytes;
    const void *p;
    bool lasting; /* it outlives every graph and plan that has it, and is not copied */
} QnData;

/* A fused group of maps: straight-line code over scalars. Operand k is input k for k < n_in, else
 * the result of instruction k - n_in. */
typedef struct QnBodyInstr {
    const QnOp *op; /* a map */
    const void *attr;
    int arg[3];
    QnDtype dtype; /* results are rounded to it */
} QnBodyInstr;

struct QnBody {
    int n_in, n_instr, n_out;
    const QnBodyInstr *instr;
    const int *out; /* instruction numbers that become outputs */
};

/* One row per attribute. One table drives parsing, printing, hashing, range checks and docs. */
typedef struct QnAttrField {
    const char *name;
    QnAttrKind kind;
    size_t offset;            /* in the operator's Attr struct */
    double def;               /* default of int, float, bool, enum, dtype */
    double min, max;          /* inclusive range of int and float; both 0: any */
    const char *const *names; /* enum: NULL-terminated */
    const char *doc;          /* what it means, with its unit */
} QnAttrField;

#define QN_ATTRS(Type, table)                                                                      \
    .attr_bytes = sizeof(Type), .fields = (table), .n_fields = QN_COUNT(table)

/* ---- inference, cost, reference, gradient ---------------------------------------------------- */

typedef struct QnInfer {
    QnGraph *graph; /* for arithmetic on symbolic dims (qn_dim_*); may not emit nodes */
    const void *attr;
    int n_in;
    const QnType *const *in; /* in[i]->dtype, ->shape */
    int n_out;               /* preset to op->n_out; operators with a variable number set it */
    QnType out[QN_MAX_OUT];  /* to fill; layout stays plain */
} QnInfer;

/* What one run of the node must at least do and move. */
typedef struct QnCost {
    double flops; /* a multiply-add is 2; an elementary function counts as the op says */
    double bytes_read, bytes_written;
} QnCost;

/* Row-major float64 copies of every tensor whatever its dtype; bool is 0 or 1. With i64_bits (only
 * for operators with QN_MOVES_DATA, which copy them as they are, or QN_WHOLE, which know of them:
 * ops/whole.h), the elements of i64 and u64 tensors are bit patterns in the doubles, except in the
 * inputs of the operator's .index_in mask. */
typedef struct QnRefArgs {
    const QnNode *node;
    const void *attr;
    int n_in, n_out;
    const QnType *const *in_type; /* concrete */
    const QnType *const *out_type;
    const double *const *in; /* NULL: an absent input */
    double *const *out;
    bool i64_bits;
} QnRefArgs;

typedef enum QnTrait {
    QN_MAP = 1 << 0,        /* elementwise with numpy broadcasting; .map is set */
    QN_REDUCE = 1 << 1,     /* folds axes away */
    QN_ROWWISE = 1 << 2,    /* independent rows along one axis */
    QN_MOVES_DATA = 1 << 3, /* output elements are copies of input elements */
    QN_VIEW = 1 << 4,       /* output 0 has input 0's elements in the same row-major order */
    QN_LEAF = 1 << 5,       /* no inputs: input, state, constants */
    QN_EFFECT = 1 << 6,     /* kept even if unused (assign) */
    QN_COMMUTATIVE = 1 << 7,
    QN_RANDOM = 1 << 8,      /* draws from the counter-based generator; pure given its inputs */
    QN_ANY_LAYOUT = 1 << 9,  /* works on channels-last tensors if all its rank>=3 tensors are so */
    QN_NO_GRAD = 1 << 10,    /* has no useful derivative: gradients stop here, silently */
    QN_NO_FOLD = 1 << 11,    /* do not evaluate at compile time even if all inputs are constant */
    QN_FLOAT_ONLY = 1 << 12, /* maps: integer and bool inputs are refused */
    QN_INPUT = 1 << 13,      /* a leaf that is fed; its string attribute "name" says by what name */
    QN_STATE = 1 << 14,      /* a leaf that lives across runs, with a "name" likewise */
    QN_ANY_DTYPE = 1 << 15,  /* takes dtypes that are for storage alone, as leaves and operators
                              * that move data do */
    QN_WHOLE = 1 << 16,      /* its reference computes integers exactly, and they wrap */
    QN_TEXT_F8 = 1 << 17,    /* its device text reads and writes f8e4m3fn and f8e5m2 */
    QN_RELAYOUT = 1 << 18,   /* changes the order of elements in memory alone */
} QnTrait;

/* ---- maps ------------------------------------------------------------------------------------ */

enum { QN_MAP_MAX_IN = 3, QN_MAP_MAX_PARAM = 4 };

/* Elementwise operators. The scalar device function `<name>_f(float x0, …, float param0, …)` stands
 * in the op file as QN_SCALAR text; its parameters are the operator's float attributes in order. */
typedef struct QnMapInfo {
    double (*ref)(const double *x, const double *param); /* scalar, float64 */
    int64_t (*ref_int)(const int64_t *x);                /* optional: exact on integer dtypes */
    uint64_t (*ref_uint)(const uint64_t *x);             /* optional: where u64 differs from i64 */
    /* optional: as ref_int, for maps with attributes; not in device text */
    int64_t (*ref_int_attr)(const int64_t *x, const void *attr, bool is_unsigned);
    /* optional: what a float result becomes before it is stored, by attributes */
    double (*finish)(double y, const void *attr);
    double flops; /* a call */
} QnMapInfo;

/* ---- samples --------------------------------------------------------------------------------- */

typedef struct QnSampleIn {
    int rank;
    int64_t dim[QN_MAX_RANK];
    QnDtype dtype;   /* default f32 */
    double lo, hi;   /* range of values; both 0: the sample's. Integers: lo..hi inclusive */
    double keep_off; /* float values stay at least this far from multiples of `kink` */
    double kink;     /* e.g. 1.0 for round; 0: values keep off zero */
    bool distinct;   /* all values differ by at least 1e-2 (max, sort) */
    bool wide;       /* f32 where the others are 16 bits: statistics */
} QnSampleIn;

typedef enum QnSampleFlag {
    QN_SAMPLE_NO_GRAD = 1 << 0,  /* no gradient check; the reason stands beside it */
    QN_SAMPLE_NO_GRAD2 = 1 << 1, /* no second-order check */
    QN_SAMPLE_F32_ONLY = 1 << 2, /* not run in f16 and bf16 */
} QnSampleFlag;

typedef struct QnSample {
    QnSampleIn in[QN_SAMPLE_IN]; /* as many as given have rank > 0 or scalar set below */
    int n_in;                    /* number of inputs */
    const void *attr;            /* NULL: defaults */
    double lo, hi;               /* default range of inputs; both 0: -1..1 */
    unsigned flags;
} QnSample;

typedef struct QnTol { /* |got - want| <= tol * (1 + |want|), 0: the dtype's default */
    double f32, f16, bf16, f64;
} QnTol;

/* ---- device text ----------------------------------------------------------------------------- */

enum { QN_DEVICE_MAX_ARG = 40 };

/* One launch of a kernel of the operator's device text (see ops/dialect.h). Its arguments are the
 * outputs, then the inputs, then these scalars. Maps need none: their kernels are printed from the
 * scalar function. */
typedef struct QnDeviceCall {
    const char *kernel; /* function in the text */
    /* With group_size 0, optional: the same as a function that takes the item's number before the
     * other arguments. Many launches of one text can then be one (rt/batch.h). */
    const char *at;
    int64_t n_groups; /* work groups, each of group_size items */
    int group_size;   /* 0: the device chooses, n_groups counts items */
    /* NULL, or a second stage: a kernel of the same arguments, launched after the first as
     * then_groups groups of group_size items. */
    const char *then;
    int64_t then_groups;
    /* Between inputs and scalars stands a pointer to so many bytes that the stages share; nothing
     * can be read behind it where they are 0. */
    bool has_work;
    int64_t work_bytes;
    /* Of operators with a body (rt/devtext_product.c): the text sees the result's axes as three
     * runs of them, of which the second and third begin at run[0] and run[1]. A bias ends at axis
     * `bias_axis` of the result. */
    int run[2], bias_axis;
    int n_arg;
    struct {
        bool is_float; /* float; otherwise a 64-bit integer */
        int64_t i;
        double f;
    } arg[QN_DEVICE_MAX_ARG];
} QnDeviceCall;

void qn_device_int(QnDeviceCall *c, int64_t v);
void qn_device_float(QnDeviceCall *c, double v);

/* ---- the descriptor -------------------------------------------------------------------------- */

struct QnOp {
    const char *name; /* snake_case; text IR, docs and recipes use it */
    int version;      /* raised when the meaning of files written with it changes */
    const char *doc;  /* one line */

    int n_in, n_in_max; /* inputs; n_in_max 0: exactly n_in; QN_MAX_IN: any number from n_in.
                         * Optional inputs are the last ones. */
    int n_out;          /* 1 unless given; -1: infer says */
    unsigned traits;    /* QnTrait */

    size_t attr_bytes;
    const QnAttrField *fields;
    int n_fields;

    /* Output types or an error that names the op, the shapes and what would fit. NULL for maps:
     * broadcast shape, dtype of the inputs (which must agree). Required otherwise. */
    QnStatus (*infer)(QnInfer *c);
    /* optional: NULL counts every input read and output written once, and map->flops an element */
    QnCost (*cost)(const QnNode *n);
    /* float64 reference, slow and obviously right. NULL only with .lower or .map. An error names
     * the element (an index out of range). */
    QnStatus (*ref)(const QnRefArgs *a);
    /* Emits the gradient: dy[i] is NULL where output i has none; leave dx[i] NULL where input i
     * gets none. NULL with QN_NO_GRAD, or with .lower (then the lowered graph is differentiated).*/
    void (*grad)(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx);
    /* Composite: emits the same function in other operators, values into out[0..n_out). */
    void (*lower)(QnGraph *g, QnNode *n, QnValue **out);

    const QnMapInfo *map; /* with QN_MAP */

    unsigned
        index_in; /* with QN_MOVES_DATA or QN_WHOLE: bit i set, input i holds indices, not data */

    unsigned inplace; /* bit i: output 0 may be written over input i by any kernel (maps: all).
                       * For several outputs: output k over input k where bit k is set and
                       * .inplace_pairs */
    bool inplace_pairs;

    const char *device; /* device text embedded from this file (QN_TEXT), NULL: none */
    /* With .device, except for maps: how to launch it for this node (types concrete); an error
     * says why the text does not cover it. */
    QnStatus (*call)(const QnNode *n, QnDeviceCall *c);

    const struct QnOnnxMap *onnx; /* the ONNX operators that it stands for: ops/onnx.h */
    int n_onnx;
    /* The way back: the node as nodes of ONNX's opset 17 or newer (ops/onnx_put.h). NULL: a row
     * without a function is written as it is read; composites without either are lowered. */
    QnStatus (*onnx_put)(struct QnOnnxPut *p, const QnNode *n);
    const char *onnx_writes; /* all that onnx_put writes: "Gemm,MatMul"; the writer checks it */

    const QnSample *samples;
    int n_samples;
    QnTol tol;
};

/* The text of src/ops/<stem>.c, embedded by the build. */
#define QN_TEXT(stem) qn_text_##stem

#define QN_SAMPLES(table) .samples = (table), .n_samples = QN_COUNT(table)

/* Inference of maps, for operators that only change the dtype afterwards: out[0].shape is the
 * broadcast of all inputs' shapes; qn_infer_map also sets the dtype, which all inputs share. */
QnStatus qn_infer_broadcast(QnInfer *c, const char *op_name);
QnStatus qn_infer_map(QnInfer *c, const QnOp *op);

/* Attributes by their table (ir/attr.c). */
void qn_attr_defaults(const QnOp *op, void *attr);
const QnAttrField *qn_attr_find(const QnOp *op, const char *name);
/* Checks ranges, enum indices and that strings are not NULL. */
QnStatus qn_attr_check(const QnOp *op, const void *attr);
bool qn_attr_is_equal(const QnOp *op, const void *a, const void *b);
uint64_t qn_attr_hash(const QnOp *op, const void *attr);
/* The float attributes in order, as maps take them; returns how many. */
int qn_attr_floats(const QnOp *op, const void *attr, double out[QN_MAP_MAX_PARAM]);

/* The default cost: every input read and every output written once, map flops an element. */
QnCost qn_cost_of(const QnNode *n);

#endif
