/* The tile functions of all map operators, for one instruction set. */
#include "backend/cpu/cpu.h"
#include "ops/ops_list.h"
#include "ops/tiles_list.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)
#define TILE(name)  JOIN(qn_tile_##name##_, QN_ISA)

#define QN_X(name) QnTileFn TILE(name);
QN_TILE_LIST(QN_X)
#undef QN_X

extern const QnTile JOIN(qn_tiles_, QN_ISA)[];

#define QN_X(name) { &qn_op_##name, TILE(name) },
const QnTile JOIN(qn_tiles_, QN_ISA)[] = { QN_TILE_LIST(QN_X){ 0 } };
