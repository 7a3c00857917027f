// SPDX-License-Identifier: Apache-2.0
/// \file
/// The one header of the mega dialect. Include order of the generated files:
/// interfaces, dialect, enums, types, attributes, operations.

#ifndef MEGA_IR_MEGA_H
#define MEGA_IR_MEGA_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mega {

/// Memory that outlives a step: what mega.state declares.
struct StateResource : public mlir::SideEffects::Resource::Base<StateResource> {
  llvm::StringRef getName() final { return "mega.state"; }
};

/// The grid's progress: keeps barriers from being merged or removed.
struct GridBarrierResource
    : public mlir::SideEffects::Resource::Base<GridBarrierResource> {
  llvm::StringRef getName() final { return "mega.grid_barrier"; }
};

/// Counters' progress: keeps signals and waits where they stand.
struct CounterResource
    : public mlir::SideEffects::Resource::Base<CounterResource> {
  llvm::StringRef getName() final { return "mega.counters"; }
};

/// Bytes between two counters of a set: no two share a sector or a line.
constexpr int64_t kCounterStride = 128;

/// Inputs that one packed weight unit covers.
constexpr int64_t kUnitInputs = 128;
/// Outputs that one packed weight unit covers.
constexpr int64_t kUnitOutputs = 16;

/// Name of the module attribute that holds the target.
constexpr llvm::StringLiteral kTargetAttrName = "mega.target";

} // namespace mega

#include "mega/IR/MegaDialect.h.inc"
#include "mega/IR/MegaEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "mega/IR/MegaTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "mega/IR/MegaAttrs.h.inc"

#include "mega/IR/MegaInterfaces.h.inc"

#define GET_OP_CLASSES
#include "mega/IR/Mega.h.inc"

namespace mega {

/// The anchor of its stage that `value` hangs on; null for a prologue value.
AnchorOpInterface anchorBehind(mlir::Value value);

/// Signals that one tile of `anchor` gives a counter in all: one, or one for
/// each step of its reduction where several CTAs share the tile.
int64_t signalsOfTile(AnchorOpInterface anchor);

/// The result of a map of one dimension and one result at `tile`; nothing if it
/// divides by what is not positive.
std::optional<int64_t> evaluateAt(mlir::AffineMap map, int64_t tile);

} // namespace mega

#endif // MEGA_IR_MEGA_H
